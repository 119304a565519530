"""Groups of persons that two studies have sums of."""

from __future__ import annotations

import itertools

import numpy as np

from isthmus.joint.disclosure.groups import cut_below, groups_apart
from isthmus.joint.disclosure.trace import Trace
from isthmus.statistics import Schema


def test_a_cut_below_a_limit_is_found_if_there_is_one() -> None:
    rng = np.random.default_rng(0)
    for _ in range(150):
        nodes = int(rng.integers(2, 7))
        edges = np.triu(rng.integers(0, 9, (nodes, nodes)) * (rng.random((nodes, nodes)) < 0.5), 1)
        graph = (edges + edges.T).astype(np.float64)
        cuts = []
        for side in itertools.product([False, True], repeat=nodes):
            inside = np.array(side)
            cuts.append(graph[np.ix_(inside, ~inside)].sum())
        for limit in (1, 4, 10, 30):
            assert (cut_below(graph, limit) > 0) is any(0 < c < limit for c in cuts)
            assert cut_below(graph, limit) in {0.0, *cuts}


def test_combined_patterns_are_compared() -> None:
    """Whoever lacks y or v lacks w, too, and so does one person more."""
    rng = np.random.default_rng(1)
    secret, rows = b"s" * 32, rng.normal(size=(600, 3))
    first, second = rows.copy(), rows[:, :2].copy()
    first[:100, 1] = first[100:200, 2] = np.nan
    second[:201, 1] = np.nan
    one = Trace.of(secret, Schema.continuous(["x", "y", "v"]), first, None)
    two = Trace.of(secret, Schema.continuous(["x", "w"]), second, None)
    assert groups_apart(one, two, 50) == groups_apart(two, one, 50) == (1, 0)
    assert groups_apart(one, Trace.read(one.to_bytes()), 50) == (0, 0)


def test_persons_with_many_rows_count_once() -> None:
    rng = np.random.default_rng(2)
    secret, x = b"s" * 32, rng.normal(size=600)
    persons = np.repeat(np.arange(60), 10)
    flags = np.column_stack([x, persons < 30]).astype(float)
    others = np.column_stack([x, persons < 32]).astype(float)
    one = Trace.of(secret, Schema.continuous(["x", "a"]), flags, persons)
    two = Trace.of(secret, Schema.continuous(["x", "b"]), others, persons)
    assert groups_apart(one, two, 50).cell == 2


def test_values_that_do_not_tell_persons_apart_make_no_groups_nearly_the_same() -> None:
    rng = np.random.default_rng(3)
    secret, sex = b"s" * 32, rng.integers(0, 2, 600).astype(float)
    one, two = (
        Trace.of(
            secret,
            Schema.continuous(["sex", name]),
            np.column_stack([sex, rng.permutation(600) < 300 + k]).astype(float),
            None,
        )
        for k, name in enumerate("ab")
    )
    assert groups_apart(one, two, 50).cell > 100
