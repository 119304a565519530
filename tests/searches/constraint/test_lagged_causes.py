"""FCI and BossFCI on time series: no later variable is a cause of an earlier one."""

from __future__ import annotations

import numpy as np
import pytest

import isthmus as ist


def series(n: int = 2500, seed: int = 0) -> dict[str, np.ndarray]:
    """x → y one step later; x and z have a hidden cause in each step."""
    rng = np.random.default_rng(seed)
    hidden, *noise = rng.normal(size=(4, n))
    x, y, z = np.zeros((3, n))
    for t in range(1, n):
        x[t] = 0.6 * x[t - 1] + noise[0][t] + hidden[t]
        y[t] = 0.3 * y[t - 1] + 0.5 * x[t - 1] + noise[1][t]
        z[t] = 0.4 * z[t - 1] + noise[2][t] + hidden[t]
    return {"x": x, "y": y, "z": z}


@pytest.mark.parametrize("search", [ist.FCI(), ist.BossFCI()])
def test_time_decides_marks_and_a_hidden_cause_is_found(search: ist.FCI | ist.BossFCI) -> None:
    data = ist.Series(series(), lags=1)
    pag = ist.learn(data, search=search).pag
    kinds = {frozenset((a, b)): (a, kind) for a, kind, b in pag.edges}
    assert kinds[frozenset("xz")][1] == "<->"
    between = {ends: edge for ends, edge in kinds.items() if len({"@" in v for v in ends}) == 2}
    assert set(between) >= {frozenset(("x@1", "x")), frozenset(("x@1", "y"))}
    for ends, (first, kind) in between.items():
        (later,) = (v for v in ends if "@" not in v)
        assert kind[2 if first != later else 0] in "<>", (ends, kind)
    # The same from sums alone.
    from_sums = ist.learn(ist.summarise(data), search=search).pag
    assert {frozenset((a, b)) for a, _, b in from_sums.edges} == set(kinds)
