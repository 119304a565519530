"""The posterior distribution over graphs: draws, probabilities, and how far to trust them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import ArgumentError, DataError, MismatchError, counted
from isthmus.graphs import CPDAG, DAG
from isthmus.results.chains import (
    ChainAgreement,
    EdgeDiagnostics,
    WeightDiagnostics,
    edge_diagnostics,
    weight_diagnostics,
)
from isthmus.results.details import SamplerDetails
from isthmus.results.ensemble import AnyFeature, Ensemble, averaged_dag, dag_above
from isthmus.results.features import (
    NodeMatrix,
    check_numbers,
    check_positions,
    check_probabilities,
    edge,
    path,
    positions,
)
from isthmus.results.reading import Disclosure, Provenance
from isthmus.watch import Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class EffectModel(Protocol):
    """The coefficients of a linear network given its graph and the data."""

    def draw_all(self, dag: DAG, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw the coefficients of one graph and return all total effects ``[cause, effect]``."""

    def mean(self, dag: DAG) -> NDArray[np.float64]:
        """Return the expected total effect ``[cause, effect]`` in one graph."""

    def draw(
        self, dags: Sequence[DAG], cause: int, effect: int, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Draw the total effect once for each graph."""


@final
@dataclass(frozen=True, eq=False)
class Posterior:
    """Draws from the posterior distribution over graphs.

    Attributes
    ----------
    ensemble
        The distinct graphs with their probabilities.
    chains
        Position in the ensemble of the graph of each draw, of shape (chains, draws).
    log_weights
        Logarithm of the importance weight of each distinct graph; None if all draws count the same.
    log_prior
        Logarithm of the prior of each distinct graph, up to a constant; None for a uniform prior.
    exact_edges, exact_paths
        Probabilities ``[from, to]`` of edges and paths if the sampler knows them better than its
        draws show them; otherwise None.
    chain_edges
        Edge probabilities by each chain, of shape (chains, nodes, nodes): averages of the
        probabilities given each state of the chain, which are more precise than the draws. They are
        not used with importance weights. None if the sampler has none.
    independent
        Whether the draws are independent, not steps of a Markov chain.
    status
        Why the sampler stopped.
    disclosure
        The data that were released.
    choice
        Which score and which sampler were used, and why.
    equivalent
        Whether the score gives all members of a Markov equivalence class the same value.
    notes
        Warnings, above all if the chains disagree.
    details
        Other results of the sampler.
    effect_model
        Coefficients of linear networks, for `effects`; None if the columns are not continuous, or
        if the posterior was loaded from a file.
    provenance
        The call, the random seed and the versions that the posterior was computed with.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = simulate.erdos_renyi(5, 6, seed=1)
    >>> numbers = simulate.linear(dag, 300, seed=1).data
    >>> posterior = ist.sample(numbers, draws=200, seed=1)
    >>> posterior.probability(ist.path(*dag.edges[0])) > 0.4
    True
    """

    ensemble: Ensemble
    chains: NDArray[np.int64]
    status: Status
    disclosure: Disclosure
    choice: str
    log_weights: NDArray[np.float64] | None = None
    log_prior: NDArray[np.float64] | None = None
    exact_edges: NDArray[np.float64] | None = None
    exact_paths: NDArray[np.float64] | None = None
    chain_edges: NDArray[np.float64] | None = None
    independent: bool = False
    equivalent: bool = True
    notes: tuple[str, ...] = ()
    details: Any = field(default_factory=SamplerDetails, repr=False)
    effect_model: EffectModel | None = field(default=None, repr=False)
    provenance: Provenance = field(default=Provenance(), repr=False)

    def __post_init__(self) -> None:
        graphs, d = len(self.ensemble), len(self.nodes)
        check_positions(self.chains, graphs)
        own = {"log_weights": self.log_weights, "log_prior": self.log_prior}
        check_numbers(own, (graphs,))
        exact = {"exact_edges": self.exact_edges, "exact_paths": self.exact_paths}
        check_probabilities(exact, (d, d))
        check_probabilities({"chain_edges": self.chain_edges}, (len(self.chains), d, d))

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the variables."""
        return self.ensemble.nodes

    @property
    def rows(self) -> int | None:
        """Number of rows of the data; None if not known."""
        return self.ensemble.rows

    def edge_probabilities(self) -> NodeMatrix:
        """Return the probability of each edge ``[from, to]``, in the order of `nodes`.

        If they are estimated by Markov chains, `agreement` and `edges_by_chain` show their Monte
        Carlo error.
        """
        return self._named(self._edges)

    def adjacency_probabilities(self) -> NodeMatrix:
        """Return the probability of an edge between two nodes, in either direction.

        The matrix is symmetric. Directions may be open where adjacency is sure: equivalent graphs
        have the same adjacencies. `agreement` shows the Monte Carlo error of the two directions.
        """
        return self._named(np.minimum(self._edges + self._edges.T, 1.0))

    def path_probabilities(self) -> NodeMatrix:
        """Return the probability that there is a directed path ``[from, to]``.

        Unless it is exact, `trace` of a path shows the Monte Carlo error.
        """
        exact = self.exact_paths
        return self._named(self.ensemble.path_probabilities() if exact is None else exact)

    def markov_blanket_probabilities(self) -> NodeMatrix:
        """Return the probability that one node is in the Markov blanket of the other.

        It is an average over the draws; `trace` of the feature shows its Monte Carlo error.
        """
        return self._named(self.ensemble.markov_blanket_probabilities())

    def probability(self, feature: AnyFeature) -> float:
        """Return the probability of a feature, or the expectation of a function of the graph.

        Unless it is exact, `trace` of the feature shows its Monte Carlo error.

        Parameters
        ----------
        feature
            `edge`, `path` or `in_markov_blanket`, or a function that takes a `DAG` and returns a
            Boolean or a number.
        """
        for kind, exact in ((edge, self._edges), (path, self.exact_paths)):
            if exact is not None and isinstance(feature, kind):
                a, b = positions(self.nodes, feature.start, feature.end)
                return float(exact[a, b])
        return self.ensemble.probability(feature)

    def trace(self, feature: AnyFeature | None = None) -> NDArray[np.float64]:
        """Return the value of a feature for each draw, of shape (chains, draws).

        Parameters
        ----------
        feature
            As for `probability`; by default the logarithm of score times prior.
        """
        if feature is not None:
            values = self.ensemble.evaluate(feature)
        elif self.ensemble.log_scores is not None:
            values = self.ensemble.log_scores
        else:
            raise DataError("The scores of the draws are not known. Give a feature.")
        return values[self.chains]

    def most_probable(self) -> DAG:
        """Return the graph with the highest posterior probability among the draws."""
        return self.ensemble.most_probable()

    def median_graph(self, threshold: float = 0.5) -> DAG:
        """Return the graph of all edges with a probability above a threshold.

        Parameters
        ----------
        threshold
            Between 0 and 1. Edges that would close a cycle with more probable ones are left out.
        """
        return dag_above(self.nodes, self._edges, threshold)

    def equivalence_classes(self) -> tuple[tuple[CPDAG, float], ...]:
        """Return the Markov equivalence classes with their probabilities, most probable first.

        They are shares of the draws; `trace` of a feature shows the Monte Carlo error.
        """
        return self.ensemble.equivalence_classes()

    def compelled_probabilities(self) -> NodeMatrix:
        """Return the probability that an edge ``[from, to]`` has this direction in the CPDAG.

        It is an average over the draws; `trace` of a feature shows its Monte Carlo error.
        """
        return self._named(self.ensemble.compelled_probabilities())

    def effects(self, cause: str, effect: str, *, seed: int = 0) -> NDArray[np.float64]:
        """Draw the total effect of one variable on another, for each draw of a graph.

        The effect is the expected change of ``effect`` if ``cause`` is raised by one unit from
        outside, in a linear Gaussian network without hidden common causes. For each draw of a graph
        the coefficients are drawn from their posterior distribution, so that the spread of the
        values shows the uncertainty about both. Without a directed path the effect is zero. The
        unit of a column that was learned as normal scores is a score, which a note says.

        If complete rows are in memory, the lines are challenged as those of `isthmus.effect` are,
        for the adjustment set of each graph. Where curves or interactions pay for their terms, or
        the variance of the noise is not constant, values are drawn around its estimate, with its
        standard error.

        Parameters
        ----------
        cause, effect
            Names of two variables.
        seed
            Random seed. The same seed gives the same values.

        Returns
        -------
        array
            Values of shape (chains, draws). Multiply by the importance weights, if there are any.
        """
        a, b = positions(self.nodes, cause, effect)
        model = self._effect_model()
        dags = [self.ensemble.dags[i] for i in self.chains.ravel().tolist()]
        drawn = model.draw(dags, a, b, np.random.default_rng(seed))
        return drawn.reshape(self.chains.shape)

    def effect_deviations(self, *, seed: int = 0) -> NodeMatrix:
        """Return the posterior standard deviation of each total effect ``[cause, effect]``.

        It includes the uncertainty about the graph and about the coefficients of lines.

        Parameters
        ----------
        seed
            Random seed. The same seed gives the same values.
        """
        model, rng, d = self._effect_model(), np.random.default_rng(seed), len(self.nodes)
        weights = np.ones(len(self.ensemble))
        if self.log_weights is not None:
            weights = np.exp(self.log_weights - self.log_weights.max())
        mean, spread, total = np.zeros((d, d)), np.zeros((d, d)), 0.0
        for i in self.chains.ravel().tolist():
            away = model.draw_all(self.ensemble.dags[i], rng) - mean
            total += weights[i]
            mean += weights[i] / total * away
            spread += weights[i] * (1.0 - weights[i] / total) * away**2
        return NodeMatrix.of(self.nodes, np.sqrt(spread / total), "deviation")

    def mean_effects(self) -> NodeMatrix:
        """Return the expected total effect ``[cause, effect]``, averaged over graphs.

        These are effects of lines, which `effects` challenges for one pair at a time. Graphs
        without a directed path contribute zero. `effect_deviations` returns the posterior
        standard deviations, and `effects` the draws of one effect.
        """
        model = self._effect_model()
        d = len(self.nodes)
        total = np.zeros((d, d))
        for dag, weight in zip(self.ensemble.dags, self.ensemble.weights, strict=True):
            total += weight * model.mean(dag)
        return NodeMatrix.of(self.nodes, total, "effect")

    def _named(self, values: NDArray[np.float64]) -> NodeMatrix:
        return NodeMatrix.of(self.nodes, values, "probability")

    def _effect_model(self) -> EffectModel:
        if self.effect_model is None:
            raise MismatchError(
                "This posterior has no coefficients of a linear model. Posteriors of "
                "isthmus.sample have them if all columns are continuous and the data are one table "
                "or its moments, until they are saved. Posteriors of several regimes "
                "(Interventions) do not keep what effects need: compare "
                "solution.fit().query(target, do={cause: value}) for different values."
            )
        return self.effect_model

    def agreement(self) -> ChainAgreement:
        """Compare the edge probabilities of the chains with each other."""
        edges = self.edges_by_chain()
        return ChainAgreement(self.nodes, np.ptp(edges, axis=0), self.independent)

    def edges_by_chain(self) -> NDArray[np.float64]:
        """Return the edge probabilities by each chain alone, of shape (chains, nodes, nodes)."""
        if self.chain_edges is not None and self.log_weights is None:
            return self.chain_edges.copy()
        weights = np.ones(len(self.ensemble))
        if self.log_weights is not None:
            weights = np.exp(self.log_weights - self.log_weights.max())
        estimates = []
        for chain in self.chains:
            counts = np.bincount(chain, minlength=len(self.ensemble)) * weights
            used = np.flatnonzero(counts)
            one = Ensemble(self.nodes, self.ensemble.parents[used], counts[used])
            estimates.append(one.edge_probabilities())
        return np.stack(estimates)

    def select_chains(self, chains: Sequence[int]) -> Posterior:
        """Return the posterior by some of the chains, such as all but one that is stuck.

        Parameters
        ----------
        chains
            Positions of the chains, from 0 on; one at least.
        """
        count = len(self.chains)
        positions = list(chains)
        if not positions or any(not 0 <= c < count for c in positions):
            raise ArgumentError(
                f"chains must be positions from 0 to {count - 1}; {positions} were given."
            )
        kept = self.chains[positions]
        used, places = np.unique(kept, return_inverse=True)
        weights = np.bincount(places.ravel()).astype(np.float64)
        log_weights, ensemble = self.log_weights, self.ensemble
        if log_weights is not None:
            log_weights = log_weights[used]
            weights *= np.exp(log_weights - log_weights.max())
        scores = None if ensemble.log_scores is None else ensemble.log_scores[used]
        parents = ensemble.parents[used]
        return replace(
            self,
            ensemble=replace(ensemble, parents=parents, weights=weights, log_scores=scores),
            chains=places.reshape(kept.shape).astype(np.int64),
            log_weights=log_weights,
            chain_edges=None if self.chain_edges is None else self.chain_edges[positions],
            notes=(*self.notes, f"Only {len(positions)} of {count} chains are used here."),
        )

    def importance(self) -> WeightDiagnostics:
        """Assess the importance weights by their effective sample size and their tail."""
        if self.log_weights is None:
            return WeightDiagnostics(self.chains.size, float(self.chains.size), None)
        return weight_diagnostics(self.log_weights[self.chains.ravel()])

    def diagnostics(self, *, lowest: float = 0.05) -> EdgeDiagnostics:
        """Compute effective sample sizes and R-hat of edges with ArviZ (extra ``[posterior]``).

        Parameters
        ----------
        lowest
            Edges with a probability below this, or above one minus this, are left out: for an
            edge that hardly ever changes, neither figure is meaningful.

        Raises
        ------
        DataError
            If the chains have fewer than four draws.
        """
        return edge_diagnostics(self.ensemble, self.chains, lowest)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the probabilities of all edges as a coloured matrix."""
        from isthmus.plots import plot_edge_probabilities

        return plot_edge_probabilities(self.nodes, self._edges, ax=ax)

    def plot_trace(
        self, feature: AnyFeature | None = None, *, label: str | None = None, ax: Axes | None = None
    ) -> Axes:
        """Draw the value of a feature along each chain; by default the logarithm of the score.

        Parameters
        ----------
        feature
            As for `trace`.
        label
            Label of the axis.
        ax
            Axes to draw on; new ones by default.
        """
        from isthmus.plots import plot_trace

        text = "log score" if feature is None else "feature"
        return plot_trace(self.trace(feature), label=label or text, ax=ax)

    def report(
        self,
        path: str | PathLike[str],
        *,
        title: str = "Posterior over networks",
        threshold: float = 0.5,
        reference: DAG | None = None,
        table: str | None = None,
        command: str | None = None,
    ) -> None:
        """Write an HTML report with the interactive network, probabilities, and the data released.

        Parameters
        ----------
        path
            File to write. The page is self-contained: it opens offline and loads nothing.
        title
            Title of the page.
        threshold
            Pairs that are adjacent with a larger probability are drawn at first.
        reference
            A graph to compare the drawn edges with.
        table
            Name of the table, such as its file, to be shown beside the title.
        command
            The command line that computed the posterior, to be shown in the page.
        """
        from isthmus.report.page import search_diagnostics
        from isthmus.report.rendering import render
        from isthmus.results.directions import probabilities
        from isthmus.results.ensemble_file import graphs_page
        from isthmus.results.posterior_file import PATH, chain_diagnostics
        from isthmus.results.reading import run_again

        searched = search_diagnostics(None, self.status, self.details)
        page = graphs_page(
            self,
            averaged_dag(self.nodes, self.edge_probabilities(), threshold),
            measures=(*probabilities(), PATH),
            matrices=(self.path_probabilities(),),
            title=title,
            threshold=threshold,
            reference=reference,
            table=table,
            again=replace(run_again(self.provenance, self.status, command), verb="sample"),
            notes=self.notes,
            diagnostics=(*searched, *chain_diagnostics(self)),
        )
        Path(path).write_text(render(page), encoding="utf-8")

    def save(self, path: str | PathLike[str]) -> None:
        """Write the posterior to a file in NumPy's ``.npz`` format.

        Options and details of the sampler are saved only as text.
        """
        from isthmus.results.posterior_file import write_posterior

        write_posterior({f.name: getattr(self, f.name) for f in fields(self)}, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Posterior:
        """Read a posterior that was written by `save`."""
        from isthmus.results.posterior_file import read_posterior

        return read_posterior(path, cls)

    def to_frame(self, like: object = None) -> Any:
        """Return one row per edge that occurs, with its probability.

        See :func:`isthmus.to_frame`.
        """
        return self.edge_probabilities().to_frame(like)

    def _repr_html_(self) -> str | None:
        from isthmus.plots import notebook_drawing

        graph, edges = self.median_graph(), self.edge_probabilities()
        strengths = {(a, b): float(edges[graph.index(a), graph.index(b)]) for a, b in graph.edges}
        caption = f"{self}\nDrawn: edges with a probability above 0.5."
        return notebook_drawing(graph, caption, strengths=strengths or None)

    @cached_property
    def _edges(self) -> NDArray[np.float64]:
        if self.exact_edges is not None:
            return self.exact_edges
        if self.chain_edges is not None and self.log_weights is None:
            edges: NDArray[np.float64] = self.chain_edges.mean(axis=0)
            return edges
        return np.asarray(self.ensemble.edge_probabilities())

    def __str__(self) -> str:
        chains, draws = self.chains.shape
        unsure = int(((self._edges > 0.05) & (self._edges < 0.95)).sum())
        total = counted(chains * draws, "independent draw" if self.independent else "draw")
        origin = "" if self.independent else f" in {counted(chains, 'chain')}"
        graphs = counted(len(self.ensemble), "distinct graph")
        edges = f"{counted(unsure, 'edge')} with a probability between 0.05 and 0.95"
        lines = [
            f"{total}{origin}, {graphs} of {counted(len(self.nodes), 'variable')}",
            f"{self._edges.sum():.1f} edges expected; {edges}",
            self.choice,
            str(self.status),
        ]
        return "\n".join((*lines, *self.notes))

    __repr__ = __str__
