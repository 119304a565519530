"""Private set intersection: which people both parties have.

All of it uses the commutative encryption of Meadows (1986) and Huberman, Franklin and Hogg (1999)
on Curve25519: an identifier is hashed to a point of the curve, each party multiplies points by a
secret number of its own, and what both have multiplied can be compared, in whatever order. A party
that follows the protocol learns nothing about identifiers that only the other one has, if the
decisional Diffie-Hellman problem is hard and the hash behaves like a random function.

A party gets an answer about as many points as it has stated to have people, whatever its program.
Faster protocols, such as that of Raghuraman and Rindal (2022), do not let the other party check
that.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import struct
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TypeAlias, TypeVar

import numpy as np
from cryptography.hazmat.primitives.asymmetric import ec, x25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from numpy.typing import NDArray

from isthmus.errors import AbortedError, MissingExtraError
from isthmus_joint.shares.link import Link, broken

MODULUS = 2**255 - 19
CURVE = 486662


def written(positions: NDArray[np.intp]) -> str:
    """Write positions of rows as text, for a journal and for a message of the engine."""
    return base64.b64encode(positions.astype("<i8").tobytes()).decode()


def read(text: str) -> NDArray[np.intp]:
    """Read positions of rows."""
    return np.frombuffer(base64.b64decode(text), dtype="<i8").astype(np.intp)


def point_of(text: str) -> bytes:
    """Hash an identifier to a point of Curve25519.

    A number modulo the prime is a point of the curve or of its twist, and stays on its side when it
    is multiplied. Points of the twist are passed over: otherwise each identifier would tell one bit
    of its hash.
    """
    try:
        from gmpy2 import jacobi
    except ImportError as error:
        raise MissingExtraError("gmpy2", "vertical", "A study of two parties") from error
    for attempt in range(256):
        start = b"isthmus point" + bytes([attempt])
        data = bytearray(hashlib.sha256(start + text.encode()).digest())
        data[-1] &= 127
        x = int.from_bytes(data, "little")
        if x < MODULUS and jacobi(x**3 + CURVE * x**2 + x, MODULUS) == 1:
            return bytes(data)
    raise AssertionError("no point in 256 attempts")  # less likely than 2^-250


class Multiplier:
    """A secret number by which points are multiplied."""

    def __init__(self) -> None:
        self._key = x25519.X25519PrivateKey.generate()
        self._read = x25519.X25519PublicKey.from_public_bytes

    def __call__(self, point: bytes) -> bytes:
        """Multiply a point; `AbortedError` if it is not one."""
        try:
            return self._key.exchange(self._read(point))
        except ValueError as error:
            raise broken() from error


T = TypeVar("T")

POINT = 32
BATCH = 1024
"""Points per message."""

SECONDS = (1.2e-4, 7e-5)
"""CPU seconds per identifier of one's own, which is hashed and multiplied, and of the other party,
which is multiplied; see benchmarks/vertical/identifiers.py."""

COUNT = struct.Struct("<Q")
MOST = 2**32

RECEIVER = 0
"""Rank of the party that counts; it tells the other one the number."""


def aligned_to_both(link: Link, hashes: Sequence[str], others: int) -> tuple[NDArray[np.intp], int]:
    """Align the rows of both parties so that each learns which of its people are common.

    A party commits to its answers before it has those of the other one. Otherwise it could return
    them, and so name any rows of the other party as common without knowing an identifier.

    Parameters
    ----------
    link
        The connection to the other party, which calls this function at the same time.
    hashes
        A distinct hash per person, made in the same way by both parties.
    others
        How many people the other party states to have. It gets no answer about other points.

    Returns
    -------
    positions : ndarray
        The positions of this party's rows of common people, in the order that both parties use.
    people : int
        Number of people in common.
    """
    own, other = Multiplier(), 1 - link.rank
    order = _shuffled(range(len(hashes)))
    answers = _exchange(link, own, [hashes[i] for i in order], others)
    salt = secrets.token_bytes(POINT)
    link.send(_commitment(link.rank, salt, answers))
    commitment = link.receive()
    link.send(salt)
    salt = link.receive()
    theirs = _swap(link, answers, len(order))
    if _commitment(other, salt, theirs) != commitment:
        raise broken()
    common = set(answers).intersection(theirs)
    found = sorted((point, i) for point, i in zip(theirs, order, strict=True) if point in common)
    return np.array([i for _, i in found], dtype=np.intp), len(found)


def _commitment(rank: int, salt: bytes, points: Iterable[bytes]) -> bytes:
    return hashlib.sha256(bytes([rank]) + salt + b"".join(points)).digest()


def count_common(link: Link, hashes: Sequence[str], least: int, others: int) -> int:
    """Count the people whom both parties have.

    Parties that follow the protocol do not learn who they are. One that multiplies each of its
    points by another number recognises each of its own people among the answers.

    Parameters
    ----------
    link
        The connection to the other party, which calls this function at the same time.
    hashes
        A distinct hash per person, made in the same way by both parties.
    least
        A smaller number is told as zero.
    others
        How many people the other party states to have. It gets no answer about other points.
    """
    own = Multiplier()
    both = _exchange(link, own, _shuffled(hashes), others)
    if link.rank != RECEIVER:
        # In another order, so that nobody can be recognised.
        _swap(link, _shuffled(both), 0)
        return _take_count(link)
    found = len(set(both).intersection(_swap(link, (), len(hashes))))
    found = found if found >= least else 0
    _send_count(link, found)
    return found


def aligned_to_one(
    link: Link, hashes: Sequence[str], receiver: int, others: int
) -> tuple[NDArray[np.intp], int]:
    """Align the rows of both parties so that one of them alone learns which people are common.

    The other party puts its rows into a random order, and keeps all of them. The receiver learns
    which place of that order each common person has, and puts its own row there.

    Parameters
    ----------
    receiver
        Rank of the party that learns which of its people are common.
    others
        How many people the other party states to have.

    Returns
    -------
    positions : ndarray
        The own row at each place; at the receiver -1 for people whom it does not have.
    people : int
        Number of people in common, which both parties learn.
    """
    own = Multiplier()
    order = _shuffled(range(len(hashes)))
    both = _exchange(link, own, [hashes[i] for i in order], others)
    if link.rank != receiver:
        _swap(link, both, 0)  # in the order in which they came
        return np.array(order, dtype=np.intp), _take_count(link)
    place = {point: j for j, point in enumerate(both)}
    positions = np.full(len(both), -1, dtype=np.intp)
    for i, point in zip(order, _swap(link, (), len(order)), strict=True):
        if point in place:
            positions[place[point]] = i
    people = int((positions >= 0).sum())
    _send_count(link, people)
    return positions, people


def _exchange(link: Link, own: Multiplier, hashes: Sequence[str], others: int) -> list[bytes]:
    """Send the own points, and return those of the other party, multiplied, in their order."""
    _send_count(link, len(hashes))
    if _take_count(link) != others:
        raise AbortedError(
            "The other party brings another number of people than it has stated.",
            reason="other identifiers",
        )
    return _swap(link, (own(point_of(h)) for h in hashes), others, own)


def _swap(
    link: Link,
    points: Iterable[bytes],
    number: int,
    change: Callable[[bytes], bytes] = bytes,
) -> list[bytes]:
    """Send points, and return those of the other party, changed; `AbortedError` if some repeat.

    Batches go both ways in turn: few points wait to be received, and both parties multiply at the
    same time.
    """
    own, found = iter(points), list[bytes]()
    while batch := b"".join(islice(own, BATCH)):
        link.send(batch)
        if len(found) < number:
            found += map(change, _batch(link, number - len(found)))
    while len(found) < number:
        found += map(change, _batch(link, number - len(found)))
    # Also after the change: two points can differ and have the same product.
    if len(set(found)) != number:
        raise broken()
    return found


def _batch(link: Link, left: int) -> list[bytes]:
    data = link.receive()
    if len(data) != POINT * min(BATCH, left):
        raise broken()
    return [data[k : k + POINT] for k in range(0, len(data), POINT)]


def _send_count(link: Link, number: int) -> None:
    link.send(COUNT.pack(number))


def _take_count(link: Link) -> int:
    data = link.receive()
    if len(data) != COUNT.size or COUNT.unpack(data)[0] > MOST:
        raise broken()
    number: int = COUNT.unpack(data)[0]
    return number


def _shuffled(values: Sequence[T]) -> list[T]:
    return secrets.SystemRandom().sample(list(values), len(values))


# --- A few oblivious transfers of random seeds, from which all others are made ------------------
#
# One party gets two seeds for each transfer, and the other party one of them, of its choice: the
# first does not learn which, and the second learns nothing about the other seed. This is the
# protocol of Masny and Rindal (2019), "Endemic Oblivious Transfer", on the curve P-256. It holds
# against a party that deviates, if the computational Diffie-Hellman problem is hard and the hash
# behaves like a random function.
#
# For each transfer, the choosing party sends two points. The key of each is the point plus a hash
# of the other one, so that nobody can know the secret number of both keys.

Point: TypeAlias = ec.EllipticCurvePublicKey

PRIME = 2**256 - 2**224 + 2**192 + 2**96 - 1
ENCODED = 33
"""Bytes of a point: its first coordinate, and the sign of the second."""

SEED = 16


def offer_seeds(link: Link, number: int) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Return two seeds per transfer, of which the other party gets one, and a hash of all messages.

    The other party calls `choose_seeds` at the same time.
    """
    secret = ec.generate_private_key(ec.SECP256R1())
    sent = encoded(secret.public_key())
    link.send(sent)
    received = link.receive()
    if len(received) != 2 * ENCODED * number:
        raise broken()
    session = hashlib.sha256(b"isthmus transfers" + sent + received).digest()
    points = [received[k : k + ENCODED] for k in range(0, len(received), ENCODED)]
    seeds = []
    for j in range(number):
        pair = points[2 * j : 2 * j + 2]
        keys = [added(decoded(pair[i]), masking(sent, j, i, pair[1 - i])) for i in (0, 1)]
        first, second = (_seed(session, j, i, secret.exchange(ec.ECDH(), keys[i])) for i in (0, 1))
        seeds.append((first, second))
    return seeds, session


def choose_seeds(link: Link, choices: Sequence[int]) -> tuple[list[bytes], bytes]:
    """Return the seeds that were chosen, and a hash of all messages.

    Parameters
    ----------
    choices
        Which of the two seeds to take, 0 or 1, for each transfer.
    """
    received = link.receive()
    theirs = decoded(received)
    own, sent = [], b""
    for j, choice in enumerate(choices):
        own.append(ec.generate_private_key(ec.SECP256R1()))
        # A point whose secret number nobody knows; the other one follows from it and from our key.
        unknown = encoded(point_from(secrets.token_bytes(32)))
        mask = masking(received, j, choice, unknown)
        known = encoded(added(own[-1].public_key(), negative(mask)))
        sent += unknown + known if choice else known + unknown
    link.send(sent)
    session = hashlib.sha256(b"isthmus transfers" + received + sent).digest()
    return [
        _seed(session, j, choice, key.exchange(ec.ECDH(), theirs))
        for j, (choice, key) in enumerate(zip(choices, own, strict=True))
    ], session


def masking(start: bytes, transfer: int, place: int, other: bytes) -> Point:
    """Return the point that is added to one of two points, a hash of the other one."""
    return point_from(start + transfer.to_bytes(4, "little") + bytes([place]) + other)


def point_from(data: bytes) -> Point:
    """Hash data to a point of the curve.

    The time depends on the data, and so a little on which of two points is hashed: all transfers of
    a link together may tell a few bits of a key of 128 by the time that they take.
    """
    for attempt in range(256):
        digest = hashlib.sha256(b"isthmus point" + bytes([attempt]) + data).digest()
        sign = hashlib.sha256(b"isthmus sign" + bytes([attempt]) + data).digest()[0] & 1
        try:
            return _point(bytes([2 + sign]) + digest)
        except ValueError:  # no such point
            continue
    raise AssertionError("no point in 256 attempts")  # less likely than 2^-250


def added(first: Point, second: Point) -> Point:
    """Return the sum of two points."""
    a, b = first.public_numbers(), second.public_numbers()
    if a.x == b.x:  # the sum of equal points, or of opposite ones, which nobody gets by chance
        raise broken()
    slope = (b.y - a.y) * pow(b.x - a.x, -1, PRIME) % PRIME
    x = (slope**2 - a.x - b.x) % PRIME
    y = (slope * (a.x - x) - a.y) % PRIME
    return _at(x, y)


def negative(point: Point) -> Point:
    """Return the opposite of a point."""
    numbers = point.public_numbers()
    return _at(numbers.x, PRIME - numbers.y)


def encoded(point: Point) -> bytes:
    """Return a point as bytes."""
    return point.public_bytes(Encoding.X962, PublicFormat.CompressedPoint)


def decoded(data: bytes) -> Point:
    """Return the point that these bytes are, or raise `AbortedError`."""
    try:
        if len(data) != ENCODED:
            raise broken()
        return _point(data)
    except ValueError:
        raise broken() from None


def _point(data: bytes) -> Point:
    """Return the point that these bytes are, or raise `ValueError`."""
    return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), data)


def _at(x: int, y: int) -> Point:
    return ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()


def _seed(session: bytes, transfer: int, place: int, secret: bytes) -> bytes:
    start = b"isthmus seed" + session + transfer.to_bytes(4, "little") + bytes([place])
    return hashlib.sha256(start + secret).digest()[:SEED]
