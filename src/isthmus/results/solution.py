"""The result of a search: a graph, its score, and what can be done with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import isnan, nan
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, final

from isthmus import hooks
from isthmus.errors import IsthmusError, MismatchError, ModelWarning, counted, warn
from isthmus.frames import table_of
from isthmus.graphs import CPDAG, DAG, PDAG, Knowledge
from isthmus.graphs.names import listed
from isthmus.networks import DiscreteNetwork, GaussianNetwork, GPNetwork, Level, Network
from isthmus.networks.column_maps import scored_nodes
from isthmus.options import check_pseudo_count
from isthmus.results.details import SearchDetails
from isthmus.results.directions import Directions, Edges, split_directions
from isthmus.results.effects import Adjusted, EffectComparison, EffectEstimate, estimate_in_solution
from isthmus.results.reading import Disclosure, Provenance, Reading, Refit
from isthmus.watch import Sense, Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isthmus.results.ensemble import Ensemble
    from isthmus.results.posterior import Posterior
    from isthmus.results.validation import Validation


PSEUDO_COUNT = 1.0
"""The default of `Solution.fit`, with which parameters are saved."""


class StatisticsKept(Protocol):
    """What a solution keeps of the data it was learned from: statistics, and where the rows are.

    Copies and files have the statistics only.
    """

    @property
    def rows(self) -> int:
        """Number of rows of the data."""

    @property
    def fit_caveat(self) -> str | None:
        """How the network of `fit` differs from the learned model; None if it does not."""

    def fit(
        self, dag: DAG, data: object | None, pseudo_count: float, *, curves: bool = True
    ) -> Network:
        """Estimate the parameters of a network with this graph."""

    def fit_gp(self, dag: DAG) -> GPNetwork:
        """Fit the curves of a Gaussian-process network with this graph."""

    def adjusted_effects(
        self,
        cause: str,
        effect: str,
        change: Sequence[Level] | None,
        outcome: Level | None,
        clusters: str | Sequence[object] | None = None,
    ) -> tuple[Adjusted, EffectComparison, Callable[[EffectEstimate], EffectEstimate]]:
        """Return what computes adjusted effects, what they compare, and what adds notes.

        Raises
        ------
        MismatchError
            If there is no such effect: the model is nonlinear, or rows are needed and not there.
        """

    def strengths(self, dag: DAG) -> dict[tuple[str, str], float]:
        """Return for each edge how much the score falls without it."""

    @property
    def tested(self) -> bool:
        """Whether tests have decided on directions, and no score."""

    def margins(
        self, dag: DAG, edges: Edges, knowledge: Knowledge, *, patient: bool = False
    ) -> dict[tuple[str, str], float] | None:
        """Return for each edge by how much the score falls if it points the other way.

        It is None without a score of statistics at hand and, unless patient, if it takes long.
        """

    def to_bytes(self, dag: DAG | None) -> bytes:
        """Return what the methods of a loaded solution need, for a file; None for a PAG."""

    def standardised(self) -> Solution:
        """Learn again in the same way, from columns of variance one."""


@final
@dataclass(frozen=True)
class Solution:
    """A learned network.

    Attributes
    ----------
    dag
        The learned graph. If ``equivalent`` is true it is one member of its equivalence class: the
        data cannot distinguish it from the others; ``directions`` says what is determined.
    score
        Value of the objective; not a number if none is computed, or if it stays secret.
    status
        Why the search stopped.
    disclosure
        The data that were released to learn it.
    choice
        Which score and which search were used, and why.
    equivalent
        Whether the score gives all members of a Markov equivalence class the same value.
    sense
        Whether larger or smaller scores are better.
    knowledge
        The background knowledge that the graph agrees with.
    notes
        Warnings, for example about outliers, copied rows or duplicate columns, or about a choice
        of score or search that does not suit the data.
    reading
        How each column of the table was read, and why, including columns that were left out.
    details
        What else the search reports: a record such as `~isthmus.results.WeightDetails` or
        `~isthmus.results.ExactDetails`, depending on the search.
    provenance
        The call, the random seed and the versions that the solution was computed with.
    identified
        Edges whose directions the targets of interventions or non-Gaussian noise determine. Also
        ``knowledge`` has them.
    directions_kept
        What ``directions`` are, if they were loaded from a file or measured before.
    parameters_kept
        The network of `fit`, if the solution was loaded from a file that has it.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> solution = ist.learn(data)
    >>> solution.dag.parents("either")
    ('tub', 'lung')
    >>> solution.fit().parameters
    18
    """

    dag: DAG
    score: float
    status: Status
    disclosure: Disclosure
    choice: str
    equivalent: bool = True
    sense: Sense = Sense.MAXIMISE
    knowledge: Knowledge | None = None
    notes: tuple[str, ...] = ()
    reading: Reading = field(default_factory=Reading, repr=False)
    details: Any = field(default_factory=SearchDetails, repr=False)
    statistics_kept: StatisticsKept | None = field(default=None, repr=False, compare=False)
    provenance: Provenance = field(default=Provenance(), repr=False, compare=False)
    identified: Edges = field(default=(), repr=False)
    parameters_kept: Network | None = field(default=None, repr=False, compare=False)
    directions_kept: Directions | None = field(default=None, repr=False, compare=False)

    @cached_property
    def directions(self) -> Directions:
        """Who decides the direction of each edge: the data, with which margin, knowledge or nobody.

        Margins are measured when they are first asked for, from the statistics of the solution, and
        kept in files. That takes a fraction of the time of the search on most tables, and longer
        where many directions hinge on little. Margins are left out if climbing would take more than
        some seconds; `measure_directions` measures them in any case.
        """
        return self._directions(patient=False)

    def measure_directions(self) -> Solution:
        """Return the solution with the margins of all directions, however long that takes."""
        return replace(self, directions_kept=self._directions(patient=True))

    def _directions(self, *, patient: bool) -> Directions:
        before = self.directions_kept
        if before is not None and not (
            patient and {*before.open, *before.unmeasured} - {*before.margins}
        ):
            return before
        kept, known = self.statistics_kept, self.knowledge or Knowledge()
        own = tuple(edge for edge in known.required if edge not in self.identified)
        closed = self._closed()
        return split_directions(
            self.dag,
            closed.directed if isinstance(closed, PDAG | CPDAG) else closed.edges,
            replace(known, required=own),
            self.identified,
            lambda edges, knowledge: (
                None if kept is None else kept.margins(self.dag, edges, knowledge, patient=patient)
            ),
            equivalent=self.equivalent,
            tested=kept is not None and kept.tested,
        )

    def _closed(self) -> DAG | CPDAG | PDAG:
        """Return the graph with all directions that its score tells, however little."""
        return self.cpdag if self.equivalent else self.dag

    @cached_property
    def drawn(self) -> DAG | CPDAG | PDAG:
        """The graph as it is drawn: without arrowheads where nobody decides the direction."""
        graph, free = self._closed(), set(self.directions.open)
        directed = graph.directed if isinstance(graph, PDAG | CPDAG) else graph.edges
        if free.isdisjoint(directed):
            return graph
        return PDAG(graph.nodes, [edge for edge in directed if edge not in free], free)

    @cached_property
    def cpdag(self) -> CPDAG | PDAG:
        """The equivalence class of the graph: a CPDAG, or a PDAG if there is knowledge."""
        if self.knowledge is None:
            return self.dag.cpdag()
        return self.dag.cpdag(self.knowledge)

    def fit(
        self,
        data: object | None = None,
        *,
        pseudo_count: float = PSEUDO_COUNT,
        curves: bool = True,
    ) -> Network:
        """Estimate parameters for the graph from the statistics it was learned from.

        A graph of continuous variables gets a linear Gaussian network, and a `MixedNetwork` if
        effects are curved or interact. If it was learned with a nonlinear model and has lines, a
        `ModelWarning` says so. A graph of discrete variables gets probability tables, with the
        counts behind them. A graph of both gets a `MixedNetwork`. The network
        keeps the equivalence class, so that an intervention whose effect the class does not
        identify is answered by a range. After ``learn(..., transform=...)`` it takes and gives
        values of the columns as they are in the table.

        Parameters
        ----------
        data
            Rows to fit the parameters to; by default those that the graph was learned from. They
            are needed if the solution has neither parameters nor statistics, or if a solution of
            mixed variables was copied.
        pseudo_count
            Weight of the prior of discrete and mixed variables, in rows; 0 for maximum likelihood.
            For tables it is the equivalent sample size of a Dirichlet prior.
        curves
            Whether effects of continuous parents may be curved and interact, where that pays. It
            needs rows, in memory or given, without groups, and of mixed tables without missing
            values; otherwise effects are straight.
        """
        check_pseudo_count(pseudo_count)
        usual = data is None and curves and pseudo_count == PSEUDO_COUNT
        if self.parameters_kept is not None and usual:
            kept = self.parameters_kept
            return replace(kept, maps=self.reading.network_maps(self.dag.nodes))
        caveat = None
        if self.statistics_kept is None and data is not None:
            network: Network = hooks.fit_as_read(
                data, self.dag, self.reading, pseudo_count, curves=curves
            )
        else:
            statistics_kept = self._require_statistics(
                "Fit the parameters from data: solution.fit(data) or isthmus.fit(data, "
                "solution.dag)."
            )
            network = statistics_kept.fit(self.dag, data, pseudo_count, curves=curves)
            caveat = statistics_kept.fit_caveat
        network = replace(network, maps=self.reading.network_maps(self.dag.nodes))
        if self.equivalent:
            network = replace(network, cpdag=self.cpdag)
        if caveat is not None and isinstance(network, GaussianNetwork):
            warn(caveat, ModelWarning)
        return network

    def fit_gp(self) -> GPNetwork:
        """Fit smooth curves with error bands to the edges, if the graph was learned with `GP`."""
        again = "Learn again from the data with score=GP(), or call isthmus.fitting.fit_gp."
        network = self._require_statistics(again).fit_gp(self.dag)
        names = scored_nodes(self.reading.network_maps(self.dag.nodes))
        if names:
            warn(
                f"{listed(names)} were learned as normal scores. This network takes and gives "
                "scores, not values of the columns: convert them with solution.reading.maps.",
                ModelWarning,
            )
        return network

    def effect(
        self,
        cause: str,
        effect: str,
        *,
        change: Sequence[Level] | None = None,
        outcome: Level | None = None,
        clusters: str | Sequence[object] | None = None,
    ) -> EffectEstimate:
        """Estimate the total effect of one variable on another, by adjustment.

        It is the effect of an intervention if the graph is causal and no common cause is missing
        from it. The estimate adjusts for the parents of the cause and for other parents of the
        effect. If some edges at the cause can point either way, and this matters for the effect,
        the answer is the range over all possible sets of parents.

        The effect of a continuous cause is that of one unit, a regression coefficient; the unit of
        a column that was learned as normal scores is a score, and the answer says so. The effect
        of a discrete cause is the difference between the averages of the effect if all rows had the
        second and the first of two levels: a difference of means, or of the probabilities of a
        level. It is estimated by standardisation (augmented inverse probability weighting) from
        complete rows in memory.

        The standard error is valid for noise of any variance (HC2, with the degrees of freedom of
        Bell and McCaffrey) if the graph was learned from a complete table in memory. From a
        database, from statistics, or after the solution was copied or loaded, it assumes that the
        variance of the noise is constant; ``robust`` of the estimate says which it is.

        Parameters
        ----------
        cause, effect
            Names of two variables.
        change
            Two levels of a discrete cause, from and to; its two levels by default.
        outcome
            The level of a discrete effect whose probability is asked for; of two levels, the second
            one by default.
        clusters
            Name of a column of the graph, or one label per row: rows with the same label depend on
            each other. For a column that is not in the graph, see :func:`isthmus.effect`.

        Raises
        ------
        MismatchError
            If the graph was learned with a nonlinear model, the cause is continuous and the effect
            discrete, or rows are needed and not in memory.
        """
        again = "Learn again from the data: isthmus.learn(data).effect(cause, effect)."
        for name in (cause, effect):
            self.dag.index(name)  # raises for a name that is not a node
        kept = self._require_statistics(again)
        adjusted, comparison, noted = kept.adjusted_effects(
            cause, effect, change, outcome, clusters
        )
        return noted(estimate_in_solution(self, cause, effect, adjusted, comparison))

    def strengths(self) -> dict[tuple[str, str], float]:
        """Return for each edge how much the score falls without it.

        These are exact differences of the score on these data, without a standard error; the
        probabilities of edges are those of `isthmus.sample` or `isthmus.bootstrap`.
        """
        again = "Learn again from the data, or compare graphs with isthmus.score(data, dag)."
        return self._require_statistics(again).strengths(self.dag)

    def standardised_refit(self) -> Refit:
        """Learn again from standardised columns, and compare.

        Edges that differ depend on the scales of the columns. Only the statistics are used: nothing
        more is requested from the source.
        """
        again = "Learn again from the data: isthmus.learn(data).standardised_refit()."
        return Refit(self.dag, self._require_statistics(again).standardised())

    def published(self) -> Solution:
        """Return the solution as several organisations may publish it.

        Exact parameters, counts and numbers of rows give back the sums that they were computed
        from. If organisations have released exact sums for the solution, it is returned with
        parameters in steps of about a standard error, without counts, with two digits of the number
        of rows, and with three or four digits of everything else. If all sums had noise, or nothing
        was released, it is returned as it is. Files that `save`, `save_bif` and `report` write have
        the published form.
        """
        from isthmus.results.solution_file import published

        return published(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the solution as plain data for JSON, without statistics.

        For `ADMM`, ``details`` has the weights and the parameters that the sites agreed on.
        """
        from isthmus.results.solution_file import plain_solution

        plain = plain_solution(_attributes(self))
        return plain | {"details": self.details.to_dict()}

    def save(
        self, path: str | PathLike[str], *, parameters: bool = False, statistics: bool = False
    ) -> None:
        """Write the solution to a file, which `load` reads.

        The format is documented and does not use pickle. By default the file has the graph and how
        it was learned, but nothing that was computed from the rows: pass the data to `fit` after
        loading.

        Parameters
        ----------
        path
            File to write.
        parameters
            Whether to include the network of `fit`, so that the file can be queried. Probability
            tables come with the numbers of rows behind them.
        statistics
            Whether to include the statistics that `strengths`, `effect` and `fit` with any
            pseudo-count need: moments, or the tables of each variable with its parents. They are
            exact sums over the rows, which tell more about single rows than a graph does: include
            them only in files that stay with the data. Parameters are included, too, if they can be
            computed. Rows are never saved, nor are statistics of several regimes (`Interventions`)
            and of incomplete categories (`AvailableCases`, `StructuralEM`).

        Raises
        ------
        MismatchError
            If ``parameters`` is true and there are none, or only those of another model.
        """
        from isthmus.results.solution_file import write_solution

        whole = self if statistics else self.published()
        attributes = _attributes(whole)
        attributes["parameters_kept"] = None
        with suppress(*() if parameters else (IsthmusError,)):
            if parameters or statistics:
                attributes["parameters_kept"] = _own_parameters(whole)
        if not statistics:
            attributes["statistics_kept"] = None
        write_solution(attributes, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Solution:
        """Read a solution that was written by `save`."""
        from isthmus.results.solution_file import FORMAT, read_solution

        return read_solution(path, {FORMAT: cls})

    def save_bif(self, path: str | PathLike[str]) -> None:
        """Fit conditional probability tables and write them as a BIF file."""
        from isthmus.io import write_bif

        network = self.published().fit()
        if not isinstance(network, DiscreteNetwork):
            raise MismatchError(
                "BIF holds discrete networks only and this one has continuous variables. "
                "Write it as JSON with isthmus.io."
            )
        write_bif(network, path)

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw the graph, without arrowheads where nobody decides the direction.

        Stronger edges are wider, if the solution has the statistics to compute strengths.

        Parameters
        ----------
        ax
            Axes to draw in; new ones by default.
        **options
            Passed on to ``isthmus.plots.plot_graph``.
        """
        from isthmus.plots import plot_graph

        return plot_graph(self.drawn, ax=ax, **({"strengths": self._known_strengths()} | options))

    def report(
        self,
        path: str | PathLike[str],
        *,
        title: str = "Learned network",
        reference: DAG | CPDAG | PDAG | None = None,
        certainty: Ensemble | Posterior | None = None,
        validation: Validation | None = None,
        table: str | None = None,
        command: str | None = None,
    ) -> None:
        """Write an HTML report with the interactive network, its parameters, and the data released.

        Parameters
        ----------
        path
            File to write. The page is self-contained: it opens offline and loads nothing.
        title
            Title of the page.
        reference
            A graph to compare with: edges that are added, missing or reversed are marked.
        certainty
            The result of `isthmus.bootstrap` or `isthmus.sample` on the same data: edges then show
            their shares of the replicates, or their probabilities.
        validation
            The result of `isthmus.validate` for this graph, such as on rows that it was not learned
            from.
        table
            Name of the table, such as its file, to be shown beside the title.
        command
            The command line that computed the solution, to be shown in the page.
        """
        from isthmus.plots.svg import svg_graph
        from isthmus.report.page import build_page
        from isthmus.report.rendering import render
        from isthmus.results.directions import certainty_of, probabilities, shares
        from isthmus.results.ensemble import Ensemble
        from isthmus.results.reading import header_facts, run_again, write_exports

        shown = self.published()
        rows = None if shown.statistics_kept is None else shown.statistics_kept.rows
        measures = shares() if isinstance(certainty, Ensemble) else probabilities()
        sure = None if certainty is None else certainty_of(certainty, self.dag, measures)
        page = build_page(
            shown,
            title=title,
            draw=lambda graph, strengths: svg_graph(graph, strengths=strengths or None),
            export=write_exports,
            reference=reference,
            certainty=sure,
            check=None if validation is None else validation.summary(),
            facts=header_facts(table, rows),
            run_again=run_again(self.provenance, self.status, command),
        )
        Path(path).write_text(render(page), encoding="utf-8")

    def to_frame(self, like: object = None) -> Any:
        """Return one row per edge, with who decides its direction and by what margin.

        See :func:`isthmus.to_frame`.
        """
        directions, edges = self.directions, self.dag.edges
        determined = set(directions.determined)
        columns = {
            "from": [a for a, _ in edges],
            "to": [b for _, b in edges],
            "direction_determined": [edge in determined for edge in edges],
            "decided_by": [directions.decided_by(edge) for edge in edges],
            "margin": [directions.margins.get(edge, nan) for edge in edges],
        }
        return table_of(columns, like)

    def _repr_html_(self) -> str | None:
        from isthmus.plots import notebook_drawing

        return notebook_drawing(self.drawn, str(self), strengths=self._known_strengths())

    def _known_strengths(self) -> dict[tuple[str, str], float] | None:
        try:
            return self.strengths() or None
        except IsthmusError:
            return None

    def _require_statistics(self, instead: str) -> StatisticsKept:
        return require_statistics(self.statistics_kept, instead)

    def __str__(self) -> str:
        edges = counted(len(self.dag.edges), "edge")
        variables = counted(len(self.dag.nodes), "variable")
        score = "score unknown" if isnan(self.score) else f"score {self.score:.6g} ({self.sense})"
        lines = [
            f"{edges}, {variables}, {score}",
            self.choice,
            str(self.status),
        ]
        if self.dag.edges:
            lines.append(str(self.directions))
        return "\n".join((*lines, *self.notes))

    __repr__ = __str__


def require_statistics(kept: StatisticsKept | None, instead: str) -> StatisticsKept:
    """Return the statistics of a solution; raise if it has none, with what to do instead."""
    if kept is None:
        raise MismatchError(
            "This solution has no statistics. ADMM, PrivateK2, StructureOnly and isthmus.solve "
            "keep none. Files have none unless they were saved with solution.save(path, "
            "statistics=True), and never if the graph was learned from several regimes, or by "
            "AvailableCases() or StructuralEM(). " + instead
        )
    return kept


def _attributes(solution: Solution) -> dict[str, Any]:
    own = {f.name: getattr(solution, f.name) for f in fields(solution)}
    return own | {"directions_kept": solution.directions}


def _own_parameters(solution: Solution) -> Network:
    """Return the network of `fit`, if it is the model that was learned."""
    kept = solution.statistics_kept
    if kept is not None and kept.fit_caveat is not None:
        raise MismatchError(f"{kept.fit_caveat} Save it with isthmus.io.write_json.")
    return solution.fit()
