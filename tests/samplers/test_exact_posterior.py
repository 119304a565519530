"""The exact posterior against sums over all graphs, and its draws against its probabilities."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import ArgumentError, DataError, MismatchError
from isthmus.objectives import LocalScore, PythonLocalScore
from isthmus.samplers import Draws, ExactPosterior
from isthmus.testing import enumerate_dags
from isthmus.watch import Watch, drive

NAMES = ("a", "b", "c", "d", "e", "f", "g")


def bge(table: dict[str, Any]) -> LocalScore:
    return ist.BGe().bind(ist.Frame(table, integers=ist.Kind.CONTINUOUS).moments())


def bdeu(table: dict[str, Any]) -> LocalScore:
    counts = ist.summarise(table, plan=ist.CountPlan.everything())
    assert isinstance(counts, ist.Counts)
    return ist.BDeu(ess=2.0).bind(counts)


def numbers(d: int, rows: int, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, d))
    for j in range(1, d):
        x[:, j] += 0.7 * x[:, j - 1]
    return {NAMES[j]: x[:, j] for j in range(d)}


def levels(d: int, rows: int) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 3, (rows, d))
    x[:, 1:] = np.where(rng.random((rows, d - 1)) < 0.5, x[:, :-1], x[:, 1:])
    return {NAMES[j]: x[:, j] for j in range(d)}


def random_score(d: int, spread: float, seed: int = 0) -> LocalScore:
    """A score without any structure: neighbours in no way alike, directions not equivalent."""

    def local(child: int, parents: tuple[int, ...]) -> float:
        key = [seed, child, len(parents), *parents]
        return float(spread * np.random.default_rng(key).normal())

    return PythonLocalScore(NAMES[:d], local, equivalent=False)


def posterior(
    score: LocalScore,
    knowledge: ist.Knowledge | None = None,
    draws: int = 1,
    **options: Any,
) -> Draws:
    bound = (knowledge or ist.Knowledge()).bind(score.nodes)
    run = partial(
        ExactPosterior(**options).sample,
        score,
        bound,
        np.random.default_rng(0),
        draws=draws,
        chains=1,
    )
    return drive(run, "ExactPosterior")[0]


def check_against_enumeration(
    score: LocalScore,
    knowledge: ist.Knowledge | None = None,
    max_parents: int | None = None,
) -> None:
    from scipy.special import logsumexp

    knowledge = knowledge or ist.Knowledge()
    dags = [
        dag
        for dag in enumerate_dags(score.nodes)
        if knowledge.allows(dag)
        and (max_parents is None or max(map(len, dag.parent_indices())) <= max_parents)
    ]
    local = cache(score.local)
    totals = np.array([sum(map(local, range(len(g.nodes)), g.parent_indices())) for g in dags])
    log_evidence = logsumexp(totals)
    weights = np.exp(totals - log_evidence)
    everything = ist.Ensemble.from_dags(dags, weights.tolist())  # has tests of its own
    edges, paths = everything.edge_probabilities(), everything.path_probabilities()
    result = posterior(score, knowledge, max_parents=max_parents)
    assert result.edge_probabilities is not None
    assert result.path_probabilities is not None
    np.testing.assert_allclose(result.edge_probabilities, edges, atol=1e-11)
    np.testing.assert_allclose(result.path_probabilities, paths, atol=1e-11)
    assert result.details.log_evidence == pytest.approx(log_evidence, abs=1e-9)
    assert result.details.error < 1e-11


SCORES = {
    "BGe": lambda d: bge(numbers(d, 40)),
    "BDeu": lambda d: bdeu(levels(d, 50)),
    "flat": lambda d: random_score(d, 0.0),
    "wild": lambda d: random_score(d, 20.0),
    "far beyond the range of a double": lambda d: random_score(d, 3e4),
}


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("name", SCORES)
def test_probabilities_equal_those_of_all_graphs(name: str, d: int) -> None:
    check_against_enumeration(SCORES[name](d))


@pytest.mark.long
@pytest.mark.parametrize("name", ["BGe", "BDeu"])
def test_five_variables(name: str) -> None:
    check_against_enumeration(SCORES[name](5))


@pytest.mark.parametrize(
    "knowledge",
    [
        ist.Knowledge(required=[("d", "a")]),
        ist.Knowledge(required=[("d", "a"), ("b", "a")], forbidden=[("c", "d"), ("d", "b")]),
        ist.Knowledge(tiers=[["b"], ["a", "c"], ["d"]]),
        ist.Knowledge(roots=["c"], required=[("c", "b"), ("b", "a")]),
        ist.Knowledge(forbidden=[(a, b) for a in NAMES[:4] for b in NAMES[:4] if a != b]),
    ],
)
@pytest.mark.parametrize("name", SCORES)
def test_knowledge_is_respected(name: str, knowledge: ist.Knowledge) -> None:
    check_against_enumeration(SCORES[name](4), knowledge)


@pytest.mark.parametrize("max_parents", [0, 1, 2])
def test_the_number_of_parents_can_be_limited(max_parents: int) -> None:
    check_against_enumeration(SCORES["BGe"](4), max_parents=max_parents)


@pytest.mark.parametrize(
    "table",
    [
        {"a": [1.0, 1.0, 1.0], "b": [0.0, 1.0, 2.0], "c": [2.0, 1.0, 5.0]},  # a constant
        {"a": [1.0], "b": [2.0], "c": [0.5]},  # one row
        {"a": [1.0, 2.0], "b": [2.0, 4.0], "c": [1.0, 7.0], "d": [0.0, 9.0]},  # n < d, collinear
    ],
)
def test_degenerate_tables(table: dict[str, list[float]]) -> None:
    check_against_enumeration(bge(table))


def test_near_certain_data_lose_no_precision() -> None:
    x = np.random.default_rng(0).normal(size=20_000)
    noise = np.random.default_rng(1).normal(size=(3, 20_000))
    table = {"a": x, "b": x + 0.01 * noise[0], "c": x + 0.01 * noise[1], "d": noise[2]}
    check_against_enumeration(bge(table))


@pytest.mark.parametrize("name", ["BGe", "BDeu", "wild", "flat"])
def test_draws_follow_the_posterior(name: str) -> None:
    from scipy.special import logsumexp

    score = SCORES[name](4)
    count = 40_000
    result = posterior(score, ist.Knowledge(forbidden=[("a", "d")]), draws=count)
    dags = [g for g in enumerate_dags(score.nodes) if not g.has_edge("a", "d")]
    totals = np.array([score.total(dag) for dag in dags])
    exact = dict(zip(dags, np.exp(totals - logsumexp(totals)), strict=True))
    drawn = np.bincount(result.chains.ravel()) / count
    seen = [ist.DAG.from_masks(score.nodes, row[:, 0].tolist()) for row in result.parents]
    assert set(seen) <= set(dags)
    expected = np.array([exact[dag] for dag in seen])
    # Five standard deviations, and a little for the rarest.
    assert np.all(np.abs(drawn - expected) < 5 * np.sqrt(expected / count) + 5 / count)
    np.testing.assert_allclose(result.log_scores, [score.total(dag) for dag in seen], atol=1e-8)


def test_draws_depend_on_the_seed_alone() -> None:
    score = SCORES["BGe"](5)
    bound = ist.Knowledge().bind(score.nodes)

    def draw(seed: int, chains: int, draws: int) -> Any:
        rng = np.random.default_rng(seed)
        result = ExactPosterior().sample(score, bound, rng, Watch(), draws=draws, chains=chains)
        return result.parents[result.chains].reshape(chains * draws, -1)

    np.testing.assert_array_equal(draw(1, 2, 30), draw(1, 3, 20))
    assert not np.array_equal(draw(1, 2, 30), draw(2, 2, 30))


def test_time_slices_do_not_change_the_result() -> None:
    from isthmus.kernels import _native

    # Wide enough to be stopped within a set, too.
    x = np.random.default_rng(2).normal(size=(50, 14))
    x[:, 1:] += x[:, :-1]
    score = bge({f"x{i}": x[:, i] for i in range(14)})
    bound = ist.Knowledge().bind(score.nodes)
    results = []
    for slice_ in (0.0, 60.0):
        run = _native.ExactPosterior(
            score.kernel, required=bound.required, forbidden=bound.forbidden, max_parents=None
        )
        steps = 0
        while not run.step(slice_):
            steps += 1
        sampler = _native.ExactSampler(run, 7)
        while not sampler.step(50, slice_):
            pass
        assert (steps > 50_000) == (slice_ == 0.0)
        results.append((run.edges(), run.ancestors(), sampler.parents(), sampler.scores()))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_wider_problems_are_consistent() -> None:
    """Where graphs cannot be listed: three ways to the same number."""
    d = 11
    rng = np.random.default_rng(5)
    x = rng.normal(size=(100, d)) @ np.triu(rng.normal(size=(d, d)) * (rng.random((d, d)) < 0.4))
    x += rng.normal(size=(100, d))
    score = bge({f"x{i}": x[:, i] for i in range(d)})
    result = posterior(score, draws=20_000)
    assert result.details.error < 1e-12
    assert result.edge_probabilities is not None
    assert result.path_probabilities is not None
    assert np.all(result.path_probabilities >= result.edge_probabilities - 1e-12)
    weights = np.bincount(result.chains.ravel()).astype(float)
    drawn = ist.Ensemble(score.nodes, result.parents, weights)
    assert np.abs(drawn.edge_probabilities() - result.edge_probabilities).max() < 0.02
    assert np.abs(drawn.path_probabilities() - result.path_probabilities).max() < 0.02


def log_total(scores: list[dict[int, float]], d: int) -> float:
    """Sum over all graphs by their sinks, in exact fractions: slow, and nothing to go wrong."""
    best = [max(own.values()) for own in scores]
    weights = [
        {mask: Fraction(math.exp(value - best[v])) for mask, value in own.items()}
        for v, own in enumerate(scores)
    ]
    within = [
        [sum(w for mask, w in own.items() if mask & ~allowed == 0) for allowed in range(1 << d)]
        for own in weights
    ]
    totals = [Fraction(1)]
    for nodes in range(1, 1 << d):
        total, sinks = Fraction(0), nodes  # in turn all sets of sinks
        while sinks:
            rest = nodes & ~sinks
            product = totals[rest] * (-1) ** (sinks.bit_count() + 1)
            for v in range(d):
                if sinks >> v & 1:
                    product *= within[v][rest]
            total += product
            sinks = (sinks - 1) & nodes
        totals.append(total)
    return sum(best) + math.log(totals[-1])


@pytest.mark.parametrize(("name", "d"), [("BGe", 6), ("BDeu", 6), ("wild", 7)])
def test_edges_of_more_variables_than_graphs_can_be_listed(name: str, d: int) -> None:
    score = SCORES[name](d)
    scores = [
        {
            mask: score.local(v, [p for p in range(d) if mask >> p & 1])
            for mask in range(1 << d)
            if not mask >> v & 1
        }
        for v in range(d)
    ]
    result = posterior(score)
    assert result.edge_probabilities is not None
    everything = log_total(scores, d)
    assert result.details.log_evidence == pytest.approx(everything, abs=1e-9)
    for a, b in ((0, 1), (3, 2), (d - 1, 0)):
        having = [
            own if v != b else {mask: value for mask, value in own.items() if mask >> a & 1}
            for v, own in enumerate(scores)
        ]
        expected = math.exp(log_total(having, d) - everything)
        assert result.edge_probabilities[a, b] == pytest.approx(expected, abs=1e-11)


def test_too_many_variables_are_refused_in_words() -> None:
    names = [f"v{i}" for i in range(26)]
    score = PythonLocalScore(names, lambda child, parents: 0.0, equivalent=True)
    with pytest.raises(MismatchError, match="at most 25 variables"):
        posterior(score)
    score = PythonLocalScore(names[:25], lambda child, parents: 0.0, equivalent=True)
    with pytest.raises(MismatchError, match="GB"):
        posterior(score)


def test_scores_that_allow_no_graph_are_refused() -> None:
    score = PythonLocalScore(["a", "b"], lambda child, parents: -np.inf, equivalent=True)
    with pytest.raises(DataError, match="No graph has a finite score"):
        posterior(score)
    score = PythonLocalScore(["a", "b"], lambda child, parents: np.nan, equivalent=True)
    with pytest.raises(ValueError, match="must be a finite number"):
        posterior(score)


def test_options_are_checked() -> None:
    with pytest.raises(ArgumentError, match="max_parents"):
        ExactPosterior(max_parents=-1)
    with pytest.raises(ArgumentError, match="max_memory"):
        ExactPosterior(max_memory=0)
