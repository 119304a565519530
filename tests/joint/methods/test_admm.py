"""ADMM from sums: the paper's algorithm, what it tells the coordinator, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import isthmus as ist
from isthmus.errors import AbortedError, DataError, MismatchError, SchemaError, StudyError
from isthmus.graphs.names import above_threshold
from isthmus.statistics import Schema
from isthmus.tables import Frame
from isthmus_joint import ADMM, ADMMModel, Federation
from isthmus_joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus_joint.methods.admm import (
    ADMMCourse,
    ADMMRun,
    Ask,
    AskConsensus,
    LinearClient,
    encoded_parameters,
)
from isthmus_joint.methods.admm_models import ADMMOptions, LinearConsensus, Pull, joint_step
from isthmus_joint.secure_sum.terms import LimbAccumulator

Floats = NDArray[np.float64]


def linear(d: int, n: int, seed: int) -> tuple[NDArray[np.bool_], Floats]:
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.random((d, d)) < 2 / (d - 1), 1) * rng.uniform(0.5, 2, (d, d))
    weights *= rng.choice([-1, 1], (d, d))
    rows = np.zeros((n, d))
    for j in range(d):
        rows[:, j] = rows @ weights[:, j] + rng.normal(size=n)
    return weights != 0, rows


def tables(rows: Floats, sites: int) -> dict[str, dict[str, Any]]:
    parts = np.array_split(rows, sites)
    return {f"s{k}": {f"x{j}": c for j, c in enumerate(p.T)} for k, p in enumerate(parts)}


def clients(rows: Floats, sites: int) -> list[LinearClient]:
    parts = np.array_split(rows - rows.mean(axis=0), sites)
    return [LinearClient(p.T @ p / len(rows)) for p in parts]


def admm(federation: Federation, **options: Any) -> ist.Solution:
    return ist.learn(federation, search=ADMM(**options))


def course(d: int, **options: Any) -> ADMMCourse:
    schema, given = Schema.continuous([f"x{j}" for j in range(d)]), ADMMOptions(**options)
    return ADMMCourse(LinearConsensus(schema, given), given)


def counted(sites: int, rows: int) -> Floats:
    """The sum of step 0."""
    return np.array([float(sites), float(rows)])


def iterate(ask: Ask, d: int, rounds: int = 200, **options: Any) -> ADMMRun:
    """Without a federation."""
    own = course(d, **options)
    run = ADMMRun(ADMM(), ADMMModel.LINEAR, own._model, own, ask, rounds)
    while not run.step():
        pass
    return run


def plainly(sites: list[LinearClient], rows: int) -> Ask:
    """Ask clients without any protocol."""

    def ask(own: ADMMCourse) -> Floats:
        if own.step == 0:
            return counted(len(sites), rows)
        return np.asarray(sum(c.answer(own.common, own.rho) for c in sites))

    return ask


# --- the algorithm -----------------------------------------------------------------------------


def test_the_joint_step_without_cycles_is_a_soft_threshold() -> None:
    target = np.random.default_rng(0).normal(size=(4, 4))
    found = joint_step(target, np.zeros((4, 4)), Pull(2.0, 0.0, 0.0), 0.5, np.eye(4, dtype=bool))
    expected = np.sign(target) * np.maximum(np.abs(target) - 0.25, 0)
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_a_client_solves_its_problem() -> None:
    """The gradient of the augmented loss is zero, in the first step and in a later one."""
    _, rows = linear(4, 30, 1)
    client = clients(rows, 3)[0]
    second = client._second
    rng = np.random.default_rng(2)
    beta, rho_before = np.zeros((4, 4)), 0.0
    for step, rho in ((1, 0.3), (2, 0.7)):
        w = rng.normal(size=(4, 4))
        if step > 1:
            assert client._own is not None
            beta = beta + rho_before * (client._own - w)
        sent = client.answer(w, rho)
        b = client._own
        assert b is not None
        gradient = second @ b - second + beta + rho * (b - w)
        np.testing.assert_allclose(gradient, 0, atol=1e-12)
        np.testing.assert_allclose(sent, b + beta / rho)
        rho_before = rho


@pytest.mark.long
def test_it_finds_the_graph() -> None:
    truth, rows = linear(8, 400, 3)
    run = iterate(plainly(clients(rows, 4), 400), 8)
    found = run.edges()
    assert (found & truth).sum() >= 0.8 * truth.sum()
    assert (found & ~truth).sum() <= 2
    assert 20 < run.done <= 200


@pytest.mark.long
def test_secure_sums_change_nothing() -> None:
    """Bit by bit what integer sums on the same grid give, without any protocol."""
    _, rows = linear(4, 60, 4)
    data = tables(rows, 3)
    federation = Federation.simulate(data)
    found = admm(federation, rounds=12, rho2=0.05).details
    assert found.rounds == 12
    grid, names = FixedPointEncoding.of(federation.study), federation.schema().names
    moments = [Frame(t).moments() for t in data.values()]
    plain = [LinearClient(m.shifted(m.mean()).gram / len(rows)) for m in moments]

    def ask(own: ADMMCourse) -> Floats:
        if own.step == 0:
            return counted(3, len(rows))
        request, total = AskConsensus(names, own.step), LimbAccumulator(16, 4)
        for client in plain:
            total.add(encoded_parameters(client.answer(own.common, own.rho), grid))
        return request.decode(total.total(), grid)

    np.testing.assert_array_equal(found.weights, iterate(ask, 4, 12, rho2=0.05).common)


def test_what_left_is_written_down() -> None:
    _, rows = linear(3, 60, 5)
    federation = Federation.simulate(tables(rows, 3))
    found = admm(federation, rounds=3)
    assert len(found.disclosure.entries) == 6
    text = str(found.disclosure)
    assert "3 × parameters of ADMM" in text
    assert "reveal single sites" in text
    assert found.disclosure.entries[-1].size == 27


def test_weakest_edges_go_until_there_is_no_cycle() -> None:
    weights = np.array([[0, 0.9, 0], [0, 0, 0.8], [0.5, 0.1, 0]])
    edges = above_threshold(weights, 0.3)
    assert edges.tolist() == [[False, True, False], [False, False, True], [False, False, False]]
    assert not above_threshold(np.ones((2, 2)), 0.3).any()


# --- what it tells -----------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "rows_a_site"), [(5, 1), (10, 4), (20, 50)])
def test_the_published_protocol_gives_a_site_away_in_one_round(d: int, rows_a_site: int) -> None:
    """From one bare B the coordinator computes all second moments of the site."""
    _, rows = linear(d, 4 * rows_a_site, d)
    site = clients(rows, 4)[0]
    rho = 1e-3
    site.answer(np.zeros((d, d)), rho)
    seen = site._own
    assert seen is not None
    recovered = rho * (np.linalg.inv(np.eye(d) - seen) - np.eye(d))
    error = np.linalg.norm(recovered - site._second) / np.linalg.norm(site._second)
    assert error < 1e-7
    if rows_a_site == 1:  # then it is the row itself, up to its sign
        values, vectors = np.linalg.eigh(recovered * len(rows))
        row = np.sqrt(values[-1]) * vectors[:, -1]
        true = (rows - rows.mean(axis=0))[0]
        assert min(np.abs(row - true).max(), np.abs(row + true).max()) < 1e-5 * np.abs(true).max()


def test_sums_hide_the_site_but_not_the_sum_of_resolvents() -> None:
    """Secure sums hide each B; what they do tell is Σ (S_k + ρI)⁻¹ for every ρ asked."""
    _, rows = linear(5, 90, 6)
    sites = clients(rows, 3)
    rho = 1e-3
    total = sum((c.answer(np.zeros((5, 5)), rho) for c in sites), np.zeros((5, 5)))
    told = (3 * np.eye(5) - total) / rho
    resolvents = [np.linalg.inv(c._second + rho * np.eye(5)) for c in sites]
    np.testing.assert_allclose(told, sum(resolvents), rtol=1e-8)
    # The attack on one site, tried on the average, misses every site.
    guess = rho * (np.linalg.inv(np.eye(5) - total / 3) - np.eye(5))
    for client in sites:
        away = np.linalg.norm(guess - client._second) / np.linalg.norm(client._second)
        assert away > 0.05


# --- what it refuses ---------------------------------------------------------------------------


@pytest.mark.parametrize("total", [counted(0, 9), counted(10, 9), np.array([np.nan, 3.0])])
def test_impossible_numbers_of_sites_are_refused(total: Floats) -> None:
    with pytest.raises(DataError, match="wrong answer"):
        course(3).take(total)


def test_a_site_cannot_shift_parameters_without_bounds() -> None:
    """At very large parameters, the answers of other sites would be cut."""
    own = course(3, penalty=0.0)
    own.take(counted(3, 90))
    with pytest.raises(DataError, match="wrong answer"):
        own.take(np.triu(np.full((3, 3), 1e5), 1))
    assert own.step == 1
    own.take(np.zeros((3, 3)))
    assert own.step == 2


def test_a_site_that_is_gone_is_named() -> None:
    _, rows = linear(3, 80, 9)
    federation = Federation.simulate(tables(rows, 4), lost=[("s2", 6)])
    with pytest.raises(AbortedError, match=r"all 4 sites that were asked .* Silent: \['s2'\]"):
        admm(federation, rounds=5)


def test_a_study_must_allow_steps() -> None:
    _, rows = linear(3, 60, 10)
    federation = Federation.simulate(tables(rows, 3), requests=["moments"])
    with pytest.raises(StudyError, match="ADMM needs 'consensus'"):
        admm(federation)


def test_only_continuous_variables() -> None:
    data = {f"s{k}": {"a": np.array(["x", "y"] * 5)} for k in range(3)}
    with pytest.raises(SchemaError, match="continuous"):
        admm(Federation.simulate(data))


@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")
def test_one_secure_sum_of_moments_is_the_better_way() -> None:
    """The same sites, one round: the graph of all data."""
    _, rows = linear(6, 300, 11)
    data = tables(rows, 5)
    ours = ist.learn(Federation.simulate(data), search=ist.Notears(penalty=0.05))
    pooled = ist.learn(Frame(rows, names=list(data["s0"])), search=ist.Notears(penalty=0.05))
    assert ours.dag == pooled.dag
    assert len(ours.disclosure.entries) == 5
    with pytest.raises(MismatchError):
        Federation.simulate(data).rows()
