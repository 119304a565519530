"""Local scores: decomposable objectives, which score a child given its parents.

A search can ask a :class:`LocalScore` for ``score(child | parents)``, for many parent sets at a
time. Nodes are indices; ``learn`` converts them to names. :class:`CompiledLocalScore` wraps a C
function, :class:`PythonLocalScore` any Python function, which is the way to add your own score.

A local score contains addresses and functions, which are invalid in another process. It is pickled
and copied as its :class:`Recipe`: the score and the statistics that it was bound to.
"""

from __future__ import annotations

import ctypes
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import MismatchError
from isthmus.graphs import DAG
from isthmus.kernels import scoring
from isthmus.objectives.base import Capabilities, Capability, Objective, Sense
from isthmus.objectives.score_bound import ScoreBound

_SCORE_TYPE = ctypes.CFUNCTYPE(ctypes.c_int64, *(ctypes.c_int64,) * 7)


class Recipe(NamedTuple):
    """How an objective was built: ``bind(statistics)`` builds it again."""

    bind: Callable[[Any], Any]
    statistics: Any


LOCAL_SCORES: Capability[LocalScore] = Capability("local scores of parent sets")
"""``score(child | parents)`` for any parent set; see `LocalScore`."""


class LocalScore(Objective):
    """A decomposable objective to be maximised.

    Attributes
    ----------
    nodes
        Names of the variables; an index means a position in this tuple.
    equivalent
        Whether Markov-equivalent graphs always have the same total.
    recipe
        The score and the statistics that it was bound to, set by ``Score.bind``; None for an
        objective that was not built by a score.
    """

    sense: ClassVar[Sense] = Sense.MAXIMISE
    capabilities: Capabilities = frozenset({LOCAL_SCORES})
    recipe: Recipe | None = None

    @property
    @abstractmethod
    def handle(self) -> tuple[int, int]:
        """Addresses of the score's C function and of its data; see ``isthmus.numerics.abi``."""

    @cached_property
    def kernel(self) -> scoring.LocalScore:
        """The score as an object of the compiled core, which searches use."""
        return scoring.foreign_score(len(self.nodes), self.handle, keep=self)

    @property
    @abstractmethod
    def ceiling(self) -> ScoreBound | None:
        """Upper bound on the scores of supersets of a parent set, if known."""

    @abstractmethod
    def extensions(
        self, child: int, parents: Sequence[int], candidates: Sequence[int]
    ) -> NDArray[np.float64]:
        """Return the scores of ``parents`` and of each extension by one candidate.

        Returns
        -------
        array
            Entry 0 is ``score(child | parents)``, entry ``1 + j`` is
            ``score(child | parents + candidates[j])``.
        """

    @abstractmethod
    def raise_failure(self) -> None:
        """Raise the exception of a failed call through :attr:`handle`."""

    def __reduce__(self) -> tuple[Any, ...]:
        if self.recipe is None:
            raise MismatchError(
                f"This {type(self).__name__} was not built by the bind method of a score, so it "
                "cannot be pickled or copied. Pickle the score and the statistics instead, and "
                "bind them in the other process."
            )
        return self.recipe.bind, (self.recipe.statistics,)

    @final
    def local(self, child: int, parents: Sequence[int]) -> float:
        """Return the score of a child given its parents."""
        return float(self.extensions(child, parents, ())[0])

    @final
    def total(self, dag: DAG) -> float:
        """Return the score of a graph over the same nodes."""
        position = {name: i for i, name in enumerate(self.nodes)}
        return sum(
            self.local(position[node], [position[p] for p in dag.parents(node)])
            for node in dag.nodes
        )


@final
class CompiledLocalScore(LocalScore):
    """A local score that is computed by a C function.

    Parameters
    ----------
    nodes
        Names of the variables.
    address
        Address of the function.
    data
        Its data, as one array of 64-bit integers.
    keep
        Objects that ``data`` points to, kept alive as long as this object.
    equivalent
        Whether Markov-equivalent graphs always have the same total.
    ceiling
        Returns :attr:`ceiling`; called when it is first used.
    """

    def __init__(
        self,
        nodes: Sequence[str],
        address: int,
        data: NDArray[np.int64],
        keep: tuple[Any, ...],
        *,
        equivalent: bool,
        ceiling: Callable[[], ScoreBound] | None = None,
    ) -> None:
        self.nodes = tuple(nodes)
        self.equivalent = equivalent
        self._address = address
        self._data = data
        self._keep = keep
        self._make_ceiling = ceiling
        self._function = _SCORE_TYPE(address)

    @property
    def handle(self) -> tuple[int, int]:
        return self._address, self._data.ctypes.data

    @cached_property
    def ceiling(self) -> ScoreBound | None:
        return None if self._make_ceiling is None else self._make_ceiling()

    def extensions(
        self, child: int, parents: Sequence[int], candidates: Sequence[int]
    ) -> NDArray[np.float64]:
        given = np.asarray(parents, dtype=np.int64)
        added = np.asarray(candidates, dtype=np.int64)
        out = np.empty(len(added) + 1)
        self._function(
            self._data.ctypes.data,
            child,
            given.ctypes.data,
            len(given),
            added.ctypes.data,
            len(added),
            out.ctypes.data,
        )
        return out

    def raise_failure(self) -> None:
        """Do nothing, because compiled scores do not fail."""


@final
class PythonLocalScore(LocalScore):
    """A local score written in Python; its values are cached.

    Parameters
    ----------
    nodes
        Names of the variables.
    function
        ``function(child, parents)`` with indices, parents in ascending order; returns the score.
    equivalent
        Whether Markov-equivalent graphs always have the same total.
    ceiling
        Returns :attr:`ceiling`; called when it is first used.
    """

    def __init__(
        self,
        nodes: Sequence[str],
        function: Callable[[int, tuple[int, ...]], float],
        *,
        equivalent: bool,
        ceiling: Callable[[], ScoreBound] | None = None,
    ) -> None:
        self.nodes = tuple(nodes)
        self.equivalent = equivalent
        self._score = function
        self._make_ceiling = ceiling
        self._cache: dict[tuple[int, tuple[int, ...]], float] = {}
        self._failure: BaseException | None = None
        self._callback = _SCORE_TYPE(self._called)

    @cached_property
    def kernel(self) -> scoring.LocalScore:
        return scoring.python_score(len(self.nodes), self._one)

    @property
    def handle(self) -> tuple[int, int]:
        """Address of a C function that calls the Python function."""
        return ctypes.cast(self._callback, ctypes.c_void_p).value or 0, 0

    @cached_property
    def ceiling(self) -> ScoreBound | None:
        return None if self._make_ceiling is None else self._make_ceiling()

    def extensions(
        self, child: int, parents: Sequence[int], candidates: Sequence[int]
    ) -> NDArray[np.float64]:
        base = tuple(sorted(int(p) for p in parents))
        out = np.empty(len(candidates) + 1)
        out[0] = self._one(child, base)
        for j, candidate in enumerate(candidates):
            out[1 + j] = self._one(child, tuple(sorted((*base, int(candidate)))))
        return out

    def raise_failure(self) -> None:
        """Raise the exception of the Python function that was called by a compiled search."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _one(self, child: int, parents: tuple[int, ...]) -> float:
        key = (child, parents)
        value = self._cache.get(key)
        if value is None:
            value = self._cache[key] = float(self._score(child, parents))
        return value

    def _called(
        self, data: int, child: int, parents: int, k: int, candidates: int, m: int, out: int
    ) -> int:
        # An exception cannot cross a C frame: store it and tell the search to stop.
        try:
            values = self.extensions(child, _ints_at(parents, k), _ints_at(candidates, m))
            ctypes.memmove(out, values.ctypes.data, values.nbytes)
        except BaseException as failure:  # noqa: BLE001 - raised again by raise_failure
            self._failure = failure
            return 1
        return 0


def _ints_at(address: int, count: int) -> list[int]:
    if count == 0:
        return []
    return list((ctypes.c_int64 * count).from_address(address))
