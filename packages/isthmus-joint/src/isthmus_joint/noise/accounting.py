"""Accounting of differential privacy: what discrete Gaussian noise costs, and how costs add up.

Costs are counted in zero-concentrated differential privacy (zCDP; Bun and Steinke 2016), where
they add up: answers that cost ρ₁ and ρ₂ cost ρ₁ + ρ₂ together. They are reported as ε at a δ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, final

from isthmus.errors import ArgumentError, StudyError
from isthmus_joint.agreement.toml import Least, Reader, plain

SMALLEST_SCALE = 0.5
"""The bound on sums of discrete Gaussians holds from this standard deviation on."""

STEPS = 200
"""Maximum number of bisection steps."""


def delta_of(rho: float, epsilon: float) -> float:
    """Return a δ such that ρ-zCDP implies (ε, δ)-differential privacy.

    This is Corollary 13 of Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential
    Privacy" (2020): the minimum over α > 1 of ``exp((α-1)(αρ-ε)) (1-1/α)^α / (α-1)``. Every α
    gives a valid δ, so that an inexact minimum is on the safe side.
    """
    if rho == 0.0:
        return 0.0
    # The derivative of the logarithm increases in α.
    _, alpha = _bisected(
        1.0 + 1e-9,
        (epsilon + 1.0) / (2.0 * rho) + 2.0,
        lambda a: (2.0 * a - 1.0) * rho - epsilon + math.log1p(-1.0 / a) >= 0.0,
    )
    exponent = (alpha - 1.0) * (alpha * rho - epsilon) + alpha * math.log1p(-1.0 / alpha)
    return min(1.0, math.exp(min(exponent, 700.0)) / (alpha - 1.0))


def epsilon_of(rho: float, delta: float) -> float:
    """Return an ε such that ρ-zCDP implies (ε, δ)-differential privacy."""
    _require_delta(delta)
    if rho == 0.0:
        return 0.0
    largest = rho + 2.0 * math.sqrt(rho * math.log(1.0 / delta))
    return _bisected(0.0, largest, lambda epsilon: delta_of(rho, epsilon) <= delta)[1]


def rho_of(epsilon: float, delta: float) -> float:
    """Return the largest ρ that implies (ε, δ)-differential privacy."""
    _require_delta(delta)
    if not (epsilon > 0.0 and math.isfinite(epsilon)):
        raise ArgumentError(f"epsilon is {epsilon}; it must be positive and finite.")
    return _bisected(0.0, epsilon + 1.0, lambda rho: delta_of(rho, epsilon) > delta)[0]


def _bisected(low: float, high: float, is_high: Callable[[float], bool]) -> tuple[float, float]:
    """Return neighbours between which a condition that holds for large numbers begins to hold."""
    for _ in range(STEPS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if is_high(middle) else (middle, high)
    return low, high


def gap(scale: float, sites: int) -> float:
    """Return τ: how far a sum of discrete Gaussians is from a discrete Gaussian.

    This is Proposition 14 of Kairouz, Liu and Steinke, "The Distributed Discrete Gaussian Mechanism
    for Federated Learning with Secure Aggregation" (2021).

    Parameters
    ----------
    scale
        Standard deviation of the noise of each site.
    sites
        How many sites add noise.
    """
    if scale < SMALLEST_SCALE:
        raise ArgumentError(f"The scale is {scale}; the bound holds from {SMALLEST_SCALE} on.")
    exponent = -2.0 * math.pi**2 * scale**2
    return 10.0 * sum(math.exp(exponent * k / (k + 1)) for k in range(1, sites))


def cost(sensitivity: float, scale: float, sites: int, numbers: int) -> float:
    """Return the ρ of an answer to which several sites have added discrete Gaussian noise.

    Parameters
    ----------
    sensitivity
        The largest Euclidean norm by which one person changes the answer.
    scale
        Standard deviation of the noise of each site in each number.
    sites
        How many sites have added noise that nobody else knows.
    numbers
        How many numbers the answer has.
    """
    distance = sensitivity / (math.sqrt(sites) * scale)
    return (distance + gap(scale, sites) * math.sqrt(numbers)) ** 2 / 2.0


def scale_for(rho: float, sensitivity: float, sites: int, numbers: int) -> float:
    """Return the standard deviation of the noise of each site with which an answer costs ρ."""
    scale = max(sensitivity / math.sqrt(2.0 * rho * sites), SMALLEST_SCALE)
    while cost(sensitivity, scale, sites, numbers) > rho:
        scale *= 1.0 + 1e-6 if gap(scale, sites) == 0.0 else 1.01
    return scale


def _require_delta(delta: float) -> None:
    if not 0.0 < delta < 1.0:
        raise ArgumentError(f"delta is {delta}; it must be between 0 and 1.")


# --- What the answers of a site with noise have cost so far, by study ---------------------------


@final
@dataclass(frozen=True)
class Spending:
    """The cost of all answers with noise in a ledger, in zero-concentrated differential privacy.

    Attributes
    ----------
    costs
        The ρ of each study, by the hash of the study, in the order of the ledger.
    """

    costs: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, entries: Iterable[Mapping[str, Any]]) -> Spending:
        """Add up the entries of a ledger. An answer that was sent again costs nothing."""
        answers = {
            (str(e.get("study")), e["answer"]): float(e["rho"]) for e in entries if "rho" in e
        }
        costs: dict[str, float] = {}
        for (study, _), rho in answers.items():
            costs[study] = costs.get(study, 0.0) + rho
        return cls(costs)

    @property
    def total(self) -> float:
        """The cost of all studies together."""
        return sum(self.costs.values())

    def without(self, study: str) -> float:
        """Return the cost of all studies but one."""
        return sum(rho for name, rho in self.costs.items() if name != study)

    def describe(self, delta: float, limit: float | None = None) -> str:
        """Describe for people what was spent, at a δ; `limit` is the ε of the policy."""
        if not self.costs:
            spent = "no answer with noise has left"
        else:
            studies = [
                f"ε = {epsilon_of(rho, delta):.3g} in the study {name[:16]}…"
                for name, rho in self.costs.items()
            ]
            total = f"{epsilon_of(self.total, delta):.3g}"
            several = f"; ε = {total} in all {len(studies)} studies together"
            spent = ", ".join(studies) + (several if len(studies) > 1 else "")
        if limit is None:
            allowed = ""
        elif limit == 0.0:
            allowed = ". The policy allows no more such answers: maximum_epsilon is 0"
        else:
            allowed = f". The policy allows ε = {limit:g} in total, over the life of this ledger"
        return f"Differential privacy, per person and at δ = {delta:g}: {spent}{allowed}."


# --- The section ``[privacy]`` of a study: its budget, and what the noise is computed from ------

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
