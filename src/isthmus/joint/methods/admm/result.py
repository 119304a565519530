"""The result of ADMM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, final

from isthmus.graphs import DAG
from isthmus.joint.methods.admm.requests import CAUTION
from isthmus.joint.methods.admm.steps import ADMM
from isthmus.plurals import counted
from isthmus.results.disclosure import Disclosure
from isthmus.types import Floats

FORMAT = "isthmus-admm/1"
SCALES = (
    "Least squares depends on the scale of the columns: in other units the graph may be different. "
    "The study should use units in which the variables have similar variances."
)


@final
@dataclass(frozen=True, eq=False)
class ADMMResult:
    """The network that ADMM learned.

    Attributes
    ----------
    dag
        The graph of the weights above the threshold.
    weights
        The common weights ``[cause, effect]``, before the threshold. For time series there are
        more causes than effects; for neural networks they are norms.
    parameters
        The common parameters: the weights, or the parameters of the networks.
    rounds
        Number of rounds.
    cycles
        Acyclicity measure of the final weights; zero for an acyclic graph.
    disclosure
        Data that each site released.
    options
        The model and the schedule of ADMM.
    """

    dag: DAG
    weights: Floats = field(repr=False)
    parameters: Floats = field(repr=False)
    rounds: int
    cycles: float
    disclosure: Disclosure = field(repr=False)
    options: ADMM

    @cached_property
    def edge_weights(self) -> Mapping[tuple[str, str], float]:
        """The weight of each edge of the graph."""
        place = self.dag.index
        return {(a, b): float(self.weights[place(a), place(b)]) for a, b in self.dag.edges}

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the result."""
        notes = [CAUTION, SCALES]
        if self.rounds == self.options.rounds:
            notes.append(f"All {self.rounds} rounds were used: the weights may not have converged.")
        return tuple(notes)

    def to_dict(self) -> dict[str, Any]:
        """Return the complete result as plain data for JSON, with all digits of every number."""
        return {
            "format": FORMAT,
            "model": type(self.options).__name__,
            "nodes": list(self.dag.nodes),
            "edges": [[a, b, weight] for (a, b), weight in self.edge_weights.items()],
            "weights": self.weights.tolist(),
            "parameters": self.parameters.tolist(),
            "rounds": self.rounds,
            "cycles": self.cycles,
            "notes": list(self.notes),
            "disclosure": [[e.site, e.what, e.form, e.size] for e in self.disclosure.entries],
        }

    def plot(self, **options: Any) -> Any:
        """Draw the graph. The options are those of ``isthmus.plots.plot_graph``."""
        from isthmus.plots import plot_graph

        return plot_graph(self.dag, **options)

    def report(
        self,
        path: str | PathLike[str],
        *,
        title: str = "Network learned by ADMM",
        reference: DAG | None = None,
        command: str | None = None,
    ) -> None:
        """Write an HTML page with the graph, its edges and weights, and the data released.

        Parameters
        ----------
        path
            File to write. The page is self-contained: it opens offline and loads nothing.
        title
            Title of the page.
        reference
            A graph to compare with.
        command
            The command line that computed the result, to be shown in the page.
        """
        from isthmus.plots.svg import svg_graph
        from isthmus.report import EdgeRow, Measure, Page, RunAgain, compare, render
        from isthmus.results.report_files import write_exports

        page = Page(
            title=title,
            nodes=self.dag.nodes,
            summary=(self._summary(),),
            notes=self.notes,
            measures=(Measure("weight", "Weight: the common weight of all sites."),),
            edges=tuple(
                EdgeRow(a, b, directed=True, values=(w,), direction="of the model")
                for (a, b), w in self.edge_weights.items()
            ),
            network="The parameters are the common weights in the table of edges.",
            releases=tuple((r.site, r.what, r.form, r.size) for r in self.disclosure.entries),
            diagnostics=(("rounds", str(self.rounds)), ("acyclicity", f"{self.cycles:.3g}")),
            comparison=None if reference is None else compare(self.dag, reference),
            exports=write_exports(self.dag),
            run_again=RunAgain(command=command),
            draw=lambda: svg_graph(self.dag),
        )
        Path(path).write_text(render(page), encoding="utf-8")

    def _summary(self) -> str:
        return (
            f"{counted(len(self.dag.edges), 'edge')}, {counted(len(self.dag.nodes), 'variable')}, "
            f"learned by {type(self.options).__name__} in {counted(self.rounds, 'round')}; "
            f"acyclicity measure {self.cycles:.2g}."
        )

    def __str__(self) -> str:
        return "\n".join((self._summary(), *self.notes))
