"""How far the Markov chains behind a posterior can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

Edges: TypeAlias = tuple[tuple[str, str], ...]
DISAGREEMENT = 0.05
"""Chains whose estimates of an edge probability differ by more are said to disagree."""
_NAMED = 3
"""Edges on which chains disagree that a note names."""


@final
@dataclass(frozen=True, eq=False)
class ChainAgreement:
    """How much the chains of a posterior differ.

    Attributes
    ----------
    nodes
        Names of the nodes.
    differences
        For each edge ``[from, to]`` the largest difference of its probability between two chains.
    """

    nodes: tuple[str, ...]
    differences: NDArray[np.float64]

    @property
    def largest(self) -> float:
        """The largest difference of an edge probability between two chains."""
        return float(self.differences.max(initial=0.0))

    def edges(self, above: float = DISAGREEMENT) -> Edges:
        """Return the edges on which chains differ by more than this, the worst first."""
        order = np.argsort(-self.differences, axis=None, kind="stable")
        pairs = np.transpose(np.unravel_index(order, self.differences.shape)).tolist()
        return tuple(
            (self.nodes[a], self.nodes[b]) for a, b in pairs if self.differences[a, b] > above
        )

    def __str__(self) -> str:
        edges = self.edges()
        if not edges:
            return (
                "The chains agree: no edge probability differs by more than "
                f"{max(self.largest, 0.001):.2g} between two of them."
            )
        named = ", ".join(f"{a} → {b}" for a, b in edges[:_NAMED])
        more = f" and {len(edges) - _NAMED} more" if len(edges) > _NAMED else ""
        return (
            f"The chains disagree: edge probabilities differ by up to {self.largest:.2f} between "
            f"two of them ({named}{more}). Draw longer chains, and do not rely on these edges."
        )


@final
@dataclass(frozen=True, eq=False)
class EdgeDiagnostics:
    """Effective sample sizes and R-hat of the edges that are neither certain nor impossible.

    Attributes
    ----------
    edges
        The edges, as pairs of names.
    ess
        Bulk effective sample size of each.
    rhat
        Rank-normalised split R-hat of each; close to 1 if the chains agree.
    """

    edges: Edges
    ess: NDArray[np.float64]
    rhat: NDArray[np.float64]
