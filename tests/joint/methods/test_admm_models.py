"""ADMM for neural networks and for time series."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import isthmus as ist
from isthmus import simulate
from isthmus.errors import ArgumentError, FormatError, MismatchError, SchemaError
from isthmus.neural import perceptron
from isthmus.searches.notears_penalties import exponential
from isthmus.statistics import Schema
from isthmus_joint import ADMM, ADMMModel, Federation
from isthmus_joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus_joint.methods.admm import (
    REQUESTS,
    ADMMCourse,
    ADMMRun,
    Ask,
    AskNetworks,
    Client,
    LinearClient,
    NetworkClient,
    encoded_parameters,
)
from isthmus_joint.methods.admm_models import ADMMOptions, ConsensusModel, Pull
from isthmus_joint.request_catalogue import read_request
from isthmus_joint.secure_sum.terms import LimbAccumulator

Floats = NDArray[np.float64]
LINEAR, SERIES, NETWORKS = ADMMModel


def curved(n: int, seed: int) -> Floats:
    """A cause and two effects, far from straight."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    b = 2.0 * np.sin(2.0 * a) + 0.5 * rng.normal(size=n)
    c = b * b - 1.5 + 0.5 * rng.normal(size=n)
    return np.stack([a, b, c], axis=1)


def tables(rows: Floats, sites: int) -> dict[str, Any]:
    parts = np.array_split(rows, sites)
    return {f"s{k}": {f"x{j}": c for j, c in enumerate(p.T)} for k, p in enumerate(parts)}


def model(kind: ADMMModel, names: Sequence[str] | Schema, **options: Any) -> ConsensusModel:
    schema = names if isinstance(names, Schema) else Schema.continuous(tuple(names))
    return REQUESTS[kind](schema.names, 0, ADMMOptions(**options)).model(schema)


def iterate(
    kind: ADMMModel, ask: Ask, names: Sequence[str], rounds: int = 200, **options: Any
) -> ADMMRun:
    """Run ADMM without a federation."""
    if kind is NETWORKS:
        options = {"rho1": 0.01, "rho2": 0.16, "together": True} | options
    fitted = model(kind, names, **options)
    course = ADMMCourse(fitted, ADMMOptions(**options))
    run = ADMMRun(ADMM(), kind, fitted, course, ask, rounds)
    while not run.step():
        pass
    return run


def plain(
    sites: Sequence[Client], names: Sequence[str], kind: ADMMModel = NETWORKS, **options: Any
) -> ADMMRun:
    """Without any protocol, as the figures of the documentation are made."""

    def ask(course: ADMMCourse) -> Floats:
        if course.step == 0:
            return np.array([len(sites), 10.0**6])
        return np.asarray(sum(c.answer(course.common, course.rho) for c in sites))

    return iterate(kind, ask, names, **options)


# --- the coordinator's step --------------------------------------------------------------------


@pytest.mark.parametrize("hidden", [1, 4])
def test_the_joint_step_is_stationary_for_the_whole_problem(hidden: int) -> None:
    """Subgradients of the ℓ1 norm included, though it was solved without one."""
    rng = np.random.default_rng(hidden)
    d, pull, penalty = 5, Pull(3.0, 0.2, 4.0), 0.6
    options = model(NETWORKS, "abcde", penalty=penalty, hidden=hidden)
    target = rng.normal(size=perceptron.size(d, hidden))
    found = options.join(target, options.start(), pull)
    first = found[: d * d * hidden].reshape(d, d, hidden)
    wanted = target[: d * d * hidden].reshape(d, d, hidden)
    weights = options.weights(found)
    np.testing.assert_allclose(weights, np.sqrt((first**2).sum(axis=2)))
    h, slope = exponential(weights)
    assert h > 0.01
    by_square = np.divide(slope, 2 * weights, out=np.zeros((d, d)), where=weights > 0)
    smooth = pull.weight * (first - wanted)
    smooth += (pull.alpha + pull.rho1 * h) * 2 * by_square[:, :, None] * first
    away = ~np.eye(d, dtype=bool)
    moving = (first != 0) & away[:, :, None]
    assert moving.any()
    assert (~moving[away]).any()
    np.testing.assert_allclose((smooth + penalty * np.sign(first))[moving], 0, atol=1e-4)
    assert np.abs(smooth[~moving & away[:, :, None]]).max() <= penalty + 1e-4
    assert not first[~away].any()
    np.testing.assert_array_equal(found[d * d * hidden :], target[d * d * hidden :])


def test_with_one_unit_it_is_the_linear_step() -> None:
    rng = np.random.default_rng(3)
    d, pull = 4, Pull(2.0, 0.5, 3.0)
    target = rng.normal(size=(d, d))
    linear = model(LINEAR, "abcd", penalty=0.2).join(target, np.zeros((d, d)), pull)
    whole = np.concatenate([target.ravel(), np.zeros(perceptron.size(d, 1) - d * d)])
    networks = model(NETWORKS, "abcd", penalty=0.2, hidden=1)
    found = networks.join(whole, np.zeros_like(whole), pull)
    np.testing.assert_allclose(found[: d * d].reshape(d, d), linear, atol=1e-7)


# --- neural networks ---------------------------------------------------------------------------


@pytest.mark.long
def test_a_site_minimises_its_loss_near_the_common_parameters() -> None:
    rows = curved(30, 1)
    d, hidden, total = 3, 4, 90
    client = NetworkClient(rows, hidden, total, 5000)
    loss = perceptron.value_and_gradient(rows, hidden, 0.0)
    rng = np.random.default_rng(2)
    beta, rho_before = np.zeros(perceptron.size(d, hidden)), 0.0
    own, free = beta, np.ones(len(beta), dtype=bool)
    free[: d * d * hidden] = ~np.repeat(np.eye(d, dtype=bool).ravel(), hidden)
    for step, rho in ((1, 0.3), (2, 0.7)):
        common = np.where(free, 0.5 * rng.normal(size=len(beta)), 0.0)
        if step > 1:
            beta = beta + rho_before * (own - common)
        sent = client.answer(common, rho)
        assert client._own is not None
        own = client._own
        gradient = len(rows) / total * loss(own)[1] + beta + rho * (own - common)
        assert np.abs(gradient[free]).max() < 1e-3 * rho
        np.testing.assert_array_equal(own[~free], 0.0)
        np.testing.assert_allclose(sent, own + beta / rho)
        rho_before = rho


@pytest.mark.long
def test_networks_find_what_lines_do_not() -> None:
    rows = curved(300, 4)
    data = tables(rows, 3)
    names = list(data["s0"])
    truth = {("x0", "x1"), ("x1", "x2")}
    means = rows.mean(axis=0)
    sites = [NetworkClient(p - means, 10, len(rows)) for p in np.array_split(rows, 3)]
    run = plain(sites, names)
    edges = {(names[i], names[j]) for i, j in np.argwhere(run.edges())}
    assert truth <= edges
    assert run.done < 200
    lines = ist.learn(Federation.simulate(data), search=ADMM(rounds=90))
    assert not truth <= set(lines.dag.edges)


@pytest.mark.long
def test_secure_sums_of_networks_change_nothing() -> None:
    """Bit by bit what integer sums on the same grid give; and nearly what plain sums give."""
    rows = curved(48, 5)
    data = tables(rows, 3)
    federation = Federation.simulate(data)
    search = ADMM(ADMMModel.PERCEPTRON, rounds=3, hidden=3)
    solution = ist.learn(federation, search=search)
    found = solution.details
    grid, names = FixedPointEncoding.of(federation.study), tuple(data["s0"])
    parts = np.array_split(rows, 3)
    clients = [NetworkClient(p - p.mean(axis=0), 3, len(rows)) for p in parts]

    seed = int(np.random.default_rng(0).integers(2**32))
    start: dict[str, Any] = {
        "hidden": 3,
        "seed": seed,
        "rho1": 0.01,
        "rho2": 0.16,
        "together": True,
    }

    def ask(course: ADMMCourse) -> Floats:
        if course.step == 0:
            return np.array([3.0, len(rows)])
        request = AskNetworks(names, course.step, ADMMOptions(**start))
        total = LimbAccumulator(request.size(grid), request.limbs)
        for client in clients:
            total.add(encoded_parameters(client.answer(course.common, course.rho), grid))
        return request.decode(total.total(), grid)

    expected = iterate(NETWORKS, ask, names, 3, **start)
    np.testing.assert_array_equal(found.parameters, expected.common)
    again = [NetworkClient(p - p.mean(axis=0), 3, len(rows)) for p in parts]
    np.testing.assert_allclose(
        found.parameters, plain(again, names, rounds=3, **start).common, atol=1e-9
    )
    assert found.weights.shape == (3, 3)
    text = str(solution.disclosure)
    assert "neural networks" in text
    assert "reveal single sites" in text


@pytest.mark.long
def test_the_same_seed_gives_the_same_networks() -> None:
    rows = curved(30, 6)
    found = []
    for seed in (0, 0, 1):
        clients = [NetworkClient(p, 2, 30) for p in np.array_split(rows, 3)]
        found.append(plain(clients, "abc", seed=seed, rounds=2, hidden=2).common)
    np.testing.assert_array_equal(found[0], found[1])
    assert np.abs(found[0] - found[2]).max() > 0.01


def test_stiffness_of_all_together_is_a_share_for_each() -> None:
    rows = curved(30, 6)
    found = []
    for together, rho2 in ((False, 0.1), (True, 0.3)):
        clients = [LinearClient(p.T @ p / 30) for p in np.array_split(rows, 3)]
        run = plain(clients, "abc", LINEAR, rounds=3, rho2=rho2, together=together)
        found.append(run.common)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


@pytest.mark.long
def test_published_networks_give_a_single_row_away() -> None:
    """The gradient of a weight, divided by that of its unit's bias, is the input."""
    row = curved(1, 7)
    d, hidden, rho = 3, 4, 0.16
    common = model(NETWORKS, "abc", hidden=hidden).start()
    site = NetworkClient(row, hidden, 100)
    site.answer(common, rho)
    assert site._own is not None
    moved = site._own - common
    first = moved[: d * d * hidden].reshape(d, d, hidden)
    bias = moved[d * d * hidden : d * d * hidden + d * hidden].reshape(d, hidden)
    for cause in range(d):
        effect = (cause + 1) % d
        unit = int(np.abs(bias[effect]).argmax())
        recovered = first[cause, effect, unit] / bias[effect, unit]
        assert recovered == pytest.approx(row[0, cause], rel=1e-3)


def test_requests_are_read_with_care() -> None:
    study = Federation.simulate(tables(curved(9, 8), 3)).study
    names = study.schema.names
    request = AskNetworks(names, 1, ADMMOptions(forbidden=(("x0", "x1"),), hidden=2, seed=7))
    assert read_request(request.to_bytes(), study) == request
    plain = request.to_dict()
    options = plain["options"]
    malformed: list[dict[str, Any]] = [
        {"step": "1"},
        {"answers": ["§"]},
        {"options": options | {"hidden": 2.0}},
        {"options": options | {"growth2": "2"}},
        {"options": options | {"together": 1}},
        {"options": options | {"rho": 2e4}},
        {"options": options | {"forbidden": 1}},
    ]
    for change in malformed:
        data = json.dumps(plain | change, separators=(",", ":")).encode()
        with pytest.raises(FormatError):
            read_request(data, study)
    assert request.violations(study) == []
    impossible: list[dict[str, Any]] = [
        {"hidden": 0},
        {"seed": -1},
        {"rho2": 0.0},
        {"rho1": 1e17},
        {"penalty": -1.0},
        {"forbidden": [["x0", "z"]]},
        {"forbidden": [["x0"]]},
    ]
    for own in impossible:
        data = json.dumps(plain | {"options": options | own}, separators=(",", ":")).encode()
        assert read_request(data, study).violations(study) == ["no run of ADMM has these options"]
    with pytest.raises(ArgumentError, match="hidden"):
        ADMM(hidden=0)


# --- time series -------------------------------------------------------------------------------


def series(sites: int, steps: int, seed: int) -> dict[str, ist.tables.Series]:
    """y follows x within a step; x follows its own past, y the past of z."""
    rng = np.random.default_rng(seed)
    found = {}
    for k in range(sites):
        x, y, z = np.zeros((3, steps))
        noise = rng.normal(size=(3, steps))
        for t in range(1, steps):
            x[t] = 0.6 * x[t - 1] + noise[0, t]
            z[t] = noise[1, t]
            y[t] = 1.2 * x[t] - 0.8 * z[t - 1] + noise[2, t]
        found[f"s{k}"] = ist.tables.Series({"x": x, "y": y, "z": z}, lags=1)
    return found


@pytest.mark.long
def test_edges_within_a_step_and_from_earlier_steps() -> None:
    federation = Federation.simulate(series(4, 60, 1))
    solution = ist.learn(federation, search=ADMM(lagged_threshold=0.3))
    found = solution.details
    assert set(solution.dag.edges) == {("x", "y"), ("x@1", "x"), ("z@1", "y")}
    assert found.weights.shape == (6, 3)
    at = federation.schema().names.index
    assert found.weights[at("x"), at("y")] == pytest.approx(1.2, abs=0.2)
    assert found.weights[at("z@1"), at("y")] == pytest.approx(-0.8, abs=0.2)
    assert solution.disclosure.entries[-1].size == found.rounds * 18


def test_only_the_present_is_kept_from_cycles() -> None:
    rng = np.random.default_rng(2)
    target, pull = rng.normal(size=(6, 3)), Pull(4.0, 0.5, 2.0)
    lagged = Schema.continuous(["x", "y", "z"]).with_lags(1)
    options = model(SERIES, lagged, penalty=0.1, lagged_penalty=0.4)
    found = options.join(target, np.zeros((6, 3)), pull)
    linear = model(LINEAR, "abc", penalty=0.1).join(target[:3], np.zeros((3, 3)), pull)
    np.testing.assert_array_equal(found[:3], linear)
    past = np.sign(target[3:]) * np.maximum(np.abs(target[3:]) - 0.1, 0)
    np.testing.assert_array_equal(found[3:], past)


@pytest.mark.parametrize("names", [("x", "x@1", "y", "y@1"), ("x", "y", "x@1")])
def test_series_have_their_columns_in_order(names: tuple[str, ...]) -> None:
    lagged = Schema.continuous(["x", "y"]).with_lags(1)
    with pytest.raises(SchemaError, match="Series"):
        model(SERIES, lagged.subset(names))
    assert model(SERIES, lagged).start().shape == (4, 2)


def test_networks_need_a_study_that_allows_them() -> None:
    allowed = ["consensus"]
    federation = Federation.simulate(tables(curved(30, 3), 3), requests=allowed)
    with pytest.raises(MismatchError, match="is for a linear model; a perceptron one was given"):
        ist.learn(federation, search=ADMM(ADMMModel.PERCEPTRON, hidden=2))


@pytest.mark.long
def test_simulated_curves_in_five_sites() -> None:
    """A network of eight variables, fewer rows a site than a site could learn from."""
    dag = simulate.erdos_renyi(8, 8, seed=2)
    rows = simulate.nonlinear(dag, 250, seed=2).array()
    means = rows.mean(axis=0)
    sites = [NetworkClient(p - means, 10, len(rows)) for p in np.array_split(rows, 5)]
    edges, truth = plain(sites, dag.nodes).edges(), dag.adjacency()
    assert (edges & truth).sum() >= 5
    assert (edges & ~truth).sum() <= 4
