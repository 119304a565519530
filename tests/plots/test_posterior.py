"""Plots of a posterior: what is drawn is what was given."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

from isthmus.errors import ArgumentError
from isthmus.plots import plot_edge_probabilities, plot_trace

pytestmark = pytest.mark.skipif(
    find_spec("matplotlib") is None, reason="matplotlib is not installed"
)


@pytest.mark.long
@pytest.mark.parametrize("d", [1, 3, 80, 400])
def test_the_matrix_is_drawn(d: int) -> None:
    values = np.random.default_rng(0).random((d, d))
    names = [f"$v_{i}" for i in range(d)]
    ax = plot_edge_probabilities(names, values)
    np.testing.assert_array_equal(ax.images[0].get_array(), values)
    assert ax.images[0].get_clim() == (0.0, 1.0)
    shown = [text.get_text() for text in ax.get_xticklabels()]
    assert (shown == names) == (d <= 80)  # larger ones would be too small to read
    if d <= 3:
        ax.figure.canvas.draw()


def test_a_matrix_of_another_size_is_refused() -> None:
    with pytest.raises(ArgumentError, match="shape"):
        plot_edge_probabilities(["a"], np.zeros((2, 2)))


def test_each_chain_is_a_line() -> None:
    trace = np.random.default_rng(0).random((3, 20))
    ax = plot_trace(trace, label="edge a → b")
    assert [line.get_ydata().tolist() for line in ax.lines] == trace.tolist()  # type: ignore[union-attr]
    assert ax.get_ylabel() == "edge a → b"
    assert ax.get_legend() is not None
    same = plot_trace(trace[:1], label="x", ax=plot_trace(trace[:1], label="x"))
    assert same.get_legend() is None
