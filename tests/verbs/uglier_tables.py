"""More ugly tables: what libraries, instruments and spreadsheets write."""

from __future__ import annotations

import datetime as dt
import fractions
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.verbs.ugly_tables import (
    CONTINUOUS,
    DISCRETE,
    IDENTIFIER,
    MISSING,
    OUT,
    Case,
    N,
    Table,
    add,
    codes,
    dates,
    numbers,
    pandas,
    rng,
)


def with_sentinel(value: float) -> Any:
    return np.where(np.arange(N) % 10 == 0, value, rng(6).normal(size=N))


def shape_of_pandas(make: Callable[[Any, Table], Any]) -> Callable[[], Any]:
    return lambda: make(pytest.importorskip("pandas"), numbers())


CASES = {
    "scales of 1e-200 beside 1": Case(
        lambda: {"x": 1e-200 * rng(1).normal(size=N), "y": rng(2).normal(size=N)},
        error=r"\['x'\] differ by so little",
    ),
    "a number for missing values": Case(
        add(z=with_sentinel(-999.0)),
        read=(("z", CONTINUOUS),),
        note="'z' has the value -999 in 40 rows, far from all others",
    ),
    # text that was meant otherwise
    "numbers as text": Case(
        add(z=[f"{v:.3f}" for v in rng(6).normal(size=N)]), read=(("z", CONTINUOUS),)
    ),
    "numbers with decimal commas": Case(
        add(z=[f"{v:.3f}".replace(".", ",") for v in rng(6).normal(size=N)]),
        read=(("z", CONTINUOUS),),
    ),
    "numbers and a word": Case(
        add(z=["unknown", *(f"{v:.3f}" for v in rng(6).normal(size=N - 1))]),
        read=(("z", OUT),),
        note="Convert column 'z' to numbers",
    ),
    "dates as text": Case(
        add(z=[str(day) for day in dates()]),
        read=(("z", OUT),),
        note=r"choose a unit: kinds={'z': 'days'}",
    ),
    "telephone numbers": Case(
        add(z=[f"+41 {k}" for k in rng(9).permutation(10**6)[:N]]), read=(("z", IDENTIFIER),)
    ),
    "times of day": Case(
        add(z=[dt.time(k % 24) for k in range(N)]), error="hours since midnight.*leave the column"
    ),
    # shapes of libraries
    "intervals of pandas.cut": Case(
        shape_of_pandas(lambda pd, t: pd.DataFrame({k: pd.cut(v, 3) for k, v in t.items()})),
        read=(("x", DISCRETE), ("y", DISCRETE)),
    ),
    "sparse columns": Case(
        shape_of_pandas(lambda pd, t: pd.DataFrame(t).astype("Sparse[float]")),
        read=(("x", CONTINUOUS),),
    ),
    "periods": Case(
        lambda: pandas(p=pytest.importorskip("pandas").period_range("2000", periods=N, freq="M"))(),
        error=r"period\[M\], which cannot be read. Convert",
    ),
    "two rows of names": Case(
        shape_of_pandas(lambda pd, t: pd.concat({"u": pd.DataFrame(t)}, axis=1)),
        error=r'\["_".join\(map\(str, c\)\) for c in df.columns\]',
    ),
    "nullable types": Case(
        shape_of_pandas(lambda pd, t: pd.DataFrame(t).convert_dtypes()), read=(("x", CONTINUOUS),)
    ),
    "nullable types with holes": Case(
        lambda: pandas(c=pytest.importorskip("pandas").array([True, None] * (N // 2), "boolean"))(),
        error=rf"'c' \(200\).*{MISSING}",
    ),
    "fractions": Case(
        add(c=[fractions.Fraction(int(k), 7) for k in rng().integers(0, 9**5, N)]),
        read=(("c", CONTINUOUS),),
    ),
    "a matrix": Case(lambda: np.asmatrix(np.stack(list(numbers().values()), axis=1)), ("x0 x1",)),
    "cells of different lengths": Case(
        lambda: {"x": [1.5, [2.5], 3.5], "y": [1.0, 2.0, 3.0]}, error="the type list.*Convert"
    ),
    "sets in cells": Case(add(c=[{1, 2}] * N), error="the type set.*leave the column out"),
    "numbers of two signs of zero": Case(
        lambda: {k: np.where(v == 0, -0.0, v) for k, v in codes().items()},
        ("a b",),
        (("a", DISCRETE),),
    ),
    "levels with line breaks": Case(
        lambda: {k: np.array(["lo\nw", 'h",igh', "\u202e"])[v] for k, v in codes().items()},
        ("a b",),
        (("a", DISCRETE),),
    ),
    "bytes in the other order": Case(
        lambda: {k: v.astype(">f4") for k, v in numbers().items()}, read=(("x", CONTINUOUS),)
    ),
    "an outlier of 1e30": Case(add(z=np.append(rng(6).normal(size=N - 1), 1e30))),
    # names
    "names that differ in case and spaces": Case(
        lambda: {"x": numbers()["x"], "X ": numbers()["y"], " x": rng(6).normal(size=N)}, None
    ),
    "half a character in a name": Case(
        lambda: {"x\ud800": numbers()["x"], "y": numbers()["y"]}, error="half a character.*Rename"
    ),
}
