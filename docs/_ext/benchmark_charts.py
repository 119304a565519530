"""Draw the files of benchmarks/results: errors against time, one point per method.

```{benchmark} gaussian
:where: scale=raw, d=50
:alt: …
```

With `x` and `lines`, errors against another key of the runs, one line per value of a second one.
`dashed` names a key whose means are drawn as well:

```{benchmark} privacy-counts
:where: part=curves, name=asia
:x: epsilon
:lines: n
:dashed: before
:alt: …
```

With `y`, that key instead of errors, on logarithmic axes.
"""

from __future__ import annotations

import io
import json
from collections import defaultdict
from math import nan
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from pictures import show_svg
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from sphinx.application import Sphinx

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"
OURS, OTHERS = "#0072b2", "#8a8a8a"


class Benchmark(SphinxDirective):
    """Errors against CPU time of the methods in a file, on logarithmic time."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {
        "where": directives.unchanged_required,
        "alt": directives.unchanged_required,
        "x": directives.unchanged_required,
        "y": directives.unchanged_required,
        "lines": directives.unchanged_required,
        "dashed": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        """Draw the points."""
        path = RESULTS / f"{self.arguments[0]}.json"
        self.env.note_dependency(str(path))
        pairs = (pair.split("=") for pair in self.options["where"].split(","))
        wanted = {key.strip(): value.strip() for key, value in pairs}
        every = json.loads(path.read_text(encoding="utf-8"))["runs"]
        runs = [run for run in every if all(str(run[k]) == v for k, v in wanted.items())]
        if not runs:
            raise self.error(f"No runs of {path.name} have {self.options['where']}.")
        x = self.options.get("x")
        if x and "y" in self.options:
            svg = _draw_growth(runs, x, self.options["y"], self.options["lines"])
        elif x:
            svg = _draw_lines(runs, x, self.options["lines"], self.options.get("dashed"))
        else:
            svg = _draw(_against_time(runs))
        return [show_svg(self.env, svg, self.options["alt"])]


def _against_time(runs: list[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """Return the median time and the mean error of each method."""
    methods: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for run in runs:
        if "cpu" in run:
            methods[run["method"]].append(run)
    return {
        method: (median(float(r["cpu"]) for r in own), fmean(r["shd"] for r in own))
        for method, own in methods.items()
    }


def _draw(points: dict[str, tuple[float, float]]) -> str:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.5))
    ax = figure.subplots()
    ax.set_xscale("log")
    ax.set_yscale("symlog", linthresh=2)
    for method, (seconds, errors) in points.items():
        ours = method.startswith("isthmus")
        ax.plot(seconds, errors, "o" if ours else "s", color=OURS if ours else OTHERS, markersize=7)
    low, high = ax.get_xlim()
    ax.set_xlim(low, high * 20)
    ax.set_ylim(bottom=-0.3)
    ax.set_yticks([0, 1, 2, 5, 10, 20, 50, 100, 200], [*"0125", "10", "20", "50", "100", "200"])
    ax.set_xlabel("CPU seconds")
    ax.set_ylabel("errors (SHD)")
    ax.spines[["top", "right"]].set_visible(False)
    _label(ax, points)
    return _svg(figure)


def _draw_lines(runs: list[dict[str, Any]], x: str, lines: str, dashed: str | None) -> str:
    """Draw mean errors against a key, in the order of the file, with one line per other key."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.0))
    ax = figure.subplots()
    places = list(dict.fromkeys(run[x] for run in runs))
    groups = list(dict.fromkeys(run[lines] for run in runs))
    for i, group in enumerate(groups):
        colour = colormaps["viridis_r"](0.15 + 0.85 * i / max(len(groups) - 1, 1))
        for key, style in (("shd", "o-"), (dashed, "--")):
            if key is not None:
                own = [[r for r in runs if r[lines] == group and r[x] == p] for p in places]
                known = [[r[key] for r in some if r[key] is not None] for some in own]
                means = [fmean(values) if values else nan for values in known]
                label = f"{lines} = {group:,}" if key == "shd" else None
                ax.plot(range(len(places)), means, style, color=colour, markersize=5, label=label)
    ax.set_xticks(range(len(places)), [p if isinstance(p, str) else f"{p:g}" for p in places])
    ax.set_ylim(bottom=-0.3)
    ax.set_xlabel(x)
    ax.set_ylabel("errors (SHD)")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8)
    return _svg(figure)


def _draw_growth(runs: list[dict[str, Any]], x: str, y: str, lines: str) -> str:
    """Draw the means of one key against another, on logarithmic axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.0))
    ax = figure.subplots()
    for group in dict.fromkeys(run[lines] for run in runs):
        own = [run for run in runs if run[lines] == group]
        places = sorted({run[x] for run in own})
        means = [fmean(run[y] for run in own if run[x] == place) for place in places]
        ax.loglog(places, means, "o-", markersize=5, label=group)
    ax.set_xlabel(x)
    ax.set_ylabel({"cpu": "CPU seconds", "gigabytes": "memory (GB)"}.get(y, y))
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8)
    return _svg(figure)


def _svg(figure: Any) -> str:
    file = io.StringIO()
    figure.savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None})
    return file.getvalue()


def _label(ax: Any, points: dict[str, tuple[float, float]]) -> None:
    """Write the names beside the points, moved up where they would cover each other."""
    placed: list[tuple[float, float]] = []
    for method, point in sorted(points.items(), key=lambda item: item[1][1]):
        x, y = ax.transData.transform(point)
        lift = 0.0
        while any(abs(y + lift - b) < 12 and abs(x - a) < 190 for a, b in placed):
            lift += 2.0
        placed.append((x, y + lift))
        offset = (9, (lift - 4) * 72 / ax.figure.dpi)
        line = {"arrowstyle": "-", "color": OTHERS, "lw": 0.5} if lift else None
        ax.annotate(
            method, point, xytext=offset, textcoords="offset points", fontsize=8, arrowprops=line
        )


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("benchmark", Benchmark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
