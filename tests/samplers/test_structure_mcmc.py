"""Structure MCMC: its transition matrix leaves the posterior unchanged, exactly."""

from __future__ import annotations

import time
from functools import partial

import numpy as np
import pytest
from tests.patience import LATENESS

import isthmus as ist
from isthmus.errors import ArgumentError
from isthmus.objectives import PythonLocalScore
from isthmus.results import Ending
from isthmus.samplers import Draws, StructureMCMC
from isthmus.samplers.structure_mcmc import Walk
from isthmus.testing import enumerate_dags
from isthmus.watch import Watch, drive


def wild(names: list[str]) -> PythonLocalScore:
    def local(child: int, parents: tuple[int, ...]) -> float:
        return float(np.random.default_rng([child, len(parents), *parents]).normal())

    return PythonLocalScore(names, local, equivalent=False)


@pytest.mark.parametrize("d", [2, 3, 4])
@pytest.mark.parametrize("limits", ["none", "knowledge", "two parents"])
def test_the_posterior_is_stationary(d: int, limits: str) -> None:
    from scipy.special import logsumexp

    names = list("abcd")[:d]
    score = wild(names)
    knowledge = ist.Knowledge()
    if limits == "knowledge":
        knowledge = ist.Knowledge(required=[("b", "a")], forbidden=[(names[-1], "b")])
        if d == 2:
            knowledge = ist.Knowledge(forbidden=[("a", "b")])
    most = 2 if limits == "two parents" else d
    dags = [
        g
        for g in enumerate_dags(names)
        if knowledge.allows(g) and max(map(len, g.parent_indices())) <= most
    ]
    place = {g: i for i, g in enumerate(dags)}
    totals = np.array([score.total(g) for g in dags])
    posterior = np.exp(totals - logsumexp(totals))
    matrix = np.zeros((len(dags), len(dags)))
    for g, i in place.items():
        walk = Walk(score, knowledge.bind(names), most, {})
        walk.parents = list(g.parent_masks)
        for a in range(d):
            for b in range(d):
                for coin in (False, True):
                    if a == b:
                        continue
                    share = 0.5 / (d * (d - 1))
                    change = walk.proposal(a, b, coin)
                    if change is None:
                        matrix[i, i] += share
                        continue
                    masks = [change.get(v, mask) for v, mask in enumerate(walk.parents)]
                    j = place[ist.DAG.from_masks(names, masks)]
                    accepted = min(1.0, float(np.exp(walk.gain(change))))
                    matrix[i, j] += share * accepted
                    matrix[i, i] += share * (1 - accepted)
    np.testing.assert_allclose(matrix.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(posterior @ matrix, posterior, atol=1e-12)
    # All graphs can be reached.
    assert (np.linalg.matrix_power(matrix + np.eye(len(dags)), 64) > 0).all()


def test_chains_approach_the_posterior() -> None:
    from scipy.special import logsumexp

    score = wild(list("abc"))
    bound = ist.Knowledge().bind(score.nodes)
    run = partial(
        StructureMCMC(thin=3).sample, score, bound, np.random.default_rng(0), draws=4000, chains=2
    )
    draws, status = drive(run, "StructureMCMC")
    assert status.finished
    dags = list(enumerate_dags(score.nodes))
    totals = np.array([score.total(g) for g in dags])
    weights = np.exp(totals - logsumexp(totals))
    exact = ist.Ensemble.from_dags(dags, weights.tolist())
    drawn = ist.Ensemble(
        score.nodes, draws.parents, np.bincount(draws.chains.ravel()).astype(float)
    )
    assert np.abs(drawn.edge_probabilities() - exact.edge_probabilities()).max() < 0.05
    expected = [score.total(dag) for dag in drawn.dags]
    np.testing.assert_allclose(draws.log_scores, expected, atol=1e-9)


@pytest.mark.parametrize("d", [1, 64, 65])
def test_any_number_of_variables(d: int) -> None:
    names = [f"v{i}" for i in range(d)]
    score = PythonLocalScore(names, lambda child, parents: -len(parents), equivalent=True)
    run = partial(
        StructureMCMC(thin=20).sample,
        score,
        ist.Knowledge().bind(names),
        np.random.default_rng(0),
        draws=10,
        chains=3,
    )
    draws, _ = drive(run, "StructureMCMC")
    assert draws.chains.shape == (3, 10)
    ensemble = ist.Ensemble(
        tuple(names), draws.parents, np.bincount(draws.chains.ravel()).astype(float)
    )
    assert len(ensemble.dags) == len(draws.parents)  # all are acyclic


@pytest.mark.timing
def test_a_slow_score_does_not_hold_up_a_step() -> None:
    def local(child: int, parents: tuple[int, ...]) -> float:
        time.sleep(0.01)
        return -float(len(parents))

    names = [f"v{i}" for i in range(12)]
    score = PythonLocalScore(names, local, equivalent=True)
    bound = ist.Knowledge().bind(names)
    watch = Watch(time_limit=0.0)
    begin = time.monotonic()
    StructureMCMC().sample(score, bound, np.random.default_rng(0), watch, draws=10, chains=4)
    assert time.monotonic() - begin < LATENESS  # a hundred moves would take four seconds


@pytest.mark.parametrize("moment", [40, 57, 83])
def test_an_interrupt_leaves_as_many_draws_of_each_chain(moment: int) -> None:
    calls = 0

    def local(child: int, parents: tuple[int, ...]) -> float:
        nonlocal calls
        calls += 1
        if calls == moment:
            raise KeyboardInterrupt
        return float(np.random.default_rng([child, *parents]).normal())

    score = PythonLocalScore(list("abcdef"), local, equivalent=False)
    run = partial(
        StructureMCMC(thin=1, warm_up=0).sample,
        score,
        ist.Knowledge().bind(score.nodes),
        np.random.default_rng(0),
        draws=10_000,
        chains=5,
    )
    draws, status = drive(run, "StructureMCMC")
    assert status.ending is Ending.INTERRUPTED
    assert len(draws.chains) == 5
    assert draws.chains.shape[1] > 0
    expected = [score.total(dag) for dag in _dags(score, draws)]
    np.testing.assert_allclose(draws.log_scores, expected, atol=1e-9)


def _dags(score: PythonLocalScore, draws: Draws) -> list[ist.DAG]:
    return [ist.DAG.from_masks(score.nodes, row[:, 0].tolist()) for row in draws.parents]


def test_options_are_checked() -> None:
    with pytest.raises(ArgumentError, match="thin"):
        StructureMCMC(thin=0)
