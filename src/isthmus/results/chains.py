"""How far the Markov chains behind a posterior can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError, MissingExtraError
from isthmus.results.ensemble import Ensemble, unpack

Edges: TypeAlias = tuple[tuple[str, str], ...]
DISAGREEMENT = 0.05
"""Chains whose estimates of an edge probability differ by more are said to disagree."""
_TRUSTED_TAIL = 0.7
"""Estimates are unreliable if the Pareto shape is above this (Vehtari et al. 2024)."""
_TRUSTED_SHARE = 0.05
"""Minimum ratio of effective to total draws."""
_FEWEST = 25
"""Draws below which the tail of the weights cannot be estimated."""
_FEWEST_DRAWS = 4
"""Minimum draws per chain for split R-hat."""
_NAMED = 3
"""Number of edges that a note about disagreeing chains names."""


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
    independent
        Whether the draws are independent, so that chains differ by chance alone.
    """

    nodes: tuple[str, ...]
    differences: NDArray[np.float64]
    independent: bool = False

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
        if self.independent:
            return (
                "The draws are independent. By chance alone, edge probabilities differ by up to "
                f"{max(self.largest, 0.001):.2g} between equal parts of them."
            )
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

    __repr__ = __str__


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


def edge_diagnostics(
    ensemble: Ensemble, chains: NDArray[np.int64], lowest: float
) -> EdgeDiagnostics:
    """Compute effective sample sizes and R-hat of the edges that the draws are not sure of."""
    try:
        from arviz_stats.base import array_stats
    except ImportError:
        raise MissingExtraError("arviz-stats", "posterior", "Diagnostics of chains") from None
    if chains.shape[1] < _FEWEST_DRAWS:
        raise DataError(
            f"Diagnostics need at least {_FEWEST_DRAWS} draws per chain; there are "
            f"{chains.shape[1]}. Draw more."
        )
    nodes, graphs = ensemble.nodes, unpack(ensemble.parents)
    means = ensemble.edge_probabilities()
    pairs = np.argwhere((means >= lowest) & (means <= 1.0 - lowest)).tolist()
    ess, rhat = np.zeros(len(pairs)), np.zeros(len(pairs))
    for i, (a, b) in enumerate(pairs):
        trace = graphs[:, a, b].astype(np.float64)[chains]
        # Where each chain is stuck at a value of its own, R-hat is infinite.
        with np.errstate(divide="ignore", invalid="ignore"):
            ess[i] = array_stats.ess(trace, chain_axis=0, draw_axis=1)
            rhat[i] = array_stats.rhat(trace, chain_axis=0, draw_axis=1)
    return EdgeDiagnostics(tuple((nodes[a], nodes[b]) for a, b in pairs), ess, rhat)


@final
@dataclass(frozen=True)
class WeightDiagnostics:
    """How much importance weights can be trusted.

    Attributes
    ----------
    draws
        Number of draws.
    effective
        Number of equally weighted draws that would be as good: ``sum(w) ** 2 / sum(w ** 2)``.
    pareto_k
        Shape of the tail of the weights, estimated by ArviZ; above 0.7 the weights cannot be
        trusted. None if ArviZ is not installed, or if the tail is a single value.
    """

    draws: int
    effective: float
    pareto_k: float | None

    @property
    def collapsed(self) -> bool:
        """Whether few draws carry most of the weight."""
        heavy = self.pareto_k is not None and self.pareto_k > _TRUSTED_TAIL
        return heavy or self.effective < _TRUSTED_SHARE * self.draws

    def __str__(self) -> str:
        tail = "" if self.pareto_k is None else f" (Pareto k {self.pareto_k:.2f})"
        state = "have collapsed" if self.collapsed else "are even enough"
        count = f"{self.draws} draws count as {self.effective:.0f}{tail}"
        text = f"The importance weights {state}: {count}."
        if self.collapsed:
            text += " Draw more, or use the target score itself in the chains."
        return text

    __repr__ = __str__


def weight_diagnostics(log_weights: NDArray[np.float64]) -> WeightDiagnostics:
    """Judge importance weights, one per draw."""
    weights = np.exp(log_weights - log_weights.max())
    effective = float(weights.sum() ** 2 / np.square(weights).sum())
    return WeightDiagnostics(len(weights), effective, _pareto_k(log_weights))


def _pareto_k(log_weights: NDArray[np.float64]) -> float | None:
    try:
        from arviz_stats.base import array_stats
    except ImportError:
        return None
    finite = log_weights[np.isfinite(log_weights)]
    if len(finite) < _FEWEST:
        return None
    try:
        # If a few graphs were drawn again and again, the tail is one value, or most of it is.
        with np.errstate(divide="ignore", invalid="ignore"):
            k = float(array_stats.psislw(finite)[1])
    except ValueError:
        return None
    return None if np.isnan(k) else k
