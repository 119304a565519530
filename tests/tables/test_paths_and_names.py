"""The name of a file says which reader to use, and pandas may number its columns."""

from __future__ import annotations

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import DataError, SchemaError

READERS = {
    "asia.csv": "pandas.read_csv('asia.csv')",
    "asia.csv.gz": "pandas.read_csv('asia.csv.gz')",
    "asia.parquet": "pandas.read_parquet('asia.parquet')",
    "asia.xlsx": "pandas.read_excel('asia.xlsx')",
    "asia": "with a table library",
}


@pytest.mark.parametrize("path", READERS)
def test_the_error_names_the_reader(path: str) -> None:
    with pytest.raises(DataError) as refused:
        ist.learn(path)
    assert READERS[path] in str(refused.value)
    assert f"isthmus learn {path}" in str(refused.value)


def test_integer_names_become_text() -> None:
    pd = pytest.importorskip("pandas")
    x = np.random.default_rng(0).normal(size=(100, 3))
    x[:, 1] += 2 * x[:, 0]
    for table in (pd.DataFrame(x), {i: x[:, i] for i in range(3)}):
        solution = ist.learn(table, kinds={2: "continuous"})  # type: ignore[dict-item]
        assert solution.dag.nodes == ("0", "1", "2")
        assert solution.dag.skeleton().edges == (("0", "1"),)
    with pytest.raises(SchemaError, match=r"more than once: \['0'\]"):
        ist.learn({0: x[:, 0], "0": x[:, 1]})
    with pytest.raises(SchemaError, match="non-empty strings"):
        ist.learn({1.5: x[:, 0]})
