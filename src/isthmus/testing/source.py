"""Conformance check for sources."""

from __future__ import annotations

import numpy as np

from isthmus.sources import Source
from isthmus.statistics import CountPlan, Counts, Kind, Moments


def check_source(source: Source, frame: Source) -> None:
    """Check that a source returns the same statistics as a `Frame` of the same rows.

    Schemas and counts must be equal. Moments must agree to 1e-10, relative to the standard
    deviations.

    Parameters
    ----------
    source
        The source to check.
    frame
        The same rows in memory, in any order.

    Raises
    ------
    AssertionError
        If something differs. The message says what.
    """
    schema = frame.schema()
    assert source.schema() == schema, f"schemas differ: {source.schema()} is not {schema}"
    check_moments(source.moments(), frame.moments())
    backwards = schema.names[::-1]
    check_moments(source.moments(backwards), frame.moments(backwards))
    first = schema.names[:1]
    check_moments(source.moments(first), frame.moments(first))
    discrete = schema.of_kind(Kind.DISCRETE)
    plans = [CountPlan.sets([discrete[:2], discrete[-1:]])] if discrete else []
    if len(discrete) == len(schema):
        plans += [CountPlan.everything(), CountPlan.up_to(2)]
    for plan in plans:
        check_counts(source.counts(plan), frame.counts(plan))


def check_moments(actual: Moments, expected: Moments, tolerance: float = 1e-10) -> None:
    """Check that two moments are equal, relative to the standard deviations of the columns."""
    assert actual.schema == expected.schema, "the schemas of the moments differ"
    assert actual.n == expected.n, f"the moments have {actual.n} rows, not {expected.n}"
    spread = np.sqrt(expected.scatter().diagonal())
    size = np.maximum(spread / np.sqrt(expected.n), np.abs(expected.mean()))
    wrong = np.abs(actual.mean() - expected.mean()) > tolerance * size
    assert not wrong.any(), f"the means of {_named(expected, wrong)} differ"
    # The scatter of a constant column is not exactly zero, because its mean is rounded.
    rounding = 2 * np.finfo(np.float64).eps * np.abs(expected.mean()) * np.sqrt(expected.n)
    wide = np.maximum(spread, rounding)
    scale = tolerance * np.outer(wide, wide) + np.outer(rounding, rounding)
    wrong = np.asarray((np.abs(actual.scatter() - expected.scatter()) > scale).any(axis=0))
    assert not wrong.any(), f"the products of {_named(expected, wrong)} differ"


def check_counts(actual: Counts, expected: Counts) -> None:
    """Check that two counts are equal."""
    assert actual.schema == expected.schema, "the schemas of the counts differ"
    assert actual.n == expected.n, f"the counts have {actual.n} rows, not {expected.n}"
    assert actual.plan == expected.plan, f"the plan is {actual.plan}, not {expected.plan}"
    assert actual == expected, f"the tables of {actual.plan} differ"


def _named(moments: Moments, wrong: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> list[str]:
    return [c for c, bad in zip(moments.columns, wrong, strict=True) if bad]
