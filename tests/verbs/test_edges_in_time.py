"""Graphs of series whose edges point back in time are refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import GraphError

SERIES = ist.Series(
    dict(zip(("x", "y"), np.random.default_rng(0).normal(size=(2, 80)), strict=True)), lags=2
)


@pytest.mark.parametrize("function", [ist.fit, ist.score])
@pytest.mark.parametrize("source", [SERIES, SERIES.moments()], ids=["series", "moments"])
def test_edges_point_forward_in_time(function: Callable[..., object], source: object) -> None:
    nodes = SERIES.schema().names
    for edge in (("x", "x@1"), ("y", "x@2"), ("x@1", "y@2")):
        with pytest.raises(GraphError, match=f"{edge[0]} → {edge[1]} points back in time"):
            function(source, ist.DAG(nodes, [edge]))
        function(source, ist.DAG(nodes, [edge[::-1], ("x", "y")]))
