"""Ugly tables, and what has to come of each."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from isthmus.results import ReadAs

Table = dict[str, Any]
N = 400


def rng(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


def numbers(n: int = N) -> Table:
    x = rng(1).normal(size=n)
    return {"x": x, "y": x + 0.7 * rng(2).normal(size=n)}


def codes(n: int = N) -> Table:
    a = rng(3).integers(0, 3, n)
    return {"a": a, "b": np.where(rng(4).random(n) < 0.8, a, rng(5).integers(0, 3, n))}


@dataclass(frozen=True)
class Case:
    """A table, and what has to come of it."""

    make: Callable[[], Any]
    edges: tuple[str, ...] | None = ("x y",)
    read: tuple[tuple[str, ReadAs], ...] = ()
    error: str | None = None
    note: str | None = None
    kinds: tuple[tuple[str, str], ...] = ()


def add(**columns: Any) -> Callable[[], Table]:
    return lambda: numbers() | columns


def add_codes(**columns: Any) -> Callable[[], Table]:
    return lambda: codes() | columns


def pandas(**columns: Any) -> Callable[[], Any]:
    def make() -> Any:
        pd = pytest.importorskip("pandas")
        return pd.DataFrame(numbers() | columns)

    return make


def text(levels: int, n: int = N) -> list[str]:
    return [f"v{k}" for k in rng(9).permutation(np.arange(n) % levels)]


def holes(values: Any) -> np.ndarray[Any, Any]:
    out = np.array(values, dtype=object)
    out[::9] = None
    return out


def dates(n: int = N) -> np.ndarray[Any, Any]:
    return np.datetime64("2020-01-01") + rng(8).integers(0, 900, n).astype("m8[D]")


def one_row() -> Table:
    return {"x": [1.5], "y": [2.5], "c": ["a"]}


def after_dropna() -> Any:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(codes(N + 40))
    frame.loc[:39, "a"] = np.nan
    return frame.dropna().reset_index(drop=True)


def wide(n: int, d: int) -> Table:
    return {f"v{i}": rng(i).normal(size=n) for i in range(d)}


def hostile_names() -> Table:
    names = ["'; DROP TABLE t; --", '"quoted"', "a.b", "SELECT", "*", "^.*$", "naïve ☃ 名前"]
    x = rng(1).normal(size=N)
    first = {"x": x, names[0]: x + rng(2).normal(size=N)}
    return first | {name: rng(i).normal(size=N) for i, name in enumerate(names[1:], start=20)}


IDENTIFIER, TEXT, OUT = ReadAs.IDENTIFIER, ReadAs.FREE_TEXT, ReadAs.LEFT_OUT
DISCRETE, CONTINUOUS, DATE, CONSTANT = (
    ReadAs.DISCRETE,
    ReadAs.CONTINUOUS,
    ReadAs.DATE,
    ReadAs.CONSTANT,
)
SENTENCES = [f"The patient {k} was seen by doctor {k % 7} today" for k in range(N)]
UNIQUE = [f"p{k:05}" for k in range(N)]
MISSING = r"Say what to do: learn\(data, missing="


CASES = {
    # identifiers
    "unique text": Case(add(id=UNIQUE), read=(("id", IDENTIFIER),), note="left out: id"),
    "unique text among codes": Case(add_codes(name=UNIQUE), ("a b",), (("name", IDENTIFIER),)),
    "row number": Case(add(row=np.arange(N)), read=(("row", IDENTIFIER),)),
    "row number from 100001": Case(add(k=100_001 + np.arange(N)), read=(("k", IDENTIFIER),)),
    "shuffled row number": Case(add(k=rng().permutation(N)), read=(("k", IDENTIFIER),)),
    "row number as float": Case(add(k=1.0 * np.arange(N)), read=(("k", IDENTIFIER),)),
    "wide identifier by its name": Case(
        add(patient_id=rng().integers(1, 10**12, N)),
        read=(("patient_id", IDENTIFIER),),
    ),
    "identifier in camel case": Case(
        add(caseID=rng().integers(1, 10**12, N)), read=(("caseID", IDENTIFIER),)
    ),
    "200 levels in 400 rows": Case(add(town=text(200)), read=(("town", OUT),)),
    "90 levels in 400 rows": Case(add(town=text(90)), read=(("town", DISCRETE),)),
    "5,000 levels": Case(
        lambda: numbers(20_000) | {"word": text(5_000, 20_000)}, read=(("word", OUT),)
    ),
    "70,000 levels": Case(
        lambda: numbers(70_000) | {"word": text(70_000, 70_000)}, read=(("word", IDENTIFIER),)
    ),
    "free text": Case(add(remark=SENTENCES), read=(("remark", TEXT),), note="free text"),
    "categories of pandas that are unique": Case(
        lambda: pandas(k=pytest.importorskip("pandas").Categorical(UNIQUE))(),
        read=(("k", IDENTIFIER),),
    ),
    "an identifier that is asked for": Case(
        add_codes(k=UNIQUE), ("a b",), (("k", DISCRETE),), kinds=(("k", "discrete"),)
    ),
    "identifiers only": Case(
        lambda: {"id": UNIQUE, "k": np.arange(N)},
        error="No column of the table can be used.* kinds={'id': 'discrete'}",
    ),
    # dates
    "dates": Case(
        add(when=dates()), error="has dates.*, which.* choose a unit with kinds={'when': 'days'}"
    ),
    "dates in days": Case(add(when=dates()), read=(("when", DATE),), kinds=(("when", "days"),)),
    "dates of Python": Case(
        add(when=[dt.date(2020, 1, 1 + k % 28) for k in range(N)]), error="{'when': 'days'}"
    ),
    "datetimes of Python in years": Case(
        add(when=[dt.datetime(1900 + k % 90, 1, 1) for k in range(N)]),
        read=(("when", DATE),),
        kinds=(("when", "years"),),
    ),
    "timestamps of pandas in hours": Case(
        lambda: pandas(t=dates().astype("M8[ns]"))(), read=(("t", DATE),), kinds=(("t", "hours"),)
    ),
    "durations in days": Case(
        add(stay=rng().integers(1, 90, N).astype("m8[D]")),
        read=(("stay", DATE),),
        kinds=(("stay", "days"),),
    ),
    "a unit for numbers": Case(
        numbers, error="not dates or times.* convert", kinds=(("x", "days"),)
    ),
    # missing
    "NaN": Case(
        add(z=np.where(rng().random(N) < 0.1, np.nan, 1.5)), error=rf"'z' \(38\).*{MISSING}"
    ),
    "None in text": Case(
        add_codes(c=holes(["u", "v"] * (N // 2))), error=rf"'c' \(45\).*{MISSING}"
    ),
    "Booleans with holes": Case(
        add_codes(c=holes(rng().random(N) < 0.5)), error=rf"'c' \(45\).*{MISSING}"
    ),
    "a masked array": Case(
        add(z=np.ma.masked_array(rng().normal(size=N), rng().random(N) < 0.1)),
        error=rf"'z' \(38\).*{MISSING}",
    ),
    "an empty column": Case(add(z=np.full(N, np.nan)), read=(("z", OUT),), note="no values"),
    "an empty column of objects": Case(add(z=[None] * N), read=(("z", OUT),)),
    "an identifier with holes": Case(add(id=holes(UNIQUE)), read=(("id", IDENTIFIER),)),
    "NA as text": Case(
        add_codes(c=["NA", "u", "v", "w"] * (N // 4)),
        ("a b",),
        (("c", DISCRETE),),
        note="the level 'NA'",
    ),
    # codes and numbers
    "codes as floats": Case(
        lambda: {k: 1.0 * v for k, v in codes().items()},
        ("a b",),
        (("a", DISCRETE), ("b", DISCRETE)),
    ),
    "codes after dropna": Case(after_dropna, ("a b",), (("a", DISCRETE),)),
    "codes as text": Case(
        lambda: {k: v.astype(str) for k, v in codes().items()}, ("a b",), (("a", DISCRETE),)
    ),
    "survey codes -99 and 99": Case(
        add_codes(c=rng().choice(np.array([-99, 1, 2, 99], np.int8), N)),
        ("a b",),
        (("c", DISCRETE),),
    ),
    "counts of more than 20": Case(add(c=rng().poisson(60, N)), read=(("c", CONTINUOUS),)),
    "half steps": Case(add(c=rng().integers(0, 9, N) / 2), read=(("c", CONTINUOUS),)),
    "decimals": Case(
        add(c=[decimal.Decimal(int(k)) / 8 for k in rng().integers(0, 9**5, N)]),
        read=(("c", CONTINUOUS),),
    ),
    "huge integers": Case(add(c=rng().integers(2**60, 2**62, N)), read=(("c", CONTINUOUS),)),
    "unsigned integers": Case(
        lambda: {k: v.astype(np.uint64) for k, v in codes().items()},
        ("a b",),
        (("a", DISCRETE), ("b", DISCRETE)),
    ),
    "Booleans": Case(
        lambda: {"t": codes()["a"] > 0, "u": codes()["b"] > 0}, ("t u",), (("t", DISCRETE),)
    ),
    "a number asked for as discrete": Case(
        codes, ("a b",), (("a", DISCRETE),), kinds=(("a", "discrete"), ("b", "discrete"))
    ),
    "a wrong kind": Case(
        codes, error="'ordinal'. Use .*'continuous' and 'discrete'", kinds=(("a", "ordinal"),)
    ),
    "text asked for as continuous": Case(
        add(c=text(4)), error="cannot be continuous. Convert", kinds=(("c", "continuous"),)
    ),
    # objects
    "mixed objects": Case(
        add(c=np.array([1, "1", 2.5, "b"] * (N // 4), dtype=object)), error="differ only.*astype"
    ),
    "Booleans and numbers": Case(
        add(c=np.array([True, 2, 3, 4] * (N // 4), dtype=object)), error="mixes Booleans.*astype"
    ),
    "lists in cells": Case(
        lambda: pandas(c=[[k, 1] for k in range(N)])(), error="the type list.*leave the column out"
    ),
    "bytes": Case(
        add(c=np.array([b"u", b"v"] * (N // 2))), error="S1, which cannot be read. Convert it"
    ),
    "complex numbers": Case(
        add(c=np.ones(N) * 1j), error="complex128, which cannot be read. Convert it"
    ),
    # degenerate
    "a constant": Case(add(c=np.full(N, 7.5)), read=(("c", CONSTANT),), note="Constant columns"),
    "a constant text": Case(add_codes(c=["u"] * N), ("a b",), (("c", CONSTANT),)),
    "a copy": Case(
        lambda: numbers() | {"copy": numbers()["x"]},
        edges=None,  # whether 'y' is joined to 'x' or to its copy is decided by rounding
        note="determine each",
    ),
    "a total": Case(
        lambda: numbers() | {"total": numbers()["x"] + numbers()["y"]},
        note="'x' and 'y' determine 'total' exactly",
        edges=("total x", "total y", "x y"),
    ),
    "one row": Case(one_row, (), (("x", CONSTANT), ("c", CONSTANT)), note="1 row for 3 variables"),
    "two rows": Case(lambda: {"x": [1.5, 2.5], "y": [0.5, 0.1]}, (), note="2 rows"),
    "six rows": Case(lambda: wide(6, 3), None, note="6 rows for 3 variables"),
    "more columns than rows": Case(lambda: wide(20, 60), None, note="20 rows for 60 variables"),
    "no rows": Case(lambda: {"x": [], "y": []}, error="no rows.*Check the filter"),
    "no columns": Case(dict, error="no columns. Give a table"),
    "lengths that differ": Case(
        lambda: {"x": [1.5], "y": [1.5, 2.5]}, error="{'x': 1, 'y': 2}. Give"
    ),
    "repeated names": Case(
        lambda: pytest.importorskip("pandas").DataFrame(np.eye(3), columns=["a", "a", "b"]),
        error=r"unique.*\['a'\]. Rename",
    ),
    "names that are numbers": Case(
        lambda: pytest.importorskip("pandas").DataFrame(np.eye(3), columns=[0.5, 1.5, 2.5]),
        error=r"df.columns.astype\(str\)",
    ),
    "an array of one dimension": Case(lambda: np.arange(5.0), error=r"reshape\(-1, 1\)"),
    "a path": Case(lambda: "table.csv", error=r"pandas.read_csv\('table.csv'\)"),
    # scales
    "scales of 1e-200": Case(
        lambda: {k: 1e-200 * v for k, v in numbers().items()},
        error=r"\['x', 'y'\] differ by so little that their squares are zero. Rescale",
    ),
    "scales of 1e-90 and 1e80": Case(
        lambda: {"x": 1e-90 * numbers()["x"], "y": 1e80 * numbers()["y"]}
    ),
    "scales of 1e200": Case(
        lambda: {k: 1e200 * v for k, v in numbers().items()}, error="overflow. Rescale"
    ),
    "infinite": Case(
        add(z=np.array([np.inf] + [0.5] * (N - 1))), error=r"infinite.*'z' \(1\). Replace"
    ),
    "far from zero": Case(lambda: {k: 1e9 + v for k, v in numbers().items()}),
    # names
    "hostile names": Case(hostile_names, ("'; DROP TABLE t; -- x",)),
}
