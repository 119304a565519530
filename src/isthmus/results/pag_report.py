"""Content of the report of a graph with hidden causes."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from isthmus.errors import IsthmusError
from isthmus.graphs.pag import EDGE_KINDS
from isthmus.io import to_tetrad
from isthmus.models.rounding import rounded_rows
from isthmus.plots.drawing import PAG_LEGEND
from isthmus.plots.svg import svg_graph
from isthmus.report import Page
from isthmus.report.diagnostics import search_diagnostics
from isthmus.report.page import PAG_MARKS, EdgeRow
from isthmus.results.report_files import header_facts, run_again

if TYPE_CHECKING:
    from isthmus.results.pag_solution import PAGSolution

_NO_PARAMETERS = (
    "If there may be hidden common causes, the columns alone do not determine a network, so there "
    "are no parameters."
)


def pag_page(solution: PAGSolution, title: str, table: str | None, command: str | None) -> Page:
    """Return the content of the report of a PAG; see `PAGSolution.report`."""
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
