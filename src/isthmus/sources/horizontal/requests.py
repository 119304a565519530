"""What can be asked of the sites, and how it is written."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError, FormatError, SchemaError
from isthmus.sources.base import Source, countable
from isthmus.sources.expanded import Expanded
from isthmus.sources.horizontal.grid import (
    LIMBS,
    NUMBERS,
    Grid,
    counts_size,
    decode_counts,
    encode_counts,
)
from isthmus.sources.horizontal.words import Words, from_ints, to_ints
from isthmus.statistics import Counts, Expansion, Kind, Moments, Plan, Schema

Matrix: TypeAlias = NDArray[np.float64]

PARAMETER = 20
"""Parameters of a model are smaller than two to this power."""


class Message(StrEnum):
    """The kinds of statistics that a study may allow."""

    MOMENTS = "moments"
    COUNTS = "counts"
    FEATURES = "features"
    TOTALS = "totals"
    CONSENSUS = "consensus"


class Request(ABC):
    """A question to all sites, answered by one secure sum."""

    @property
    @abstractmethod
    def message(self) -> Message:
        """What kind of statistic it asks for."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The variables it is about."""

    @property
    @abstractmethod
    def limbs(self) -> int:
        """Length of a number in 32-bit limbs."""

    @abstractmethod
    def size(self, common: Grid) -> int:
        """How many numbers the answer is."""

    @abstractmethod
    def gather(self, source: Source) -> Moments | Counts:
        """Compute the statistic of one site."""

    @abstractmethod
    def encode(self, found: Moments | Counts | Matrix, common: Grid) -> Words:
        """Put the statistic of one site on the grid."""

    @abstractmethod
    def decode(self, words: Words, common: Grid) -> Moments | Counts | Matrix:
        """Read the statistic of all sites."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""

    @abstractmethod
    def __str__(self) -> str: ...

    def to_bytes(self) -> bytes:
        """As it travels: JSON without spaces."""
        return json.dumps(self.to_dict(), separators=(",", ":"), allow_nan=False).encode()


@final
@dataclass(frozen=True)
class AskMoments(Request):
    """Number of rows, sums and products of these variables."""

    asked: tuple[str, ...]
    message = Message.MOMENTS
    limbs = LIMBS

    @property
    def names(self) -> tuple[str, ...]:
        """The variables it is about."""
        return self.asked

    def _grid(self, common: Grid) -> Grid:
        schema = common.schema.subset(self.asked)
        bounds = {n: b for n, b in common.bounds.items() if n in schema}
        return Grid(schema, bounds, common.rows, common.sites)

    def size(self, common: Grid) -> int:
        """How many numbers the answer is."""
        return self._grid(common).size

    def gather(self, source: Source) -> Moments:
        """Compute the moments of one site."""
        return source.moments(self.asked)

    def encode(self, found: Moments | Counts | Matrix, common: Grid) -> Words:
        """Put the moments of one site on the grid."""
        assert isinstance(found, Moments)
        return self._grid(common).encode(found)

    def decode(self, words: Words, common: Grid) -> Moments:
        """Read the moments of all sites."""
        return self._grid(common).decode(words)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"moments": list(self.asked)}

    def __str__(self) -> str:
        return f"number of rows, sums and products of {len(self.asked)} variables"


@final
@dataclass(frozen=True)
class AskCounts(Request):
    """Tables over planned sets of these discrete variables."""

    asked: tuple[str, ...]
    plan: Plan
    message = Message.COUNTS
    limbs = 2

    @property
    def names(self) -> tuple[str, ...]:
        """The variables it is about."""
        return self.asked

    def _schema(self, schema: Schema) -> Schema:
        found = countable(schema, self.plan)
        if found.names != self.asked:
            raise SchemaError("The counts are not of the variables of the study.")
        return found

    def size(self, common: Grid) -> int:
        """How many numbers the answer is."""
        return counts_size(self._schema(common.schema), self.plan)

    def gather(self, source: Source) -> Counts:
        """Count the rows of one site."""
        return source.counts(self.plan)

    def encode(self, found: Moments | Counts | Matrix, common: Grid) -> Words:
        """List the cells of one site."""
        assert isinstance(found, Counts)
        return encode_counts(found, common.rows)

    def decode(self, words: Words, common: Grid) -> Counts:
        """Read the tables of all sites."""
        return decode_counts(words, self._schema(common.schema), self.plan)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"counts": list(self.asked), "plan": self.plan.to_dict()}

    def __str__(self) -> str:
        return f"tables of {len(self.asked)} variables: {self.plan}"


@final
@dataclass(frozen=True)
class AskFeatures(Request):
    """Moments of basis functions of continuous variables, standardised with pooled moments."""

    expansion: Expansion
    message = Message.FEATURES
    limbs = LIMBS

    @property
    def names(self) -> tuple[str, ...]:
        """The variables it is about."""
        return self.expansion.names

    def _grid(self, common: Grid) -> Grid:
        schema = self.expansion.schema()
        common.schema.subset(self.expansion.names).require(Kind.CONTINUOUS, "Basis functions")
        # A Chebyshev polynomial of a clipped column stays between -1 and 1.
        bounds = {n: common.bounds.get(n, (-1.5, 1.5)) for n in schema.names}
        return Grid(schema, bounds, common.rows, common.sites)

    def size(self, common: Grid) -> int:
        """How many numbers the answer is."""
        return self._grid(common).size

    def gather(self, source: Source) -> Moments:
        """Compute the moments of one site."""
        return Expanded(source, self.expansion).moments()

    def encode(self, found: Moments | Counts | Matrix, common: Grid) -> Words:
        """Put the moments of one site on the grid."""
        assert isinstance(found, Moments)
        return self._grid(common).encode(found)

    def decode(self, words: Words, common: Grid) -> Moments:
        """Read the moments of all sites."""
        return self._grid(common).decode(words)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"features": self.expansion.to_dict()}

    def __str__(self) -> str:
        columns = len(self.expansion.schema())
        return f"sums and products of {columns} basis functions of {len(self.names)} variables"


@final
@dataclass(frozen=True)
class AskTotals(Request):
    """Number of rows and sums of these continuous variables."""

    asked: tuple[str, ...]
    message = Message.TOTALS
    limbs = LIMBS

    @property
    def names(self) -> tuple[str, ...]:
        """The variables it is about."""
        return self.asked

    def size(self, common: Grid) -> int:
        """How many numbers the answer is."""
        return 1 + len(common.schema.subset(self.asked).columns)

    def gather(self, source: Source) -> Moments:
        """Compute the moments of one site, of which only the sums are sent."""
        return source.moments(self.asked)

    def encode(self, found: Moments | Counts | Matrix, common: Grid) -> Words:
        """Put the sums of one site on the grid."""
        whole = AskMoments(self.asked).encode(found, common)
        return whole[: self.size(common)]

    def decode(self, words: Words, common: Grid) -> Moments:
        """Read number of rows and means of all sites; products are not known and are zero."""
        whole = AskMoments(self.asked)
        padded = np.zeros((whole.size(common), LIMBS), dtype=words.dtype)
        padded[: len(words)] = words
        found = whole.decode(padded, common)
        return replace(found, gram=np.zeros_like(found.gram))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"totals": list(self.asked)}

    def __str__(self) -> str:
        return f"number of rows and sums of {len(self.asked)} variables"


@final
@dataclass(frozen=True)
class AskConsensus(Request):
    """One step of ADMM for linear models.

    Attributes
    ----------
    asked
        The variables.
    step
        Number of the step.
    rows
        Number of rows of all sites.
    rho
        Penalty on disagreement.
    weights
        The common weights, row by row.
    centre
        About which second moments are taken; ``None`` for each site's own means.
    """

    asked: tuple[str, ...]
    step: int
    rows: int
    rho: float
    weights: tuple[tuple[float, ...], ...]
    centre: tuple[float, ...] | None
    message = Message.CONSENSUS
    limbs = LIMBS

    @property
    def names(self) -> tuple[str, ...]:
        """The variables it is about."""
        return self.asked

    def size(self, common: Grid) -> int:
        """How many numbers the answer is."""
        common.schema.subset(self.asked).require(Kind.CONTINUOUS, "ADMM for linear models")
        return len(self.asked) ** 2

    def gather(self, source: Source) -> Moments:
        """Compute the moments of one site, which stay there."""
        return source.moments(self.asked)

    def second(self, moments: Moments) -> Matrix:
        """The site's second moments about the centre, as a share of all sites'."""
        centre = moments.mean() if self.centre is None else np.array(self.centre)
        return moments.shifted(centre).gram / self.rows

    def matrix(self) -> Matrix:
        """The common weights."""
        return np.array(self.weights, dtype=np.float64)

    def encode(self, found: Moments | Counts | Matrix, common: Grid) -> Words:
        """Put the parameters of one site on the grid."""
        assert isinstance(found, np.ndarray)
        if not np.abs(found).max() < 2.0**PARAMETER:
            raise DataError("The parameters of this site are too large to be summed.")
        scaled = np.ldexp(found, self._fraction(common)).ravel().tolist()
        return from_ints([round(v) for v in scaled], LIMBS)

    def decode(self, words: Words, common: Grid) -> Matrix:
        """Read the sum of the parameters of all sites."""
        one = 1 << self._fraction(common)
        d = len(self.asked)
        return np.array([v / one for v in to_ints(words)]).reshape(d, d)

    def _fraction(self, common: Grid) -> int:
        return 32 * LIMBS - 2 - PARAMETER - common.sites.bit_length()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "consensus": list(self.asked),
            "step": self.step,
            "rows": self.rows,
            "rho": self.rho,
            "weights": [list(r) for r in self.weights],
            "centre": None if self.centre is None else list(self.centre),
        }

    def __str__(self) -> str:
        return (
            f"parameters of ADMM for {len(self.asked)} variables; many such sums can tell sites "
            "apart"
        )


def read_request(data: bytes, common: Grid) -> Request:
    """Read what `Request.to_bytes` wrote; `FormatError` for anything else."""
    try:
        plain: Any = json.loads(data)
        found = _read(plain)
        if found.to_bytes() != data:
            raise FormatError("it is not in its canonical form")
        common.schema.indices(found.names)
        if found.size(common) > NUMBERS:
            raise FormatError("it asks for too many numbers")
    except (ValueError, TypeError, KeyError, AttributeError, DataError, RecursionError) as error:
        raise FormatError("This is not a request for statistics of the study.") from error
    return found


def _read(plain: Any) -> Request:
    if not isinstance(plain, Mapping):
        raise FormatError("a request is an object")
    if set(plain) == {"moments"}:
        return AskMoments(tuple(map(str, plain["moments"])))
    if set(plain) == {"counts", "plan"}:
        return AskCounts(tuple(map(str, plain["counts"])), Plan.from_dict(plain["plan"]))
    if set(plain) == {"features"}:
        return AskFeatures(Expansion.from_dict(plain["features"]))
    if set(plain) == {"totals"}:
        return AskTotals(tuple(map(str, plain["totals"])))
    if set(plain) == {"consensus", "step", "rows", "rho", "weights", "centre"}:
        return _read_consensus(plain)
    raise FormatError("unknown request")


def _read_consensus(plain: Mapping[str, Any]) -> AskConsensus:
    asked = tuple(map(str, plain["consensus"]))
    weights = np.array(plain["weights"], dtype=np.float64)
    centre = None if plain["centre"] is None else tuple(map(float, plain["centre"]))
    right = (
        weights.shape == (len(asked), len(asked))
        and np.isfinite(weights).all()
        and (centre is None or len(centre) == len(asked))
        and type(plain["step"]) is int
        and type(plain["rows"]) is int
        and plain["rows"] > 0
    )
    if not right:
        raise FormatError("not a step of ADMM")
    rows = tuple(map(tuple, weights.tolist()))
    return AskConsensus(asked, plain["step"], plain["rows"], float(plain["rho"]), rows, centre)
