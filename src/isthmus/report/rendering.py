"""Turn the content of a report into one HTML file that opens offline."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any

from isthmus.errors import IsthmusError, IsthmusWarning, warn
from isthmus.graphs.comparison import STATES
from isthmus.models import GPNetwork
from isthmus.report.page import Mark, Page
from isthmus.report.parameters import Sentence, Table, parameters

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
    nodes
        Number of nodes.
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
