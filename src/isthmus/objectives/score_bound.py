"""Upper bounds on the scores of supersets of a parent set, for pruning."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias, final

import numpy as np

from isthmus.kernels import _native
from isthmus.types import Floats, Work


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
