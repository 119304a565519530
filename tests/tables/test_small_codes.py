"""Codes of categories take one or two bytes from the first read."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.tables.frame import column_of

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")


@pytest.mark.long
@pytest.mark.parametrize("levels", [2, 256, 257, 65_536, 65_537])
@pytest.mark.parametrize(
    "made",
    [
        lambda texts: pd.Series(pd.Categorical(texts)),
        lambda texts: pl.Series(texts),
        lambda texts: pa.chunked_array([pa.array(texts).dictionary_encode()]),
    ],
    ids=["pandas", "polars", "arrow"],
)
def test_codes_are_small_and_right(levels: int, made: Any) -> None:
    texts = [f"l{i * 7 % levels}" for i in range(levels + 3)]
    column = column_of("x", made(texts))
    assert column.labels is not None
    assert [column.labels[code] for code in column.values.tolist()] == texts
    assert column.values.dtype.itemsize == (1 if levels <= 256 else 2 if levels <= 65_536 else 8)
