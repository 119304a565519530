"""A search that ends far from optimal is not called converged."""

from __future__ import annotations

import numpy as np
import pytest

import isthmus as ist
from isthmus.arrays import Floats, Work
from isthmus.results import Ending
from isthmus.searches import notears_mlp


@pytest.mark.long
def test_a_large_residual_is_not_called_converged(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=300)
    table = {"a": a, "b": np.sin(2 * a) + 0.3 * rng.normal(size=300)}
    solve = notears_mlp.NodeLasso.solve

    def stopped(
        self: notears_mlp.NodeLasso, start: Floats, tolerance: float = 0.0
    ) -> Work[tuple[Floats, float]]:
        coefficients, _ = yield from solve(self, start, tolerance)
        return coefficients, 0.1

    monkeypatch.setattr(notears_mlp.NodeLasso, "solve", stopped)
    solution = ist.learn(table, search=ist.NotearsAdditive())
    assert solution.status.ending is Ending.NOT_CONVERGED
    assert not solution.status.finished
    assert solution.details.kkt_residual == 0.1
