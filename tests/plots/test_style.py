"""The style for print, and the plot of growth."""

from __future__ import annotations

import re
import warnings
import zlib
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import ArgumentError, IsthmusWarning
from isthmus.plots import (
    plot_dynamic,
    plot_edge_probabilities,
    plot_graph,
    plot_growth,
    plot_trace,
    publication,
)

pytestmark = pytest.mark.skipif(
    find_spec("matplotlib") is None, reason="matplotlib is not installed"
)

pytest.importorskip("fast_sugiyama")
NAMES = list("abcdef")
CHAIN = ist.DAG(NAMES, list(pairwise(NAMES)))
OTHER = ist.DAG(NAMES, [("a", "b"), ("c", "b"), ("c", "d"), ("a", "f"), ("e", "f")])


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    mpl = pytest.importorskip("matplotlib")
    mpl.use("Agg")
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def drawn() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "graph": plot_graph(CHAIN.cpdag(), reference=OTHER),
        "dynamic": plot_dynamic(NAMES, {("a", "b", 0): 1.0, ("b", "c", 1): -1.0}, lags=1),
        "matrix": plot_edge_probabilities(NAMES, rng.random((6, 6))),
        "trace": plot_trace(rng.random((3, 20)), label="log score"),
        "growth": plot_growth({10: OTHER, 100: CHAIN}),
    }


@pytest.mark.long
def test_print_is_grey_and_fits_a_column() -> None:
    with publication(width=3.5):
        for name, ax in drawn().items():
            assert ax.figure.get_size_inches()[0] <= 3.5 + 1e-9, name
            ax.figure.canvas.draw()
            pixels = np.asarray(ax.figure.canvas.buffer_rgba())[..., :3].astype(int)
            assert (pixels.max(axis=-1) - pixels.min(axis=-1)).max() <= 20, name
    pixels_on_screen = drawn()["graph"]
    pixels_on_screen.figure.canvas.draw()
    colors = np.asarray(pixels_on_screen.figure.canvas.buffer_rgba())[..., :3].astype(int)
    assert (colors.max(axis=-1) - colors.min(axis=-1)).max() > 100  # the style is over


@pytest.mark.long
def test_fonts_are_embedded_as_truetype(tmp_path: Path) -> None:
    path = tmp_path / "network"
    with publication():
        figure: Any = plot_graph(CHAIN).figure
        figure.savefig(path)
    content = path.with_suffix(".pdf").read_bytes()
    for stream in re.findall(rb"stream\r?\n(.*?)endstream", content, flags=re.DOTALL):
        try:
            content += zlib.decompress(stream)
        except zlib.error:
            continue
    assert b"/FontFile2" in content
    assert b"/Type3" not in content


def test_text_too_small_for_print_is_said() -> None:
    names = [f"variable_{i}" for i in range(40)]
    wide = ist.DAG(names, [(names[0], name) for name in names[1:]])
    with publication(width=3.5), pytest.warns(IsthmusWarning, match="points high"):
        plot_graph(wide)
    with warnings.catch_warnings(), publication():
        warnings.simplefilter("error")
        plot_graph(CHAIN)
    with pytest.raises(ArgumentError, match=r"0\.5 to 32 inches"), publication(width=89):
        pass


def test_states_differ_by_more_than_colour() -> None:
    lines = [p for p in plot_graph(CHAIN, reference=OTHER).patches if hasattr(p, "get_arrowstyle")]
    looks = {(p.get_edgecolor(), str(p.get_linestyle()), p.get_linewidth()) for p in lines}
    assert len({color for color, *_ in looks}) == 4  # same, added, missing, reversed
    assert len({tuple(rest) for _, *rest in looks}) == 4
    legend: Any = plot_graph(CHAIN, reference=OTHER).get_legend()
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts == ["same (3)", "added (1)", "missing (1)", "reversed (1)"]


def test_growth_counts_edges_by_comparison() -> None:
    ax: Any = plot_growth({100: CHAIN, 10: OTHER}, label="patients")
    counts = {line.get_label(): list(line.get_ydata()) for line in ax.lines}
    assert counts == {"same": [3, 5], "added": [1, 0], "missing": [1, 0], "reversed": [1, 0]}
    assert list(ax.lines[0].get_xdata()) == [10, 100]
    assert ax.get_xlabel() == "patients"
    assert "100 patients" in ax.get_ylabel()
    with pytest.raises(ArgumentError, match="at least two"):
        plot_growth({10: CHAIN})
    with pytest.raises(ArgumentError, match="positive"):
        plot_growth({0: CHAIN, 10: CHAIN})


def test_a_solution_is_drawn_with_its_strengths() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    y = x + 0.1 * rng.normal(size=300)
    solution = ist.learn({"x": x, "y": y, "z": y + 3 * rng.normal(size=300)})
    widths = [
        patch.get_linewidth()
        for patch in solution.plot().patches
        if hasattr(patch, "get_arrowstyle")
    ]
    assert max(widths) > 2 * min(widths)
