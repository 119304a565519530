"""What the sites of a secure sum agreed on: who takes part, and how many must stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isthmus.errors import DataError, StudyError, counted
from isthmus_joint.agreement.identity import digest
from isthmus_joint.agreement.roster import Member, Roster
from isthmus_joint.secure_sum.shamir import MOST

FEWEST = 3
"""With two sites, each learns the other's statistics from the sum."""


@final
@dataclass(frozen=True)
class Terms:
    """The sites of a secure sum, and how many of them must answer.

    Parameters
    ----------
    roster
        The sites and their keys.
    threshold
        How many sites must answer at every stage; by default more than two thirds.
    organisations
        How many organisations must be behind them, at least three.
    """

    roster: Roster
    threshold: int = 0
    organisations: int = FEWEST

    def __post_init__(self) -> None:
        if self.threshold == 0:
            object.__setattr__(self, "threshold", default_threshold(self.members))
        broken = problems(self.roster, self.threshold, self.organisations)
        if self.roster.coordinator is None:
            broken.append("there is no coordinator")
        if broken:
            raise StudyError("These sites cannot form secure sums: " + "; ".join(broken) + ".")

    @property
    def study(self) -> bytes:
        """SHA-256 of the study file."""
        return self.roster.study

    @property
    def members(self) -> tuple[Member, ...]:
        """The sites, in the order of the study."""
        return self.roster.members

    @property
    def coordinator(self) -> bytes:
        """The public key of the coordinator."""
        assert self.roster.coordinator is not None
        return self.roster.coordinator

    @cached_property
    def digest(self) -> bytes:
        """A hash of all of this."""
        parts = [p for m in self.members for p in (m.name.encode(), m.organisation.encode(), m.key)]
        numbers = b"%d of %d" % (self.threshold, self.organisations)
        return digest(b"isthmus terms 1", self.study, numbers, self.coordinator, *parts)

    def position(self, name: str) -> int:
        """Return the position of a site in the roster."""
        return self.roster.position(name)

    @property
    def tolerated(self) -> int:
        """How many sites may collude with the coordinator: 2 t - K - 1."""
        return 2 * self.threshold - len(self.members) - 1

    @property
    def colluders(self) -> int:
        """How many organisations must collude with the coordinator to learn a site's numbers.

        Either they hold more sites than the protocol tolerates, or they are all others and
        subtract their own numbers.
        """
        sizes = sorted(self.roster.sites_of_organisations().values(), reverse=True)
        held = 0
        for number, size in enumerate(sizes, start=1):
            held += size
            if held > self.tolerated:
                return min(number, len(sizes) - 1)
        return len(sizes) - 1

    def enough(self, sites: frozenset[int]) -> bool:
        """Return whether these sites may form a sum."""
        organisations = self.roster.organisations(sites)
        return len(sites) >= self.threshold and len(organisations) >= self.organisations


def default_threshold(members: Sequence[Member]) -> int:
    """Return more than two thirds of the sites, or more if one organisation operates many.

    All sites of one organisation may collude, because one person may control them.
    """
    sites = len(members)
    largest = max(Counter(m.organisation for m in members).values(), default=0)
    return max(2 * sites // 3 + 1, FEWEST, (sites + largest + 2) // 2)


def problems(roster: Roster, threshold: int, organisations: int) -> list[str]:
    """Return a phrase for each reason why these sites cannot form secure sums."""
    broken = []
    sites = len(roster)
    if not FEWEST <= sites <= MOST:
        broken.append(f"{counted(sites, 'site')} given; {FEWEST} to {MOST} are allowed")
    lowest = max(FEWEST, sites // 2 + 1)
    if not lowest <= threshold <= max(sites, FEWEST):
        broken.append(
            f"the threshold is {threshold}; with {sites} sites it must be between {lowest} and "
            f"{sites}"
        )
    largest = max(roster.sites_of_organisations().values(), default=0)
    if lowest <= threshold and largest > 2 * threshold - sites - 1:
        broken.append(
            f"one organisation operates {largest} of {sites} sites and could learn the numbers of "
            f"others; the threshold must be at least {(sites + largest + 2) // 2}"
        )
    if organisations < FEWEST:
        broken.append(f"organisations is {organisations}; it must be at least {FEWEST}")
    if len(roster.organisations(roster.everyone)) < organisations:
        broken.append(f"fewer than {organisations} organisations are behind the sites")
    return broken


# --- Arrays of integers modulo a power of two, stored as 32-bit limbs ---------------------------

LimbArray = NDArray[np.uint32]
"""Shape (numbers, limbs), lowest limb first."""

LIMB = np.dtype("<u4")
LOW = np.int64(0xFFFFFFFF)


def from_ints(values: Iterable[int], limbs: int) -> LimbArray:
    """Return signed integers as limbs; `DataError` for a number that does not fit."""
    size, bits = 4 * limbs, 32 * limbs
    half, modulus = 1 << (bits - 1), 1 << bits
    data = bytearray()
    for v in values:
        if not -half <= v < half:
            raise DataError(f"A number does not fit into {bits} bits, so it cannot be summed.")
        data += (v % modulus).to_bytes(size, "little")
    return np.frombuffer(bytes(data), LIMB).reshape(-1, limbs)


def from_digits(digits: NDArray[np.int64], lowest: int, limbs: int) -> LimbArray:
    """Return numbers that are sums of shifted integers, modulo two to the power of their bits.

    Parameters
    ----------
    digits
        Signed integers below 2⁶² in absolute value, shape (digits, numbers). Number n is the sum
        of ``digits[k, n] << (16 * k + lowest)`` over all k.
    lowest
        Number of bits by which the lowest digit is shifted.
    """
    first, bits = divmod(lowest, 16)
    halves = np.zeros((2 * limbs, digits.shape[1]), dtype=np.int64)
    carry = np.zeros(digits.shape[1], dtype=np.int64)
    for k in range(2 * limbs - first):
        value = carry + digits[k] if k < len(digits) else carry
        halves[first + k] = value & 0xFFFF
        carry = value >> 16
    halves <<= bits
    halves[1:] += halves[:-1] >> 16
    halves &= 0xFFFF
    return np.ascontiguousarray((halves[::2] | halves[1::2] << 16).T).astype(LIMB)


def to_ints(numbers: LimbArray) -> list[int]:
    """Return limbs as signed integers."""
    limbs = numbers.shape[1]
    size, bits = 4 * limbs, 32 * limbs
    half, modulus = 1 << (bits - 1), 1 << bits
    data = to_bytes(numbers)
    values = (int.from_bytes(data[i : i + size], "little") for i in range(0, len(data), size))
    return [v - modulus if v >= half else v for v in values]


def from_int64(values: ArrayLike) -> LimbArray:
    """Return signed 64-bit integers as pairs of limbs."""
    flat = np.ascontiguousarray(values, dtype="<i8").reshape(-1)
    return flat.view(LIMB).reshape(-1, 2)


def to_int64(limbs: LimbArray) -> NDArray[np.int64]:
    """Return pairs of limbs as signed 64-bit integers."""
    if limbs.shape[1] != 2:
        raise DataError(f"Numbers of {limbs.shape[1]} limbs are not 64-bit integers.")
    return np.ascontiguousarray(limbs, dtype=LIMB).view("<i8").reshape(-1).astype(np.int64)


def to_bytes(limbs: LimbArray) -> bytes:
    """Return little-endian bytes, number by number."""
    return np.ascontiguousarray(limbs, dtype=LIMB).tobytes()


def from_bytes(data: bytes, limbs: int) -> LimbArray:
    """Read what `to_bytes` wrote."""
    return np.frombuffer(data, LIMB).reshape(-1, limbs)


@final
class LimbAccumulator:
    """Adds and subtracts arrays of limbs; carries are propagated at the end.

    Limbs of 32 bits are added in 64 bits, so two billion terms are exact.
    """

    def __init__(self, size: int, limbs: int) -> None:
        self._sums = np.zeros((size, limbs), dtype=np.int64)

    def add(self, limbs: LimbArray, sign: int = 1) -> None:
        """Add numbers, or subtract them with a negative sign."""
        operation = np.add if sign > 0 else np.subtract
        operation(self._sums, limbs, out=self._sums)

    def add_bytes(self, pieces: Iterable[bytes], sign: int = 1) -> None:
        """Add or subtract what `to_bytes` wrote, in pieces of whole limbs."""
        sums, at = self._sums.reshape(-1), 0
        operation = np.add if sign > 0 else np.subtract
        for piece in pieces:
            limbs = np.frombuffer(piece, LIMB)
            part = sums[at : at + len(limbs)]
            operation(part, limbs, out=part)
            at += len(limbs)

    def total(self) -> LimbArray:
        """Return the sum, modulo two to the power of the bits of a number."""
        total = np.empty(self._sums.shape, dtype=LIMB)
        carry = np.zeros(len(self._sums), dtype=np.int64)
        for k in range(self._sums.shape[1]):
            limb = self._sums[:, k] + carry
            total[:, k] = limb & LOW
            carry = limb >> 32
        return total
