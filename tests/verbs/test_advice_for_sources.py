"""Errors and notes about sources give advice that can be followed there."""

from __future__ import annotations

import numpy as np
import pytest
from tests.notes import noted

import isthmus as ist
from isthmus.errors import MismatchError, MissingValuesError, SchemaError

RNG = np.random.default_rng(0)
HOLES = RNG.normal(size=(60, 3))
HOLES[3, 1] = np.nan


def test_missing_values_of_series_are_filled_or_cut() -> None:
    with pytest.raises(MissingValuesError, match=r"'x1' \(1\)\. Fill them before") as caught:
        ist.Series(HOLES, lags=1)
    assert "learn(" not in str(caught.value)
    ist.Series([HOLES[:3], HOLES[4:]], lags=1)


def test_missing_values_of_simulated_sites_name_the_argument() -> None:
    with pytest.raises(MissingValuesError, match=r"Federation\.simulate\(\.\.\., missing"):
        ist.Federation.simulate([HOLES] * 3)
    ist.Federation.simulate([HOLES] * 3, missing=ist.DropRows())


def test_kinds_of_simulated_sites_name_the_argument() -> None:
    codes = RNG.integers(0, 8, size=(60, 1))
    tables = [np.hstack([RNG.normal(size=(60, 2)), codes]) for _ in range(3)]
    federation = ist.Federation.simulate(tables)
    with noted(r"Federation\.simulate\(\.\.\., kinds={'x2'"):
        ist.learn(federation)
    with pytest.raises(SchemaError, match=r"Federation\.simulate\(\.\.\., kinds"):
        ist.learn(federation, kinds={"x2": "discrete"})
    with pytest.raises(SchemaError, match=r"Series\(\.\.\., kinds="):
        ist.learn(ist.Series(tables[0], lags=1), kinds={"x2": "discrete"})
    other = ist.Federation.simulate(tables, kinds={"x2": "discrete"})
    assert other.schema()["x2"].levels


def test_kinds_that_a_score_refuses_come_with_advice_for_these_data() -> None:
    text = {"a": RNG.choice(["x", "y"], 60), "b": RNG.choice(["u", "v"], 60)}
    numbers = RNG.normal(size=(60, 2))
    with pytest.raises(MismatchError, match=r"Leave out the search.*that fits\.$"):
        ist.learn(text, search=ist.Notears())
    with pytest.raises(MismatchError, match=r"Use BIC\(\)\.$"):
        ist.learn(text, score=ist.GaussianBIC())
    with pytest.raises(MismatchError, match=r"Leave out the search.*CONTINUOUS"):
        ist.learn({"a": RNG.integers(0, 3, 60), "b": numbers[:, 0]}, search=ist.Notears())
    with pytest.raises(MismatchError, match="by the signed study") as caught:
        ist.learn(ist.Federation.simulate([numbers] * 3), score=ist.BDeu())
    assert "kinds=" not in str(caught.value)
    with pytest.raises(SchemaError, match=r"ADMM needs continuous.*Leave out the search"):
        ist.learn(ist.Federation.simulate([text] * 3), search=ist.ADMM())


def test_methods_that_need_complete_rows_do_not_propose_the_same_strategy() -> None:
    frame = ist.Frame(HOLES, missing=ist.ExpectationMaximisation())
    with pytest.raises(MissingValuesError, match=r"which Expec.* does not give\. Use DropRows"):
        frame.rows()
