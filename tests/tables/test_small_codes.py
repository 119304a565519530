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
        lambda texts: pl.Series(texts, dtype=pl.Categorical),
        lambda texts: pa.chunked_array([pa.array(texts).dictionary_encode()]),
    ],
    ids=["pandas", "polars", "polars categories", "arrow"],
)
def test_codes_are_small_and_right(levels: int, made: Any) -> None:
    texts = [f"l{i * 7 % levels}" for i in range(levels + 3)]
    column = column_of("x", made(texts))
    assert column.labels is not None
    assert [column.labels[code] for code in column.values.tolist()] == texts
    assert column.values.dtype.itemsize == (1 if levels <= 256 else 2 if levels <= 65_536 else 8)


def test_dictionaries_of_chunks_may_repeat_values_and_hold_nulls() -> None:
    one = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0], pa.int8()), ["b", "a"])
    two = pa.DictionaryArray.from_arrays(
        pa.array([0, 2, 3, 1, None], pa.int8()), ["c", "c", "a", None]
    )
    column = column_of("x", pa.chunked_array([one, two]))
    assert column.labels is not None
    assert column.absent is not None
    cells = [column.labels[code] for code in column.values.tolist()]
    cells = [None if gone else cell for cell, gone in zip(cells, column.absent, strict=True)]
    assert cells == ["b", "a", None, "b", "c", "a", None, "c", None]


def test_categories_of_polars_need_not_begin_with_the_first_code() -> None:
    pl.Series(["before", "this"], dtype=pl.Categorical)  # codes are shared by all series
    column = column_of("x", pl.Series(["u", "this", "u"], dtype=pl.Categorical))
    assert column.labels is not None
    assert [column.labels[code] for code in column.values.tolist()] == ["u", "this", "u"]
    assert not column.is_text
