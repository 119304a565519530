"""Messages are grammatical whatever name they begin with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import ArgumentError, SchemaError


def test_names_have_the_right_article() -> None:
    table: dict[str, Any] = {"x": np.arange(9.0)}
    other: Any = ist.ADMM()
    with pytest.raises(ArgumentError, match="an ADMM was given"):
        ist.learn(table, score=other)
    other = ist.BIC()
    with pytest.raises(ArgumentError, match="a BIC was given"):
        ist.learn(table, search=other)
    with pytest.raises(ArgumentError, match="an int was given"):
        ist.learn(table, knowledge=7)  # type: ignore[call-overload]


def test_one_method_needs_and_several_need() -> None:
    rng = np.random.default_rng(0)
    sites = [{"x": rng.normal(size=40), "t": np.arange(40) % 2} for _ in range(3)]
    with pytest.raises(SchemaError, match=r"^ADMM needs continuous variables"):
        ist.learn(ist.Federation.simulate(sites), search=ist.ADMM())
    with pytest.raises(SchemaError, match=r"^Counts need discrete variables"):
        ist.summarise({"x": sites[0]["x"]}, plan=ist.CountPlan.everything())
