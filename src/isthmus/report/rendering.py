"""Turn the content of a report into one HTML file that opens offline."""

from __future__ import annotations

import base64
import hashlib
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import isfinite, sqrt
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from isthmus.arrays import Floats, Integers
from isthmus.errors import IsthmusError, IsthmusWarning, warn
from isthmus.graphs.identification import STATES
from isthmus.networks import (
    Conditional,
    ConditionalGaussian,
    Curve,
    CurvedGaussian,
    CurvedLogit,
    GaussianNetwork,
    GPNetwork,
    Hurdle,
    Level,
    MultinomialLogit,
    Network,
    ProbabilityTable,
)
from isthmus.networks.conditionals import described_term
from isthmus.report.page import Mark, Page

# --- Parameters of a variable as plain records, which the template turns into HTML --------------

WIDTH, HEIGHT = 260.0, 170.0
LEFT, RIGHT, TOP, BOTTOM = 48.0, 10.0, 12.0, 34.0


def figure(value: float) -> str:
    """Return a number with four digits, and large ones without an exponent."""
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"


@dataclass(frozen=True)
class CurveDrawing:
    """The effect of a parent on its child, as SVG paths within 260 by 170 units."""

    parent: str
    child: str
    zero: str
    band: str
    mean: str
    left: str
    right: str
    low: str
    high: str


def draw_curve(curve: Curve, parent: str, child: str) -> CurveDrawing:
    """Return the paths and the axis labels of an effect with its band."""
    left, right = float(curve.at.min()), float(curve.at.max())
    low, high = min(float(curve.lower.min()), 0.0), max(float(curve.upper.max()), 0.0)
    if high == low:
        high = low + 1.0
    if right == left:
        right = left + 1.0

    def point(x: float, y: float) -> str:
        across = LEFT + (x - left) / (right - left) * (WIDTH - LEFT - RIGHT)
        down = TOP + (high - y) / (high - low) * (HEIGHT - TOP - BOTTOM)
        return f"{across:.1f},{down:.1f}"

    def path(xs: list[float], ys: list[float]) -> str:
        return "M" + " L".join(point(x, y) for x, y in zip(xs, ys, strict=True))

    at = curve.at.tolist()
    return CurveDrawing(
        parent,
        child,
        zero=path([left, right], [0.0, 0.0]),
        band=path(at + at[::-1], curve.upper.tolist() + curve.lower.tolist()[::-1]) + "Z",
        mean=path(at, curve.mean.tolist()),
        left=f"{left:.3g}",
        right=f"{right:.3g}",
        low=f"{low:.3g}",
        high=f"{high:.3g}",
    )


Levels: TypeAlias = Mapping[str, Sequence[Level]]

_CELLS = 400
"""Tables with more cells are not shown."""


@dataclass(frozen=True)
class Sentence:
    """A line of text, such as a regression equation."""

    text: str


@dataclass(frozen=True)
class Table:
    """A table of texts; the first ``given`` columns are headings of the rows."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    given: int = 0


Block: TypeAlias = Sentence | Table | CurveDrawing


def parameters(network: Network | GPNetwork, name: str) -> list[Block]:
    """Return the probabilities, the regression equations or the curves of a variable."""
    if isinstance(network, GPNetwork):
        return _curves(network, name)
    if isinstance(network, GaussianNetwork):
        own = network.coefficients[name]
        return [_equation(name, network.intercepts[name], own, network.variances[name])]
    return _conditional(network.conditionals[name], network.levels, name)


def _conditional(own: Conditional, levels: Levels, name: str) -> list[Block]:
    if isinstance(own, ProbabilityTable):
        return [_probabilities(own, levels)]
    if isinstance(own, ConditionalGaussian):
        return _equations(own, levels, name)
    if isinstance(own, CurvedGaussian | CurvedLogit):
        return _curved(own, levels, name)
    if isinstance(own, Hurdle):
        at = figure(own.at)
        away = f"log({name if own.at == 0 else f'{name} − {at}'})"
        if own.side < 0:
            away = f"log({at} − {name})"
        return [
            Sentence(f"whether {name} is not {at}:"),
            *_conditional(own.elsewhere, levels, name),
            Sentence("if it is not:"),
            *_conditional(own.rest, levels, away if own.side else name),
        ]
    assert isinstance(own, MultinomialLogit)
    return _log_odds(own, levels)


def _curves(network: GPNetwork, name: str) -> list[Block]:
    parents = network.dag.parents(name)
    terms = "".join(f" + effect of {parent}" for parent in parents)
    equation = Sentence(
        f"{name} = {figure(network.means[name])}{terms}, standard deviation of the noise "
        f"{figure(network.noises[name])}"
    )
    return [equation, *(draw_curve(network.curve(p, name), p, name) for p in parents)]


def _curved(own: CurvedGaussian | CurvedLogit, levels: Levels, name: str) -> list[Block]:
    """Return the regression on the terms, what they are, and drawings of single curves."""
    names = {str(i): described_term(term, levels) for i, term in enumerate(own.terms)}
    factors = {f.parent: f for term in own.terms for f in term if f.window is not None}
    windows = "; ".join(
        f"{v} from {figure(f.window[0])} to {figure(f.window[1])}"
        for v, f in factors.items()
        if f.window is not None
    )
    terms = Sentence(
        f"Effects are curved or interact: T2, T3 and so on are Chebyshev polynomials, and numbers "
        f"are scaled to the range from -1 to 1 ({windows})."
    )
    regression = replace(own.regression, continuous=tuple(names.values()))
    if isinstance(regression, MultinomialLogit):
        return [terms, *_log_odds(regression, levels)]
    drawn = [] if regression.discrete else list(_drawn(own, name))
    return [terms, *_equations(regression, levels, name), *drawn]


def _drawn(own: CurvedGaussian | CurvedLogit, name: str) -> Iterator[CurveDrawing]:
    """Yield the curves of parents whose effects are not straight, about their averages."""
    assert isinstance(own, CurvedGaussian)
    for parent in own.continuous:
        single = [(i, t[0]) for i, t in enumerate(own.terms) if {f.parent for f in t} == {parent}]
        if len(single) < 2 or single[0][1].window is None:
            continue
        at = np.linspace(*single[0][1].window, 101)
        values = np.array([factor.at({parent: at}) for _, factor in single])
        values -= values.mean(axis=1, keepdims=True)
        mean = own.regression.coefficients[[i for i, _ in single]] @ values
        yield draw_curve(Curve(at, mean, mean, mean), parent, name)


def _equation(
    name: str, intercept: float, coefficients: Mapping[str, float], variance: float
) -> Sentence:
    terms = [figure(intercept)]
    terms += [
        f"{'−' if weight < 0 else '+'} {figure(abs(weight))} · {parent}"
        for parent, weight in coefficients.items()
    ]
    return Sentence(f"{name} = {' '.join(terms)}, standard deviation {figure(sqrt(variance))}")


def _equations(own: ConditionalGaussian, levels: Levels, name: str) -> list[Block]:
    """Return one equation, or a table with a row per configuration of the discrete parents."""
    if own.intercepts.size * (2 + len(own.continuous)) > _CELLS:
        return [Sentence(f"{own.parameters:,} parameters: too many to show.")]
    if not own.discrete:
        slopes = dict(zip(own.continuous, own.coefficients.tolist(), strict=True))
        return [_equation(name, float(own.intercepts), slopes, float(own.variances))]
    rows = []
    for codes in np.ndindex(own.intercepts.shape):
        row = [str(levels[p][i]) for p, i in zip(own.discrete, codes, strict=True)]
        row += [figure(v) for v in (own.intercepts[codes], *own.coefficients[codes])]
        row.append(figure(sqrt(own.variances[codes])))
        rows.append(row if own.counts is None else [*row, f"{own.counts[codes]:,}"])
    head = [*own.discrete, "intercept", *(f"· {p}" for p in own.continuous), "standard deviation"]
    head += [] if own.counts is None else ["rows"]
    return [Sentence(f"{name}: one regression per row"), Table(head, rows, len(own.discrete))]


def _log_odds(own: MultinomialLogit, levels: Levels) -> list[Block]:
    """Return the coefficients of a logistic regression, one column per level but the first."""
    head = ["log-odds", *(str(level) for level in own.levels[1:])]
    rows: list[tuple[str, Floats]] = [("intercept", own.intercepts)]
    for parent, effect in zip(own.discrete, own.effects, strict=True):
        pairs = zip(levels[parent][1:], effect[1:], strict=True)
        rows += [(f"{parent} = {level}", row) for level, row in pairs]
    rows += zip(own.continuous, own.slopes, strict=True)
    cells = [[name, *map(figure, values[1:].tolist())] for name, values in rows]
    return [Sentence(f"against {own.levels[0]}:"), Table(head, cells, 1)]


def _probabilities(own: ProbabilityTable, levels: Levels) -> Block:
    probabilities: Floats = own.probabilities
    counts: Integers | None = own.counts
    if probabilities.size > _CELLS:
        given = ", ".join(own.given)
        return Sentence(
            f"{probabilities.size:,} probabilities given {given}: too many to show. Write the "
            "network to a BIF or JSON file to get them."
        )
    values = [[str(v) for v in levels[p]] for p in own.given]
    rows = []
    for codes in itertools.product(*(range(len(names)) for names in values)):
        row = [names[i] for names, i in zip(values, codes, strict=True)]
        row += [f"{p:.4f}" for p in probabilities[codes]]
        rows.append(row if counts is None else [*row, f"{counts[codes].sum():,}"])
    head = [*own.given, *(str(v) for v in own.levels)] + ([] if counts is None else ["rows"])
    return Table(head, rows, len(own.given))


# --- Turn the content of a report into one HTML file that opens offline -------------------------

_HERE = Path(__file__).parent
_LIBRARIES = ("dagre.min.js", "cytoscape.min.js")
_SCRIPTS = (
    "data.js",
    "marks.js",
    "groups.js",
    "drawing.js",
    "matrix.js",
    "edit.js",
    "inference.js",
    "whatif.js",
    "panel.js",
    "table.js",
    "export.js",
    "main.js",
)
_DRAWING = ("layout.js", "routes.js", "network.js", "labels.js")
"""Scripts that need the libraries: ``drawing.js`` runs both when the rest of the page is ready."""
_EXPORT = 3_000_000
"""Maximum number of characters of a file that is embedded in the page."""


def render(page: Page) -> str:
    """Return the page as HTML. All names are escaped, and nothing is loaded from other servers.

    Parameters
    ----------
    page
        The content. Without the libraries of ``build_assets.sh`` the graph is drawn by
        ``page.draw``, and cannot be zoomed or moved.
    """
    libraries = _libraries()
    if not libraries:
        warn(
            "The drawing in this report cannot be zoomed or moved, because this copy of Isthmus "
            f"lacks the JavaScript libraries for it. {_remedy()}",
            IsthmusWarning,
        )
    picture = None if libraries else _picture(page)
    head = _read("scripts/head.js")
    scripts = [
        _read(f"scripts/{name}") for name in (*_SCRIPTS, *(() if libraries else ("fixed.js",)))
    ]
    drawing = [*libraries, *(_read(f"scripts/{name}") for name in _DRAWING)] if libraries else []
    exports = {kind: text for kind, text in page.exports.items() if len(text) <= _EXPORT}
    template = _environment().get_template("page.html")
    html: str = template.render(
        page=page,
        data=_data(page, exports),
        exports=exports,
        picture=picture,
        answers=not isinstance(page.network, str | GPNetwork),
        interactive=bool(libraries),
        remedy=_remedy(),
        rows=_rows(page),
        states=STATES,
        marks=_legend(page),
        blocks=_blocks(page),
        style=_read("templates/page.css"),
        head=head,
        scripts=scripts,
        drawing=drawing,
        policy=_policy([head, *drawing, *scripts]),
        licences=_read("assets/licences.txt") if libraries else "",
        version=_version(),
    )
    return html


def _environment() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    environment.filters["ours"] = Markup  # for our own scripts, style sheet and drawings only
    environment.filters["number"] = _number
    environment.tests["sentence"] = lambda block: isinstance(block, Sentence)
    environment.tests["table"] = lambda block: isinstance(block, Table)
    return environment


def _version() -> str:
    from importlib.metadata import version  # slow, so not with the package

    return version("isthmus")


@cache
def _read(name: str) -> str:
    text = (_HERE / name).read_text(encoding="utf-8").replace("\r\n", "\n")
    if name.endswith(".js") and "</script" in text.lower():
        raise ValueError(f"{name} cannot be written into a page: it contains the end of a script.")
    return text


def _libraries() -> list[str]:
    """Return the drawing libraries; none in a source checkout without them."""
    if not all((_HERE / "assets" / name).is_file() for name in (*_LIBRARIES, "licences.txt")):
        return []
    return [_read(f"assets/{name}") for name in _LIBRARIES]


def _remedy() -> str:
    """Return how to get the drawing libraries, which depends on how Isthmus was installed."""
    if (_HERE.parents[2] / "build_assets.sh").is_file():
        return (
            "It is a source checkout: run `sh build_assets.sh` there, which needs npm, and write "
            "the report again."
        )
    return (
        "An installation from git or from source lacks them. Clone the repository, run `sh "
        "build_assets.sh` there, which needs npm, and then `pip install .`; or install a wheel, "
        "which has them: `pip install --force-reinstall --only-binary isthmus isthmus`."
    )


def _picture(page: Page) -> str | None:
    if page.draw is None:
        return None
    try:
        return page.draw()
    except IsthmusError:  # the layout library is missing
        return None


def _policy(scripts: list[str]) -> str:
    """Return a policy that allows our own scripts, by their hashes, and no loads at all."""
    digests = (hashlib.sha256(text.encode()).digest() for text in scripts)
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {hashes}; img-src data: blob:"
    )


def _data(page: Page, exports: dict[str, str]) -> dict[str, Any]:
    """Return what the scripts of the page need, as plain data for JSON."""
    index = {name: i for i, name in enumerate(page.nodes)}
    edges = [
        {
            "from": index[row["parent"]],
            "to": index[row["child"]],
            "mark": row["mark"],
            "direction": row["direction"],
            "values": [v if v is not None and isfinite(v) else None for v in row["values"]],
            "inGraph": row["in_graph"],
            "state": row["state"],
        }
        for row in _rows(page)
    ]
    drawn = [(e["from"], e["to"]) for e in edges if e["inGraph"]]
    return {
        "title": page.title,
        "nodes": list(page.nodes),
        "kinds": {name: kind for name, kind, _ in page.columns},
        "groups": communities(len(page.nodes), drawn),
        "edges": edges,
        "measures": [measure.name for measure in page.measures],
        "threshold": page.threshold,
        "compared": page.comparison is not None,
        "exports": exports,
        "again": page.run_again.with_knowledge(local=not page.releases and not page.legend),
        "pag": bool(page.legend),
    }


def _rows(page: Page) -> list[dict[str, Any]]:
    """Return all edges, also those of the reference only, from the strongest to the weakest."""
    states = {} if page.comparison is None else page.comparison.states
    rows: list[dict[str, Any]] = [
        {
            "parent": e.parent,
            "child": e.child,
            "mark": e.mark,
            "direction": e.direction,
            "values": e.values,
            "in_graph": e.in_graph,
            "state": states.get((e.parent, e.child)) or states.get((e.child, e.parent)),
        }
        for e in page.edges
    ]
    rows.sort(key=lambda r: (-(r["values"][0] or 0.0) if r["values"] else 0, r["parent"]))
    if page.comparison is not None:
        none = (None,) * len(page.measures)
        rows += [
            {
                "parent": a,
                "child": b,
                "mark": Mark.DETERMINED if directed else Mark.OPEN,
                "direction": "",
                "values": none,
                "in_graph": False,
                "state": "missing",
            }
            for (a, b), directed in page.comparison.missing.items()
        ]
    return rows


def _legend(page: Page) -> list[tuple[Mark, str, int]]:
    """Return the marks that edges of the graph have, what they mean, and how often they occur."""
    if page.legend:
        kinds = Counter(edge.mark for edge in page.edges)
        return [(mark, text, kinds[mark]) for mark, text in page.legend.items() if kinds[mark]]
    counts = Counter((e.mark, e.direction.partition(":")[0]) for e in page.edges if e.in_graph)
    words = {"": {Mark.OPEN: "direction not determined"}}
    return [
        (mark, words.get(text, {}).get(mark) or f"direction {text or 'known'}", counts[mark, text])
        for mark, text in sorted(counts, key=lambda key: list(Mark).index(key[0]))
    ]


def _blocks(page: Page) -> dict[str, Any]:
    if isinstance(page.network, str):
        return {}
    names = page.network.dag.nodes if isinstance(page.network, GPNetwork) else page.nodes
    return {name: parameters(page.network, name) for name in names}


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


_PASSES = 20
"""Passes over all nodes per level; in practice nothing moves after a few."""


def communities(nodes: int, edges: Iterable[tuple[int, int]]) -> list[int]:
    """Return the community of each node, by the Louvain method with a fixed order of the nodes.

    Communities are numbered from the largest to the smallest. Nodes without edges share one.

    Parameters
    ----------
    edges
        Pairs of positions of nodes; directions do not matter.
    """
    weights: list[dict[int, float]] = [defaultdict(float) for _ in range(nodes)]
    for a, b in edges:
        weights[a][b] += 1.0
        weights[b][a] += 1.0
    alone = [v for v in range(nodes) if not weights[v]]
    member = list(range(nodes))
    while True:
        label = _moved(weights)
        if len(set(label)) == len(weights):
            break
        member = [label[m] for m in member]
        weights = _joined(weights, label)
    for v in alone:
        member[v] = member[alone[0]]
    size: dict[int, int] = defaultdict(int)
    for m in member:
        size[m] += 1
    rank = {m: i for i, m in enumerate(sorted(size, key=lambda m: (-size[m], member.index(m))))}
    return [rank[m] for m in member]


def _moved(weights: list[dict[int, float]]) -> list[int]:
    """Move nodes to the neighbouring community that gains most modularity; number the results."""
    n = len(weights)
    degree = [sum(own.values()) for own in weights]
    total = sum(degree) or 1.0
    label, volume = list(range(n)), list(degree)
    for _ in range(_PASSES):
        changed = False
        for v in range(n):
            links: dict[int, float] = defaultdict(float)
            for other, weight in weights[v].items():
                if other != v:
                    links[label[other]] += weight
            before = label[v]
            volume[before] -= degree[v]
            gains = {c: w - degree[v] * volume[c] / total for c, w in links.items()}
            best = max(sorted(gains), key=gains.__getitem__, default=before)
            if gains.get(best, 0.0) <= gains.get(before, -degree[v] * volume[before] / total):
                best = before
            label[v] = best
            volume[best] += degree[v]
            changed |= best != before
        if not changed:
            break
    number: dict[int, int] = {}
    return [number.setdefault(c, len(number)) for c in label]


def _joined(weights: list[dict[int, float]], label: list[int]) -> list[dict[int, float]]:
    joined: list[dict[int, float]] = [defaultdict(float) for _ in range(max(label) + 1)]
    for v, own in enumerate(weights):
        for other, weight in own.items():
            joined[label[v]][label[other]] += weight
    return joined
