"""Identifiers: one form for both parties, and a sentence where there is none."""

from __future__ import annotations

import unicodedata
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import DataError, MissingValuesError
from isthmus_joint.shares.party_table import canonical, hashed
from isthmus_joint.shares.protocol import IdentifierKind

TEXT, INTEGER = IdentifierKind.TEXT, IdentifierKind.INTEGER


def test_equal_people_have_equal_identifiers() -> None:
    assert canonical(np.array([7, -12, 0]), INTEGER, "id") == ["7", "-12", "0"]
    assert canonical(["7", "-12", "0"], INTEGER, "id") == ["7", "-12", "0"]
    assert canonical([2**70], INTEGER, "id") == [str(2**70)]
    name = "Zoë Ångström"
    forms = [canonical([unicodedata.normalize(f, name)], TEXT, "id") for f in ("NFC", "NFD")]
    assert forms[0] == forms[1] == [name]
    assert canonical(["007", "7"], TEXT, "id") == ["007", "7"]


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        ([1, 2], TEXT, r"rows 1, 2.*text.*leading zeros"),
        (["a", " b"], TEXT, "row 2.*spaces"),
        (["a", ""], TEXT, "row 2"),
        (["a", "b\n"], TEXT, "row 2"),
        (["1", "007"], INTEGER, "row 2.*leading zeros"),
        (["1", "+7"], INTEGER, "row 2"),
        (["1", "٣"], INTEGER, "row 2"),
        ([1.0, 2.0], INTEGER, "rows 1, 2"),
        ([True, False], INTEGER, "rows 1, 2"),
        (["a", "b", "a"], TEXT, r"more than once.*rows 1, 3"),
        ([5, "5"], INTEGER, "more than once"),
        (["é", "e\u0301"], TEXT, "more than once.*normalisation"),
        (list("aabbccdd"), TEXT, "rows 1, 2, 3 and 5 more"),
    ],
)
def test_what_cannot_be_compared_is_named(
    values: list[Any], kind: IdentifierKind, message: str
) -> None:
    with pytest.raises(DataError, match=message) as caught:
        canonical(values, kind, "id")
    assert "007" not in str(caught.value)  # rows are named, never identifiers


@pytest.mark.parametrize("missing", [None, float("nan"), np.nan])
def test_missing_identifiers(missing: Any) -> None:
    with pytest.raises(MissingValuesError, match="row 2"):
        canonical(["a", missing], TEXT, "id")


@pytest.mark.long
@settings(max_examples=40)
@given(st.lists(st.text(), unique=True, max_size=8))
def test_canonical_text_is_canonical(values: list[str]) -> None:
    try:
        found = canonical(values, TEXT, "id")
    except DataError:
        return
    assert canonical(found, TEXT, "id") == found
    assert len(set(hashed(found, b"study"))) == len(values)


def test_hashes_depend_on_the_study() -> None:
    assert hashed(["a"], b"1") != hashed(["a"], b"2")  # z09: without the key, nobody can try
    assert hashed(["a", "b"], b"1")[1] == hashed(["b"], b"1")[0]
