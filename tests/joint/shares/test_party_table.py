"""The table of a party: read as the study says, with errors that quote no identifier."""

from __future__ import annotations

import hmac
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.joint.shares.companies import LEVELS, Companies, protocol

from isthmus.errors import DataError, IsthmusError, MissingValuesError, SchemaError
from isthmus.statistics import Kind, Schema, Variable
from isthmus.tables.read_table import read_table
from isthmus_joint.shares import party_table
from isthmus_joint.shares.engine_process import Inputs
from isthmus_joint.shares.link import LinkOptions
from isthmus_joint.shares.party_table import PartyTable
from isthmus_joint.shares.requests import CrossMoments, terms_of

TABLE: dict[str, list[Any]] = {
    "person": ["x", "y", "z"],
    "debt": ["no", "yes", "no"],
    "income": ["low", "low", "high"],
    "other": [1, 2, 3],
}


def read(companies: Companies, data: object) -> PartyTable:
    return PartyTable.read(data, companies.study, "bank", companies.keys["bank"])


@pytest.mark.parametrize("library", ["dict", "pandas", "polars"])
def test_codes_of_the_study(library: str) -> None:
    made = TABLE if library == "dict" else pytest.importorskip(library).DataFrame(TABLE)
    table = read(Companies(), made)
    assert table.names == ("income", "debt")
    assert table.columns.tolist() == [[0, 0], [0, 1], [1, 0]]
    assert len(set(table.identifiers)) == 3


@pytest.mark.parametrize("piece", [1, 3, 10_000])
def test_a_fingerprint_is_of_everything_at_once(
    monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    """It is written piece by piece, and must not depend on their size: ledgers keep it."""
    monkeypatch.setattr(party_table, "PIECE", piece)
    schema = Schema((Variable("x", Kind.DISCRETE, ("a", "b")), Variable("y", Kind.CONTINUOUS)))
    columns = np.array([[0, 1.5], [1, -2.0], [1, 0.25], [0, 7.0], [1, 3.0]])
    table = PartyTable(("x", "y"), columns, "", ["e", "b", "d", "a", "c"], None)
    prints = table.fingerprints(schema, np.array([0, 1, 2, 4]), b"key")
    texts = [("x", ["b", "c", "d", "e"], ["b", "b", "b", "a"])]
    texts += [("y", ["b", "c", "d", "e"], [-2.0, 3.0, 0.25, 1.5])]  # type: ignore[list-item]
    expected = {t[0]: hmac.new(b"key", repr(t).encode(), "sha256").hexdigest() for t in texts}
    assert prints == expected


def test_fingerprints_do_not_depend_on_the_order_of_rows() -> None:
    companies = Companies()
    backwards = {name: values[::-1] for name, values in TABLE.items()}
    assert read(companies, TABLE).fingerprint == read(companies, backwards).fingerprint
    changed = TABLE | {"debt": ["no", "yes", "yes"]}
    assert read(companies, TABLE).fingerprint != read(companies, changed).fingerprint
    # Another party could not compute it.
    other = PartyTable.read(TABLE, companies.study, "bank", companies.keys["shop"])
    assert read(companies, TABLE).fingerprint != other.fingerprint


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"person": ["x", "y", "x"]}, DataError, "more than once"),
        ({"person": ["x", None, "z"]}, MissingValuesError, "row 2"),
        ({"person": [1, 2, 3]}, DataError, "leading zeros"),
        ({"person": ["x", "y"]}, SchemaError, "2 identifiers and 3 rows"),
        ({"debt": ["no", "yes", "maybe"]}, IsthmusError, "maybe"),
        ({"debt": ["no", None, "no"]}, MissingValuesError, "debt.*remove these rows"),
    ],
)
def test_tables_that_do_not_fit(
    changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        read(Companies(), TABLE | changes)


def test_missing_columns() -> None:
    with pytest.raises(SchemaError, match="identifier 'person'"):
        read(Companies(), {"debt": ["no"], "income": ["low"]})
    with pytest.raises(SchemaError, match="income"):
        read(Companies(), {"person": ["x"], "debt": ["no"]})


def test_bounds() -> None:
    companies = Companies(
        schema=Schema.continuous(LEVELS),
        bounds=dict.fromkeys(LEVELS, (0.0, 1.0)),
        protocol=protocol(),
        requests=[CrossMoments.name],
    )
    data = {"person": ["x", "y"], "debt": [0.0, 1.0], "income": [0.5, 1.5]}
    with pytest.raises(DataError, match=r"'income' .* 0 to 1"):
        read(companies, data)


@pytest.mark.parametrize("library", ["polars", "pandas", "pyarrow"])
def test_leading_zeros_survive_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    pytest.importorskip(library)
    monkeypatch.setattr("isthmus.tables.read_table._LIBRARIES", (library,))
    path = tmp_path / "table.csv"
    path.write_text("person,debt,income\n007,no,low\n010,yes,high\n")
    world = Companies()
    first = read(world, read_table(path, text=["person"]))
    assert first.identifiers == ["007", "010"]
    assert read(world, read_table(path)).identifiers == first.identifiers


def test_inputs_of_the_engine_survive_the_pipe() -> None:
    link = LinkOptions("s", 1, ("a", 1), "c", "k", "t", "f", 2.5)
    for hashes, known in ((["0" * 64, "f" * 64], []), ([], [2, 0])):
        rows = np.array(known, dtype=np.intp)
        terms = terms_of(Companies().study)
        given = Inputs(link, terms, "private k2", 7, hashes, rows)
        again = Inputs.from_bytes(given.to_bytes())
        assert again.link == link
        assert (again.terms, again.request, again.people) == (terms, "private k2", 7)
        assert again.hashes == hashes
        assert again.positions.tolist() == known
