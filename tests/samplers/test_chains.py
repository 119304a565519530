"""Order and partition sampling as users run them, on BGe and BDeu scores."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import ArgumentError
from isthmus.graphs import BoundKnowledge
from isthmus.objectives import LocalScore, PythonLocalScore
from isthmus.samplers import Draws, OrderMCMC, PartitionMCMC
from isthmus.samplers import candidates as candidates_module
from isthmus.samplers.candidates import Candidates, candidate_count
from isthmus.samplers.chains import _Chains
from isthmus.statistics import CountPlan
from isthmus.tables import Frame
from isthmus.testing import enumerate_dags
from isthmus.watch import Watch, drive

Floats = Any


def gaussian(d: int, n: int, seed: int) -> LocalScore:
    rng = np.random.default_rng([d, n, seed])
    x = rng.normal(size=(n, d))
    for v in range(1, d):
        x[:, v] += 0.5 * x[:, int(rng.integers(v))]
    x = x[:, rng.permutation(d)]
    return bge(x)


def bge(x: Floats) -> LocalScore:
    names = [f"v{v}" for v in range(x.shape[1])]
    return ist.BGe().bind(Frame(x, names=names).moments())


def demands(
    d: int, required: tuple[tuple[int, int], ...] = (), forbidden: tuple[tuple[int, int], ...] = ()
) -> BoundKnowledge:
    matrices = np.zeros((d, d), np.bool_), np.eye(d, dtype=np.bool_)
    for matrix, pairs in zip(matrices, (required, forbidden), strict=True):
        for a, b in pairs:
            matrix[a, b] = True
    return BoundKnowledge(*matrices)


def sample(
    objective: LocalScore,
    sampler: PartitionMCMC | OrderMCMC | None = None,
    knowledge: BoundKnowledge | None = None,
    *,
    draws: int = 50,
    chains: int = 2,
    seed: int = 0,
) -> Draws:
    return (PartitionMCMC() if sampler is None else sampler).sample(
        objective,
        demands(len(objective.nodes)) if knowledge is None else knowledge,
        np.random.default_rng(seed),
        Watch(),
        draws=draws,
        chains=chains,
    )


def adjacency(draws: Draws) -> Floats:
    """Return the distinct graphs as matrices [graph, from, to]."""
    d = draws.parents.shape[1]
    words = np.ascontiguousarray(draws.parents).view(np.uint8).reshape(len(draws.parents), d, -1)
    return np.unpackbits(words, axis=2, bitorder="little")[:, :, :d].transpose(0, 2, 1)


def edge_probabilities(draws: Draws) -> Floats:
    return adjacency(draws)[draws.chains].mean(axis=(0, 1))


def enumerated(objective: LocalScore, knowledge: BoundKnowledge) -> Floats:
    """Return the exact edge probabilities."""
    names = objective.nodes
    d = len(names)
    total, edges, top = 0.0, np.zeros((d, d)), None
    for dag in enumerate_dags(names):
        matrix = np.zeros((d, d), np.bool_)
        for a, b in dag.edges:
            matrix[names.index(a), names.index(b)] = True
        if (matrix & knowledge.forbidden).any() or (knowledge.required & ~matrix).any():
            continue
        score = objective.total(dag)
        top = score if top is None else top
        weight = np.exp(score - top)
        total += weight
        edges += weight * matrix
    return edges / total


@pytest.mark.long
@pytest.mark.parametrize(
    "knowledge",
    [demands(4), demands(4, required=((3, 0), (3, 1)), forbidden=((0, 2), (2, 1)))],
    ids=["free", "knowledge"],
)
@pytest.mark.parametrize("levels", [1, 3])
def test_edges_of_four_nodes(knowledge: BoundKnowledge, levels: int) -> None:
    objective = gaussian(4, 15, 1)
    sampler = PartitionMCMC(temperatures=levels, thin=2)
    draws = sample(objective, sampler, knowledge, draws=4000, chains=4)
    exact = enumerated(objective, knowledge)
    assert ((exact > 0.05) & (exact < 0.95)).sum() >= 4
    np.testing.assert_allclose(edge_probabilities(draws), exact, atol=0.02)
    assert draws.chain_edges is not None
    np.testing.assert_allclose(draws.chain_edges.mean(axis=0), exact, atol=0.008)


def test_a_discrete_score() -> None:
    rng = np.random.default_rng(3)
    a = rng.integers(0, 2, 60)
    b = (a + (rng.random(60) < 0.3)) % 3
    table = {"a": a.astype(str), "b": b.astype(str), "ç": rng.integers(0, 2, 60).astype(str)}
    objective = ist.BDeu(ess=2.0).bind(Frame(table).counts(CountPlan.everything()))
    draws = sample(objective, draws=500, chains=4)
    assert draws.chain_edges is not None
    np.testing.assert_allclose(
        draws.chain_edges.mean(axis=0), enumerated(objective, demands(3)), atol=0.02
    )


@pytest.mark.long
def test_few_candidates_still_find_the_edges() -> None:
    """One candidate and one other parent: pilot chains exchange the candidates."""
    objective = gaussian(5, 200, 2)
    few = sample(objective, PartitionMCMC(candidates=2, thin=2), draws=600, chains=4)
    assert few.details.candidates == 2
    assert few.chain_edges is not None
    np.testing.assert_allclose(
        few.chain_edges.mean(axis=0), enumerated(objective, demands(5)), atol=0.04
    )


def test_left_out_parent_sets_are_estimated() -> None:
    objective, d = gaussian(4, 30, 7), 4
    sampler, rng = PartitionMCMC(candidates=1, thin=2), np.random.default_rng(0)
    run = _Chains(sampler, objective, demands(d), rng, Watch(), draws=1000, chains=2)
    run.run()
    estimate = run.draws().details.left_out
    candidates = run._candidates.matrix()
    weights = {0: 0.0, 1: 0.0}
    for dag in enumerate_dags(objective.nodes):
        outside = np.array(dag.adjacency(), bool) & ~candidates
        counts = outside.sum(axis=0)
        if counts.max() <= 2 and (counts == 2).sum() <= 1:
            weights[int((counts == 2).sum())] += np.exp(objective.total(dag) + 150)
    expected = weights[1] / weights[0]
    assert expected > 0.01
    assert estimate == pytest.approx(expected, rel=0.35)
    assert sample(objective, PartitionMCMC(thin=1), draws=5).details.left_out == 0.0


def test_orders_favour_graphs_with_many_orders() -> None:
    objective = gaussian(3, 12, 5)
    nothing = sum(objective.local(v, ()) for v in range(3))
    shares = []
    for sampler in (OrderMCMC(thin=2), PartitionMCMC(thin=2)):
        draws = sample(objective, sampler, draws=4000)
        empty = np.flatnonzero(~draws.parents.any(axis=(1, 2)))
        shares.append((draws.chains == empty).mean())
        assert draws.log_scores[empty] == pytest.approx(nothing)
    assert shares[0] > 1.1 * shares[1]


@pytest.mark.long
@pytest.mark.parametrize(
    "sampler", [PartitionMCMC(thin=1, candidates=5), OrderMCMC(thin=1, candidates=5)]
)
@pytest.mark.parametrize("d", [1, 2, 65])
def test_any_number_of_variables(sampler: PartitionMCMC | OrderMCMC, d: int) -> None:
    objective = gaussian(d, 40, 1)
    knowledge = demands(d, required=((d - 1, 0),) if d > 1 else ())
    draws = sample(objective, sampler, knowledge, draws=5)
    assert draws.chains.shape == (2, 5)
    for matrix, score in zip(adjacency(draws), draws.log_scores.tolist(), strict=True):
        assert not np.linalg.matrix_power(matrix.astype(float), d).any()
        assert not (knowledge.required & ~matrix.astype(bool)).any()
        expected = sum(objective.local(v, np.flatnonzero(matrix[:, v]).tolist()) for v in range(d))
        assert score == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("n", [1, 3])
def test_few_rows_and_constants(n: int) -> None:
    x = np.random.default_rng(0).normal(size=(n, 5))
    x[:, 2] = 1.0
    draws = sample(bge(x), draws=20)
    assert np.isfinite(draws.log_scores).all()


def test_one_seed_gives_one_result_whatever_the_threads() -> None:
    objective = gaussian(12, 50, 4)
    first, again, threads, other = (
        sample(objective, PartitionMCMC(jobs=jobs, candidates=4, thin=4), seed=seed)
        for jobs, seed in ((1, 0), (1, 0), (3, 0), (1, 1))
    )
    for draws in (again, threads):
        np.testing.assert_array_equal(first.parents[first.chains], draws.parents[draws.chains])
    assert not np.array_equal(edge_probabilities(first), edge_probabilities(other))


def test_max_parents() -> None:
    objective = gaussian(8, 300, 1)
    draws = sample(objective, PartitionMCMC(max_parents=1))
    assert adjacency(draws).sum(axis=1).max() == 1
    none = sample(objective, PartitionMCMC(max_parents=0))
    assert not none.parents.any()


@pytest.mark.timing
def test_a_time_limit_returns_the_draws_so_far() -> None:
    run = partial(
        PartitionMCMC(warm_up=50).sample,
        gaussian(10, 100, 1),
        demands(10),
        np.random.default_rng(0),
        draws=10**7,
        chains=2,
    )
    draws, status = drive(run, "PartitionMCMC", time_limit=1.0)
    assert status.seconds < 2.0
    assert 0 < draws.chains.shape[1] < 10**7
    assert draws.chains.shape[0] == 2


def test_nothing_is_drawn_before_the_tables_are_built() -> None:
    draws, _ = drive(
        partial(
            PartitionMCMC().sample,
            gaussian(6, 100, 1),
            demands(6),
            np.random.default_rng(0),
            draws=10,
            chains=3,
        ),
        "PartitionMCMC",
        time_limit=0.0,
    )
    assert draws.chains.shape == (3, 0)


def test_the_size_of_the_tables_is_bounded() -> None:
    for d, expected in ((5, 20), (18, 20), (20, 20), (21, 11), (50, 8), (100, 6), (400, 2)):
        count = candidate_count(np.full(d, d - 1), 750_000)
        inside = min(count, d - 1)
        assert count == expected
        most = 12_000_000 if inside == d - 1 else 750_000
        assert d * 2**inside * (d - inside) <= most


def test_neighbours_and_required_parents_are_candidates() -> None:
    d = 12
    objective = gaussian(d, 200, 3)
    graph = tuple((v - 1,) if v > 0 else () for v in range(d))
    candidates = Candidates(objective.kernel, demands(d, required=((11, 5),)), 3)
    for v in range(d):
        candidates.rank(v, [graph])
    chosen = candidates.matrix()
    assert chosen[11, 5]
    assert all(chosen[v - 1, v] for v in range(1, d))
    assert (chosen.sum(axis=0) == 3).all()
    assert not chosen.diagonal().any()


def test_frequent_parents_replace_rare_candidates() -> None:
    d = 6
    candidates = Candidates(gaussian(d, 200, 3).kernel, demands(d, required=((1, 0),)), 2)
    for v in range(d):
        candidates.rank(v, [])
    before = candidates.matrix()
    strangers = np.flatnonzero(~before[:, 0])[1:]
    frequencies = np.zeros((d, d))
    frequencies[strangers[0], 0] = 0.9
    frequencies[strangers[1], 0] = 0.04
    assert candidates.exchange(frequencies, 0.05) == 1
    after = candidates.matrix()
    assert sorted(np.flatnonzero(after[:, 0])) == sorted([1, strangers[0]])
    np.testing.assert_array_equal(after[:, 1:], before[:, 1:])
    assert candidates.exchange(frequencies, 0.05) == 0


def test_tables_grow_where_weight_is_missing() -> None:
    d = 40
    candidates = Candidates(gaussian(d, 200, 3).kernel, demands(d), None)
    for v in range(d):
        candidates.rank(v, [])
    before = candidates.matrix()
    a, b, c, e = np.flatnonzero(~before[:, 0])[1:5].tolist()
    pairs = [(a, np.array([b, c]), np.array([0.5, 0.4])), (c, np.array([a]), np.array([0.1]))]
    assert candidates.grow({0: [*pairs, (b, np.array([e]), np.array([0.005]))]}) == 1
    after = candidates.matrix()
    np.testing.assert_array_equal(np.flatnonzero(after[:, 0] & ~before[:, 0]), [a])
    np.testing.assert_array_equal(after[:, 1:], before[:, 1:])
    others = {v: np.flatnonzero(~after[:, v] & (np.arange(d) != v)) for v in range(d)}
    candidates.grow(
        {
            v: [(int(u), rest[rest > u], np.ones((rest > u).sum())) for u in rest]
            for v, rest in others.items()
        }
    )
    sizes = candidates.matrix().sum(axis=0)
    assert 3_000_000 < (2**sizes * (d - sizes)).sum() <= 6_000_000
    np.testing.assert_array_equal(candidates.matrix()[before], True)


def test_grown_tables_give_the_exact_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    objective = gaussian(4, 15, 2)
    exact = enumerated(objective, demands(4))
    monkeypatch.setattr(candidates_module, "MAX_COMPLETE", 0)
    monkeypatch.setattr(candidates_module, "FIRST_FAMILIES", 0)
    few, grown = (
        sample(objective, PartitionMCMC(candidates=count, thin=2), draws=1500, chains=4)
        for count in (1, None)
    )
    assert few.chain_edges is not None
    assert grown.chain_edges is not None
    assert few.details.candidates == 1 < grown.details.candidates
    # No probability changes by more than the weight that is left out.
    assert few.details.left_out > 0.03 > grown.details.left_out
    error = 0.01 + grown.details.left_out
    np.testing.assert_allclose(grown.chain_edges.mean(axis=0), exact, atol=error)
    assert np.abs(few.chain_edges.mean(axis=0) - exact).max() > error


def test_a_python_score_is_sampled() -> None:
    objective = PythonLocalScore(
        ["a", "b", "c"], lambda _child, parents: -1.0 * len(parents), equivalent=True
    )
    exact = enumerated(objective, demands(3))
    np.testing.assert_allclose(
        edge_probabilities(sample(objective, PartitionMCMC(thin=2), draws=4000, chains=4)),
        exact,
        atol=0.02,
    )


def test_an_error_of_the_score_reaches_the_user() -> None:
    def score(_child: int, parents: tuple[int, ...]) -> float:
        if len(parents) > 1:
            raise ZeroDivisionError
        return 0.0

    objective = PythonLocalScore(["a", "b", "c", "d"], score, equivalent=True)
    with pytest.raises(ZeroDivisionError):
        sample(objective)


@pytest.mark.parametrize(
    "name", ["candidates", "max_parents", "temperatures", "warm_up", "thin", "jobs"]
)
@pytest.mark.parametrize("value", [-2, 1.5, "many"])
def test_bad_options_are_refused(name: str, value: Any) -> None:
    for sampler in (PartitionMCMC, OrderMCMC):
        with pytest.raises(ArgumentError, match=name):
            sampler(**{name: value})
