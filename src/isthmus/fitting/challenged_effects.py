"""Effects in draws of graphs: those of linear networks where these survive their challenge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError
from isthmus.fitting.estimate import Estimate
from isthmus.fitting.linear_effects import LinearEffects
from isthmus.fitting.total_effect import adjusted_effect
from isthmus.graphs import DAG
from isthmus.statistics import Moments
from isthmus.types import Floats

_ERRORS = 3.0
"""How far the logarithms of robust and plain standard errors may be apart, times the root of the
number of rows: about 2.5 standard deviations of their difference if the variance is constant."""


@final
@dataclass(frozen=True, eq=False)
class ChallengedEffects:
    """Coefficients of linear networks, and the estimator of `effect` where lines fail.

    Attributes
    ----------
    lines
        The linear networks.
    moments
        Moments of the columns.
    rows
        Returns columns; None after copying or pickling, so that rows stay where they are.
    incomplete
        Returns columns with NaN for missing values, if the moments maximise their likelihood.
    """

    lines: LinearEffects
    moments: Moments
    rows: Callable[[Sequence[str]], Floats] | None
    incomplete: Callable[[Sequence[str]], Floats] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"lines": self.lines, "moments": self.moments, "rows": None, "incomplete": None}

    @cached_property
    def _larger(self) -> dict[tuple[str, str, tuple[str, ...]], Estimate | None]:
        return {}

    def mean(self, dag: DAG) -> NDArray[np.float64]:
        """Return the expected total effect ``[cause, effect]`` by lines in one graph."""
        return self.lines.mean(dag)

    def draw_all(self, dag: DAG, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw the coefficients of lines of one graph and return all total effects."""
        return self.lines.draw_all(dag, rng)

    def draw(
        self, dags: Sequence[DAG], cause: int, effect: int, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Draw the total effect once for each graph."""
        drawn = self.lines.draw(dags, cause, effect, rng)
        a, b = self.lines.nodes[cause], self.lines.nodes[effect]
        found: dict[DAG, Estimate | None] = {}
        for i, dag in enumerate(dags):
            if dag not in found:
                path = b in dag.descendants(a)
                found[dag] = self._challenged(a, b, dag.adjustment_set(a, b)) if path else None
            larger = found[dag]
            if larger is not None:
                error = larger.standard_error * rng.standard_t(max(larger.degrees, 1.0))
                drawn[i] = larger.value + error
        return drawn

    def _challenged(self, cause: str, effect: str, given: tuple[str, ...]) -> Estimate | None:
        """Return the estimate of the larger model; None if lines survive it."""
        key = (cause, effect, given)
        if key not in self._larger:
            none = self.rows is None and self.incomplete is None
            self._larger[key] = None if none else self._estimate(*key)
        return self._larger[key]

    def _estimate(self, cause: str, effect: str, given: tuple[str, ...]) -> Estimate | None:
        try:
            plain = adjusted_effect(self.moments, cause, effect, given)
            larger = adjusted_effect(
                self.moments, cause, effect, given, rows=self.rows, incomplete=self.incomplete
            )
        except DataError:  # such as exact relations, of which the prior has an opinion
            return None
        if not larger.robust or not plain.standard_error > 0.0:
            return None
        apart = abs(np.log(larger.standard_error / plain.standard_error))
        survives = not larger.terms and apart < _ERRORS / np.sqrt(self.moments.n)
        return None if survives else larger
