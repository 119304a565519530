"""What supersets of a parent set can score at most: the ground of safe pruning."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from isthmus.types import Floats


@final
@dataclass(frozen=True, eq=False)
class ScoreBound:
    """An upper bound on the score of every superset S of a parent set P of a child c.

    ``score(c | S) <= top[c, |P|] - sum over P of weight[c, p]
    - scale[c] * product over P of levels[p] - factor[c] * support(c | P)``

    and, where ``gain`` is given, adding j to a set that holds p and q raises the score by at most
    ``gain[p, q, j] - scale[c] * product * (levels[j] - 1)``; ``gain[p, p, j]`` holds for every set
    that holds p and ``gain[j, j, j]`` for every set.

    Attributes
    ----------
    top
        Shape (d, d + 1).
    weight
        Shape (d, d), or (1, d) when it is the same for all children.
    scale, factor
        Shape (d,).
    levels
        Shape (d,).
    support
        A local score (seen through its handle) with the number of combinations of parents and
        child that the data hold; None if ``factor`` is zero.
    gain
        Shape (d, d, d), or (d, 1, d) when nothing is known of pairs (the middle index is then
        without meaning), or empty.
    """

    top: Floats
    weight: Floats
    scale: Floats
    levels: Floats
    factor: Floats
    support: Any = None
    gain: Floats = field(default_factory=lambda: np.empty((0, 0, 0)))

    @classmethod
    def none(cls, d: int) -> ScoreBound:
        """Nothing is known of supersets."""
        return cls(
            np.broadcast_to(np.inf, (d, d + 1)),
            np.zeros((1, d)),
            np.zeros(d),
            np.ones(d),
            np.zeros(d),
        )
