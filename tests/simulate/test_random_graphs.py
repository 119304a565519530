from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus import simulate
from isthmus.errors import DataError, GraphError
from isthmus.graphs import DAG
from isthmus.simulate.graphs import _unrank_pairs


@given(st.integers(0, 12), st.data(), st.integers(0, 2**40))
def test_edge_number_is_exact(d: int, data: st.DataObject, seed: int) -> None:
    edges = data.draw(st.integers(0, d * (d - 1) // 2))
    dag = simulate.erdos_renyi(d, edges, seed=seed)
    assert len(dag.nodes) == d
    assert len(set(dag.edges)) == edges
    DAG(dag.nodes, dag.edges)  # raises on a cycle


@given(st.integers(1, 25), st.integers(1, 5), st.sampled_from(simulate.Hubs), st.integers(0, 99))
def test_scale_free_edge_number_and_simplicity(
    d: int, attachments: int, hubs: simulate.Hubs, seed: int
) -> None:
    dag = simulate.scale_free(d, attachments, hubs=hubs, seed=seed)
    expected = sum(min(k, attachments) for k in range(d))
    assert len({frozenset(edge) for edge in dag.edges}) == len(dag.edges) == expected
    DAG(dag.nodes, dag.edges)


@pytest.mark.long
def test_every_graph_of_three_nodes_and_two_edges_is_equally_likely() -> None:
    # Three pairs of pairs, each oriented along 6 orders: a chain or fork or collider. Under the
    # law every one of 3 skeletons x 6 orders is equally likely.
    counts: dict[frozenset[tuple[str, str]], int] = {}
    draws = 6000
    for seed in range(draws):
        key = frozenset(simulate.erdos_renyi(3, 2, seed=seed).edges)
        counts[key] = counts.get(key, 0) + 1
    # A skeleton a-b-c: orders with b first (2 of 6) fork, b last (2 of 6) collider, else chains.
    assert len(counts) == 12
    for edges, count in counts.items():
        heads = {b for _, b in edges}
        tails = {a for a, _ in edges}
        share = 1 / 9 if len(heads) == 1 or len(tails) == 1 else 1 / 18
        assert abs(count / draws - share) < 5 * np.sqrt(share / draws)


def test_expected_degree() -> None:
    degrees = [
        2 * len(simulate.erdos_renyi(30, degree=4.0, seed=seed).edges) / 30 for seed in range(300)
    ]
    # Variance of the number of edges: 435 p (1 - p), p = 4/29.
    sd = 2 / 30 * np.sqrt(435 * 4 / 29 * 25 / 29)
    assert abs(np.mean(degrees) - 4.0) < 5 * sd / np.sqrt(300)
    assert np.std(degrees) == pytest.approx(sd, rel=0.25)


@pytest.mark.long
def test_index_gives_nothing_away() -> None:
    kinds: list[Callable[[int], DAG]] = [
        lambda seed: simulate.erdos_renyi(10, 15, seed=seed),
        lambda seed: simulate.scale_free(10, 2, seed=seed),
        lambda seed: simulate.scale_free(10, 2, hubs=simulate.Hubs.EFFECTS, seed=seed),
    ]
    for draw in kinds:
        total = np.zeros((10, 10))
        for seed in range(800):
            total += draw(seed).adjacency()
        off = total[~np.eye(10, dtype=bool)] / 800
        share = off.mean()
        assert np.abs(off - share).max() < 5 * np.sqrt(share / 800)


def test_hubs_stand_where_asked() -> None:
    def most(hubs: simulate.Hubs) -> tuple[int, int]:
        a = simulate.scale_free(300, 2, hubs=hubs, seed=3).adjacency()
        return int(a.sum(axis=1).max()), int(a.sum(axis=0).max())

    out_degree, in_degree = most(simulate.Hubs.CAUSES)
    assert in_degree == 2
    assert out_degree > 15
    out_degree, in_degree = most(simulate.Hubs.EFFECTS)
    assert out_degree == 2
    assert in_degree > 15
    out_degree, in_degree = most(simulate.Hubs.EITHER)
    assert out_degree > 2
    assert in_degree > 2


def test_attachment_is_by_degree() -> None:
    # Node 3 joins one of {0, 1, 2}, a tree in which one node has degree 2, the others 1.
    hits = 0
    draws = 2000
    for seed in range(draws):
        dag = simulate.scale_free(4, 1, seed=seed)
        degree = dag.adjacency().sum(axis=0) + dag.adjacency().sum(axis=1)
        hits += int(degree.max() == 3)
    # A star arises when node 3 joins the centre: 2 of the 4 edge ends.
    assert abs(hits / draws - 0.5) < 5 * np.sqrt(0.25 / draws)


def test_same_seed_same_graph() -> None:
    assert simulate.erdos_renyi(20, 40, seed=5) == simulate.erdos_renyi(20, 40, seed=5)
    assert simulate.erdos_renyi(20, 40, seed=5) != simulate.erdos_renyi(20, 40, seed=6)
    assert simulate.scale_free(20, 2, seed=5) == simulate.scale_free(20, 2, seed=5)


def test_global_generator_is_left_alone() -> None:
    before = str(np.random.get_state())  # noqa: NPY002
    simulate.linear(simulate.erdos_renyi(5, 5, seed=1), 10, seed=1)
    assert str(np.random.get_state()) == before  # noqa: NPY002


def test_names_are_kept() -> None:
    assert simulate.erdos_renyi(["b", "a", "c"], 2, seed=0).nodes == ("b", "a", "c")


def test_pairs_are_unranked_in_order() -> None:
    early, late = _unrank_pairs(np.arange(10))
    expected = [(i, j) for j in range(5) for i in range(j)]
    assert list(zip(early.tolist(), late.tolist(), strict=True)) == expected
    far = np.array([10**15, 10**15 + 1])
    early, late = _unrank_pairs(far)
    assert ((early >= 0) & (early < late)).all()
    assert np.array_equal(late * (late - 1) // 2 + early, far)


@pytest.mark.parametrize(
    "call",
    [
        lambda: simulate.erdos_renyi(4, 7, seed=0),
        lambda: simulate.erdos_renyi(4, -1, seed=0),
        lambda: simulate.erdos_renyi(4, seed=0),
        lambda: simulate.erdos_renyi(4, 2, degree=1.0, seed=0),
        lambda: simulate.erdos_renyi(4, degree=3.5, seed=0),
        lambda: simulate.erdos_renyi("abc", 2, seed=0),
        lambda: simulate.erdos_renyi(-1, 0, seed=0),
        lambda: simulate.scale_free(4, 0, seed=0),
    ],
)
def test_refusals(call: object) -> None:
    with pytest.raises(GraphError):
        call()  # type: ignore[operator]


@pytest.mark.parametrize("seed", [-1, 1.5, True, None, "7"])
def test_bad_seeds(seed: object) -> None:
    with pytest.raises(DataError, match="seed"):
        simulate.erdos_renyi(4, 2, seed=seed)  # type: ignore[arg-type]
