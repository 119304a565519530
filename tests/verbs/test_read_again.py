"""Tables that are read again for a graph: only its columns, and as they were read before."""

import json
from pathlib import Path

import numpy as np
import pytest

import isthmus as ist
from isthmus.cli import main

RNG = np.random.default_rng(2)
WARD = RNG.integers(1, 8, 900)
X = RNG.normal(size=900) + 2.0 * (WARD == 3) - (WARD == 6)
Y = X + 2.0 * (WARD == 3) - 3.0 * (WARD == 5) + RNG.normal(size=900)
WARDS = {"ward": WARD, "x": X, "y": Y}
ORDER = ist.Knowledge(tiers=[["ward"], ["x"], ["y"]])
PAIR = ist.DAG(["x", "y"], [("x", "y")])
OTHERS = {
    "visit": np.datetime64("2024-01-01") + np.arange(900).astype("m8[D]"),
    "seldom": np.where(RNG.random(900) < 0.9, np.nan, 1.0),
}


def _solution() -> ist.Solution:
    return ist.learn(WARDS, kinds={"ward": "discrete"}, knowledge=ORDER)


def test_an_effect_in_a_solution_reads_columns_as_the_solution_did() -> None:
    solution = _solution()
    own = solution.effect("x", "y")
    again = ist.effect(WARDS, solution, "x", "y")
    assert again.value == pytest.approx(own.value)
    assert again.interval() == pytest.approx(own.interval())
    assert abs(again.value - 1.0) < 3 * again.standard_error
    numbers = ist.effect(WARDS, solution, "x", "y", kinds={"ward": "continuous"})
    # What the user says has precedence: the numbers of wards have a curve.
    assert numbers.alternatives[0].terms == ("a curve of ward",)
    assert not again.alternatives[0].terms


@pytest.mark.parametrize("transform", [None, ist.NormalScores(), ist.QuantileBins(columns=["y"])])
def test_dates_of_a_solution_are_read_again(transform: ist.tables.Transform | None) -> None:
    import polars as pl

    days = RNG.integers(0, 300, 900)
    table = {
        "admitted": np.datetime64("2024-01-01") + days.astype("m8[D]"),
        "wait": days + 30.0 * RNG.normal(size=900),
        "y": Y,
    }
    known = ist.Knowledge(tiers=[["admitted"], ["wait", "y"]])
    solution = ist.learn(table, kinds={"admitted": "days"}, knowledge=known, transform=transform)
    own = solution.effect("admitted", "wait").value
    assert ist.effect(table, solution, "admitted", "wait").value == pytest.approx(own)
    if not isinstance(transform, ist.QuantileBins):  # levels need rows in memory
        lazy = pl.LazyFrame(table)
        found = ist.effect(lazy, solution, "admitted", "wait")
        # Normal scores of evenly spread days are curved, which lines of sums do not show.
        assert found.value == pytest.approx(own, rel=1e-6 if transform is None else 0.2)
        assert "not challenged" in str(found)


@pytest.mark.parametrize("name", ["dict", "DataFrame", "LazyFrame"])
def test_columns_outside_the_graph_are_not_read(name: str) -> None:
    import polars as pl

    place = dict if name == "dict" else getattr(pl, name)
    alone, whole = place({"x": X, "y": Y}), place({"x": X, "y": Y} | OTHERS)
    for missing in (None, ist.DropRows()):
        network = ist.fit(whole, PAIR, missing=missing)
        expected = ist.fit(alone, PAIR, missing=missing)
        drawn = expected.sample(5, seed=0)["y"]
        assert network.sample(5, seed=0)["y"] == pytest.approx(drawn)
        effect = ist.effect(whole, PAIR, "x", "y", missing=missing)
        assert effect.standard_error == pytest.approx(
            ist.effect(alone, PAIR, "x", "y", missing=missing).standard_error
        )
        score = ist.score(whole, PAIR, ist.GaussianBIC(), missing=missing)
        assert score == pytest.approx(ist.score(alone, PAIR, ist.GaussianBIC()))


def test_kinds_of_columns_outside_the_graph_may_be_given() -> None:
    kinds = {"visit": "days", "x": "continuous"}
    ist.fit({"x": X, "y": Y} | OTHERS, PAIR, kinds=kinds)
    with pytest.raises(ist.errors.SchemaError, match="vist"):
        ist.fit({"x": X, "y": Y} | OTHERS, PAIR, kinds={"vist": "days"})


def test_a_column_that_the_table_lacks_is_named() -> None:
    with pytest.raises(ist.errors.SchemaError, match="no column for 'ward'"):
        ist.effect({"x": X, "y": Y}, _solution(), "x", "y")


def test_commands_read_columns_as_the_solution_did(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import polars as pl

    table, file = tmp_path / "wards.csv", str(tmp_path / "wards.isthmus")
    pl.DataFrame(WARDS).write_csv(table)
    solution = _solution()
    solution.save(file)
    assert main(["effect", file, str(table), "x", "y", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["value"] == pytest.approx(solution.effect("x", "y").value)
    network = tmp_path / "network.json"
    assert main(["fit", file, str(table), "-o", str(network)]) == 0
    fitted = ist.io.read_json(network)
    assert isinstance(fitted, ist.networks.MixedNetwork)


def test_a_command_that_fits_a_solution_keeps_its_equivalence_class(tmp_path: Path) -> None:
    import polars as pl

    table, file = tmp_path / "pair.csv", str(tmp_path / "pair.isthmus")
    pl.DataFrame({"x": X, "y": Y}).write_csv(table)
    ist.learn({"x": X, "y": Y}).save(file)
    network = tmp_path / "network.json"
    assert main(["fit", file, str(table), "-o", str(network)]) == 0
    fitted = ist.io.read_json(network)
    assert isinstance(fitted, ist.networks.MixedNetwork)  # the effect is curved
    assert fitted.cpdag is not None
    assert fitted.cpdag.undirected == (("x", "y"),)


def test_the_command_handles_missing_values_as_the_solution_did(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    y = np.where(rng.random(200) < 0.1, np.nan, x + rng.normal(size=200))
    table, file = tmp_path / "t.csv", str(tmp_path / "s.isthmus")
    cells = ["" if np.isnan(value) else f"{value}" for value in y]
    table.write_text("x,y\n" + "".join(f"{a},{b}\n" for a, b in zip(x, cells, strict=True)))
    assert main(["learn", str(table), "--missing", "DropRows", "-o", file]) == 0
    capsys.readouterr()
    assert main(["effect", file, str(table), "x", "y", "--json"]) == 0
    given = capsys.readouterr().out
    assert main(["effect", file, str(table), "x", "y", "--json", "--missing", "DropRows"]) == 0
    assert capsys.readouterr().out == given
