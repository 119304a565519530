"""The check every source must pass: it gives what the table in memory gives."""

from __future__ import annotations

import numpy as np

from isthmus.sources import Frame, Source
from isthmus.statistics import Counts, Kind, Moments, Plan


def check_source(source: Source, frame: Frame) -> None:
    """Assert that a source gives what `Frame` gives on the same rows.

    Schemas and counts must be equal; moments agree to 1e-10, relative to the spread.

    Parameters
    ----------
    source
        The source to check.
    frame
        The same rows in memory; their order does not matter.

    Raises
    ------
    AssertionError
        Something differs; the message says what.
    """
    schema = frame.schema()
    assert source.schema() == schema, f"schemas differ: {source.schema()} is not {schema}"
    check_moments(source.moments(), frame.moments())
    turned = schema.names[::-1]
    check_moments(source.moments(turned), frame.moments(turned))
    first = schema.names[:1]
    check_moments(source.moments(first), frame.moments(first))
    discrete = schema.of_kind(Kind.DISCRETE)
    plans = [Plan.sets([discrete[:2], discrete[-1:]])] if discrete else []
    if len(discrete) == len(schema):
        plans += [Plan.everything(), Plan.up_to(2)]
    for plan in plans:
        check_counts(source.counts(plan), frame.counts(plan))


def check_moments(found: Moments, expected: Moments, tolerance: float = 1e-10) -> None:
    """Assert that two moments are equal, relative to the spread of the columns."""
    assert found.schema == expected.schema, "moments are of different schemas"
    assert found.n == expected.n, f"moments are of {found.n} rows, not {expected.n}"
    spread = np.sqrt(expected.scatter().diagonal())
    size = np.maximum(spread / np.sqrt(expected.n), np.abs(expected.mean()))
    wrong = np.abs(found.mean() - expected.mean()) > tolerance * size
    assert not wrong.any(), f"means differ in {_named(expected, wrong)}"
    # A constant leaves squares of units in the last place, as the means are rounded.
    rounding = 2 * np.finfo(np.float64).eps * np.abs(expected.mean()) * np.sqrt(expected.n)
    wide = np.maximum(spread, rounding)
    scale = tolerance * np.outer(wide, wide) + np.outer(rounding, rounding)
    wrong = np.asarray((np.abs(found.scatter() - expected.scatter()) > scale).any(axis=0))
    assert not wrong.any(), f"products differ in {_named(expected, wrong)}"


def check_counts(found: Counts, expected: Counts) -> None:
    """Assert that two counts are equal."""
    assert found.schema == expected.schema, "counts are of different schemas"
    assert found.n == expected.n, f"counts are of {found.n} rows, not {expected.n}"
    assert found.plan == expected.plan, f"the plan is {found.plan}, not {expected.plan}"
    assert found == expected, f"tables differ ({found.plan})"


def _named(moments: Moments, wrong: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> list[str]:
    return [c for c, bad in zip(moments.columns, wrong, strict=True) if bad]
