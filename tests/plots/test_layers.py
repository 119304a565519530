"""Layers of our own, where fast-sugiyama is missing."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest

from isthmus.graphs import DAG
from isthmus.plots.layout import lay_out, layers
from isthmus.plots.svg import svg_graph

Drawn = tuple[dict[int, tuple[float, float]], dict[tuple[int, int], list[int]]]


def random_edges(seed: int, d: int, n: int) -> list[tuple[int, int]]:
    rng = np.random.default_rng(seed)
    pairs = list(itertools.combinations(rng.permutation(d).tolist(), 2))
    return [pairs[i] for i in rng.choice(len(pairs), min(n, len(pairs)), replace=False)]


def segments(part: Drawn) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    places, routes = part
    lines = []
    for (a, b), bends in routes.items():
        way = [places[v] for v in (a, *bends, b)]
        lines += list(itertools.pairwise(way))
    return lines


def crossings(part: Drawn) -> int:
    """Count by geometry: two segments between the same layers whose order changes."""
    return sum(
        s[0][1] == t[0][1] and (s[0][0] - t[0][0]) * (s[1][0] - t[1][0]) < 0
        for s, t in itertools.combinations(segments(part), 2)
    )


@pytest.mark.parametrize("seed", range(8))
def test_every_edge_goes_down_one_layer_at_a_time(seed: int) -> None:
    edges = random_edges(seed, 12, 20)
    parts = layers(edges, 0.2)
    assert sorted(edge for _, routes in parts for edge in routes) == sorted(edges)
    for part in parts:
        assert all(high[1] - low[1] == 1 for high, low in segments(part))
        for level in {y for _, y in part[0].values()}:
            row = sorted((x, v) for v, (x, y) in part[0].items() if y == level)
            for (x, v), (z, w) in itertools.pairwise(row):
                room = sum(0.5 if u >= 0 else 0.1 for u in (v, w))
                assert z - x >= room - 1e-9


def test_trees_have_no_crossings_and_components_are_apart() -> None:
    rng = np.random.default_rng(0)
    tree = [(int(rng.integers(v)), v) for v in range(1, 30)]
    other = [(a + 100, b + 100) for a, b in tree]
    parts = layers(tree + other, 0.2)
    assert len(parts) == 2
    assert [crossings(part) for part in parts] == [0, 0]


def test_fewer_crossings_than_in_the_order_of_the_nodes() -> None:
    # Two layers that are each other's mirror: six crossings as given, none as drawn.
    (part,) = layers([(0, 7), (1, 6), (2, 5), (3, 4), (8, 0), (8, 1), (8, 2), (8, 3)], 0.2)
    assert crossings(part) == 0


def test_pictures_need_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fast_sugiyama", None)
    names = [f"v{i}" for i in range(10)]
    dag = DAG(names, [(names[a], names[b]) for a, b in random_edges(1, 9, 14)])
    sizes = [(40.0, 20.0)] * 10
    drawn = lay_out(dag, sizes, gap=10, layer_gap=30)
    assert sorted(drawn.nodes) == list(range(10))
    for (x, y), (z, w) in itertools.combinations(drawn.nodes.values(), 2):
        assert abs(x - z) >= 40 or abs(y - w) >= 20  # no node on another
    assert "v9" in svg_graph(dag)
