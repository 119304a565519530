"""What is said where rows are needed and stay where they are."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import MismatchError


def numbers(rows: int = 90) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    x = rng.normal(size=rows)
    return {"x": x, "y": x + rng.normal(size=rows), "z": rng.normal(size=rows)}


@pytest.mark.parametrize("search", [None, ist.ADMM(), ist.HillClimb()])
def test_the_bootstrap_of_a_federation_names_the_posterior(search: Any) -> None:
    table = numbers()
    sites = [{name: column[k::3] for name, column in table.items()} for k in range(3)]
    federation = ist.Federation.simulate(sites)
    with pytest.raises(
        MismatchError, match=r"draws rows.*stay at .*sites.*sample\(data\)"
    ) as error:
        ist.bootstrap(federation, search=search, replicates=2)
    assert "score that needs" not in str(error.value)
    assert "does not" not in str(error.value)
    assert ist.sample(federation, draws=10, chains=1).ensemble.nodes == ("x", "y", "z")


def test_the_fit_of_mixed_columns_of_an_engine_says_to_bring_them_here() -> None:
    duckdb = pytest.importorskip("duckdb")
    table = duckdb.sql("SELECT random() AS x, 'ab'[1 + i % 2] AS t FROM range(40) AS r(i)")
    with pytest.raises(MismatchError, match=r"into memory.*isthmus\.fit\(table, dag\)") as error:
        ist.fit(table, ist.DAG(["x", "t"], [("t", "x")]))
    assert "score" not in str(error.value)


def test_a_refusal_keeps_its_advice_apart() -> None:
    error = MismatchError("There are no rows.", "Give a table.")
    assert str(error) == "There are no rows. Give a table."
    assert error.fact == "There are no rows."
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301
