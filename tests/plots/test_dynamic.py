from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from isthmus.errors import GraphError
from isthmus.plots import plot_dynamic
from isthmus.results import DynamicEdge, DynamicNetwork

pytestmark = pytest.mark.skipif(
    find_spec("matplotlib") is None, reason="matplotlib is not installed"
)


def test_one_column_a_step_and_one_arrow_an_edge(tmp_path: Path) -> None:
    from matplotlib.patches import FancyArrowPatch

    plt = pytest.importorskip("matplotlib.pyplot")
    edges = {DynamicEdge("a", "b", 0): 0.5, DynamicEdge("b", "a", 0 + 1): -2.0}
    network = DynamicNetwork(("a", "b", "c"), 2, {**edges, DynamicEdge("c", "c", 2): 0.1})
    ax = network.plot()
    arrows = [p for p in ax.patches if isinstance(p, FancyArrowPatch)]
    assert len(arrows) == 3
    texts = [t.get_text() for t in ax.texts]
    assert texts == ["a", "b", "c", "t", "t − 1", "t − 2"]
    marks = {tuple(np.ravel(line.get_xydata()).tolist()) for line in ax.lines}
    assert marks == {(float(x), float(y)) for x in range(3) for y in range(3)}
    # The heaviest edge is the thickest, and negative ones have a colour of their own.
    widths = sorted(arrow.get_linewidth() for arrow in arrows)
    assert widths[0] < widths[1] < widths[2]
    assert len({arrow.get_edgecolor() for arrow in arrows}) == 2
    plt.savefig(tmp_path / "network.png")
    assert (tmp_path / "network.png").stat().st_size > 1000
    plt.close("all")


def test_edges_without_a_place_are_refused() -> None:
    with pytest.raises(GraphError, match="cannot be drawn"):
        plot_dynamic(["a"], {("a", "a", 3): 1.0}, lags=2)
