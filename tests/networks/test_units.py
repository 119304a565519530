"""Networks of transformed columns and of dates take and give values of the table."""

from __future__ import annotations

import copy
import json
import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.cli import main
from isthmus.errors import ArgumentError, DataWarning, MismatchError, ModelWarning, SchemaError
from isthmus.networks import GaussianNetwork, MeanRange, MixedNetwork, Nonparanormal, NormalMixture
from isthmus.networks.column_maps import ColumnMap, TimeMap

RNG = np.random.default_rng(0)
N = 800
X = np.exp(RNG.normal(size=N))
Y = 10 * np.exp(0.8 * np.log(X) + 0.5 * RNG.normal(size=N))
ORDER = ist.Knowledge(tiers=[["x"], ["y"]])
SCORED = ist.learn({"x": X, "y": Y}, transform=ist.NormalScores(), knowledge=ORDER)
WHEN = np.datetime64("2020-01-01") + RNG.integers(0, 900, N).astype("m8[D]")
DATED = ist.learn({"when": WHEN, "x": np.log(X)}, kinds={"when": "days"})


def fitted(solution: ist.Solution, data: object = None) -> Any:
    """The network of a solution, whichever kind it is."""
    return solution.fit(data)


def test_scores_are_asked_and_answered_in_the_units_of_columns() -> None:
    network = fitted(SCORED)
    assert isinstance(network, GaussianNetwork)
    answer = network.query("y", evidence={"x": 5.0})
    assert isinstance(answer, Nonparanormal)
    # By hand: the score of 5, the regression, and back.
    own: Any = SCORED.reading.maps
    score = np.interp(5.0, own["x"].at, own["x"].scores)
    centre = network.intercepts["y"] + network.coefficients["y"]["x"] * score
    assert answer.median[0] == pytest.approx(np.interp(centre, own["y"].scores, own["y"].at))
    low = centre - 1.959963984540054 * np.sqrt(network.variances["y"])
    assert answer.interval()[0] == pytest.approx(np.interp(low, own["y"].scores, own["y"].at))
    near = np.median(Y[(X > 4.5) & (X < 5.5)])
    assert answer.median[0] == pytest.approx(near, rel=0.15)
    assert str(answer).startswith("y: median ")
    for name in ("mean", "deviation", "covariance"):
        with pytest.raises(MismatchError, match="Use median"):
            getattr(answer, name)
    assert "at least 86.97" in str(answer)  # the last knot
    assert "with the graph and the scores taken as given" in str(answer)
    assert ist.to_frame(answer, like={})["median"][0] == answer.median[0]
    assert network.most_probable({"x": 5.0})["y"] == pytest.approx(answer.median[0])
    assert "normal scores of x, y" in repr(network)
    with pytest.raises(ArgumentError, match="Give the value alone"):
        network.query("y", evidence={"x": (5.0, 1.0)})
    with pytest.warns(DataWarning, match="x = 1000 is beyond the values"):
        beyond = fitted(SCORED).query("y", evidence={"x": 1000.0})
    last = fitted(SCORED).query("y", evidence={"x": own["x"].at[-1]})
    assert beyond.median[0] == last.median[0]


def test_scores_are_predicted_and_drawn_in_the_units_of_columns() -> None:
    network, table = fitted(SCORED), {"x": X, "y": Y}
    predicted = network.predict(table, "y")
    assert 1 - ((Y - predicted) ** 2).sum() / ((Y - Y.mean()) ** 2).sum() > 0.5
    assert predicted[0] == pytest.approx(network.query("y", {"x": X[0]}).median[0])
    drawn = network.sample(4000, seed=1)
    for name, column in table.items():
        shares = (0.1, 0.5, 0.9)
        assert np.quantile(drawn[name], shares) == pytest.approx(
            np.quantile(column, shares), rel=0.12
        )
    # The density is that of the scores, which are standard normal together.
    scores = {name: own.apply(table[name]) for name, own in SCORED.reading.maps.items()}
    plain = GaussianNetwork(
        network.dag, network.intercepts, network.coefficients, network.variances
    )
    assert network.log_likelihood(table) == pytest.approx(plain.log_likelihood(scores))
    assert ist.log_likelihood(network, table) == pytest.approx(plain.log_likelihood(scores))


def test_ranges_of_scores_are_ranges_of_medians() -> None:
    open_one = fitted(ist.learn({"x": X, "y": Y}, transform=ist.NormalScores()))
    answer = open_one.query("y", do={"x": 5.0})
    assert isinstance(answer, MeanRange)
    seen = open_one.query("y", evidence={"x": 5.0}).median[0]
    middle = open_one.query("y").median[0]
    assert answer["y"] == pytest.approx(sorted((seen, middle)))
    assert "y: median between" in str(answer)


def test_effects_and_curves_say_that_they_are_in_scores() -> None:
    told = "x → y (in normal scores of y per normal score of x): 0.8"
    assert str(SCORED.effect("x", "y")).startswith(told)
    smooth = ist.learn({"x": X[:60], "y": Y[:60]}, transform=ist.NormalScores(), score=ist.GP())
    with pytest.warns(ModelWarning, match="takes and gives scores"):
        smooth.fit_gp()


def test_files_and_the_command_line_keep_units(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = fitted(SCORED)
    expected = network.query("y", evidence={"x": 5.0})
    ist.io.write_json(network, tmp_path / "net.json")
    SCORED.save(tmp_path / "net.isthmus", parameters=True)
    SCORED.save(tmp_path / "all.isthmus", statistics=True)
    loaded = ist.Solution.load(tmp_path / "all.isthmus")
    assert "normal scores of y" in str(loaded.effect("x", "y"))
    assert fitted(loaded, {"x": X, "y": Y}).close_to(network, 1e-6)
    assert copy.deepcopy(network) == network
    assert network.reorder(["y", "x"]).maps == network.maps
    for name in ("net.json", "net.isthmus", "all.isthmus"):
        ask = ["query", str(tmp_path / name), "--target", "y", "--given", "x=5"]
        assert main(ask) == 0
        assert str(expected) in capsys.readouterr().out
        assert main([*ask, "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["median"] == pytest.approx(expected.median.tolist())


def test_numbers_are_cut_into_the_levels_of_the_network(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = {"x": X, "c": np.where(RNG.random(N) < 0.8, X > 1, X < 1), "z": np.log(X)}
    bins = ist.FixedBins({"x": [0.5, 1.0, 2.0]})
    discrete = fitted(ist.learn({v: table[v] for v in "xc"}, transform=bins))
    mixed = fitted(ist.learn(table, transform=bins))
    assert isinstance(mixed, MixedNetwork)
    network: Any
    for network in (discrete, mixed):
        level = network.levels["x"][3]
        wanted = str(network.query("c", evidence={"x": level}))
        assert str(network.query("c", evidence={"x": 2.5})) == wanted
        assert str(network.query("c", do={"x": np.float32(2.5)})) == str(
            network.query("c", do={"x": level})
        )
        assert network.predict({"x": [2.5, None]}, "c").tolist() == (
            network.predict({"x": [level, None]}, "c").tolist()
        )
        levels = {**table, "x": ColumnMap((0.5, 1.0, 2.0)).apply(X)}
        assert ist.log_likelihood(network, table) == ist.log_likelihood(network, levels)
    assert discrete.most_probable({"x": 2.5}).values == discrete.most_probable({"x": level}).values
    path = tmp_path / "net.json"
    ist.io.write_json(discrete, path)
    assert main(["query", str(path), "--target", "c", "--given", "x=2.5"]) == 0
    assert str(discrete.query("c", evidence={"x": 2.5})) in capsys.readouterr().out
    assert main(["query", str(path), "--target", "c", "--given", "x=big"]) != 0


def test_quantiles_of_a_mixture_of_scores() -> None:
    own: Any = ColumnMap((0.0, 10.0, 40.0), (-4.0, 0.0, 4.0))
    weights, means = np.array([0.3, 0.7]), np.array([[-1.0], [2.0]])
    mixture = NormalMixture(("y",), weights, means, np.array([[[0.25]], [[1.0]]]))
    answer = Nonparanormal(mixture, {"y": own})
    draws = np.where(RNG.random(200_000) < 0.3, -1 + 0.5 * RNG.normal(size=200_000), 0.0)
    draws = np.where(draws == 0.0, 2 + RNG.normal(size=200_000), draws)
    values = np.interp(draws, own.scores, own.at)
    assert answer.quantile(0.2)[0] == pytest.approx(np.quantile(values, 0.2), abs=0.05)
    assert answer.median[0] == pytest.approx(np.median(values), abs=0.1)
    assert answer.error is None
    drawn = (np.arange(-4.0, 5.0)[:, None], np.zeros((9, 1, 1)))
    points = NormalMixture(("y",), np.full(9, 1 / 9), *drawn, simulated=True)
    simulated = Nonparanormal(points, {"y": own})
    assert simulated.median[0] == pytest.approx(10.0, abs=1e-6)
    # A standard error of the share of 1/6: quantiles at 1/3 and 2/3, the scores -1 and 1 or 2.
    assert simulated.error is not None
    assert 2.5 <= simulated.error[0] <= 12.0
    assert "simulation error" in str(simulated)


def test_dates_are_asked_and_answered_as_dates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = {"when": WHEN, "x": np.log(X)}
    network = fitted(DATED)
    day = np.datetime64("2021-05-05")
    number = float((day - np.datetime64("1970-01-01")).astype(int))
    expected = network.query("x", evidence={"when": number})
    moments = (day, date(2021, 5, 5), datetime(2021, 5, 5, tzinfo=UTC), "2021-05-05")
    for moment in moments:
        answer = network.query("x", evidence={"when": moment})
        assert answer.mean[0] == pytest.approx(expected.mean[0])
    unsure = network.query("x", evidence={"when": (day, timedelta(days=3))})
    plain = network.query("x", evidence={"when": (number, 3.0)})
    assert unsure.mean[0] == pytest.approx(plain.mean[0])
    told = str(network.query("when"))
    centre = np.datetime64("1970-01-01") + WHEN.astype("M8[D]").astype(int).mean().astype("m8[D]")
    assert told.startswith(f"when: {centre} ± ")
    assert re.search(r" days \(sampling error of the mean [\d.]+ days\)\n", told)
    assert str(network.most_probable({"x": 0.0})).startswith("when: 2021-0")
    with pytest.raises(SchemaError, match="is not a date"):
        network.query("x", evidence={"when": "5 May"})
    numbers = {**table, "when": WHEN.astype("M8[D]").astype(float)}
    assert network.log_likelihood(table) == pytest.approx(network.log_likelihood(numbers))
    assert ist.log_likelihood(network, table) == pytest.approx(network.log_likelihood(numbers))
    assert network.predict(table, "x") == pytest.approx(network.predict(numbers, "x"))
    ist.io.write_json(network, tmp_path / "net.json")
    given = ["--given", "when=2021-05-05"]
    assert main(["query", str(tmp_path / "net.json"), "--target", "x", *given]) == 0
    assert str(expected) in capsys.readouterr().out
    again = ist.fit(table, DATED.dag, kinds={"when": "days"})
    assert str(again.query("when")) == told


def test_a_loaded_solution_knows_units_of_dates(tmp_path: Path) -> None:
    DATED.save(tmp_path / "dates.isthmus")
    loaded = ist.Solution.load(tmp_path / "dates.isthmus")
    table = {"when": WHEN, "x": np.log(X)}
    assert str(loaded.fit(table).query("when")) == str(fitted(DATED).query("when"))


def test_durations_have_their_unit() -> None:
    stay: Any = ist.learn(
        {"stay": RNG.integers(1, 400, N).astype("m8[h]"), "x": X}, kinds={"stay": "days"}
    ).fit()
    assert str(stay.query("stay")).count(" days") == 3
    assert stay.query("x", evidence={"stay": timedelta(days=2)}).mean == pytest.approx(
        stay.query("x", evidence={"stay": 2.0}).mean
    )
    hours = TimeMap("hours since 1970")
    assert hours.shown(1.5) == "1970-01-01T01:30:00"
    assert np.isnan(hours.read("t", [datetime(1970, 1, 2), None])[1])


def test_estimator_takes_a_transform() -> None:
    pytest.importorskip("sklearn")
    from isthmus.sklearn import BayesianNetwork

    given = X[:, None]
    assert BayesianNetwork(column_transform=ist.NormalScores()).fit(given, Y).score(given, Y) > 0.5
    cut = BayesianNetwork(column_transform=ist.QuantileBins(bins=2)).fit(given, Y)
    assert cut.score(given, Y) > 0.7


def test_other_formats_refuse_scores() -> None:
    with pytest.raises(MismatchError, match="normal scores"):
        ist.io.to_pgmpy(fitted(SCORED))


def test_answers_say_what_comes_from_the_prior() -> None:
    a = RNG.random(300) < 0.5
    b = a & (RNG.random(300) < 0.5)
    y = RNG.random(300) < np.where(b, 0.9, 0.1)
    graph = ist.DAG(["a", "b", "y"], [("a", "b"), ("a", "y"), ("b", "y")])
    network = ist.fit({"a": a, "b": b, "y": y}, graph)
    never = {"a": False, "b": True}
    told = "No row of the data has this combination of the parents of y: the answer comes from the"
    assert told in str(network.query("y", evidence=never))
    assert told in str(network.query("y", do=never))
    assert told in str(network.query(["y"], evidence={"b": True}, do={"a": False}))
    assert "prior" not in str(network.query("y", evidence={"a": True, "b": True}))
    assert "prior" not in str(network.query("y", evidence={"a": False}))
    mixed = ist.fit({"a": a, "b": b, "y": y + RNG.normal(size=300)}, graph)
    assert told in str(mixed.query("y", evidence=never))
    assert "prior" not in str(mixed.query("y", evidence={"b": True}))


def test_cells_that_are_no_numbers_are_named_and_counted() -> None:
    crp = ["<0.1"] * 3 + [f"{v:.2f}" for v in np.exp(RNG.normal(size=297))]
    with pytest.warns(ist.errors.DataWarning):
        reading = ist.learn({"crp": crp, "x": RNG.normal(size=300)}).reading
    assert "3 of 300 cells are not numbers, such as '<0.1'" in reading["crp"].reason
    assert "half of the limit is usual" in " ".join(reading.notes)
