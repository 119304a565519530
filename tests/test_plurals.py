"""Numbers and nouns in sentences."""

from __future__ import annotations

import pytest

from isthmus.errors import rounded


@pytest.mark.parametrize(
    ("value", "text"),
    [(671.3, "671"), (0.01234, "0.012"), (12345.6, "12,346"), (99.6, "100"), (3e9, "3e+09")],
)
def test_numbers_have_no_exponent_where_people_read_them(value: float, text: str) -> None:
    assert rounded(value) == text
