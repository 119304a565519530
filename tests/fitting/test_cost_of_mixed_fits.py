"""A value and its bins are fitted in a few passes over the rows."""

from __future__ import annotations

from time import process_time

import numpy as np
import pytest

from isthmus.arrays import Floats
from isthmus.fitting import logit
from isthmus.fitting.discrete import regress_within


@pytest.mark.parametrize("pseudo_count", [1.0, 0.1])
def test_levels_that_a_parent_separates(
    monkeypatch: pytest.MonkeyPatch, pseudo_count: float
) -> None:
    n = 50_000
    value = np.random.default_rng(0).normal(size=n)
    bins = np.digitize(value, [-1.0, 0.0, 1.0])
    passed = 0
    original = logit._Rows.gradient

    def counted(self: logit._Rows, weights: Floats) -> tuple[float, Floats]:
        nonlocal passed
        passed += self.x.shape[1]
        return original(self, weights)

    monkeypatch.setattr(logit._Rows, "gradient", counted)
    fitted = logit.fit_logit(
        ("a", "b", "c", "d"), bins, (), [], (), ("v",), value[:, None], pseudo_count
    )
    logs = fitted.log_probabilities({"v": value}, n)
    assert (logs.argmax(axis=1) == bins).mean() > 0.99
    assert passed < 15 * n  # before: more than 100 passes


@pytest.mark.timing
def test_many_configurations_cost_little_more_than_few() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=100_000), rng.normal(size=100_000)
    seconds = []
    for cells in (10, 50_000):
        place = rng.integers(0, cells, len(x))
        start = process_time()
        fitted = regress_within([x, y], place, 4 * cells, 1.0)
        seconds.append(process_time() - start)
        assert (fitted.variances > 0).all()
    assert seconds[1] < 60 * max(seconds[0], 0.01)  # a loop over configurations takes 500 times
