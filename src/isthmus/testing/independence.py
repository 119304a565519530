"""Conformance check for tests of independence."""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.arrays import Floats
from isthmus.objectives import INDEPENDENCE_TESTS, IndependenceTest
from isthmus.scores import Score
from isthmus.statistics import Kind
from isthmus.verbs.prepare import prepare

_CHANCE = 1e-4
"""Probability with which a correct test fails a check of its level or power."""

_TOLERANCE = 1e-9


def check_test(
    test: Score[Any, IndependenceTest],
    *,
    tables: int = 200,
    rows: int = 500,
    level: float = 0.05,
    power: float = 0.9,
    seed: int = 0,
) -> None:
    """Check a test of independence on simulated tables.

    In every table, ``z`` is a common cause of ``x`` and ``y``, and ``w`` is noise; all are numbers,
    levels, or some of each, as the test accepts. P-values must lie between 0 and 1, be the same in
    both directions and for one variable or several at once. Of the tables, at most ``level`` may
    have a p-value below it for ``x`` and ``y`` given ``z`` and for ``x`` and ``w``, and at least
    ``power`` must for ``x`` and ``z``, and for ``x`` and ``y`` given ``w``, up to chance.

    Raises
    ------
    AssertionError
        If a requirement is not met. The message names the variables.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus.testing import check_test
    >>> check_test(ist.FisherZ(), tables=50)
    """
    from scipy.stats import binom

    x, y, z, w = range(4)
    rng = np.random.default_rng(seed)
    independent: dict[str, list[float]] = {"x and y given z": [], "x and w": []}
    dependent: dict[str, list[float]] = {"x and z": [], "x and y given w": []}
    for number in range(tables):
        table = _simulated(test.kind, rows, rng)
        bound = INDEPENDENCE_TESTS.require(
            prepare(table, score=test, accepts=(INDEPENDENCE_TESTS,)).objective
        )
        assert bound.nodes == tuple("xyzw"), f"the nodes are {bound.nodes}, not x, y, z and w"
        if number < 10:
            _check_interface(bound)
        independent["x and y given z"].append(float(bound.p_values(x, [z], [y])[0]))
        independent["x and w"].append(float(bound.p_values(x, [], [w])[0]))
        dependent["x and z"].append(float(bound.p_values(x, [], [z])[0]))
        dependent["x and y given w"].append(float(bound.p_values(x, [w], [y])[0]))
    for pair, p_values in independent.items():
        rejected = sum(p < level for p in p_values)
        assert binom.sf(rejected - 1, tables, level) > _CHANCE, (
            f"{pair} are independent, and {rejected} of {tables} p-values are below {level}"
        )
    for pair, p_values in dependent.items():
        rejected = sum(p < level for p in p_values)
        assert binom.cdf(rejected, tables, power) > _CHANCE, (
            f"{pair} are dependent, and only {rejected} of {tables} p-values are below {level}"
        )


def _simulated(kind: Kind | None, rows: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return a table with a common cause z of x and y, and noise w."""
    if kind is Kind.CONTINUOUS:
        z, w = rng.normal(size=(2, rows))
        x, y = (z + rng.normal(size=rows) for _ in range(2))
        return {"x": x, "y": y, "z": z, "w": w}
    group = rng.integers(0, 3, rows)
    x, y = (_levels(group + rng.normal(size=rows), (0.5, 1.5)) for _ in range(2))
    w = rng.choice(["a", "b"], size=rows)
    levels = {"x": x, "y": y, "z": _levels(group.astype(float), (0.5, 1.5)), "w": w}
    if kind is Kind.DISCRETE:
        return levels
    return levels | {"y": group + rng.normal(size=rows), "w": rng.normal(size=rows)}


def _levels(values: Floats, cuts: tuple[float, ...]) -> np.ndarray[tuple[int, ...], Any]:
    return np.array(list("lmh"))[np.digitize(values, cuts)]


def _check_interface(bound: IndependenceTest) -> None:
    d = len(bound.nodes)
    for first in range(d):
        for given in ([], [(first + 1) % d]):
            others = [v for v in range(d) if v != first and v not in given]
            together = bound.p_values(first, given, others)
            named = f"{bound.nodes[first]} given {[bound.nodes[v] for v in given]}"
            assert together.shape == (len(others),), f"{named}: {together.shape} p-values"
            inside = np.isnan(together) | ((together >= 0.0) & (together <= 1.0))
            assert inside.all(), f"{named}: p-values {together}"
            for other, p in zip(others, together, strict=True):
                pair = f"{bound.nodes[first]} and {bound.nodes[other]} given {given}"
                alone = bound.p_values(first, given, [other])[0]
                assert _equal(alone, p), f"{pair}: {p} among others, and {alone} alone"
                back = bound.p_values(other, given, [first])[0]
                assert _equal(back, p), f"{pair}: {p}, and {back} in the other direction"


def _equal(a: float, b: float) -> bool:
    return (np.isnan(a) and np.isnan(b)) or abs(a - b) <= _TOLERANCE + 1e-6 * max(a, b)
