"""Synthetic rows: what they cost, their types and ranges, and how far they are from the table."""

from __future__ import annotations

import math
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.joint.noise.seeded import use_seeded_noise

import isthmus as ist
from isthmus.cli import main
from isthmus.errors import ArgumentError, StudyError
from isthmus.tables.read_table import read_table
from isthmus.tables.write_table import write_table
from isthmus_joint import synthesise
from isthmus_joint.noise import synthesis
from isthmus_joint.noise.accounting import epsilon_of
from isthmus_joint.noise.answers import drawn_noise
from isthmus_joint.noise.structure import ContrastLayout
from isthmus_joint.noise.synthesis import Binning, Synthesis

YES_NO = ("no", "yes")


@pytest.fixture(autouse=True)
def _noise(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    use_seeded_noise(request.node.name, monkeypatch)


def people(rows: int) -> dict[str, Any]:
    """Persons of whom the older ones smoke less and have a higher pressure."""
    rng = np.random.default_rng(3)
    age = rng.integers(18, 91, rows)
    smokes = np.where(rng.random(rows) < 0.6 - age / 200, "yes", "no")
    pressure = 100 + age / 2 + rng.normal(0, 8, rows)
    return {"smokes": smokes, "age": age, "pressure": pressure}


def made(number: int, epsilon: float, **options: Any) -> Synthesis:
    bounds: dict[str, Any] = {"age": (0, 120), "pressure": (60.0, 220.0)}
    return synthesise(people(number), epsilon, levels={"smokes": YES_NO}, bounds=bounds, **options)


@pytest.mark.parametrize(
    "columns", [("smoke", "bronc", "dysp", "either"), ("asia", "smoke"), ("xray",)]
)
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_the_noise_that_is_drawn_costs_epsilon(
    columns: tuple[str, ...], epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each possible person, divided by the noise of each number, in zero-concentrated DP."""
    layouts, widths = [], []

    class Recorded(ContrastLayout):  # type: ignore[misc]
        def integers(self, codes: Any) -> Any:
            layouts.append(self)
            return super().integers(codes)

    def noise(spread: Any, scale: float) -> Any:
        widths.append(spread * scale)
        return drawn_noise(spread, scale)

    monkeypatch.setattr(synthesis, "ContrastLayout", Recorded)
    monkeypatch.setattr(synthesis, "drawn_noise", noise)
    rows = ist.datasets.asia(3_000, seed=1)
    some = {name: rows[name] for name in columns}
    result = synthesise(some, epsilon, levels=dict.fromkeys(some, YES_NO))
    assert len(widths) == 1
    rho = 0.0
    for layout, width in zip(list(layouts), widths, strict=True):
        everybody = product(*(range(k) for k in layout.sizes))
        own = [layout.integers(np.array([codes])) / width for codes in everybody]
        rho += max(float(x @ x) for x in own) / 2.0
    assert result.epsilon == pytest.approx(epsilon, rel=1e-3)
    assert result.epsilon <= epsilon * (1 + 1e-9)
    assert epsilon_of(rho, 1e-6) == pytest.approx(result.epsilon, rel=1e-3)


def test_rows_have_the_types_and_ranges_that_were_stated() -> None:
    columns = made(4_000, 1.0, rows=500).columns
    assert set(columns["smokes"]) == set(YES_NO)
    assert columns["age"].dtype.kind == "i"
    assert columns["pressure"].dtype.kind == "f"
    assert 0 <= columns["age"].min() < columns["age"].max() <= 120
    assert 60 <= columns["pressure"].min() < columns["pressure"].max() <= 220
    assert {len(column) for column in columns.values()} == {500}


@pytest.mark.parametrize("size", [2, 5, 16])
def test_a_value_that_is_drawn_for_a_bin_is_in_it(size: int) -> None:
    number = ist.statistics.Variable("x", ist.statistics.Kind.CONTINUOUS)
    rng = np.random.default_rng(0)
    for bounds in ((-3, 40), (0, 16), (-3.0, 40.0)):
        binning = Binning.of(number, bounds, size)
        codes = np.repeat(np.arange(binning.size), 200)
        drawn = binning.drawn(codes, rng)
        assert np.array_equal(binning.codes(drawn.astype(float)), codes)
        if binning.whole:  # every number is in a bin, and is drawn for it
            every = np.arange(bounds[0], bounds[1] + 1)
            assert set(every) == set(drawn)
            assert np.bincount(binning.codes(every.astype(float))).min() >= 1


def test_rows_have_the_tables_of_the_original_as_far_as_noise_lets_them() -> None:
    table, close = people(30_000), made(30_000, 100.0)
    errors = close.errors(table)
    assert max(errors.values()) < 0.01
    far = made(30_000, 0.1).errors(table)
    assert np.mean(list(far.values())) > 2 * np.mean(list(errors.values()))
    age, smokes = table["age"], table["smokes"] == "yes"
    same = close.columns["age"], close.columns["smokes"] == "yes"
    for older in (30, 60):
        truth = (smokes & (age > older)).mean()
        assert (same[1] & (same[0] > older)).mean() == pytest.approx(truth, abs=0.02)


def test_the_distance_of_two_tables_is_that_of_a_slow_count() -> None:
    rows = ist.datasets.asia(500, seed=1)
    two = {name: rows[name] for name in ("smoke", "bronc", "dysp")}
    result = synthesise(two, 1.0, levels=dict.fromkeys(two, YES_NO), rows=400)
    for (a, b), distance in result.errors(two).items():
        cells = list(product(YES_NO, YES_NO))
        shares = [
            [np.mean((t[a] == x) & (t[b] == y)) for x, y in cells] for t in (two, result.columns)
        ]
        slow = sum(abs(p - q) for p, q in zip(*shares, strict=True)) / 2
        assert distance == pytest.approx(slow, abs=1e-12)
    assert set(result.errors(two)) == set(combinations(two, 2)) == set(result.fidelity)


def test_the_report_says_how_far_noise_puts_what_was_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The expected distance agrees with that of tables that were measured many times."""
    ages, smokers = np.array([20.0, 50.0] * 1_000), np.array(["no"] * 1_000 + ["yes"] * 1_000)
    truth = np.array([[0.25, 0.25, 0.0], [0.25, 0.25, 0.0]])
    told, seen = [], []
    real = synthesis._noise

    def spy(found: Any, a: int, b: int) -> float:
        seen.append(float(np.abs(found.table((a, b)) / found.n - truth).sum() / 2))
        told.append(real(found, a, b))
        return told[-1]

    monkeypatch.setattr(synthesis, "_noise", spy)
    table = {"smokes": smokers, "age": ages}
    for _ in range(60):
        synthesise(table, 1.0, levels={"smokes": YES_NO}, bounds={"age": (0.0, 99.0)}, bins=3)
    assert np.mean(seen) == pytest.approx(np.mean(told), rel=0.15)


def test_rows_are_adjusted_to_tables_that_no_tree_has() -> None:
    """Two causes of a third column that depend on each other: three edges."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 20_000)
    b = np.where(rng.random(20_000) < 0.7, a, 1 - a)
    c = np.where(rng.random(20_000) < 0.7, a, b)
    table = {name: np.array(YES_NO)[x] for name, x in zip("abc", (a, b, c), strict=True)}
    result = synthesise(table, 10.0, levels=dict.fromkeys("abc", YES_NO))
    assert max(result.errors(table).values()) < 0.01
    assert max(apart for apart, _ in result.fidelity.values()) < 0.01


def test_rows_that_lack_a_value_are_left_out() -> None:
    smokes = np.array(["yes"] * 400 + ["perhaps"] * 400, dtype=object)
    age = np.array([50.0] * 300 + [math.nan] * 100 + [50.0] * 400)
    table = {"smokes": smokes, "age": age}
    result = synthesise(table, 50.0, levels={"smokes": YES_NO}, bounds={"age": (0, 120)})
    assert 280 < result.rows_measured < 320


def test_the_best_guess_is_that_of_randomised_response() -> None:
    """With pure DP: the chance of a coin that tells the truth e^ε times as often as not."""
    result = made(500, 1.0)
    assert result.guess == pytest.approx(math.e / (1 + math.e), abs=1e-3)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"epsilon": 0.0}, StudyError),
        ({"epsilon": 1.0, "bins": 1}, ArgumentError),
        ({"epsilon": 1.0, "rows": 0}, ArgumentError),
    ],
)
def test_what_cannot_be_used_is_refused(options: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        made(100, **options)
    with pytest.raises(ArgumentError, match="levels="):
        synthesise(people(10), 1.0)


def test_the_command_writes_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, variables, output = (tmp_path / n for n in ("data.csv", "variables.toml", "made.csv"))
    write_table(people(2_000), data)
    described = ["--discrete", "smokes", *YES_NO, "--continuous", "age", "0", "120"]
    assert main(["study", "variables", *described, "-o", str(variables)]) == 0
    command = ["synthesise", str(data), "--variables", str(variables), "--epsilon", "2"]
    command += ["--rows", "300", "-o", str(output)]
    assert main([*command, "--whole", "age"]) == 0
    assert "300 synthetic rows, from about" in capsys.readouterr().out
    table = read_table(output)
    assert table.columns == ["smokes", "age"]
    assert table.shape == (300, 2)
    assert table["age"].dtype.is_integer()
    assert main([*command, "--whole", "smokes"]) == 2
