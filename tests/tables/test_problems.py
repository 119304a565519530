"""All reasons why a table is refused come in one error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import MissingValuesError, SchemaError

if TYPE_CHECKING:
    import pandas as pd


def table() -> pd.DataFrame:
    import pandas as pd

    rows = np.random.default_rng(0).normal(size=(50, 3))
    return pd.DataFrame(rows, columns=["x", "y", "z"])


def test_dates_missing_and_infinite_values_are_named_together() -> None:
    import pandas as pd

    data = table().assign(when=pd.date_range("2020-01-01", periods=50))
    data["again"] = data["when"]
    data.loc[3, "y"], data.loc[4, "z"] = np.nan, np.inf
    with pytest.raises(SchemaError) as error:
        ist.learn(data)
    for part in ("'when'", "'again'", "missing (null or NaN) in 1 of 3 columns", "infinite", "'z'"):
        assert part in str(error.value)


def test_missing_and_infinite_values_are_named_together() -> None:
    data = table()
    data.loc[3, "y"], data.loc[4, "z"] = np.nan, -np.inf
    with pytest.raises(MissingValuesError, match=r"(?s)'y' \(1\).*infinite.*'z' \(1\)"):
        ist.learn(data)


def test_one_problem_is_said_alone() -> None:
    data = table()
    data.loc[4, "z"] = np.inf
    with pytest.raises(ist.errors.DataError) as error:
        ist.learn(data)
    assert "missing" not in str(error.value)
