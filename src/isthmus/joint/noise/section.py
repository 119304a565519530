"""The section ``[privacy]`` of a study: its budget, and what the noise is computed from."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, final

from isthmus.errors import StudyError
from isthmus.joint.agreement.toml import Least, Reader, plain
from isthmus.joint.noise.accounting import rho_of

LARGEST_DELTA = 1e-3
"""A larger δ could be reached by publishing the records of some persons."""

SMALLEST_EPSILON, LARGEST_EPSILON = 1e-6, 1e3
"""Below the first, no number of rows would be enough. Above the second, the noise gives no
meaningful privacy."""

MOST_ROWS_PER_PERSON = 10**6


@final
@dataclass(frozen=True)
class DifferentialPrivacy:
    """Differential privacy of a study: how much all its answers together may tell of one person.

    Each site adds discrete Gaussian noise to its numbers before they are masked. Two tables are
    neighbours if one of them has one person more; the number of rows is therefore noisy, too.

    Parameters
    ----------
    epsilon, delta
        The budget of the whole study.
    bounds
        Values of continuous variables are clipped to these bounds, which must be public knowledge.
        By default they are the bounds of the study. Narrow bounds mean less noise.
    rows_per_person
        How many rows of one person are used; further rows are left out.
    honest
        How many sites in every sum add noise that nobody else knows. The sites that may collude
        with the coordinator do not count, nor does a site that is missing in the sum. 0 stands for
        the threshold of the study, without the sites of the largest organisation.
    expected_rows
        About how many rows all sites have together, as far as that is public. Only the forecast of
        the accuracy, which everybody sees before signing, depends on it; 0 if nothing is known.
    """

    epsilon: float
    delta: float = 1e-6
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    rows_per_person: Annotated[int, Least(1)] = 1
    honest: Annotated[int, Least(0)] = 0
    expected_rows: Annotated[int, Least(0)] = 0

    def __post_init__(self) -> None:
        problems = self._problems()
        if problems:
            raise StudyError("This budget cannot be used: " + "; ".join(problems) + ".")

    def _problems(self) -> list[str]:
        problems = [
            f"{name} is {value!r}; it must be a {wanted}"
            for name, wanted, kinds, value in (
                ("epsilon", "number", (int, float), self.epsilon),
                ("delta", "number", (int, float), self.delta),
                ("rows_per_person", "whole number", (int,), self.rows_per_person),
                ("honest", "whole number", (int,), self.honest),
                ("expected_rows", "whole number", (int,), self.expected_rows),
            )
            if isinstance(value, bool) or not isinstance(value, kinds)
        ]
        if problems:
            return problems
        if not SMALLEST_EPSILON <= self.epsilon <= LARGEST_EPSILON:
            problems.append(
                f"epsilon is {self.epsilon:g}; it must be between {SMALLEST_EPSILON:g} and "
                f"{LARGEST_EPSILON:g}, and for a promise that means something at most about 10"
            )
        if not 0.0 < self.delta <= LARGEST_DELTA:
            problems.append(
                f"delta is {self.delta:g}; it must be positive, at most {LARGEST_DELTA:g}"
            )
        if not 1 <= self.rows_per_person <= MOST_ROWS_PER_PERSON:
            problems.append(
                f"rows_per_person is {self.rows_per_person}; it must be at least 1, at most "
                f"{MOST_ROWS_PER_PERSON:,}"
            )
        for name, value in (("honest", self.honest), ("expected_rows", self.expected_rows)):
            if value < 0:
                problems.append(f"{name} is {value}; it must not be negative")
        for name, (low, high) in self.bounds.items():
            if not (math.isfinite(low) and math.isfinite(high) and high / 2 - low / 2 > 0):
                problems.append(f"the bounds of {name!r} must be finite and in ascending order")
        return problems

    @cached_property
    def rho(self) -> float:
        """The same budget in zero-concentrated differential privacy."""
        return rho_of(self.epsilon, self.delta)

    @classmethod
    def take(cls, top: Reader) -> DifferentialPrivacy | None:
        """Take the section of a study file; ``None`` if there is none."""
        given: Any = top.optional("privacy")
        if given is None:
            return None
        if not isinstance(given, Mapping):
            top.problems.append("privacy is not a table")
            return None
        section = Reader(given, "study", "privacy.", top.problems)
        usual = ("rows_per_person", "honest", "expected_rows")
        make = section.record(cls, optional=usual, bounds=_bounds(section))
        section.reject_other_keys()
        try:
            return make()
        except StudyError as error:
            top.problems.append(f"privacy: {str(error).rstrip('.')}")
            return None

    def to_dict(self) -> dict[str, object]:
        """Return the section of a study file."""
        bounds = {name: [float(a), float(b)] for name, (a, b) in self.bounds.items()}
        return {**plain(self, without=("bounds",)), "bounds": bounds}

    def variable_problems(self, continuous: Collection[str]) -> list[str]:
        """Return a phrase if bounds are given for other variables than continuous ones."""
        others = [n for n in self.bounds if n not in continuous]
        return [f"privacy has bounds for {others[:10]}, which are not continuous"] if others else []

    def describe(self) -> str:
        """Describe in one phrase what the noise promises, for someone who signs the study."""
        return (
            f"differential privacy with ε = {self.epsilon:g}, δ = {self.delta:g} per person over "
            f"all answers of this study, as long as {self.honest} of the sites in every sum keep "
            f"their noise to themselves; at most {self.rows_per_person} "
            f"{'row' if self.rows_per_person == 1 else 'rows'} per person"
        )


def _bounds(section: Reader) -> dict[str, tuple[float, float]]:
    given: Any = section.optional("bounds")
    try:
        return {str(name): (float(low), float(high)) for name, (low, high) in (given or {}).items()}
    except (TypeError, ValueError, AttributeError, OverflowError):
        section.problems.append("privacy.bounds must be a table of pairs of numbers")
        return {}
