"""Local scores: decomposable objectives, which score a child given its parents.

A search can ask a :class:`LocalScore` for ``score(child | parents)``, for many parent sets at a
time. Nodes are indices; ``learn`` converts them to names. :class:`PythonLocalScore` wraps any
Python function, which is the way to add your own score.

A local score holds an object of the compiled core, which means nothing in another process. Scores
and statistics can be pickled, and bound there.
"""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import EllipsisType
from typing import Any, ClassVar, Final, Generic, TypeAlias, TypeVar, cast, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats, Work, completed
from isthmus.errors import ArgumentError, MismatchError, a_type
from isthmus.graphs import DAG
from isthmus.kernels import _native, scoring
from isthmus.watch import Sense

# --- Base class of objectives, and the capabilities by which searches use them ------------------
#
# A search never tests the type of an objective. It states the capabilities that it accepts and
# asks for one of them: ``LOCAL_SCORES.of(objective)`` is the objective, typed as a local score,
# or None.

InterfaceT = TypeVar("InterfaceT")


@final
@dataclass(frozen=True)
class Capability(Generic[InterfaceT]):
    """An operation that an objective offers and a search can require.

    Parameters
    ----------
    name
        Name for error messages. Two capabilities with the same name are equal.
    offered_by
        The sources that offer it, for error messages, if no score does.
    """

    name: str
    offered_by: str = field(default="", compare=False)

    def of(self, objective: Objective) -> InterfaceT | None:
        """Return the objective as the interface of this capability, or None if it lacks it."""
        return cast(InterfaceT, objective) if self in objective.capabilities else None

    def require(self, objective: Objective) -> InterfaceT:
        """Return the objective as the interface of this capability, or raise `MismatchError`."""
        interface = self.of(objective)
        if interface is None:
            offered = " and ".join(sorted(c.name for c in objective.capabilities)) or "nothing"
            raise MismatchError(f"This needs {self.name}; {a_type(objective)} offers {offered}.")
        return interface

    def __str__(self) -> str:
        return self.name


Capabilities: TypeAlias = frozenset[Capability[Any]]
"""All that an objective offers."""


class Objective(ABC):
    """Base class of the functions of a graph that searches optimise and samplers explore.

    Attributes
    ----------
    nodes
        Names of the variables; an index means a position in this tuple.
    equivalent
        Whether Markov-equivalent graphs always have the same value.
    equivalent_given_targets
        The same if edges between targets of interventions and other variables agree; None if
        there were no interventions.
    sense
        Whether larger or smaller values are better.
    capabilities
        Capabilities of the objective.
    """

    nodes: tuple[str, ...]
    equivalent: bool
    equivalent_given_targets: bool | None = None
    sense: ClassVar[Sense]
    capabilities: Capabilities

    def notes(self, dag: DAG) -> Sequence[str]:
        """Return what a user should know about a graph that was found with this objective."""
        del dag
        return ()


# --- Upper bounds on the scores of supersets of a parent set, for pruning -----------------------


@final
@dataclass(frozen=True, eq=False)
class ScoreBound:
    """An upper bound on the scores of all supersets S of a parent set P of a child c.

    ``score(c | S) <= top[c, |P|] - sum over P of weight[c, p]
    - scale[c] * product over P of levels[p] - factor[c] * support(c | P)``

    If ``gain`` is given, adding j to a set that contains p and q increases the score by at most
    ``gain[p, q, j] - scale[c] * product * (levels[j] - 1)``. ``gain[p, p, j]`` applies to every set
    that contains p, and ``gain[j, j, j]`` to every set.

    Attributes
    ----------
    top
        Shape (d, d + 1).
    weight
        Shape (d, d), or (1, d) if it is the same for all children.
    scale, factor
        Shape (d,).
    levels
        Shape (d,).
    support
        A local score that counts the combinations of parents and child in the data; None if
        ``factor`` is zero.
    gain
        Shape (d, d, d); or (d, 1, d) without bounds for pairs, where the middle index has no
        meaning; or empty.
    """

    top: Floats
    weight: Floats
    scale: Floats
    levels: Floats
    factor: Floats
    support: Any = None
    gain: Floats = field(default_factory=lambda: np.empty((0, 0, 0)))

    @cached_property
    def kernel(self) -> _native.ScoreBound:
        """The bound as an object of the compiled core, which builds tables."""
        return _native.ScoreBound(
            top=np.ascontiguousarray(self.top),
            weight=np.ascontiguousarray(self.weight),
            scale=np.ascontiguousarray(self.scale),
            levels=np.ascontiguousarray(self.levels),
            factor=np.ascontiguousarray(self.factor),
            support=None if self.support is None else self.support.kernel,
            gain=np.ascontiguousarray(self.gain),
        )

    @classmethod
    def none(cls, d: int) -> ScoreBound:
        """Return the trivial bound: infinity."""
        return cls(
            np.broadcast_to(np.inf, (d, d + 1)),
            np.zeros((1, d)),
            np.zeros(d),
            np.ones(d),
            np.zeros(d),
        )


BoundWork: TypeAlias = Work["ScoreBound | None"]
"""The computation of a bound in pieces."""


# --- Local scores: decomposable objectives, which score a child given its parents ---------------

UNFINISHED: Final = scoring.UNFINISHED
"""Returned by the function of a `PythonLocalScore` if it must be called again to finish."""


FamilyCost: TypeAlias = Callable[[int], float]
"""Estimated seconds to score one family with so many parents, on a reference machine."""

_MOST_LISTED = 24
"""With more nodes nobody lists all parent sets, whatever a family costs."""
_COMPILED, _PYTHON = 1e-6, 5e-5
"""Seconds per family of a compiled score and of a Python function that do not state theirs."""


LOCAL_SCORES: Capability[LocalScore] = Capability("local scores of parent sets")
"""``score(child | parents)`` for any parent set; see `LocalScore`."""


class LocalScore(Objective):
    """A decomposable objective to be maximised, computed by the compiled core.

    Parameters
    ----------
    nodes
        Names of the variables; an index means a position in this tuple.
    kernel
        The score in the compiled core; see ``isthmus.kernels.scoring``.
    equivalent
        Whether Markov-equivalent graphs always have the same total.
    equivalent_given_targets
        As for `Objective`.
    score_bound
        Computes :attr:`score_bound` in pieces; called when it is first used.
    cost
        Estimates the seconds to score a family with so many parents. It must depend on the sizes
        of the data alone, because it chooses the default search. A microsecond by default;
        infinity if each family has to be counted by a source elsewhere.
    """

    sense: ClassVar[Sense] = Sense.MAXIMISE
    capabilities: Capabilities = frozenset({LOCAL_SCORES})

    def __init__(
        self,
        nodes: Sequence[str],
        kernel: scoring.LocalScore,
        *,
        equivalent: bool,
        equivalent_given_targets: bool | None = None,
        score_bound: Callable[[], BoundWork] | None = None,
        cost: FamilyCost | None = None,
    ) -> None:
        self.nodes = tuple(nodes)
        self.kernel = kernel
        self.equivalent = equivalent
        self.equivalent_given_targets = equivalent_given_targets
        self._make_score_bound = score_bound
        self._cost = cost

    @final
    def seconds(self, parents: int) -> float:
        """Estimate how long it takes to score a family with so many parents.

        The estimate is that of one core of a reference machine, and the same on every machine.
        """
        return _COMPILED if self._cost is None else self._cost(parents)

    @final
    def seconds_for_all(self) -> float:
        """Estimate how long it takes to score every parent set of every node."""
        d = len(self.nodes)
        if d > _MOST_LISTED:
            return math.inf
        return sum(d * math.comb(d - 1, k) * self.seconds(k) for k in range(d))

    @cached_property
    def score_bound(self) -> ScoreBound | None:
        """Upper bound on the scores of supersets of a parent set, if known."""
        return None if self._make_score_bound is None else completed(self._make_score_bound())

    def ceiling_work(self) -> BoundWork:
        """Compute :attr:`score_bound` in pieces and return it."""
        if "score_bound" not in self.__dict__ and self._make_score_bound is not None:
            self.__dict__["score_bound"] = yield from self._make_score_bound()
        return self.score_bound

    @final
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
        return self.kernel.extensions(
            child, np.asarray(parents, np.int64), np.asarray(candidates, np.int64)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        raise MismatchError(
            f"A {type(self).__name__} holds an object of the compiled core, which cannot be "
            "pickled or copied. Pickle the score and the statistics instead, and bind them in the "
            "other process."
        )

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
class PythonLocalScore(LocalScore):
    """A local score written in Python; its values are cached.

    Parameters
    ----------
    nodes
        Names of the variables.
    function
        ``function(child, parents)`` with indices, parents in ascending order; returns the score.
        A function that takes long may return `UNFINISHED` now and then, to let others look at the
        time and at Ctrl-C; it is then called again to go on.
    equivalent
        Whether Markov-equivalent graphs always have the same total.
    score_bound
        Computes :attr:`score_bound` in pieces; called when it is first used.
    notes
        Returns what a user should know about a graph; see `Objective.notes`.
    cost
        As for `LocalScore`; 50 microseconds by default.
    """

    def __init__(
        self,
        nodes: Sequence[str],
        function: Callable[[int, tuple[int, ...]], float | EllipsisType],
        *,
        equivalent: bool,
        score_bound: Callable[[], BoundWork] | None = None,
        notes: Callable[[DAG], Sequence[str]] | None = None,
        cost: FamilyCost | None = None,
    ) -> None:
        def checked(child: int, parents: tuple[int, ...]) -> float | EllipsisType:
            value = function(child, parents)
            if not isinstance(value, EllipsisType) and not value < math.inf:
                names = [nodes[p] for p in parents]
                raise ArgumentError(
                    f"The score of {nodes[child]!r} with the parents {names} is {value}. A score "
                    "must be a finite number, or minus infinity for a set that is not allowed."
                )
            return value

        kernel = scoring.python_score(len(nodes), checked)
        super().__init__(
            nodes,
            kernel,
            equivalent=equivalent,
            score_bound=score_bound,
            cost=(lambda _: _PYTHON) if cost is None else cost,
        )
        self._notes = notes

    def notes(self, dag: DAG) -> Sequence[str]:
        return () if self._notes is None else self._notes(dag)


@final
class PenalisedScore(LocalScore):
    """A local score minus a penalty: ``factor * score(child | parents) - prices[parents]``.

    A penalty that depends only on the number of parents preserves score equivalence, because
    reversing a covered edge exchanges the numbers of parents of its two ends.

    Parameters
    ----------
    score
        The score without the penalty.
    prices
        Penalty of 0, 1, … d parents; it must not decrease.
    factor
        Factor of the score, above 0.
    """

    def __init__(self, score: LocalScore, prices: NDArray[np.float64], factor: float = 1.0) -> None:
        def bound() -> BoundWork:
            inner = yield from score.ceiling_work()
            if inner is None or factor != 1.0:
                return None
            return replace(inner, top=inner.top - prices)

        kernel = scoring.penalised_score(score.kernel, prices, factor)
        super().__init__(
            score.nodes,
            kernel,
            equivalent=score.equivalent,
            score_bound=bound,
            cost=score.seconds,
        )
