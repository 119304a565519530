"""What computes together with the other party: products, openings, and what both agree on.

All that leaves a party are messages of oblivious transfer, see `secret_products`, hashes of what it
is about to compute, and shares that are opened.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import AbortedError
from isthmus_joint.shares.link import Words, broken
from isthmus_joint.shares.private_k2 import private_k2, private_tables, structure_only
from isthmus_joint.shares.secret_functions import CountScore
from isthmus_joint.shares.secret_moments import opened_moments, secret_gaussian_structure
from isthmus_joint.shares.secret_products import SecretProducts
from isthmus_joint.shares.terms import OWN, ComputationTerms, FoundNetwork

if TYPE_CHECKING:
    from isthmus_joint.shares.link import Link
    from isthmus_joint.shares.terms import Columns

BOTH = (0, 1)
LARGEST_NUMBER = 1e100
"""Largest number that a party may publish, so that products of three do not overflow."""


class Opener(Protocol):
    """Opens values: nothing else makes anything known to a party."""

    def open(self, what: str, share: bytes, to: Sequence[int]) -> bytes:
        """Exchange shares of a value with the other party.

        Returns
        -------
        bytes
            The own share, which is that of an earlier attempt if there was one, followed by the
            other's if this party learns the value.
        """


@final
class LinkOpener:
    """Opens values without any record, over the link of the engines; for tests and benchmarks."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def open(self, what: str, share: bytes, to: Sequence[int]) -> bytes:
        del what
        if 1 - self._link.rank in to:
            self._link.send(share)
        return share + (self._link.receive() if self._link.rank in to else b"")


@final
@dataclass(frozen=True)
class RevealedValue:
    """A value that was opened.

    Attributes
    ----------
    what
        Description of the value.
    to
        Ranks of the parties that learned it.
    value
        The value; None at a party that did not learn it.
    """

    what: str
    to: tuple[int, ...]
    value: Any


@final
class SecretSharingRuntime:
    """Computes together with the other party on an established link.

    Both parties must call the same methods in the same order with the same shapes.

    Parameters
    ----------
    opener
        Opens values; by default without a record.
    """

    def __init__(self, link: Link, opener: Opener | None = None) -> None:
        self.rank: int = link.rank
        self.transcript: list[RevealedValue] = []
        self._link = link
        self._opener = LinkOpener(link) if opener is None else opener
        self._products: SecretProducts | None = None

    @property
    def products(self) -> SecretProducts:
        """Products of bits and numbers of both parties; the first ones need seeds."""
        if self._products is None:
            self._products = SecretProducts(self._link)
        return self._products

    def open(
        self, secret: Words, what: str, to: Sequence[int] = BOTH, bits: int | Sequence[int] = 64
    ) -> NDArray[np.int64] | None:
        """Open a secret to some parties, and record that.

        Parameters
        ----------
        secret
            Words of 64 bits. The shares of both parties are added, nothing else.
        bits
            How many bits the value has, or each value of a list. No more leave, so that it cannot
            tell more than these, whatever the other party has made of it.

        Returns
        -------
        array or None
            The value, as integers, signed if they have 64 bits; None at a party that does not
            learn it.
        """
        kept = np.uint64(2**64 - 1) >> (np.uint64(64) - np.array(bits, dtype=np.uint64))
        words = np.ascontiguousarray(secret & kept)
        shares = np.frombuffer(self._opener.open(what, words.tobytes(), to), dtype=np.uint64)
        value: NDArray[np.int64] | None = None
        if self.rank in to:
            if shares.size != 2 * words.size:
                raise broken()
            both = shares.reshape(2, *words.shape).sum(axis=0, dtype=np.uint64) & kept
            value = both.view(np.int64)
        self.transcript.append(RevealedValue(what, tuple(to), value))
        return value

    def publish(
        self, values: NDArray[np.float64], what: str, owner: int, shape: tuple[int, ...]
    ) -> NDArray[np.float64]:
        """Tell the other party numbers that one party computed alone, and record that.

        Parameters
        ----------
        values
            The numbers, at their owner; ignored at the other party.
        shape
            Their shape, which both parties know.
        """
        given = values if owner == self.rank else np.zeros(shape)
        data = np.ascontiguousarray(given, dtype=np.float64).tobytes()
        found = self._opener.open(what, data, (1 - owner,))
        if len(found) != len(data) * (1 + (self.rank != owner)):
            raise broken()
        values = np.frombuffer(found[-len(data) :]).reshape(shape)
        if owner != self.rank and not (np.abs(values) <= LARGEST_NUMBER).all():
            raise broken()
        self.transcript.append(RevealedValue(what, (1 - owner,), values))
        return values

    def agree(self, topic: str, terms: object) -> None:
        """Check that both parties are about to compute the same, or raise `AbortedError`.

        Parameters
        ----------
        terms
            Plain data that must be equal. Only a hash of it is exchanged.
        """
        text = json.dumps([topic, terms], sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode()).digest()
        self._link.send(digest)
        if self._link.receive() != digest:
            raise AbortedError(
                f"The two parties do not agree on the {topic}: names, levels, owners, number of "
                "rows and options must be equal. Nothing was computed."
            )


# --- What the engine computes for each request, from plain terms and the own columns ------------


class Computation(Protocol):
    """Computes a result in plain data, the same at both parties except for `OWN`."""

    def __call__(
        self, engine: SecretSharingRuntime, columns: Columns, terms: ComputationTerms, /
    ) -> dict[str, Any]:
        """Compute together with the other party."""


def _greedy(
    engine: SecretSharingRuntime, columns: Columns, terms: ComputationTerms
) -> dict[str, Any]:
    score = CountScore(terms.score.lower(), terms.ess)
    found, steps = private_k2(engine, columns, terms.order, terms.max_parents, score)
    return _network(engine, columns, terms, found) | {"steps": [list(step) for step in steps]}


def _best(
    engine: SecretSharingRuntime, columns: Columns, terms: ComputationTerms
) -> dict[str, Any]:
    if not any(terms.levels.values()):
        found = secret_gaussian_structure(engine, columns, terms.order, terms.max_parents)
    else:
        score = CountScore(terms.score.lower(), terms.ess)
        found = structure_only(engine, columns, terms.order, terms.max_parents, score)
    return _network(engine, columns, terms, found)


def _moments(
    engine: SecretSharingRuntime, columns: Columns, terms: ComputationTerms
) -> dict[str, Any]:
    del terms
    found = opened_moments(engine, columns)
    arrays = {"shift": found.shift, "sums": found.sums, "gram": found.gram}
    return {"n": found.n, **{name: array.tolist() for name, array in arrays.items()}}


COMPUTATIONS: Mapping[str, Computation] = {
    "private k2": _greedy,
    "structure only": _best,
    "cross moments": _moments,
}
"""By the name of the request. The number of common people is counted without columns."""


def _network(
    engine: SecretSharingRuntime, columns: Columns, terms: ComputationTerms, found: FoundNetwork
) -> dict[str, Any]:
    """Return a network and, if the study says so, the tables of this party's own variables."""
    network = {"parents": {name: sorted(found.parents(name)) for name in found.nodes}}
    if not terms.own_tables:
        return network
    tables = private_tables(engine, columns, found, terms.minimum_cell, terms.names)
    return network | {OWN: [table.to_dict() for table in tables.values()]}
