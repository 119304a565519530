"""Networks refuse text where they need numbers, with the name of the column and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import SchemaError

RNG = np.random.default_rng(0)
X = RNG.normal(size=80)
NUMBERS = {"x": X, "y": X + RNG.normal(size=80)}
MIXED = {"x": X, "y": NUMBERS["y"], "g": np.where(X + RNG.normal(size=80) > 0, "a", "b")}
EDGE = ist.Knowledge(required=[("x", "y")])


@pytest.mark.parametrize("text", ["high", "1.5", "1,5"])
def test_text_is_refused(text: str) -> None:
    rows: dict[str, Any] = {"x": [text], "y": [0.5], "g": ["a"]}
    gaussian = ist.learn(NUMBERS, knowledge=EDGE).fit()
    mixed = ist.learn(MIXED, knowledge=EDGE).fit()
    curves = ist.learn(NUMBERS, score=ist.GP(), knowledge=EDGE).fit_gp()
    asked: list[Callable[[], object]] = [
        lambda: gaussian.predict(rows, "y"),
        lambda: gaussian.log_likelihood(rows),
        lambda: mixed.predict(rows, "y"),
        lambda: mixed.log_likelihood(rows),
        lambda: curves.predict(rows, "y"),
    ]
    for ask in asked:
        with pytest.raises(SchemaError, match=f"Column 'x' has the text '{text}'"):
            ask()
