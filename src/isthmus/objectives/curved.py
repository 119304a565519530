"""Local scores of regressions on curves, which tell where curves are needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from isthmus.kernels.scoring import CurveScore
from isthmus.kernels.scoring import LocalScore as LocalScoreKernel
from isthmus.objectives.base import Capabilities, Capability
from isthmus.objectives.local import LOCAL_SCORES, FamilyCost, LocalScore

CURVES: Final[Capability[CurvedScore]] = Capability("scores of regressions on curves")
"""Which parents need curves, and what their curves gain; see `CurvedScore`."""


class CurvedScore(LocalScore):
    """A score of regressions in which each parent enters by a line or by a curve.

    Parameters
    ----------
    nodes
        Names of the variables.
    kernel
        The score in the compiled core.
    curves
        The part of the score that chooses curves.
    bends
        For each variable, whether there are functions of it.
    edge_price
        Part of the penalty of an edge that accounts for the number of possible edges.
    cost
        As for `LocalScore`.
    """

    capabilities: Capabilities = frozenset({LOCAL_SCORES, CURVES})

    def __init__(
        self,
        nodes: Sequence[str],
        kernel: LocalScoreKernel,
        *,
        curves: CurveScore,
        bends: NDArray[np.bool_],
        edge_price: float,
        cost: FamilyCost,
    ) -> None:
        super().__init__(nodes, kernel, equivalent=False, cost=cost)
        self._curves = curves
        self.bends = bends
        self.edge_price = edge_price

    @final
    def degrees(self, child: int, parents: Sequence[int]) -> NDArray[np.int64]:
        """Return for each parent how curved its effect on a child is; 0 is a line."""
        return self._curves.degrees(child, np.asarray(parents, np.int64))

    @final
    def gain(self, child: int, others: Sequence[int], parent: int) -> float:
        """Return what one more parent adds to the score of a child."""
        own = np.asarray(others, np.int64)
        values = self.kernel.extensions(child, own, np.array([parent], np.int64))
        return float(values[1] - values[0])

    @final
    def bend(self, child: int, others: Sequence[int], parent: int) -> float:
        """Return what a curve of a parent gains over its line, less the price of an edge."""
        family = np.array([*others, parent], np.int64)
        curved = float(self._curves.extensions(child, family, family[:0])[0])
        straight = self._curves.without_functions(child, family, parent)
        return curved - straight - self.edge_price
