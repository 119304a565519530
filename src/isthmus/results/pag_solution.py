"""The result of a search that allows for hidden common causes: a PAG."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, final

from isthmus.errors import IsthmusError, MismatchError, counted
from isthmus.graphs import PAG, Knowledge
from isthmus.graphs.pag import EDGE_KINDS
from isthmus.networks import Level
from isthmus.networks.rounding import rounded_rows
from isthmus.results.details import SearchDetails
from isthmus.results.effects import EffectEstimate, estimate_pag_effect
from isthmus.results.reading import Disclosure, Provenance, Reading, header_facts, run_again
from isthmus.results.solution import StatisticsKept, require_statistics
from isthmus.watch import Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isthmus.report.page import Page
    from isthmus.results.validation import Validation


@final
@dataclass(frozen=True)
class PAGSolution:
    """What is known about causes if some of them may be hidden; from `FCI` or `BossFCI`.

    It can be drawn, saved and reported like a `Solution`, and has the effects that are identified.
    It has no parameters: these need a graph of the columns alone.

    Attributes
    ----------
    pag
        The learned graph; see `PAG` for the meaning of its edges.
    status
        Why the search stopped.
    disclosure
        The data that were released to learn it.
    choice
        Which test and which search were used, and why.
    knowledge
        The background knowledge that the graph agrees with.
    notes
        Warnings about the data, and about the search.
    reading
        How each column of the table was read, and why.
    details
        What else the search reports.
    provenance
        The call, the random seed and the versions that the solution was computed with.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=2000, seed=1)
    >>> solution = ist.learn(data, search=ist.FCI())
    >>> ("lung", "o->", "either") in solution.pag.edges
    True
    """

    pag: PAG
    status: Status
    disclosure: Disclosure
    choice: str
    knowledge: Knowledge | None = None
    notes: tuple[str, ...] = ()
    reading: Reading = field(default_factory=Reading, repr=False)
    details: Any = field(default_factory=SearchDetails, repr=False)
    statistics_kept: StatisticsKept | None = field(default=None, repr=False, compare=False)
    provenance: Provenance = field(default=Provenance(), repr=False, compare=False)

    @property
    def dag(self) -> NoReturn:
        """Raises an error: with hidden causes, there is no DAG of the columns alone."""
        raise MismatchError(
            "With hidden common causes there is no DAG of the columns alone; use solution.pag, or "
            "learn a DAG that assumes that there are none: learn(data, search=Boss())."
        )

    cpdag = dag

    def effect(
        self,
        cause: str,
        effect: str,
        *,
        change: Sequence[Level] | None = None,
        outcome: Level | None = None,
        clusters: str | Sequence[object] | None = None,
    ) -> EffectEstimate:
        """Estimate the total effect of one variable on another, if the graph identifies it.

        It is identified if adjustment for some of the variables gives the effect in all graphs that
        the PAG stands for, whatever is hidden (the generalised adjustment criterion of Perković et
        al. 2018), or if no path can be directed from cause to effect, so that it is zero. Otherwise
        the answer says why it is not; it has no range. The estimate and its standard error are
        those of `Solution.effect`.

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
            As for `Solution.effect`.
        """
        again = "Learn again from the data: isthmus.learn(data, search=BossFCI())."
        for name in (cause, effect):
            self.pag.index(name)  # raises for a name that is not a node
        kept = require_statistics(self.statistics_kept, again)
        adjusted, comparison, noted = kept.adjusted_effects(
            cause, effect, change, outcome, clusters
        )
        return noted(
            estimate_pag_effect(self.pag, self.knowledge, cause, effect, adjusted, comparison)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the solution as plain data for JSON, without statistics."""
        from isthmus.results.solution_file import plain_solution

        return plain_solution(self._attributes()) | {"details": self.details.to_dict()}

    def save(self, path: str | PathLike[str], *, statistics: bool = False) -> None:
        """Write the solution to a file, which `load` reads; see `Solution.save`.

        Parameters
        ----------
        path
            File to write.
        statistics
            Whether to include the moments of continuous columns, for `effect`. They are exact sums
            over the rows, which tell more about single rows than a graph does: include them only in
            files that stay with the data. Statistics of discrete columns are never saved.
        """
        from isthmus.results.solution_file import write_solution

        kept = self.statistics_kept if statistics else None
        write_solution(self._attributes() | {"statistics_kept": kept}, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> PAGSolution:
        """Read a solution that was written by `save`."""
        from isthmus.results.solution_file import PAG_FORMAT, read_solution

        return read_solution(path, {PAG_FORMAT: cls})

    def _attributes(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw the graph, with a legend that says what its marks mean.

        Parameters
        ----------
        ax
            Axes to draw in; new ones by default.
        **options
            Passed on to ``isthmus.plots.plot_graph``.
        """
        from isthmus.plots import plot_graph

        return plot_graph(self.pag, ax=ax, **options)

    def report(
        self,
        path: str | PathLike[str],
        *,
        title: str = "Learned network",
        validation: Validation | None = None,
        table: str | None = None,
        command: str | None = None,
    ) -> None:
        """Write an HTML report with the interactive graph and a legend of its marks.

        Parameters
        ----------
        path
            File to write. The page is self-contained: it opens offline and loads nothing.
        title
            Title of the page.
        validation
            The result of `isthmus.validate` for this graph, such as on rows that it was not learned
            from.
        table
            Name of the table, such as its file, to be shown beside the title.
        command
            The command line that computed the solution, to be shown in the page.
        """
        from isthmus.report.rendering import render

        page = pag_page(self, title, table, command)
        if validation is not None:
            page = replace(page, check=validation.summary())
        Path(path).write_text(render(page), encoding="utf-8")

    def _repr_html_(self) -> str | None:
        from isthmus.plots import notebook_drawing

        return notebook_drawing(self.pag, str(self))

    def __str__(self) -> str:
        pag = self.pag
        edges, variables = counted(len(pag.edges), "edge"), counted(len(pag.nodes), "variable")
        kinds = (
            f"{len(pag.of_kind(kind))} {kind} (the first {meaning.rstrip(',')} the second)"
            for kind, meaning in EDGE_KINDS.items()
            if pag.of_kind(kind)
        )
        lines = [f"{edges}, {variables}, hidden common causes allowed", self.choice]
        return "\n".join((*lines, str(self.status), *kinds, *self.notes))

    __repr__ = __str__


# --- Content of the report of a graph with hidden causes ----------------------------------------

_NO_PARAMETERS = (
    "If there may be hidden common causes, the columns alone do not determine a network, so there "
    "are no parameters."
)


def pag_page(solution: PAGSolution, title: str, table: str | None, command: str | None) -> Page:
    """Return the content of the report of a PAG; see `PAGSolution.report`."""
    from isthmus.io import to_tetrad
    from isthmus.plots.graph import PAG_LEGEND
    from isthmus.plots.svg import svg_graph
    from isthmus.report.page import PAG_MARKS, EdgeRow, Page, search_diagnostics

    pag, kept = solution.pag, solution.statistics_kept
    rows = None if kept is None else kept.rows
    if rows is not None and solution.disclosure.has_exact_sums:
        rows = rounded_rows(rows)
    summary = str(solution).splitlines()
    exports = {}
    with suppress(IsthmusError):  # Tetrad has no way to write some names
        exports["txt"] = to_tetrad(pag)
    return Page(
        title=title,
        nodes=pag.nodes,
        summary=tuple(summary[: len(summary) - len(solution.notes)]),
        notes=solution.notes,
        facts=header_facts(table, rows),
        edges=tuple(
            EdgeRow(a, b, directed=True, kind=kind, direction=f"{a} {EDGE_KINDS[kind]} {b}")
            for a, kind, b in pag.edges
        ),
        legend={PAG_MARKS[kind]: text.replace("   ", ": ") for kind, text in PAG_LEGEND.items()},
        network=_NO_PARAMETERS,
        columns=tuple((c.name, str(c.read_as), c.reason) for c in solution.reading),
        releases=tuple((r.site, r.what, r.form, r.size) for r in solution.disclosure.entries),
        diagnostics=search_diagnostics(None, solution.status, solution.details),
        run_again=run_again(solution.provenance, solution.status, command),
        exports=exports,
        draw=lambda: svg_graph(pag),
    )
