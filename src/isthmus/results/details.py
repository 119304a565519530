"""What searches and samplers report in addition to graphs: one typed record per family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import rounded
from isthmus.frames import table_of
from isthmus.graphs import DAG
from isthmus.results.dynamic import DynamicNetwork


@dataclass(frozen=True)
class SearchDetails:
    """Base of the records that searches return beside the graph; it has no fields of its own."""

    def to_dict(self) -> dict[str, Any]:
        """Return what programs may need, as plain data for JSON; nothing by default."""
        return {}


@dataclass(frozen=True)
class SamplerDetails:
    """Base of the records that samplers return beside their draws; it has no fields of its own."""


@final
@dataclass(frozen=True)
class ChainDetails(SamplerDetails):
    """Details of sampling by Markov chains over orders or partitions.

    Attributes
    ----------
    candidates
        Largest number of candidate parents of a node.
    exchanged
        Number of candidates that were replaced after pilot runs, because other parents were drawn
        more often.
    families
        Number of parent sets in the tables of all nodes.
    warm_up
        Number of rounds of moves before the first draw.
    thin
        Number of rounds of moves per draw.
    left_out
        Estimate of what the limit on candidates leaves out: the posterior weight of graphs in which
        one node has two parents that are no candidates, relative to that of all graphs that can be
        drawn. 0 if all variables are candidates, None if the chains were stopped.
    """

    candidates: int
    exchanged: int
    families: int
    warm_up: int
    thin: int
    left_out: float | None = None


@final
@dataclass(frozen=True)
class ExactPosteriorDetails(SamplerDetails):
    """Details of the exact posterior.

    Attributes
    ----------
    log_evidence
        Logarithm of the sum over all graphs of score times prior: the log marginal likelihood of
        the data, up to the constant of the prior.
    error
        Estimate of the rounding error of the probabilities: how far sums that should be one are
        from it.
    sets
        Number of sets of variables that can be closed under ancestors with a probability above
        1e-20; all others were left out.
    """

    log_evidence: float
    error: float
    sets: int


@final
@dataclass(frozen=True)
class StructuralEMDetails(SearchDetails):
    """Details of structural expectation-maximisation.

    Attributes
    ----------
    scores
        Score of the observed values of each graph, in the order of the iterations.
    log_likelihood
        Log-likelihood of the observed values in the network that was chosen; None if the search
        was stopped before it was known.
    """

    scores: tuple[float, ...]
    log_likelihood: float | None


@final
@dataclass(frozen=True)
class OrderDetails(SearchDetails):
    """Details of a search over orders.

    Attributes
    ----------
    order
        The best order of the variables, causes first.
    parent_sets
        Number of parent sets in the score table.
    complete
        Whether the table lists every parent set that can be part of an optimal graph.
    effort
        How much work was done, such as the number of random starts.
    """

    order: tuple[str, ...]
    parent_sets: int
    complete: bool
    effort: Mapping[str, int] = field(default_factory=dict)


@final
@dataclass(frozen=True)
class IndependenceDetails(SearchDetails):
    """What searches by tests of independence report.

    Attributes
    ----------
    tests
        Number of tests.
    """

    tests: int


@final
@dataclass(frozen=True)
class NoiseDetails(SearchDetails):
    """What `LiNGAM` reports.

    Attributes
    ----------
    p_values
        For each direction (cause, effect) of the edges that the equivalence class leaves open, the
        largest p-value of the sets of parents that contain the cause. Edges that follow from others
        have those of the last test.
    """

    p_values: Mapping[tuple[str, str], float] = field(default_factory=dict)


@final
@dataclass(frozen=True)
class BossDetails(SearchDetails):
    """What `Boss` reports.

    Attributes
    ----------
    starts
        Number of finished starts.
    reached
        Number of starts that reached the best score.
    """

    starts: int
    reached: int


@final
@dataclass(frozen=True)
class ScreeningDetails(SearchDetails):
    """What `ScreenedBoss` reports.

    Attributes
    ----------
    passes
        Number of passes over all pairs of variables.
    candidates
        Mean number of candidates per variable at the end.
    """

    passes: int
    candidates: float


@final
@dataclass(frozen=True)
class RBNetsDetails(SearchDetails):
    """Details of a search with RBNets.

    Attributes
    ----------
    order, parent_sets, complete
        As in `OrderDetails`.
    episodes
        Number of episodes that were walked.
    learned
        Number of gradient steps of the network.
    best_walk
        Score of the best order that the agent walked.
    warm_start
        Score of the best order before the first episode.
    policy
        Score of the order that the learned policy chooses greedily; None if the run was stopped.
    faithful
        Whether the published algorithm was run without our changes.
    """

    order: tuple[str, ...]
    parent_sets: int
    complete: bool
    episodes: int
    learned: int
    best_walk: float
    warm_start: float | None
    policy: float | None
    faithful: bool


@final
@dataclass(frozen=True)
class ExactDetails(SearchDetails):
    """Details of an exact search.

    Attributes
    ----------
    bound
        Proven upper bound on the score of every graph; None if nothing is proven.
    gap
        ``bound`` minus the score of the graph.
    parent_sets
        Number of parent sets in the score table.
    largest_component
        Number of variables of the largest component solved.
    effort
        How much work was done, such as the number of expanded states or cutting planes.
    networks
        The best graphs with their scores, best first, if several were asked for.
    networks_bound
        No graph outside ``networks`` scores more than this.
    """

    bound: float | None
    gap: float | None
    parent_sets: int
    largest_component: int = 0
    effort: Mapping[str, int] = field(default_factory=dict)
    networks: tuple[tuple[DAG, float], ...] = ()
    networks_bound: float = np.inf


@final
@dataclass(frozen=True, eq=False)
class WeightDetails(SearchDetails):
    """Details of a continuous search over the weights of a linear model.

    Attributes
    ----------
    weights
        Weight of each edge ``[from, to]`` of the graph.
    weights_before_threshold
        The optimum of the penalised problem, before small weights were set to zero.
    penalty
        The penalty that was used.
    threshold
        Weights up to this were set to zero.
    objective
        Value of the penalised objective.
    kkt_residual
        Largest violation of the optimality conditions; NaN if the search was stopped before it had
        solved its first problem.
    criterion
        Value of the criterion that chose penalty and threshold; None if both were given.
    path
        One row per penalty that was tried.
    """

    weights: NDArray[np.float64]
    weights_before_threshold: NDArray[np.float64]
    penalty: object
    threshold: float
    objective: float
    kkt_residual: float
    criterion: float | None
    path: tuple[Mapping[str, object], ...]


@final
@dataclass(frozen=True, eq=False)
class ModelDetails(SearchDetails):
    """Details of a continuous search over a nonlinear or dynamic model.

    Attributes
    ----------
    weights
        Strength of each edge ``[from, to]`` of the graph: the norm of its coefficients.
    coefficients
        All coefficients of the fitted model.
    removed_edges
        Number of edges that were set to zero because they were weak or closed a cycle.
    kkt_residual
        Largest violation of the optimality conditions, in units of the noise.
    evaluations
        Number of evaluations of the loss.
    network
        The fitted dynamic network, for time series.
    criterion
        Value of the criterion that chose penalty and parents, in nats; None if both were given.
    path
        One row per penalty that was tried: its share of what noise alone reaches, the number of
        edges, and the criterion.
    """

    weights: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    removed_edges: int
    kkt_residual: float
    evaluations: int
    network: DynamicNetwork | None = None
    criterion: float | None = None
    path: tuple[Mapping[str, object], ...] = ()


# --- The result of a cross-validation -----------------------------------------------------------


@final
@dataclass(frozen=True)
class CrossValidation:
    """How well networks predict rows that they were not learned from.

    Attributes
    ----------
    log_likelihoods
        Log-likelihood per row of each fold.
    sizes
        Number of rows of each fold.
    """

    log_likelihoods: tuple[float, ...]
    sizes: tuple[int, ...]

    @property
    def mean(self) -> float:
        """Log-likelihood per row, over all folds, with the error `standard_error`."""
        return float(np.average(self.log_likelihoods, weights=self.sizes))

    @property
    def standard_error(self) -> float:
        """Standard error of the mean, from the spread between folds.

        Folds share most of the rows they are learned from, so it is somewhat too small.
        """
        return float(np.std(self.log_likelihoods, ddof=1) / np.sqrt(len(self.sizes)))

    def to_frame(self, like: object = None) -> Any:
        """Return one row per fold; see :func:`isthmus.to_frame`."""
        columns = {"fold": range(len(self.sizes)), "rows": self.sizes}
        return table_of(columns | {"log_likelihood": self.log_likelihoods}, like)

    def __str__(self) -> str:
        error = rounded(self.standard_error)
        return (
            f"Log-likelihood per row {self.mean:.5g} (standard error {error}, "
            f"{len(self.sizes)} folds)"
        )

    __repr__ = __str__
