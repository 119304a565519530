"""Least squares says when a graph rests on units, however the columns were scaled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.notes import noted

import isthmus as ist
from isthmus import simulate

SCALINGS: dict[str, Callable[[Any], Any]] = {
    "raw": lambda x: x,
    "standardised": lambda x: (x - x.mean()) / x.std(ddof=1),
    "quartiles": lambda x: x / (np.quantile(x, 0.75) - np.quantile(x, 0.25)),
    "range": lambda x: (x - x.min()) / np.ptp(x),
    "largest value": lambda x: x / np.abs(x).max(),
}


@pytest.mark.parametrize("scaling", SCALINGS)
def test_every_scaling_is_noted(scaling: str) -> None:
    dag = simulate.erdos_renyi(10, 20, seed=0)
    table = simulate.linear(dag, 1000, seed=0).data
    scaled = {name: SCALINGS[scaling](x) for name, x in table.items()}
    with noted("common unit"):
        solution = ist.learn(scaled, search=ist.Notears())
    (note,) = solution.notes
    unconfirmed = int(note.split("does not confirm ")[1].split(" of ")[0])
    # Raw columns have one unit here, so only directions that no likelihood tells are open.
    assert unconfirmed < 5 if scaling == "raw" else unconfirmed > 10


@pytest.mark.parametrize("scaling", ["standardised", "quartiles", "range", "largest value"])
def test_nonlinear_least_squares_notices_rescaled_columns(scaling: str) -> None:
    dag = simulate.erdos_renyi(4, 4, seed=1)
    table = simulate.linear(dag, 300, seed=1).data
    scaled = {name: SCALINGS[scaling](x) for name, x in table.items()}
    with noted("probably standardised or rescaled"):
        ist.learn(scaled, search=ist.NotearsAdditive())


def test_water_levels_have_no_common_unit() -> None:
    with noted("one common unit"):
        ist.learn(ist.datasets.water_level(), search=ist.Notears())
