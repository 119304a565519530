"""The result of a search: a graph, how good it is, and what can be done with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, final

from isthmus.errors import MismatchError
from isthmus.graphs import CPDAG, DAG, PDAG, Knowledge
from isthmus.models import DiscreteNetwork, GaussianNetwork
from isthmus.results.details import SearchDetails
from isthmus.results.disclosure import Disclosure
from isthmus.results.refit import Refit
from isthmus.results.status import Sense, Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Evidence(Protocol):
    """What a solution still knows of the data: statistics, never rows."""

    def fit(self, dag: DAG) -> DiscreteNetwork | GaussianNetwork:
        """Estimate parameters."""

    def strengths(self, dag: DAG) -> dict[tuple[str, str], float]:
        """Return what the score loses when one edge is taken away."""

    def standardised(self) -> Solution:
        """Learn again in the same way, from columns of variance one."""


@final
@dataclass(frozen=True)
class Solution:
    """A learned network.

    Attributes
    ----------
    dag
        The graph found. Where ``equivalent`` is true it is one member of its class: data cannot
        tell it from the others, and only what ``cpdag`` directs is learned.
    score
        Value of the objective.
    status
        How the search ended.
    disclosure
        What left the place where the data live.
    choice
        Which score and which search were used, and why.
    equivalent
        Whether the score gives all members of a Markov equivalence class the same value.
    sense
        Whether larger or smaller scores are better.
    knowledge
        What was demanded of the graph.
    notes
        What deserves a look: constants, duplicates, a choice the data do not support well.
    details
        What else the search reports: a record such as `~isthmus.results.WeightDetails` or
        `~isthmus.results.ExactDetails`, depending on the search.
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
    details: Any = field(default_factory=SearchDetails, repr=False)
    evidence: Evidence | None = field(default=None, repr=False, compare=False)

    @cached_property
    def cpdag(self) -> CPDAG | PDAG:
        """The equivalence class of the graph: a CPDAG; with knowledge, a PDAG directed further."""
        if self.knowledge is None:
            return self.dag.cpdag()
        return self.dag.cpdag(self.knowledge)

    def fit(self) -> DiscreteNetwork | GaussianNetwork:
        """Estimate parameters for the graph from the statistics it was learned from."""
        return self._evidence().fit(self.dag)

    def strengths(self) -> dict[tuple[str, str], float]:
        """Return for each edge what the score loses without it."""
        return self._evidence().strengths(self.dag)

    def standardised_refit(self) -> Refit:
        """Learn again from standardised columns, and compare.

        What differs was read from the scales of the columns. Only the statistics are used, so
        nothing more is asked of the source.
        """
        return Refit(self.dag, self._evidence().standardised())

    def save_bif(self, path: str | PathLike[str]) -> None:
        """Fit conditional probability tables and write them as a BIF file."""
        from isthmus.io import write_bif

        network = self.fit()
        if not isinstance(network, DiscreteNetwork):
            raise MismatchError(
                "BIF holds discrete networks only and this one is Gaussian. "
                "Write it as JSON with isthmus.io."
            )
        write_bif(network, path)

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw what was learned: the equivalence class, or the graph if the score tells them apart.

        Parameters
        ----------
        ax
            Axes to draw in; new ones by default.
        **options
            Passed on to ``isthmus.plots.plot_graph``.
        """
        from isthmus.plots import plot_graph

        return plot_graph(self.cpdag if self.equivalent else self.dag, ax=ax, **options)

    def report(self, path: str | PathLike[str], *, title: str = "Learned network") -> None:
        """Write one HTML page: picture, edges, parameters, and what left which site.

        It opens without a network and loads nothing.
        """
        from isthmus.report import render
        from isthmus.results.pages import page_of

        Path(path).write_text(render(page_of(self, title)), encoding="utf-8")

    def _evidence(self) -> Evidence:
        if self.evidence is None:
            raise MismatchError(
                "This solution was made without statistics, so it has nothing to fit or weigh. "
                "Get one from isthmus.learn."
            )
        return self.evidence

    def __str__(self) -> str:
        edges, nodes = len(self.dag.edges), len(self.dag.nodes)
        lines = [
            f"{edges} edges, {nodes} variables, score {self.score:.6g} ({self.sense})",
            self.choice,
            str(self.status),
        ]
        if self.equivalent:
            directed, undirected = len(self.cpdag.directed), len(self.cpdag.undirected)
            lines.append(
                f"The score cannot distinguish Markov-equivalent graphs: {directed} edge "
                f"directions are learned, {undirected} edges can point either way (see .cpdag)."
            )
        return "\n".join((*lines, *self.notes))
