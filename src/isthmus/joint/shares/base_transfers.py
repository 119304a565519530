"""A few oblivious transfers of random seeds, from which all others are made.

One party gets two seeds for each transfer, and the other party one of them, of its choice: the
first does not learn which, and the second learns nothing about the other seed. This is the protocol
of Masny and Rindal (2019), "Endemic Oblivious Transfer", on the curve P-256. It holds against a
party that deviates, if the computational Diffie-Hellman problem is hard and the hash behaves like a
random function.

For each transfer, the choosing party sends two points. The key of each is the point plus a hash of
the other one, so that nobody can know the secret number of both keys.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from isthmus.joint.shares.link import Link, broken

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec

    Point: TypeAlias = ec.EllipticCurvePublicKey

PRIME = 2**256 - 2**224 + 2**192 + 2**96 - 1
ENCODED = 33
"""Bytes of a point: its first coordinate, and the sign of the second."""

SEED = 16


def offer_seeds(link: Link, number: int) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Return two seeds per transfer, of which the other party gets one, and a hash of all messages.

    The other party calls `choose_seeds` at the same time.
    """
    from cryptography.hazmat.primitives.asymmetric import ec

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
    from cryptography.hazmat.primitives.asymmetric import ec

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
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

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
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), data)


def _at(x: int, y: int) -> Point:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()


def _seed(session: bytes, transfer: int, place: int, secret: bytes) -> bytes:
    start = b"isthmus seed" + session + transfer.to_bytes(4, "little") + bytes([place])
    return hashlib.sha256(start + secret).digest()[:SEED]
