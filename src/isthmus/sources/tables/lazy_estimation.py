"""Estimation of moments from a table of an engine with missing values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import final

from isthmus.errors import MissingValuesError
from isthmus.sources.tables.engines.base import Engine
from isthmus.sources.tables.holes import moments_are_estimated, refuse_other_kind
from isthmus.sources.tables.missing import ExpectationMaximisation
from isthmus.statistics import Kind, Moments, Schema
from isthmus.statistics.expectation import estimate_moments


@final
class LazyEstimation:
    """Estimates moments from the sums of one pass over a table.

    Parameters
    ----------
    missing
        When to stop.
    release
        Records what the engine sends.
    """

    def __init__(
        self, missing: ExpectationMaximisation, release: Callable[[str, int], None]
    ) -> None:
        self._missing = missing
        self._release = release
        self.until = math.inf
        self.remarks: tuple[str, ...] = ()

    def moments(
        self, engine: Engine, schema: Schema, columns: Sequence[str], *, holes: bool
    ) -> Moments:
        """Moments of complete rows as they are, or estimated from incomplete ones.

        Parameters
        ----------
        engine
            The engine that holds the table.
        schema, columns
            The variables, and the column of each.
        holes
            Whether values are known to be missing, which saves the pass for complete rows.
        """
        discrete = schema.of_kind(Kind.DISCRETE)
        if discrete or not holes:
            try:
                computed = engine.moments(schema, columns)
            except MissingValuesError:
                if discrete:
                    raise refuse_other_kind(discrete, self._missing, "continuous") from None
            else:
                self._release(computed.what, computed.size)
                return computed.moments
        summed = engine.patterns(schema, columns)
        self._release(summed.what, summed.size)
        patterns = summed.patterns
        estimated = estimate_moments(
            patterns,
            max_iterations=self._missing.max_iterations,
            tolerance=self._missing.tolerance,
            until=self.until,
        )
        lost, cells = int(patterns.missing.sum()), patterns.n * len(schema)
        self.remarks = (moments_are_estimated(lost, cells), *estimated.remarks())
        return estimated.moments
