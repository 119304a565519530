"""What a coordinator sees: sums and products as exact fractions."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from tests.attacks.malicious import Attacked

from isthmus.statistics import Expansion
from isthmus_joint import AskFeatures, AskMoments
from isthmus_joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus_joint.secure_sum.terms import to_ints

Table = dict[str, Any]


class Seen(NamedTuple):
    """Number of rows, sums and products about zero, as exact fractions, by column."""

    n: int
    sums: dict[str, Fraction]
    products: dict[tuple[str, str], Fraction]


def seen(world: Attacked, expansion: Expansion | None = None) -> Seen:
    """Return what the coordinator learns from one honest round."""
    grid = FixedPointEncoding.of(world.study)
    request: Any = AskMoments(world.study.schema.names)
    if expansion is not None:
        request = AskFeatures(expansion)
    grid = request._grid(grid)
    total, _ = world.federation()._scheduler.ask(request)
    n, *rest = to_ints(total)
    names, one = grid.schema.column_names, 1 << grid.fraction
    shift = [Fraction(s) for s in grid.shift]
    unit = [Fraction(2) ** int(e) for e in grid.exponents]
    p = len(names)
    centred = [Fraction(v, one) * unit[i] for i, v in enumerate(rest[:p])]
    sums = {name: c + n * s for name, c, s in zip(names, centred, shift, strict=True)}
    products = {}
    for value, i, j in zip(rest[p:], *map(np.ndarray.tolist, grid.pairs), strict=True):
        q = Fraction(value, one) * unit[i] * unit[j]
        q += shift[i] * centred[j] + shift[j] * centred[i] + n * shift[i] * shift[j]
        products[names[i], names[j]] = products[names[j], names[i]] = q
    return Seen(n, sums, products)


def joined(first: Mapping[str, Any], second: Mapping[str, Any]) -> Table:
    """The rows of two tables."""
    return {name: np.concatenate([first[name], second[name]]) for name in first}


def without(table: Mapping[str, Any], row: int) -> Table:
    """The table without one row."""
    return {name: np.delete(column, row) for name, column in table.items()}
