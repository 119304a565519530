"""Durations are read in the unit that the message proposes, in every kind of table."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pytest

from isthmus.errors import SchemaError
from isthmus.tables import as_source

HOURS = np.array([0.5, 1.25, -2.0, 48.0, 3.0])
OBJECTS = [dt.timedelta(hours=float(h)) for h in HOURS]


def tables() -> dict[str, Any]:
    duckdb, pd, pl = (pytest.importorskip(name) for name in ("duckdb", "pandas", "polars"))
    frame = pl.DataFrame({"d": OBJECTS})
    return {
        "objects": {"d": OBJECTS},
        "objects of pandas": pd.DataFrame({"d": pd.Series(OBJECTS, dtype=object)}),
        "NumPy": {"d": np.array(OBJECTS, dtype="m8[us]")},
        "pandas": pd.DataFrame({"d": OBJECTS}),
        "polars": frame,
        "lazy": frame.lazy(),
        "duckdb": duckdb.from_df(pd.DataFrame({"d": OBJECTS})),
    }


def test_durations_are_numbers_in_a_unit() -> None:
    for name, table in tables().items():
        with pytest.raises(SchemaError, match=r"kinds=\{'d': 'days'\}"):
            as_source(table).schema()
        moments = as_source(table, kinds={"d": "hours"}).moments()
        np.testing.assert_allclose(moments.covariance()[0, 0], HOURS.var(), err_msg=name)
