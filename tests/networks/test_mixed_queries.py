"""Queries of mixed networks: by hand, against numerical integration and against simulation."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.cli import main
from isthmus.errors import ArgumentError, DataError, SchemaError
from isthmus.io import to_json
from isthmus.networks import (
    ConditionalGaussian,
    MixedNetwork,
    MultinomialLogit,
    NormalMixture,
    Probabilities,
    ProbabilityTable,
)
from isthmus.networks.mixed_queries import MixedQuery


def gaussian(intercepts: Any, variances: Any, slopes: Any = None, **parents: Any) -> Any:
    means = np.array(intercepts, dtype=float)
    given = np.zeros((*means.shape, 0)) if slopes is None else np.array(slopes, dtype=float)
    return ConditionalGaussian(
        parents.get("discrete", ()),
        parents.get("continuous", ()),
        means,
        given,
        np.array(variances, dtype=float),
    )


SICK = MixedNetwork(
    ist.DAG(
        ["sick", "fever", "pulse", "alarm"],
        [("sick", "fever"), ("fever", "pulse"), ("pulse", "alarm")],
    ),
    {
        "sick": ProbabilityTable(("no", "yes"), (), np.array([0.9, 0.1])),
        "fever": gaussian([37.0, 39.0], [0.25, 1.0], discrete=("sick",)),
        "pulse": gaussian(-310.0, 16.0, [10.0], continuous=("fever",)),
        "alarm": MultinomialLogit(
            ("off", "on"), (), ("pulse",), np.array([0, -20.0]), (), np.array([[0, 0.25]])
        ),
    },
)
"""Sick people have a higher temperature and pulse, and then an alarm may ring."""


def normal(x: Any, mean: Any, variance: Any) -> Any:
    return np.exp(-((x - mean) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)


def test_by_hand() -> None:
    answer = SICK.query("fever")
    assert isinstance(answer, NormalMixture)
    assert answer.mean == pytest.approx([37.2])
    assert answer.covariance[0, 0] == pytest.approx(0.9 * 0.25 + 0.1 * 1 + 0.09 * 4)
    assert answer.error is None
    assert str(answer) == "fever: 37.2 ± 0.8276"
    seen = SICK.query("sick", evidence={"fever": 38.5})
    well, ill = 0.9 * normal(38.5, 37, 0.25), 0.1 * normal(38.5, 39, 1)
    assert isinstance(seen, Probabilities)
    assert seen["yes"] == pytest.approx(ill / (well + ill), abs=1e-12)
    assert seen.error is None
    behind = SICK.query("sick", evidence={"pulse": 75})
    well, ill = 0.9 * normal(75, 60, 25 + 16), 0.1 * normal(75, 80, 100 + 16)
    assert behind["yes"] == pytest.approx(ill / (well + ill), abs=1e-12)  # type: ignore[index]
    # Given sick, fever and pulse are normal: mean + covariance / variance * surprise.
    fever = SICK.query("fever", evidence={"sick": "yes", "pulse": 75})
    assert isinstance(fever, NormalMixture)
    assert fever.mean == pytest.approx([39 + 10 / 116 * (75 - 80)])
    assert fever.covariance[0, 0] == pytest.approx(1 - 100 / 116)


def test_acting_is_not_seeing() -> None:
    assert SICK.query("sick", do={"fever": 40.0})["yes"] == pytest.approx(0.1)  # type: ignore[index]
    assert SICK.query("sick", evidence={"fever": 40.0})["yes"] > 0.9  # type: ignore[index]
    pulse = SICK.query("pulse", do={"fever": 38.0})
    assert isinstance(pulse, NormalMixture)
    assert pulse.mean == pytest.approx([70.0])
    assert pulse.covariance[0, 0] == pytest.approx(16.0)
    # The alarm's only continuous parent is known: no simulation is needed.
    for how in ({"do": {"pulse": 84.0}}, {"evidence": {"pulse": 84.0}}):
        alarm: Any = SICK.query("alarm", **how)  # type: ignore[call-overload]
        assert alarm["on"] == pytest.approx(1 / (1 + math.exp(-1)))
        assert alarm.error is None


def test_what_has_no_closed_form_is_simulated_with_its_error() -> None:
    pulse = np.linspace(-100, 250, 200_001)
    on = 1 / (1 + np.exp(20 - 0.25 * pulse))
    step = pulse[1] - pulse[0]
    ill, well = normal(pulse, 80, 116), normal(pulse, 60, 41)
    rings, sick = ((0.1 * ill + 0.9 * well) * on).sum() * step, (0.1 * ill * on).sum() * step
    mean = ((0.1 * ill + 0.9 * well) * on * pulse).sum() * step / rings
    for seed in range(5):
        alarm: Any = SICK.query("alarm", seed=seed)
        back: Any = SICK.query("sick", evidence={"alarm": "on"}, seed=seed)
        value: Any = SICK.query("pulse", evidence={"alarm": "on"}, seed=seed)
        for found, error, expected in (
            (alarm["on"], alarm.error[1], rings),
            (back["yes"], back.error[1], sick / rings),
            (value.mean[0], value.error[0], mean),
        ):
            assert abs(found - expected) < 4 * error
            assert 0 < error < 0.02 * expected
    assert "(simulation error" in str(alarm)
    assert "sampling error of the fitted parameters is not included" in str(alarm)
    assert "(simulation error of the mean" in str(value)
    again: Any = SICK.query("alarm", seed=4)
    assert again["on"] == alarm["on"]


def test_the_standard_error_is_the_spread_over_seeds() -> None:
    answers: list[Any] = [
        SICK.query(["sick"], {"alarm": "on"}, simulations=4_000, seed=seed) for seed in range(100)
    ]
    spread = np.std([answer["yes"] for answer in answers])
    assert np.mean([answer.error[1] for answer in answers]) == pytest.approx(spread, rel=0.3)


def random_network(seed: int) -> MixedNetwork:
    """Discrete nodes with discrete parents, and continuous ones with parents of both kinds."""
    rng = np.random.default_rng(seed)
    discrete, continuous = ["a", "b", "c"], ["x", "y", "z"]
    nodes = discrete + continuous
    edges = [e for e in itertools.combinations(nodes, 2) if rng.random() < 0.6]
    dag = ist.DAG(nodes, edges)
    sizes = {v: int(rng.integers(2, 4)) for v in discrete}
    conditionals: dict[str, Any] = {}
    for v in nodes:
        groups = tuple(p for p in dag.parents(v) if p in discrete)
        shape = tuple(sizes[p] for p in groups)
        if v in discrete:
            levels = tuple(f"{v}{k}" for k in range(sizes[v]))
            probabilities = rng.dirichlet(np.ones(sizes[v]), size=shape)
            conditionals[v] = ProbabilityTable(levels, groups, probabilities)
            continue
        numbers = tuple(p for p in dag.parents(v) if p in continuous)
        conditionals[v] = gaussian(
            rng.normal(size=shape),
            rng.uniform(0.5, 2, size=shape),
            rng.normal(size=(*shape, len(numbers))),
            discrete=groups,
            continuous=numbers,
        )
    return MixedNetwork(dag, conditionals)


@pytest.mark.parametrize("seed", range(12))
def test_closed_form_and_simulation_agree(seed: int) -> None:
    network = random_network(seed)
    rng = np.random.default_rng(seed)
    nodes = rng.permutation(network.dag.nodes).tolist()
    evidence: dict[str, float] = {}
    do: dict[str, float] = {}
    for v, place in ((nodes[0], evidence), (nodes[1], evidence), (nodes[2], do)):
        place[v] = 0 if v in network.levels else float(rng.normal())
    for targets in ([v for v in "cab" if v in nodes[3:]], [v for v in "zxy" if v in nodes[3:]]):
        if not targets:
            continue
        question = MixedQuery(network.dag, network.conditionals, tuple(targets), evidence, do)
        exact: Any = question.exact()
        drawn: Any = question.simulated(40_000, seed)
        assert exact is not None
        if targets[0] in network.levels:
            assert exact.values.sum() == pytest.approx(1)
            assert (np.abs(exact.values - drawn.values) < 5 * drawn.error + 1e-9).all()
            first = drawn.marginal(targets[0])
            assert abs(first.values - exact.marginal(targets[0]).values).max() < 0.05
        else:
            assert (np.abs(exact.mean - drawn.mean) < 5 * drawn.error).all()
            np.testing.assert_allclose(exact.covariance, drawn.covariance, atol=0.25, rtol=0.1)


def test_against_the_rows_of_sample() -> None:
    network = random_network(3)
    rows = network.sample(200_000, seed=1)
    keep = rows["b"] == "b1"
    answer: Any = network.query("a", evidence={"b": "b1"})
    for level in network.levels["a"]:
        assert answer[level] == pytest.approx((rows["a"][keep] == level).mean(), abs=0.01)
    both: Any = network.query(["z", "x"], evidence={"b": "b1"})
    table = np.stack([rows["z"][keep], rows["x"][keep]])
    np.testing.assert_allclose(both.mean, table.mean(axis=1), atol=0.05)
    np.testing.assert_allclose(both.covariance, np.cov(table), rtol=0.05, atol=0.05)


def test_too_many_configurations_are_simulated() -> None:
    names = [f"v{i:02}" for i in range(14)]
    tables: dict[str, Any] = {
        v: ProbabilityTable(("no", "yes"), (), np.array([0.5, 0.5])) for v in names
    }
    shape = (2,) * 14
    total = gaussian(np.indices(shape).sum(axis=0), np.ones(shape), discrete=tuple(names))
    network = MixedNetwork(
        ist.DAG([*names, "total"], [(v, "total") for v in names]), {**tables, "total": total}
    )
    answer: Any = network.query("total")
    assert abs(answer.mean[0] - 7) < 4 * answer.error[0]
    assert answer.deviation[0] == pytest.approx(math.sqrt(14 / 4 + 1), rel=0.02)
    known: Any = network.query("total", evidence={"v00": "yes"})  # 2**13 configurations
    assert known.error is None
    assert known.mean[0] == pytest.approx(7.5)
    # What does not matter for the answer is not enumerated.
    assert network.query("v03").error is None


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match="separately"):
        SICK.query(["sick", "fever"])
    with pytest.raises(ArgumentError, match="simulations"):
        SICK.query("alarm", simulations=0)
    with pytest.raises(SchemaError, match="levels"):
        SICK.query("fever", evidence={"sick": "maybe"})
    with pytest.raises(DataError, match="must be a number"):
        SICK.query("sick", evidence={"fever": "high"})
    with pytest.raises(ArgumentError, match="'fever' is continuous and has no levels"):
        SICK.query("sick", evidence={"fever": {"high": 0.9}})
    with pytest.raises(DataError, match="effective sample size of only"):
        SICK.query("sick", evidence={"alarm": "on"}, simulations=50)
    certain = MixedNetwork(
        ist.DAG(["a", "x", "y"], [("a", "x"), ("x", "y")]),
        {
            "a": ProbabilityTable(("no", "yes"), (), np.array([1.0, 0.0])),
            "x": gaussian([0.0, 1.0], [1.0, 1.0], discrete=("a",)),
            "y": gaussian(0.0, 0.0, [2.0], continuous=("x",)),
        },
    )
    with pytest.raises(DataError, match="probability zero"):
        certain.query("x", evidence={"a": "yes"})
    with pytest.raises(DataError, match="pseudo_count"):
        certain.query("a", evidence={"x": 1.0, "y": 2.0})
    x: Any = certain.query("x", evidence={"y": 3.0})  # y has no noise of its own, but a density
    assert x.mean == pytest.approx([1.5])
    assert x.covariance[0, 0] == pytest.approx(0, abs=1e-12)


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "sick.json"
    path.write_text(to_json(SICK))
    assert main(["query", str(path), "--target", "fever", "--given", "sick=YES"]) == 0
    assert capsys.readouterr().out == "fever: 39 ± 1\n"
    ask = ["query", str(path), "--target", "sick", "--given", "alarm=on", "--json"]
    assert main([*ask, "--simulations", "5000", "--seed", "3"]) == 0
    answer = json.loads(capsys.readouterr().out)
    expected: Any = SICK.query("sick", {"alarm": "on"}, simulations=5000, seed=3)
    assert answer["probabilities"] == expected.values.tolist()
    assert answer["simulation_error"] == expected.error.tolist()
    assert main(["query", str(path), "--target", "sick", "--do", "pulse=high"]) != 0
    assert "is a number" in capsys.readouterr().err


def test_uncertain_evidence_is_a_report() -> None:
    reported = MixedNetwork(
        ist.DAG(
            [*SICK.dag.nodes, "word", "thermometer"],
            [*SICK.dag.edges, ("sick", "word"), ("fever", "thermometer")],
        ),
        {
            **SICK.conditionals,
            "word": ProbabilityTable(
                ("ill", "well"), ("sick",), np.array([[0.2, 0.8], [0.7, 0.3]])
            ),
            "thermometer": gaussian(0.0, 0.09, [1.0], continuous=("fever",)),
        },
    )
    told: Any = {"sick": {"no": 0.2, "yes": 0.7}, "fever": (38.4, 0.3)}
    report: Any = {"word": "ill", "thermometer": 38.4}
    exact, same = SICK.query("sick", told), reported.query("sick", report)
    assert isinstance(exact, Probabilities)
    assert isinstance(same, Probabilities)
    np.testing.assert_allclose(exact.values, same.values, atol=1e-12)
    mean, other = SICK.query("pulse", told), reported.query("pulse", report)
    assert isinstance(mean, NormalMixture)
    assert isinstance(other, NormalMixture)
    assert mean.mean == pytest.approx(other.mean)
    assert mean.covariance == pytest.approx(other.covariance)
    # The same by simulation.
    drawn = MixedQuery(
        SICK.dag,
        SICK.conditionals,
        ("sick",),
        {},
        {},
        {"sick": np.array([0.2, 0.7])},
        {"fever": (38.4, 0.3)},
    ).simulated(100_000, 1)
    assert isinstance(drawn, Probabilities)
    assert drawn.error is not None
    assert (np.abs(drawn.values - exact.values) < 4 * drawn.error).all()


@pytest.mark.parametrize("target", ["sick", "fever", "pulse", "alarm"])
def test_predictions_with_any_missing_cells(target: str) -> None:
    rng = np.random.default_rng(4)
    rows: dict[str, Any] = {v: c.astype(object) for v, c in SICK.sample(12, seed=2).items()}
    for column in rows.values():
        column[rng.random(12) < 0.4] = None
    ask = SICK.predict_probabilities if target in SICK.levels else SICK.predict
    found = ask(rows, target, simulations=2000)
    for i in range(12):
        seen = {v: c[i] for v, c in rows.items() if v != target and c[i] is not None}
        # By integration over a grid of everything that is not known.
        grid = {
            "sick": ["no", "yes"],
            "fever": np.linspace(34, 44, 201),
            "pulse": np.linspace(20, 130, 441),
            "alarm": ["off", "on"],
        }
        axes = [[seen[v]] if v in seen else grid[v] for v in SICK.dag.nodes]
        mesh = [np.ravel(c) for c in np.meshgrid(*(np.asarray(a) for a in axes), indexing="ij")]
        columns = dict(zip(SICK.dag.nodes, mesh, strict=True))
        weights = np.exp(SICK.log_densities(columns))
        if target in SICK.levels:
            levels = SICK.levels[target]
            chances = [weights[columns[target] == level].sum() for level in levels]
            expected = np.array(chances) / weights.sum()
        else:
            expected = weights @ columns[target] / weights.sum()
        # Five simulation errors of 2,000 draws, for rows without a closed form.
        room = 0.05 if target in SICK.levels else {"fever": 0.1, "pulse": 1.0}[target]
        np.testing.assert_allclose(found[i], expected, atol=room)
    assert SICK.predict({}, "alarm", simulations=1000).shape == (1,)
