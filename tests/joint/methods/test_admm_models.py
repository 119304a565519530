"""ADMM for neural networks and for time series."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import isthmus as ist
from isthmus import simulate
from isthmus.errors import (
    ArgumentError,
    DataError,
    FormatError,
    MismatchError,
    RefusedError,
    SchemaError,
)
from isthmus.joint import (
    ADMM,
    ADMMModel,
    AskNetworks,
    Client,
    Federation,
    FixedPointEncoding,
    LinearClient,
    NetworkClient,
    Stiffness,
)
from isthmus.joint.methods.admm.admm import MODELS, ADMMRun, Ask
from isthmus.joint.methods.admm.models import ConsensusModel
from isthmus.joint.methods.admm.site_state import restore_client, save_client
from isthmus.joint.methods.admm.steps import Pull, Turn
from isthmus.joint.request_catalogue import read_request
from isthmus.joint.secure_sum.limbs import LimbAccumulator
from isthmus.neural import perceptron
from isthmus.searches.continuous.acyclicity import exponential
from isthmus.statistics import Schema

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
    return MODELS[kind](ADMM(**options), schema)


def iterate(
    kind: ADMMModel, ask: Ask, sites: int, names: Sequence[str], seed: int = 0, **options: Any
) -> ADMMRun:
    """Run ADMM without a federation."""
    fitted = model(kind, names, **options)
    start = fitted.start(np.random.default_rng(seed))
    run = ADMMRun(ADMM(**options), kind, fitted, ask, sites, start, options.get("rounds", 200))
    while not run.step():
        pass
    return run


def plain(
    sites: Sequence[Client],
    names: Sequence[str],
    kind: ADMMModel = NETWORKS,
    seed: int = 0,
    **options: Any,
) -> ADMMRun:
    """Without any protocol, as the figures of the documentation are made."""

    def ask(step: int, common: Floats, rho: float) -> Floats:
        return sum((c.answer(step, common, rho) for c in sites), np.zeros_like(common))

    return iterate(kind, ask, len(sites), names, seed, **options)


# --- the coordinator's step --------------------------------------------------------------------


@pytest.mark.parametrize("hidden", [1, 4])
def test_the_joint_step_is_stationary_for_the_whole_problem(hidden: int) -> None:
    """Subgradients of the ℓ1 norm included, though it was solved without one."""
    rng = np.random.default_rng(hidden)
    d, pull, penalty = 5, Pull(3.0, 0.2, 4.0), 0.6
    options = model(NETWORKS, "abcde", penalty=penalty, hidden=hidden)
    target = rng.normal(size=perceptron.size(d, hidden))
    found = options.join(target, options.start(np.random.default_rng(0)), pull)
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


def test_a_site_minimises_its_loss_near_the_common_parameters() -> None:
    rows = curved(30, 1)
    d, hidden, total = 3, 4, 90
    client = NetworkClient(rows, hidden, total, 5000)
    loss = perceptron.value_and_gradient(rows, hidden, 0.0)
    rng = np.random.default_rng(2)
    beta, rho_before = np.zeros(perceptron.size(d, hidden)), 0.0
    free = np.ones(len(beta), dtype=bool)
    free[: d * d * hidden] = ~np.repeat(np.eye(d, dtype=bool).ravel(), hidden)
    for step, rho in ((1, 0.3), (2, 0.7)):
        common = np.where(free, 0.5 * rng.normal(size=len(beta)), 0.0)
        if step > 1:
            beta = beta + rho_before * (client._own - common)
        sent = client.answer(step, common, rho)
        own = client._own
        gradient = len(rows) / total * loss(own)[1] + beta + rho * (own - common)
        assert np.abs(gradient[free]).max() < 1e-3 * rho
        np.testing.assert_array_equal(own[~free], 0.0)
        np.testing.assert_allclose(sent, own + beta / rho)
        rho_before = rho


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


def test_secure_sums_of_networks_change_nothing() -> None:
    """Bit by bit what integer sums on the same grid give; and nearly what plain sums give."""
    rows = curved(48, 5)
    data = tables(rows, 3)
    options: dict[str, Any] = {"rounds": 3, "hidden": 3}
    federation = Federation.simulate(data)
    solution = ist.learn(federation, search=ADMM(ADMMModel.PERCEPTRON, **options))
    found = solution.details
    grid, names = FixedPointEncoding.of(federation.study), tuple(data["s0"])
    parts = np.array_split(rows, 3)
    clients = [NetworkClient(p - p.mean(axis=0), 3, len(rows)) for p in parts]

    def ask(step: int, common: Floats, rho: float) -> Floats:
        request = model(NETWORKS, names, **options).request(
            Turn(names, len(rows), None, step, rho, common)
        )
        total = LimbAccumulator(request.size(grid), request.limbs)
        for client in clients:
            total.add(request.encode(client.answer(step, common, rho), grid))
        return request.decode(total.total(), grid)

    expected = iterate(NETWORKS, ask, 3, names, **options)
    np.testing.assert_array_equal(found.parameters, expected.common)
    again = [NetworkClient(p - p.mean(axis=0), 3, len(rows)) for p in parts]
    np.testing.assert_allclose(found.parameters, plain(again, names, **options).common, atol=1e-9)
    assert found.weights.shape == (3, 3)
    text = str(solution.disclosure)
    assert "neural networks" in text
    assert "reveal single sites" in text


def test_the_same_seed_gives_the_same_networks() -> None:
    rows = curved(30, 6)
    found = []
    for seed in (0, 0, 1):
        clients = [NetworkClient(p, 2, 30) for p in np.array_split(rows, 3)]
        found.append(plain(clients, "abc", seed=seed, rounds=2, hidden=2).common)
    np.testing.assert_array_equal(found[0], found[1])
    assert np.abs(found[0] - found[2]).max() > 0.01


def test_a_site_goes_on_after_a_restart() -> None:
    """The same bits as without one."""
    rows = curved(20, 10)
    start = model(NETWORKS, "abc", hidden=2).start(np.random.default_rng(0))
    steady, before, after = (NetworkClient(rows, 2, 60) for _ in range(3))
    for step, common in ((1, start), (2, 0.9 * start)):
        steady.answer(step, common, 0.1 * step)
        before.answer(step, common, 0.1 * step)
    restore_client(after, save_client(before))
    np.testing.assert_array_equal(
        after.answer(3, 0.8 * start, 0.3), steady.answer(3, 0.8 * start, 0.3)
    )


def test_stiffness_of_all_together_is_a_share_for_each() -> None:
    rows = curved(30, 6)
    found = []
    for stiffness, rho2 in ((Stiffness.EACH, 0.1), (Stiffness.TOGETHER, 0.3)):
        clients = [LinearClient(p.T @ p / 30) for p in np.array_split(rows, 3)]
        run = plain(clients, "abc", LINEAR, rounds=3, rho2=rho2, stiffness=stiffness)
        found.append(run.common)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


def test_published_networks_give_a_single_row_away() -> None:
    """The gradient of a weight, divided by that of its unit's bias, is the input."""
    row = curved(1, 7)
    d, hidden, rho = 3, 4, 0.16
    common = model(NETWORKS, "abc", hidden=hidden).start(np.random.default_rng(0))
    site = NetworkClient(row, hidden, 100)
    site.answer(1, common, rho)
    moved = site._own - common
    first = moved[: d * d * hidden].reshape(d, d, hidden)
    bias = moved[d * d * hidden : d * d * hidden + d * hidden].reshape(d, hidden)
    for cause in range(d):
        effect = (cause + 1) % d
        unit = int(np.abs(bias[effect]).argmax())
        recovered = first[cause, effect, unit] / bias[effect, unit]
        assert recovered == pytest.approx(row[0, cause], rel=1e-3)


def test_requests_for_networks_are_read_with_care() -> None:
    study = Federation.simulate(tables(curved(9, 8), 3)).study
    names = study.schema.names
    good = np.zeros(perceptron.size(3, 2))
    request = AskNetworks(names, 2, 1, 9, 0.1, good.tobytes(), None)
    assert read_request(request.to_bytes(), study) == request
    wrong = good.copy()
    wrong[0] = np.nan
    bad: list[dict[str, Any]] = [
        {"parameters": base64.b64encode(wrong.tobytes()).decode()},
        {"parameters": base64.b64encode(good[1:].tobytes()).decode()},
        {"parameters": "§"},
        {"hidden": 0},
        {"hidden": 2.0},
        {"step": "1"},
        {"rows": 0},
        {"centre": [0.0]},
    ]
    for change in bad:
        data = json.dumps(request.to_dict() | change, separators=(",", ":")).encode()
        with pytest.raises(FormatError):
            read_request(data, study)


def test_a_step_for_another_model_is_refused() -> None:
    client = NetworkClient(curved(5, 9), 2, 5)
    with pytest.raises(RefusedError, match="shape"):
        client.answer(1, np.zeros(3), 0.1)
    with pytest.raises(ArgumentError, match="hidden"):
        ADMM(hidden=0)
    names = tuple(f"x{i}" for i in range(98))
    with pytest.raises(DataError, match="fit into"):
        model(NETWORKS, names)
    networks = model(NETWORKS, names[:96])
    start = networks.start(np.random.default_rng(0))
    request = networks.request(Turn(names[:96], 100, (-1.0 / 3,) * 96, 1, 0.1, start))
    assert len(request.to_bytes()) < 2**20


# --- time series -------------------------------------------------------------------------------


def series(sites: int, steps: int, seed: int) -> dict[str, ist.sources.Series]:
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
        found[f"s{k}"] = ist.sources.Series({"x": x, "y": y, "z": z}, lags=1)
    return found


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


@pytest.mark.parametrize("names", [("x", "y"), ("x", "x@1", "y", "y@1"), ("x", "y", "x@1")])
def test_series_have_their_columns_in_order(names: tuple[str, ...]) -> None:
    with pytest.raises(SchemaError, match="Series"):
        model(SERIES, names)
    lagged = Schema.continuous(["x", "y"]).with_lags(1)
    if len(names) > 2:
        with pytest.raises(SchemaError, match="Series"):
            model(SERIES, lagged.subset(names))
    assert model(SERIES, lagged).start(np.random.default_rng(0)).shape == (4, 2)


def test_networks_need_a_study_that_allows_them() -> None:
    allowed = ["totals", "consensus"]
    federation = Federation.simulate(tables(curved(30, 3), 3), requests=allowed)
    with pytest.raises(MismatchError, match="is for a linear model; a perceptron one was given"):
        ist.learn(federation, search=ADMM(ADMMModel.PERCEPTRON, hidden=2))


def test_simulated_curves_in_five_sites() -> None:
    """A network of eight variables, fewer rows a site than a site could learn from."""
    dag = simulate.erdos_renyi(8, 8, seed=2)
    rows = simulate.nonlinear(dag, 250, seed=2).array()
    means = rows.mean(axis=0)
    sites = [NetworkClient(p - means, 10, len(rows)) for p in np.array_split(rows, 5)]
    edges, truth = plain(sites, dag.nodes).edges(), dag.adjacency()
    assert (edges & truth).sum() >= 5
    assert (edges & ~truth).sum() <= 4
