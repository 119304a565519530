"""What can be asked of the sites, and how it is written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from isthmus.errors import DataError, FormatError, SchemaError
from isthmus.sources.base import Source, countable
from isthmus.sources.horizontal.requests.base import Matrix, Message, Request
from isthmus.sources.horizontal.requests.grid import (
    LIMBS,
    NUMBERS,
    Grid,
    counts_size,
    decode_counts,
    encode_counts,
)
from isthmus.sources.horizontal.secure_sum.words import Words
from isthmus.sources.tables.with_features import Expanded
from isthmus.statistics import Counts, Expansion, Kind, Moments, Plan, Schema

__all__ = [
    "AskCounts",
    "AskFeatures",
    "AskMoments",
    "AskTotals",
    "Matrix",
    "Message",
    "Request",
    "read_request",
]


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
    from isthmus.federated.admm.requests import read_consensus, read_networks

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
        return read_consensus(plain)
    if set(plain) == {"networks", "hidden", "step", "rows", "rho", "parameters", "centre"}:
        return read_networks(plain)
    raise FormatError("unknown request")
