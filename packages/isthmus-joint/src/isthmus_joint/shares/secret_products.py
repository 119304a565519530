"""Products of one party's bits with the other party's numbers, as shares, by oblivious transfer.

For each bit, the party that has it obtains a random number if the bit is zero, and the same number
plus the other party's if it is one; the other party does not learn which. Sums of what both then
hold are shares of sums of products. Unlike with encrypted columns, a party learns nothing from the
messages, whatever its program, and nothing but bits can be given as bits.

Random numbers are stretched from 128 transfers of seeds (Ishai, Kilian, Nissim and Petrank 2003).
That the same bits were used in all of them is checked by a linear hash, as in Keller, Orsini and
Scholl (2015) with the proof of Roy (2022), "SoftSpokenOT". The hash is the tag of AES-GCM, under a
key that follows from all that was sent: of data without text it is a polynomial over GF(2^128), so
linear up to a constant. Random numbers are hashes of the transfers' keys by AES with a key that
both know (Guo, Katz, Wang and Yu 2020).

Counts of a few people at a time are computed modulo 256, which takes a byte for each product, and
lifted to the ring of 64 bits: one transfer more for each of them.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from numpy.typing import NDArray

from isthmus_joint.shares.link import Words, added, broken, negative, total

if TYPE_CHECKING:
    from isthmus_joint.shares.link import Link

Bytes = NDArray[np.uint8]

SECURITY = 128
"""Number of transfers of seeds, and bits of the hash that checks them."""

MESSAGE = 1 << 21
"""Maximum number of bytes of a message, unless a single row has more."""

AHEAD = 4
"""Messages of the party with the bits for which the answer of the other is still to come."""

GROUP = 127
"""People who are counted together with one byte, so that the first bit of a count is zero."""

LIFTED = 1 << 22
"""Counts of groups that are lifted together."""

KEY = 16


@final
@dataclass(frozen=True)
class ColumnProducts:
    """All products of some columns of one party, of bits, with some columns of the other.

    Attributes
    ----------
    chooser
        Rank of the party that has the bits.
    widths
        Number of columns of this party and of the other.
    own
        Returns the columns of the party that calls it, of a range of rows: bits (bool) or numbers.
    """

    chooser: int
    widths: tuple[int, int]
    own: Callable[[slice], NDArray[Any]]


@final
class SecretProducts:
    """Multiplies together with the other party.

    Both parties must call the same methods in the same order with the same shapes.
    """

    def __init__(self, link: Link) -> None:
        self._chooser: _Chooser
        self._sender: _Sender
        for chooser in (0, 1):
            if link.rank == chooser:
                self._chooser = _Chooser(link)
            else:
                self._sender = _Sender(link)
        self._rank = link.rank

    def counts(self, wanted: Sequence[ColumnProducts], rows: int) -> list[Words]:
        """Return this party's share of the number of rows in which columns of both are one.

        Parameters
        ----------
        wanted
            What to multiply, zeros and ones; the shapes are the same at both parties.

        Returns
        -------
        list of ndarray
            One matrix for each, with a row for each column of the party with the bits.
        """
        totals: list[Words] = []
        for batch in _batches(wanted, rows):
            groups: list[list[Bytes]] = [[] for _ in batch]
            for k, share in self._shares(batch, rows, np.uint8):
                groups[k].append(_grouped(share))
            counted = [np.concatenate(parts) for parts in groups]
            totals += [part.sum(axis=0, dtype=np.uint64) for part in _lifted(self, counted)]
        return totals

    def sums(self, wanted: ColumnProducts, rows: int) -> Words:
        """Return this party's share of sums over rows of products of columns, with 64 bits."""
        found = np.zeros(wanted.widths, dtype=np.uint64)
        for _, share in self._shares([wanted], rows, np.uint64):
            found += share.sum(axis=0, dtype=np.uint64)
        return found

    def each(self, own: NDArray[Any]) -> Words:
        """Return this party's share of products of single bits, with 64 bits."""
        wanted = ColumnProducts(0, (1, 1), lambda at: own[at, None])
        shares = [share.ravel() for _, share in self._shares([wanted], len(own), np.uint64)]
        return np.concatenate(shares)

    def chosen(self, own: NDArray[Any], shape: tuple[int, int, int]) -> Words:
        """Return this party's share of sums of products of 128 bits.

        Parameters
        ----------
        own
            At the first party the bits, shape (m, k); at the second the numbers, shape
            (m, k, c, 2).
        shape
            The numbers m, k and c.

        Returns
        -------
        ndarray
            Shape (m, c, 2): over all k bits, the sum of a bit times its numbers.
        """
        m, k, c = shape
        parts = _parts(m, MESSAGE // (k * c * KEY))
        blocks = [_Block(own[at], (k, c), wide=True) for at in parts]
        found = [total(share, 1) for share in self._one_way(0, blocks)]
        return np.concatenate(found)

    def crossed(self, bits: NDArray[np.uint8], numbers: NDArray[Any]) -> NDArray[Any]:
        """Return this party's share of products, where both have bits and numbers.

        Parameters
        ----------
        bits
            Zeros and ones of this party, shape (m,).
        numbers
            What the other party's bits are multiplied with: bytes or words, shape (m, c), or
            elements of 128 bits, shape (m, c, 2).

        Returns
        -------
        ndarray
            The sum of one's own bits times the other's numbers, and of its bits times these.
        """
        parts = list(_parts(len(bits), MESSAGE // max(numbers[:1].nbytes, KEY)))
        shares = np.empty_like(numbers)
        asked = [self._chooser.ask(bits[at]) for at in parts[:AHEAD]]
        heard = [self._sender.hear(at.stop - at.start) for at in parts[:AHEAD]]
        for k, at in enumerate(parts):
            own = self._sender.answer(heard[k], numbers[at])
            later = parts[k + AHEAD : k + AHEAD + 1]
            asked += [self._chooser.ask(bits[x]) for x in later]
            theirs = self._chooser.take(asked[k], bits[at], numbers[at].shape, numbers.dtype)
            heard += [self._sender.hear(x.stop - x.start) for x in later]
            asked[k] = heard[k] = shares[:0]  # not needed any more
            shares[at] = added(own, theirs) if numbers.ndim == 3 else own + theirs
        return shares

    def _shares(
        self, wanted: Sequence[ColumnProducts], rows: int, word: Any
    ) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield shares of products by the place of what was wanted, for some rows at a time."""
        for chooser in (0, 1):
            parts = [
                (k, at)
                for k, products in enumerate(wanted)
                if products.chooser == chooser
                for at in messages(products, rows, np.dtype(word).itemsize)
            ]
            blocks = (_Block(wanted[k].own(at), wanted[k].widths, word) for k, at in parts)
            for (k, _), share in zip(parts, self._one_way(chooser, blocks), strict=True):
                yield k, share

    def _one_way(self, chooser: int, blocks: Iterable[_Block]) -> Iterator[NDArray[Any]]:
        """Yield shares of products of one party's bits with the other's numbers."""
        if self._rank != chooser:
            for block in blocks:
                keys = self._sender.hear(block.rows * block.widths[0])
                numbers = np.broadcast_to(block.numbers, block.shape)
                flat = self._sender.answer(keys, numbers.reshape(len(keys), *block.shape[2:]))
                yield flat.reshape(block.shape)
            return
        waiting: deque[tuple[_Block, Words]] = deque()
        for block in blocks:
            waiting.append((block, self._chooser.ask(block.own.ravel())))
            if len(waiting) > AHEAD:
                yield self._taken(*waiting.popleft())
        while waiting:
            yield self._taken(*waiting.popleft())

    def _taken(self, block: _Block, keys: Words) -> NDArray[Any]:
        shape = (len(keys), *block.shape[2:])
        return self._chooser.take(keys, block.own.ravel(), shape, block.word).reshape(block.shape)


def carries(products: SecretProducts, shares: NDArray[Any], bits: int) -> Words:
    """Return this party's share of whether two shares of so many bits add up to more than fit.

    Of secrets in the lower half of the ring, that is so exactly if one of the shares has its first
    bit set: if none has, they are too small, and if only one has and they did not exceed the ring,
    the secret would have its first bit set.
    """
    first = shares.ravel() >> shares.dtype.type(bits - 1)
    own: Words = first.astype(np.uint64) - products.each(first)
    return own.reshape(shares.shape)


def _lifted(products: SecretProducts, shares: list[Bytes]) -> list[Words]:
    """Return shares of the same secrets with 64 bits, from shares of a byte."""
    flat = np.concatenate([part.ravel() for part in shares])
    lifted = flat - (carries(products, flat, 8) << np.uint64(8))
    parts = np.split(lifted, np.cumsum([part.size for part in shares])[:-1])
    return [part.reshape(own.shape) for part, own in zip(parts, shares, strict=True)]


def messages(products: ColumnProducts, rows: int, size: int) -> Iterator[slice]:
    """Yield the rows of each message, if numbers have this size in bytes."""
    first, second = products.widths
    height = MESSAGE // (first * max(second * size, KEY))
    height -= height % GROUP if height > GROUP else 0
    return _parts(rows, height)


def _parts(rows: int, height: int) -> Iterator[slice]:
    """Yield so many rows at a time, and one at the least."""
    height = max(1, height)
    for start in range(0, rows, height):
        yield slice(start, min(start + height, rows))


def _batches(wanted: Sequence[ColumnProducts], rows: int) -> Iterator[list[ColumnProducts]]:
    """Yield what is lifted together."""
    batch: list[ColumnProducts] = []
    size = 0
    for products in wanted:
        more = math.prod(products.widths) * math.ceil(rows / GROUP)
        if batch and size + more > LIFTED:
            yield batch
            batch, size = [], 0
        batch.append(products)
        size += more
    if batch:
        yield batch


def _grouped(share: Bytes) -> Bytes:
    """Return sums over groups of rows."""
    whole = len(share) - len(share) % GROUP
    sums = share[:whole].reshape(-1, GROUP, *share.shape[1:]).sum(axis=1, dtype=np.uint8)
    rest = share[whole:].sum(axis=0, dtype=np.uint8)[None]
    return np.concatenate([sums, rest]) if whole < len(share) else sums


@final
@dataclass(frozen=True)
class _Block:
    """A few rows of what this party has, and the number of bits and of numbers in a row."""

    own: NDArray[Any]
    widths: tuple[int, int]
    word: Any = np.uint64
    wide: bool = False

    @property
    def rows(self) -> int:
        return len(self.own)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.rows, *self.widths, *((2,) if self.wide else ()))

    @property
    def numbers(self) -> NDArray[Any]:
        """The numbers for each bit, which are the same for all bits of a row of columns."""
        return self.own if self.wide else self.own.astype(self.word)[:, None, :]


@final
class _Chooser:
    """The party that has bits."""

    def __init__(self, link: Link) -> None:
        from isthmus_joint.shares.alignment import offer_seeds

        self._link = link
        seeds, session = offer_seeds(link, SECURITY)
        self._streams = [(_stream(a), _stream(b)) for a, b in seeds]
        self._pads = _Pads(session)

    def ask(self, bits: NDArray[Any]) -> Words:
        """Send what the other party needs, and return the keys of the chosen numbers."""
        size = _padded(bits.size)
        chosen = np.frombuffer(bytearray(os.urandom(size // 8)), dtype=np.uint8)
        given = np.packbits(bits, bitorder="little")
        chosen[: given.size] = given
        empty = bytes(size // 8)
        firsts = np.empty((SECURITY, size // 8), dtype=np.uint8)
        sent = np.empty_like(firsts)
        for j, (first, second) in enumerate(self._streams):
            firsts[j] = np.frombuffer(first.update(empty), dtype=np.uint8)
            sent[j] = np.frombuffer(second.update(empty), dtype=np.uint8)
        sent ^= firsts
        sent ^= chosen
        message = sent.tobytes()
        check = _Check(self._pads.session, self._pads.used, message)
        proof = check(chosen) + b"".join(map(check, firsts))
        self._link.send(message + proof)
        return self._pads.numbered(_transposed(firsts)[: bits.size])

    def take(
        self, keys: Words, bits: NDArray[Any], shape: tuple[int, ...], word: Any
    ) -> NDArray[Any]:
        """Return the shares of products, with what the other party sends."""
        numbers = self._pads(keys, math.prod(shape[1:]), word)
        data = self._link.receive()
        if len(data) != numbers.nbytes:
            raise broken()
        corrections = np.frombuffer(data, dtype=word).reshape(shape)
        wanted = corrections * bits.astype(word).reshape(-1, *(1,) * (len(shape) - 1))
        if len(shape) == 3:
            return added(numbers.reshape(shape), wanted)
        numbers += wanted
        return numbers


@final
class _Sender:
    """The party that has numbers."""

    def __init__(self, link: Link) -> None:
        from isthmus_joint.shares.alignment import choose_seeds

        self._link = link
        choice = os.urandom(KEY)
        self._choice = np.frombuffer(choice, dtype=np.uint64)
        self._choices = np.unpackbits(np.frombuffer(choice, dtype=np.uint8), bitorder="little")
        seeds, session = choose_seeds(link, self._choices.tolist())
        self._streams = [_stream(seed) for seed in seeds]
        self._pads = _Pads(session)

    def answer(self, keys: Words, numbers: NDArray[Any]) -> NDArray[Any]:
        """Send what the numbers are added to, and return the shares of products."""
        shape, width = numbers.shape, math.prod(numbers.shape[1:])
        zero = self._pads(keys, width, numbers.dtype).reshape(shape)
        other = keys.copy()
        other[:, :2] ^= self._choice
        one = self._pads(other, width, numbers.dtype).reshape(shape)
        if numbers.ndim == 3:
            self._link.send(added(added(zero, negative(one)), numbers).tobytes())
            return negative(zero)
        sent = zero - one
        sent += numbers
        self._link.send(sent.tobytes())
        own: NDArray[Any] = np.negative(zero)
        return own

    def hear(self, number: int) -> Words:
        """Return the keys of the numbers for a bit of zero; those for one differ by the choice."""
        size = _padded(number)
        data = self._link.receive()
        length = SECURITY * size // 8
        if len(data) != length + (SECURITY + 1) * KEY:
            raise broken()
        received = np.frombuffer(data[:length], dtype=np.uint8).reshape(SECURITY, -1)
        empty = bytes(size // 8)
        columns = np.empty_like(received)
        for j, stream in enumerate(self._streams):
            columns[j] = np.frombuffer(stream.update(empty), dtype=np.uint8)
        columns ^= received * self._choices[:, None]
        check = _Check(self._pads.session, self._pads.used, data[:length])
        proof = np.frombuffer(data[length:], dtype=np.uint8).reshape(-1, KEY)
        expected = proof[1:] ^ proof[0] * self._choices[:, None]
        found = np.frombuffer(b"".join(map(check, columns)), dtype=np.uint8).reshape(-1, KEY)
        if not (found == expected).all():
            raise broken()
        return self._pads.numbered(_transposed(columns)[:number])


@final
class _Check:
    """A linear hash of bits, under a key that depends on all that was sent."""

    def __init__(self, session: bytes, number: int, message: bytes) -> None:
        start = b"isthmus check" + session + number.to_bytes(8, "little")
        key = hashlib.sha256(start + hashlib.sha256(message).digest()).digest()
        self._tag = AESGCM(key)
        self._constant = self._of(bytes(len(message) // SECURITY))

    def __call__(self, bits: Bytes) -> bytes:
        found = int.from_bytes(self._of(bits.tobytes()), "little")
        return (found ^ int.from_bytes(self._constant, "little")).to_bytes(KEY, "little")

    def _of(self, data: bytes) -> bytes:
        return self._tag.encrypt(bytes(12), b"", data)


@final
class _Pads:
    """Random numbers from keys, different ones for each transfer."""

    def __init__(self, session: bytes) -> None:
        self.session = session
        self.used = 0
        key = hashlib.sha256(b"isthmus numbers" + session).digest()[:KEY]
        self._cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()

    def numbered(self, keys: Words) -> Words:
        """Return keys with the number of their transfer as a third word."""
        numbers = np.arange(self.used, self.used + len(keys), dtype=np.uint64)
        self.used += len(keys)
        return np.column_stack([keys, numbers])

    def __call__(self, keys: Words, width: int, word: Any) -> NDArray[Any]:
        """Return so many numbers for each key."""
        blocks = -(-width * np.dtype(word).itemsize // KEY)
        hidden = self._permuted(np.ascontiguousarray(keys[:, :2]))
        inputs = np.empty((len(keys), blocks, 2), dtype=np.uint64)
        inputs[:, :, 0] = (hidden[:, 0] ^ keys[:, 2])[:, None]
        inputs[:, :, 1] = hidden[:, 1, None] ^ np.arange(blocks, dtype=np.uint64)
        outputs = self._permuted(inputs)
        outputs ^= hidden[:, None]
        numbers: NDArray[Any] = outputs.view(word).reshape(len(keys), -1)[:, :width]
        return numbers

    def _permuted(self, words: Words) -> Words:
        result = np.empty(words.nbytes + KEY, dtype=np.uint8)
        self._cipher.update_into(words.reshape(-1).view(np.uint8).data, result.data)
        return result[: words.nbytes].view(np.uint64).reshape(words.shape)


def _padded(number: int) -> int:
    """Return how many transfers are made for this number: 128 or more are random, for the check."""
    return SECURITY * (-(-number // SECURITY) + 1)


def _stream(seed: bytes) -> Any:
    """Return what encrypts zeros to random bytes, without end."""
    return Cipher(algorithms.AES(seed), modes.CTR(bytes(KEY))).encryptor()


def _transposed(rows: Bytes) -> Words:
    """Return the columns of a matrix of 128 rows of bits, as two words each."""
    groups = rows.reshape(SECURITY // 8, 8, -1).transpose(2, 0, 1)
    words = np.ascontiguousarray(groups).view(np.uint64)
    for shift, mask in ((7, 0x00AA00AA00AA00AA), (14, 0x0000CCCC0000CCCC), (28, 0xF0F0F0F0)):
        # Each word is a square of 8 x 8 bits: swap its halves, quarters and eighths.
        distance = np.uint64(shift)
        swapped = (words ^ words >> distance) & np.uint64(mask)
        words ^= swapped ^ swapped << distance
    columns = words.view(np.uint8).reshape(-1, SECURITY // 8, 8).transpose(0, 2, 1)
    return np.ascontiguousarray(columns).view(np.uint64).reshape(-1, 2)
