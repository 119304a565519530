"""Answers with noise: the integers of a site, how much noise they need, what a sum tells."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from isthmus.joint.agreement.study import Study
from isthmus.joint.federation.requests.base import SumRequest
from isthmus.joint.noise.accounting import cost, epsilon_of, scale_for
from isthmus.joint.noise.section import DifferentialPrivacy
from isthmus.joint.secure_sum.limbs import LimbArray, from_int64
from isthmus.types import Floats, Integers

S = TypeVar("S")


@dataclass(frozen=True, eq=False)
class NoisyEstimate(Generic[S]):
    """A statistic that was estimated from sums with noise.

    Attributes
    ----------
    statistic
        A valid statistic. Its number of rows is the one whose sampling error would be as large as
        the noise, so that scores, searches and standard errors take the noise for what it is:
        additional uncertainty.
    rows
        The estimated number of rows.
    error
        Standard deviation of the noise in the number of rows.
    worth
        How many rows without noise would give about as accurate a network. At most the rows of the
        statistic: noise also hides what is there.
    hidden
        Variables whose variance is not larger than the noise: their bounds may be too wide.
    clipped
        Variables whose values pile up at a bound: their bounds may be too narrow.
    """

    statistic: S
    rows: int
    error: float
    worth: int
    hidden: tuple[str, ...] = ()
    clipped: tuple[str, ...] = ()


class NoisyRelease(ABC):
    """An answer with noise. All sites and the coordinator compute the same noise from the study.

    Parameters
    ----------
    study
        The study, with a section on privacy.
    """

    def __init__(self, study: Study) -> None:
        assert study.privacy is not None
        self.study = study
        self.privacy: DifferentialPrivacy = study.privacy

    @property
    @abstractmethod
    def unit(self) -> int:
        """The integer that stands for one row in the number of rows."""

    @property
    @abstractmethod
    def numbers(self) -> int:
        """How many numbers the answer has."""

    @property
    @abstractmethod
    def row_sensitivity(self) -> float:
        """The largest norm of the integers of one row, each divided by its `spread`."""

    @abstractmethod
    def request(self) -> SumRequest[Any]:
        """Return the request that this answers."""

    @abstractmethod
    def integers(self, values: Floats) -> Integers:
        """Return the answer of a site without noise; each row contributes at most its bound."""

    @property
    def rho(self) -> float:
        """Cost of the answer: an equal part of the budget for each request of the study."""
        return self.privacy.rho / len(self.study.requests)

    @cached_property
    def spread(self) -> Floats:
        """Standard deviation of the noise of each number, in units of `scale`; at least one."""
        return np.ones(self.numbers)

    @cached_property
    def scale(self) -> float:
        """Standard deviation of the noise that each site adds to its integers."""
        return scale_for(self.rho, self.sensitivity, self.privacy.honest, self.numbers)

    @property
    def sensitivity(self) -> float:
        """The largest such norm by which one person changes the answer."""
        return self.privacy.rows_per_person * self.row_sensitivity

    @property
    def described(self) -> str:
        """The cost of the answer in a phrase."""
        delta = self.privacy.delta
        return f"ε = {epsilon_of(self.rho, delta):.3g} at δ = {delta:g}"

    def cost(self, sites: int) -> float:
        """Return the ρ of the answer if this number of sites do not reveal their noise."""
        return cost(self.sensitivity, self.scale, sites, self.numbers)


AskNoisy: TypeAlias = Callable[[NoisyRelease], tuple[list[int], int]]
"""Asks all sites for an answer with noise; returns the sum and the number of sites in it."""


def first_rows(persons: Integers, limit: int) -> Integers:
    """Return the positions of the rows that are used: the first ones of each person.

    In a snapshot these follow from the person's own values alone, whatever the order of the table.
    """
    rows = len(persons)
    order = np.argsort(persons, kind="stable")
    starts = np.flatnonzero(np.diff(persons[order], prepend=-1))
    lengths = np.diff(np.append(starts, rows))
    rank = np.arange(rows) - np.repeat(starts, lengths)
    return np.sort(order[rank < limit])


def widened(numbers: Integers, limbs: int) -> LimbArray:
    """Return signed integers of 64 bits as numbers of at least two limbs."""
    low = from_int64(numbers)
    sign = np.where(numbers < 0, np.uint32(0xFFFFFFFF), np.uint32(0)).astype(low.dtype)
    return np.concatenate([low, np.repeat(sign[:, None], limbs - 2, axis=1)], axis=1)
