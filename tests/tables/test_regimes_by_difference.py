"""Moments of many regimes are those of all rows minus the rows of the targets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import isthmus as ist
from isthmus.statistics import Counts, Moments
from isthmus.statistics.regimes import Remainder
from isthmus.tables import interventions


def test_the_difference_is_the_sum_of_the_other_rows() -> None:
    rng = np.random.default_rng(0)
    names = [f"g{i}" for i in range(12)]
    regime = np.concatenate([np.full(40, 12), np.repeat(np.arange(12), 20)])
    rows = rng.normal(5.0, 2.0, size=(len(regime), 12))
    rows[regime == 3, 3] = 1e9  # nearly all of the sum of squares: counted again
    rows[regime != 5, 5] = 7.0  # constant where it was free
    table = {n: rows[:, i] for i, n in enumerate(names)} | {"guide": regime.astype(str)}
    targets = {str(k): [names[k]] for k in range(12)} | {"12": list[str]()}
    found = ist.Interventions(table, targets, column="guide").regimes(Moments)
    for i, name in enumerate(names):
        part = found.parts[found.part_of[i]].as_moments()
        assert isinstance(part, Moments)
        kept = rows[regime != i]
        assert part.n == len(kept)
        np.testing.assert_allclose(part.mean(), kept.mean(axis=0), rtol=1e-12)
        centred = kept - kept.mean(axis=0)
        expected = centred.T @ centred
        scale = np.sqrt(np.outer(expected.diagonal(), expected.diagonal()))
        gap = np.abs(part.scatter() - expected)
        assert (gap[scale > 0] / scale[scale > 0]).max() < 1e-9
        assert part.constants() == (("g5",) if name == "g5" else ())


@pytest.mark.parametrize("discrete", [False, True])
def test_the_table_is_read_once_whatever_the_number_of_regimes(
    discrete: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    names = [f"g{i}" for i in range(6)]
    regime = np.concatenate([np.full(40, 6), np.repeat(np.arange(6), 20)])
    rows: NDArray[Any] = rng.normal(size=(len(regime), 6))
    if discrete:
        rows = np.where(rows > 0.5, "high", np.where(rows > -0.5, "low", "none"))
    table = {n: rows[:, i] for i, n in enumerate(names)} | {"guide": regime.astype(str)}
    targets = {str(k): [names[k]] for k in range(6)} | {"6": list[str]()}
    data = ist.Interventions(table, targets, column="guide")
    expected = [
        ist.Frame({n: rows[regime != k, i] for i, n in enumerate(names)}, schema=data.schema())
        for k in range(6)
    ]
    frames: list[object] = []

    def counted(*given: Any, **named: Any) -> ist.Frame:
        frames.append(given)
        return ist.Frame(*given, **named)

    monkeypatch.setattr(interventions, "Frame", counted)
    found = data.regimes(Counts if discrete else Moments)
    assert len(frames) == 1
    for k, frame in enumerate(expected):
        part = found.parts[found.part_of[k]]
        if discrete:
            own = Counts.gather(frame)
            assert isinstance(part, Counts)
            for pair in (names[:2], names[2:4], [names[k], names[0]][: 1 + (k > 0)]):
                np.testing.assert_array_equal(part.table(pair), own.table(pair))
        else:
            whole = Moments.gather(frame)
            part = part.as_moments()
            assert isinstance(part, Moments)
            np.testing.assert_allclose(
                part.covariance(), whole.covariance(), rtol=1e-12, atol=1e-14
            )
            assert part.n == whole.n


@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")  # of the constant column
def test_nothing_of_the_size_of_all_pairs_is_kept_per_regime() -> None:
    d, rows_per_target = 60, 8
    rng = np.random.default_rng(2)
    names = [f"g{i}" for i in range(d)]
    regime = np.concatenate([np.full(200, d), np.repeat(np.arange(d), rows_per_target)])
    rows = rng.normal(size=(len(regime), d))
    table = {n: rows[:, i] for i, n in enumerate(names)} | {"guide": regime.astype(str)}
    targets = {str(k): [names[k]] for k in range(d)} | {str(d): list[str]()}
    found = ist.Interventions(table, targets, column="guide").regimes(Moments)
    wholes = set()
    for part in found.parts:
        assert isinstance(part, Remainder)
        wholes.add(part.whole)
        assert part.removed.size <= (rows_per_target + 1) * d
    assert len(wholes) == 1
    # A constant in all rows, and scores that need all moments at once.
    table["g3"] = np.full(len(regime), 2.0)
    data = ist.Interventions(table, targets, column="guide")
    assert data.regimes(Moments).constants() == ("g3",)
    for score in (ist.GaussianBIC(), ist.BGe()):
        own = [k for k in range(d) if k != 7]
        free = regime != 7
        alone = ist.Frame({n: np.asarray(table[n])[free] for n in names})
        family = ist.DAG(names, [(names[own[0]], "g7"), (names[own[1]], "g7")])
        expected = ist.score(alone, family, score) - ist.score(alone, ist.DAG(names), score)
        found_score = ist.score(data, family, score) - ist.score(data, ist.DAG(names), score)
        assert found_score == pytest.approx(expected, rel=1e-9)
