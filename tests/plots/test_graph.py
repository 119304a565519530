from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from io import BytesIO
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.errors import GraphError, MissingExtraError
from isthmus.graphs import CPDAG, DAG, PDAG
from isthmus.plots import plot_graph
from isthmus.plots.layout import lay_out, spread

pytestmark = pytest.mark.skipif(
    find_spec("matplotlib") is None, reason="matplotlib is not installed"
)

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("fast_sugiyama")


@pytest.fixture(autouse=True)
def _no_window() -> Iterator[None]:
    mpl = pytest.importorskip("matplotlib")
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


def random_dag(size: int, edges: int, seed: int = 0) -> DAG:
    rng = np.random.default_rng(seed)
    pairs = {tuple(sorted(rng.choice(size, 2, replace=False).tolist())) for _ in range(edges)}
    return DAG([f"v{i}" for i in range(size)], [(f"v{a}", f"v{b}") for a, b in pairs])


def patches(ax: Any, kind: str) -> list[Any]:
    return [patch for patch in ax.patches if type(patch).__name__ == kind]


def heads(ax: Any) -> list[str]:
    return [type(arrow.get_arrowstyle()).__name__ for arrow in patches(ax, "FancyArrowPatch")]


def picture(ax: Any) -> bytes:
    out = BytesIO()
    ax.figure.savefig(out, format="png", metadata={"Software": None})
    return out.getvalue()


def test_one_box_and_one_line_each() -> None:
    graph = PDAG(["a", "b", "c", "lonely"], [("a", "b")], [("c", "b")])
    ax = plot_graph(graph)
    assert [text.get_text() for text in ax.texts] == ["a", "b", "c", "lonely"]
    assert len(patches(ax, "FancyBboxPatch")) == 4
    assert sorted(heads(ax)) == ["Curve", "CurveFilledB"]
    assert len(picture(ax)) > 1000


@pytest.mark.long
@pytest.mark.parametrize("size", [1, 2, 12, 40, 100])
def test_boxes_do_not_overlap_and_stay_inside(size: int) -> None:
    dag = random_dag(size, int(1.5 * size) if size > 1 else 0)
    for graph in (dag, dag.cpdag()):
        ax = plot_graph(graph)
        ax.figure.canvas.draw()
        frame = ax.get_window_extent()
        boxes = [box.get_window_extent() for box in patches(ax, "FancyBboxPatch")]
        assert len(boxes) == size
        for box in boxes:
            assert frame.x0 <= box.x0 < box.x1 <= frame.x1
            assert frame.y0 <= box.y0 < box.y1 <= frame.y1
        for one, two in combinations(boxes, 2):
            assert not one.overlaps(two)
        # every label fits into its box
        for text, box in zip(ax.texts, boxes, strict=True):
            assert text.get_window_extent().width <= box.width
            assert text.get_window_extent().height <= box.height * 1.02


def test_arrows_point_down_and_lines_stay_inside() -> None:
    dag = random_dag(30, 50)
    ax = plot_graph(dag)
    low, high = ax.get_xlim()
    for arrow in patches(ax, "FancyArrowPatch"):
        path = arrow._path_original.vertices
        assert path[0][1] > path[-1][1]
        assert path[:, 0].min() >= low
        assert path[:, 0].max() <= high


def test_given_axes_of_any_size() -> None:
    import matplotlib.pyplot as plt

    dag = random_dag(20, 30)
    sizes = []
    for inches in (2, 5, 20):
        figure, ax = plt.subplots(figsize=(inches, inches))
        assert plot_graph(dag, ax=ax) is ax
        figure.canvas.draw()
        frame = ax.get_window_extent()
        for box in patches(ax, "FancyBboxPatch"):
            spot = box.get_window_extent()
            assert frame.x0 <= spot.x0 + 1e-6
            assert spot.x1 <= frame.x1 + 1e-6
        sizes.append(float(ax.texts[0].get_fontsize()))
    assert sizes[0] < sizes[1] < sizes[2] == 10


def test_strengths_are_line_widths() -> None:
    dag = DAG(["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")])
    ax = plot_graph(dag, strengths={("a", "b"): 0.5, ("b", "c"): -1.0})
    widths = {}
    for arrow, edge in zip(patches(ax, "FancyArrowPatch"), dag.edges, strict=True):
        widths[edge] = arrow.get_linewidth()
    assert widths["b", "c"] > widths["a", "b"] > widths["a", "c"] > 0
    loose = CPDAG(["a", "b"], [], [("a", "b")])
    assert plot_graph(loose, strengths={("b", "a"): 1.0}) is not None
    with pytest.raises(GraphError, match="not an edge"):
        plot_graph(dag, strengths={("b", "a"): 1.0})
    with pytest.raises(GraphError, match="finite"):
        plot_graph(dag, strengths={("a", "b"): float("nan")})


def test_odd_names() -> None:
    names = ["$x_1$", "größe", "a_very_long_name_with_many_parts", "x" * 60, " ", "a\nb", "%&{}"]
    ax = plot_graph(DAG(names, list(pairwise(names))))
    shown = [text.get_text() for text in ax.texts]
    assert shown[0] == "$x_1$"
    assert "\n" in shown[2]
    assert shown[2].replace("\n", "") == names[2]
    assert max(len(line) for text in shown for line in text.split("\n")) <= 24
    assert picture(ax)


def test_no_consistent_extension() -> None:
    ring = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    ax = plot_graph(PDAG(["a", "b", "c", "d"], [], ring))
    assert heads(ax) == ["Curve"] * 4


def test_empty_graphs() -> None:
    assert len(plot_graph(DAG([])).texts) == 0
    assert len(plot_graph(DAG([f"n{i}" for i in range(30)])).texts) == 30


@pytest.mark.long
def test_the_same_graph_gives_the_same_picture() -> None:
    """Neither the order of sets nor that of hashes may show."""
    script = (
        "import hashlib, matplotlib; matplotlib.use('Agg')\n"
        "import numpy as np\n"
        "from isthmus.graphs import DAG\n"
        "from isthmus.plots.layout import lay_out\n"
        "rng = np.random.default_rng(1)\n"
        "m = np.triu(rng.random((40, 40)) < 0.07, 1)\n"
        "dag = DAG.from_adjacency([f'name{i}' for i in range(40)], m)\n"
        "found = lay_out(dag.cpdag(), [(40.0, 20.0)] * 40, gap=10, layer_gap=20)\n"
        "key = repr(sorted(found.nodes.items())) + repr(sorted(found.bends.items()))\n"
        "print(hashlib.sha256(key.encode()).hexdigest())\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in range(3)
    }
    assert len(found) == 1


def test_wrong_type_and_missing_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GraphError, match="UndirectedGraph"):
        plot_graph(DAG(["a"]).skeleton())  # type: ignore[arg-type]
    dag = DAG(["a", "b"], [("a", "b")])
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match="matplotlib"):
        plot_graph(dag)


@pytest.mark.long
def test_matplotlib_is_loaded_late() -> None:
    script = "import sys, isthmus.plots; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


@given(
    st.lists(st.tuples(st.floats(-100, 100), st.floats(0.1, 10)), min_size=1, max_size=12).map(
        lambda pairs: sorted(pairs)
    )
)
def test_spread_keeps_distance_and_balance(drawn: list[tuple[float, float]]) -> None:
    wanted, half = [x for x, _ in drawn], [h for _, h in drawn]
    found = spread(wanted, half)
    for i in range(len(found) - 1):
        assert found[i + 1] - found[i] >= half[i] + half[i + 1] - 1e-9
    # least squares moves nothing on the whole
    assert sum(found) == pytest.approx(sum(wanted), abs=1e-6)
    again = spread(found, half)
    assert again == pytest.approx(found, abs=1e-6)


@pytest.mark.long
def test_large_layout_is_quick() -> None:
    dag = random_dag(1000, 1500)
    found = lay_out(dag, [(50.0, 20.0)] * 1000, gap=10, layer_gap=20)
    assert len(found.nodes) == 1000
