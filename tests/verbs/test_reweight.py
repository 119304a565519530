"""`reweight`: draws under a fast score, corrected to a better one."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import ArgumentError, DataError, MismatchError
from isthmus.testing import enumerate_dags

FAST = ist.GP()
BETTER = ist.ExactGP(integral=ist.GPIntegral.IMPORTANCE, integration_draws=10)


def table(n: int = 30) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    a, d = rng.normal(size=(2, n))
    b = np.sin(1.5 * a) + 0.6 * rng.normal(size=n)
    return {"a": a, "b": b, "ç": 0.6 * b + 0.8 * rng.normal(size=n), "d": d}


@cache
def drawn(draws: int = 5_000) -> ist.Posterior:
    return ist.sample(table(), score=FAST, draws=draws, chains=4, seed=1)


@cache
def exact() -> ist.Posterior:
    return ist.sample(table(), score=BETTER, draws=1)


@pytest.mark.long
def test_all_graphs_of_four_nodes_give_the_exact_posterior() -> None:
    """Every graph drawn once, from a uniform distribution: there is no Monte-Carlo error."""
    dags = list(enumerate_dags(list(table())))
    assert len(dags) == 543
    linear = ist.BGe().bind(ist.Frame(table()).moments())
    scores = np.array([linear.total(dag) for dag in dags])
    parents = ist.Ensemble.from_dags(dags).parents
    uniform = replace(
        drawn(),
        ensemble=ist.Ensemble(tuple(table()), parents, np.ones(543), scores),
        chains=np.arange(543)[None, :],
        log_weights=scores,
    )
    corrected = ist.reweight(uniform, table(), BETTER)
    # A computation of another kind: dynamic programming over sets.
    edges = exact().edge_probabilities()
    np.testing.assert_allclose(corrected.edge_probabilities(), edges, atol=1e-9)
    paths = exact().path_probabilities()
    np.testing.assert_allclose(corrected.path_probabilities(), paths, atol=1e-9)
    best = corrected.most_probable()
    assert best == dags[int(corrected.ensemble.weights.argmax())]
    assert corrected.ensemble.log_scores is not None
    value = corrected.ensemble.log_scores.max()
    assert ist.score(table(), best, BETTER) == pytest.approx(value, abs=1e-9)


@pytest.mark.long
def test_draws_are_corrected_up_to_their_monte_carlo_error() -> None:
    corrected = ist.reweight(drawn(), table(), BETTER)
    edges = exact().edge_probabilities()
    before = np.abs(drawn().edge_probabilities() - edges).max()
    after = np.abs(corrected.edge_probabilities() - edges).max()
    effective = corrected.importance().effective
    assert 0.5 * corrected.chains.size < effective < corrected.chains.size
    assert after < 4 * 0.5 / np.sqrt(effective)
    assert after < 0.5 * before
    assert "are even enough" in corrected.notes[0]
    assert "Reweighted to ExactGP" in corrected.choice
    assert corrected.exact_edges is None


@pytest.mark.long
def test_weights_do_not_depend_on_the_way() -> None:
    there = ist.reweight(drawn(200), table(), BETTER)
    other = ist.reweight(ist.reweight(drawn(200), table(), ist.BGe()), table(), BETTER)
    np.testing.assert_allclose(other.ensemble.weights, there.ensemble.weights, atol=1e-12)
    back = ist.reweight(there, table(), FAST)
    assert back.log_weights is not None
    np.testing.assert_allclose(back.log_weights, 0.0, atol=1e-9)
    shuffled = {name: table()[name] for name in ("d", "ç", "a", "b")}
    same = ist.reweight(drawn(200), shuffled, ist.BGe())
    assert same.nodes == drawn(200).nodes
    expected = ist.reweight(drawn(200), table(), ist.BGe()).ensemble.weights
    np.testing.assert_allclose(same.ensemble.weights, expected, rtol=1e-9)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")
@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")
def test_weights_that_collapse_are_said() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=80)
    curved = {"x": x}
    for name in "abcd":
        curved[name] = np.cos(2.0 * x) + 0.1 * rng.normal(size=80)
    linear = ist.sample(curved, score=ist.BGe(), draws=50)
    corrected = ist.reweight(linear, curved, ist.GP())
    assert corrected.importance().collapsed
    assert "have collapsed" in corrected.notes[0]
    assert "have collapsed" in str(corrected)


def test_levels_and_markov_chains() -> None:
    rng = np.random.default_rng(1)
    levels = {name: rng.integers(0, 2, size=50) for name in "abc"}
    chains = ist.sample(levels, sampler=ist.PartitionMCMC(), draws=300, chains=2)
    corrected = ist.reweight(chains, levels, ist.BDeu(4.0))
    assert any("chains" in note for note in corrected.notes)
    truth = ist.sample(levels, score=ist.BDeu(4.0), draws=1).edge_probabilities()
    assert np.abs(corrected.edge_probabilities() - truth).max() < 0.12


def test_ctrl_c_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("isthmus.watch.Watch.poll", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ist.reweight(drawn(200), table(), ist.BGe())


def test_what_is_refused() -> None:
    with pytest.raises(ArgumentError, match="a list was given"):
        ist.reweight([], table(), ist.BGe())  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"score=BGe\(\)"):
        ist.reweight(drawn(200), table(), "bge")  # type: ignore[arg-type]
    with pytest.raises(MismatchError, match="differ in the variables"):
        ist.reweight(drawn(200), {**table(), "e": table()["a"]}, ist.BGe())
    with pytest.raises(MismatchError):
        ist.reweight(drawn(200), table(), ist.LeastSquares())
    bare = replace(drawn(200).ensemble, log_scores=None)
    with pytest.raises(DataError, match="not known"):
        ist.reweight(replace(drawn(200), ensemble=bare), table(), ist.BGe())


def test_the_prior_of_the_draws_stays(tmp_path: Path) -> None:
    known = ist.Knowledge(probabilities=[("a", "d", 0.9)], expected_parents=0.3)
    sparse = ist.sample(table(), score=ist.BGe(), knowledge=known, draws=500, seed=1)
    sparse.save(tmp_path / "drawn.npz")
    for posterior in (sparse, ist.Posterior.load(tmp_path / "drawn.npz")):
        again = ist.reweight(posterior, table(), ist.BGe())
        assert again.log_weights is not None
        assert np.ptp(again.log_weights) < 1e-9  # the same score and prior
        assert "exact" not in str(again)
