"""Attacks by the last digits of sums: they must not tell which site holds which row."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.attacks.malicious import Attacked

from isthmus.statistics import Chebyshev, Expansion, Kind, Schema, Variable
from isthmus.tables import Frame
from isthmus_joint import AskFeatures, AskMoments, StatisticRequest
from isthmus_joint.federation.requests.fixed_point import FixedPointEncoding, encode_rows
from isthmus_joint.secure_sum.terms import LimbAccumulator, LimbArray, to_ints

NAMES = ("age", "weight", "pressure")
BOUNDS = {"age": (0.0, 120.0), "weight": (0.0, 300.0), "pressure": (0.0, 300.0)}
BASIS = Expansion.within(Chebyshev(terms=3), BOUNDS)
REQUESTS: list[StatisticRequest[Any]] = [AskMoments(NAMES), AskFeatures(BASIS)]


def patients(seed: int, rows: int = 900, *, whole: bool = False) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    x = rng.uniform([20, 40, 90], [95, 140, 200], size=(rows, 3))
    return np.rint(x) if whole else x


def total(
    request: StatisticRequest[Any], parts: list[NDArray[np.float64]], grid: FixedPointEncoding
) -> LimbArray:
    """The sum over sites that hold these parts."""
    sums = LimbAccumulator(request.size(grid), request.limbs)
    for part in parts:
        source = Frame(part, names=NAMES)
        sums.add(request.encode(source, grid))
    return sums.total()


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda r: r.name)
@pytest.mark.parametrize("whole", [True, False])
def test_the_digits_of_a_sum_do_not_tell_how_the_rows_are_split(
    request_: StatisticRequest[Any], whole: bool
) -> None:
    """The integers are those of the pooled rows, bit by bit, in any order and any split."""
    grid = FixedPointEncoding(Schema.continuous(NAMES), BOUNDS, 2**24, 3)
    rows = patients(4, whole=whole)
    mixed = np.random.default_rng(1).permutation(rows)
    splits = [np.split(rows, [400, 700]), np.split(rows, [200, 333]), np.split(mixed, [1, 899])]
    sums = [to_ints(total(request_, parts, grid)) for parts in splits]
    assert sums[0] == sums[1] == sums[2]


def test_sums_of_sites_are_the_same_however_the_rows_are_split() -> None:
    """As above, over the whole protocol and with a discrete variable."""
    rows = patients(5)
    schema = Schema(
        (
            *(Variable(n, Kind.CONTINUOUS) for n in NAMES),
            Variable("ward", Kind.DISCRETE, ("a", "b", "c")),
        )
    )
    ward = np.array(["a", "b", "c"])[np.arange(len(rows)) % 3]
    released = []
    for cut in ([400, 700], [200, 500]):
        parts = zip(np.split(rows, cut), np.split(ward, cut), strict=True)
        tables = {
            f"s{i}": {n: part[:, j] for j, n in enumerate(NAMES)} | {"ward": levels}
            for i, (part, levels) in enumerate(parts)
        }
        released.append(Attacked(tables, schema, BOUNDS).federation().moments())
    one, two = released
    assert (one.n, one.sums.tolist(), one.gram.tolist()) == (
        two.n,
        two.sums.tolist(),
        two.gram.tolist(),
    )


@pytest.mark.long
@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-6, 1.0, 1e6]), st.integers(1, 40))
def test_the_integers_are_the_exact_sums_of_rounded_values(seed: int, width: float, n: int) -> None:
    """By rational arithmetic: a unit per value, and no other rounding."""
    rng = np.random.default_rng(seed)
    grid = FixedPointEncoding(
        Schema.continuous(["x", "y"]), {"x": (-width, width), "y": (0.0, 1.0)}, 1000, 3
    )
    rows = np.stack([rng.uniform(-width, width, n), rng.uniform(0, 1, n)], axis=1)
    found = to_ints(encode_rows(grid, rows))
    unit = 2 ** (16 * (grid.fraction // 32))
    shifted = np.ldexp(rows - np.array(grid.shift), -grid.exponents)
    q = [[round(Fraction(v) * unit) for v in column] for column in shifted.tolist()]
    one = 2**grid.fraction
    assert found[0] == n
    assert [v * unit for v in found[1:3]] == [sum(r[i] for r in q) * one for i in range(2)]
    products = [sum(r[i] * r[j] for r in q) for i, j in ((0, 0), (0, 1), (1, 1))]
    assert [v * unit**2 for v in found[3:]] == [v * one for v in products]
