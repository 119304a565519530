"""Estimates of total effects in linear models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class EffectEstimate:
    """Estimated total effect of one variable on another, per unit of an intervention on it.

    Attributes
    ----------
    cause, effect
        The two variables.
    value
        The estimate: a regression coefficient, adjusted for other variables.
    standard_error
        Its standard error, if the graph is right. The graph was learned from the same data, so
        this is too small where the graph itself is uncertain; see ``Posterior.effects``.
    adjustment
        The variables that were adjusted for.
    degrees
        Degrees of freedom of the standard error.
    possible
        Estimates under the graphs that are Markov equivalent to the learned one, in ascending
        order. With more than one, the data do not determine the effect.
    """

    cause: str
    effect: str
    value: float
    standard_error: float
    adjustment: tuple[str, ...]
    degrees: int
    possible: tuple[float, ...]

    @property
    def identified(self) -> bool:
        """Whether all equivalent graphs have the same effect."""
        return len(self.possible) == 1

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return a confidence interval by the t distribution.

        Parameters
        ----------
        level
            Its coverage, between 0 and 1.
        """
        from scipy.stats import t

        half = float(t.ppf(0.5 + level / 2, max(self.degrees, 1))) * self.standard_error
        return self.value - half, self.value + half

    def __str__(self) -> str:
        adjusted = f", adjusted for {', '.join(self.adjustment)}" if self.adjustment else ""
        text = (
            f"{self.cause} → {self.effect}: {self.value:.4g} (standard error "
            f"{self.standard_error:.2g}){adjusted}"
        )
        if self.identified:
            return text
        return (
            f"{text}. The data do not determine it: under equivalent graphs it is between "
            f"{self.possible[0]:.4g} and {self.possible[-1]:.4g}."
        )


def distinct_values(values: list[float]) -> tuple[float, ...]:
    """Return values in ascending order, without those that differ by rounding only."""
    found: list[float] = []
    for value in sorted(values):
        if not found or value - found[-1] > 1e-9 * max(abs(value), abs(found[-1])):
            found.append(value)
    return tuple(found)
