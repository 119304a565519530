"""Private set intersection: which people both parties have.

RR22 tells both parties who the common people are. The two other protocols reveal less: only the
size, or the people to one party alone. They use the commutative encryption of Meadows (1986) and
Huberman, Franklin and Hogg (1999) on Curve25519: an identifier is hashed to a point of the curve,
each party multiplies points by a secret number of its own, and what both have multiplied can be
compared, in whatever order. A party that follows the protocol learns nothing about identifiers that
only the other one has, if the decisional Diffie-Hellman problem is hard and the hash behaves like a
random function.
"""

from __future__ import annotations

import csv
import hashlib
import secrets
import struct
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import AbortedError

if TYPE_CHECKING:
    from spu.libspu.link import Context

COLUMN = "h"


def intersect(link: Context, hashes: list[str], folder: Path) -> NDArray[np.intp]:
    """Find the people whom both parties have, with the protocol RR22.

    Each party finds its own ones: if one told the other the result, it could name any rows of the
    other as common, and positions that do not exist. RR22 begins with a comparison of digests of
    everything, and if these are equal, everybody counts as common. So each party adds a decoy,
    whom nobody can have, and shuffles its rows, because else the digest would tell one unknown
    person to whoever knows all others.

    Parameters
    ----------
    link
        The connection to the other party, which calls this function at the same time.
    hashes
        A distinct hash per row, made in the same way by both parties.

    Returns
    -------
    ndarray
        The positions of this party's rows of common people, in the order that both parties use.
    """
    from spu import psi

    decoy = secrets.token_hex(32)
    with TemporaryDirectory(dir=folder) as name:
        given, found = Path(name).resolve() / "hashes.csv", Path(name).resolve() / "common.csv"
        for receiver in (0, 1):
            _write(given, _shuffled([*hashes, decoy]))
            psi.psi_execute(
                psi.PsiExecuteConfig(
                    protocol_conf=psi.PsiProtocolConfig(
                        protocol=psi.PsiProtocol.PROTOCOL_RR22, receiver_rank=receiver
                    ),
                    input_params=psi.InputParams(
                        path=str(given), selected_keys=[COLUMN], keys_unique=True
                    ),
                    output_params=psi.OutputParams(path=str(found)),
                ),
                link,
            )
            if receiver == link.rank:
                common = _read(found)
    position = {value: i for i, value in enumerate(hashes)}
    if any(value not in position for value in common):
        raise AbortedError(
            "The other party claims to have somebody whom nobody has. It changed its program.",
            reason="other identifiers",
        )
    return np.array([position[value] for value in sorted(common)], dtype=np.intp)


def _write(path: Path, hashes: list[str]) -> None:
    with path.open("w", encoding="ascii", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([[COLUMN], *([h] for h in hashes)])


def _read(path: Path) -> list[str]:
    with path.open(encoding="ascii", newline="") as file:
        rows = csv.reader(file)
        next(rows, None)
        return [row[0] for row in rows]


MODULUS = 2**255 - 19
CURVE = 486662


def point_of(text: str) -> bytes:
    """Hash an identifier to a point of Curve25519.

    A number modulo the prime is a point of the curve or of its twist, and stays on its side when it
    is multiplied. Points of the twist are passed over: otherwise each identifier would tell one bit
    of its hash.
    """
    for attempt in range(256):
        start = b"isthmus point" + bytes([attempt])
        data = bytearray(hashlib.sha256(start + text.encode()).digest())
        data[-1] &= 127
        x = int.from_bytes(data, "little")
        if x < MODULUS and is_square(x**3 + CURVE * x**2 + x):
            return bytes(data)
    raise AssertionError("no point in 256 attempts")  # less likely than 2^-250


def is_square(number: int) -> bool:
    """Return whether a number is a square modulo the prime and not zero (Jacobi's symbol)."""
    a, n, symbol = number % MODULUS, MODULUS, 1
    while a:
        twos = (a & -a).bit_length() - 1
        a >>= twos
        if twos & 1 and n & 7 in (3, 5):
            symbol = -symbol
        if a & n & 3 == 3:
            symbol = -symbol
        a, n = n % a, a
    return n == 1 and symbol == 1


class Multiplier:
    """A secret number by which points are multiplied."""

    def __init__(self) -> None:
        from cryptography.hazmat.primitives.asymmetric import x25519

        self._key = x25519.X25519PrivateKey.generate()
        self._read = x25519.X25519PublicKey.from_public_bytes

    def __call__(self, point: bytes) -> bytes:
        """Multiply a point; `AbortedError` if it is not one."""
        try:
            return self._key.exchange(self._read(point))
        except ValueError as error:
            raise AbortedError(
                "The other party sent points that are none. Check that both parties have the same "
                "version.",
                reason="broken message",
            ) from error


T = TypeVar("T")

POINT = 32
BATCH = 1024
"""Points per message, so that neither party waits long for the next one."""

COUNT = struct.Struct("<Q")
MOST = 2**32

RECEIVER = 0
"""Rank of the party that counts; it tells the other one the number."""


def count_common(link: Context, hashes: Sequence[str], least: int, others: int) -> int:
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
    _send(link, len(hashes), (own(point_of(h)) for h in _shuffled(hashes)))
    theirs = _receive(link, others)
    both = [own(point) for point in theirs]
    if link.rank != RECEIVER:
        # In another order, so that nobody can be recognised.
        _send(link, len(both), _shuffled(both))
        return _take_count(link)
    found = len(set(both).intersection(_receive(link, len(hashes))))
    found = found if found >= least else 0
    _send_count(link, found)
    return found


def aligned_to_one(
    link: Context, hashes: Sequence[str], receiver: int, others: int
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
    _send(link, len(order), (own(point_of(hashes[i])) for i in order))
    theirs = _receive(link, others)
    both = [own(point) for point in theirs]
    if link.rank != receiver:
        _send(link, len(both), both)  # in the order in which they came
        return np.array(order, dtype=np.intp), _take_count(link)
    place = {point: j for j, point in enumerate(both)}
    positions = np.full(len(both), -1, dtype=np.intp)
    for i, point in zip(order, _receive(link, len(order)), strict=True):
        if point in place:
            positions[place[point]] = i
    people = int((positions >= 0).sum())
    _send_count(link, people)
    return positions, people


def _send(link: Context, number: int, points: Iterable[bytes]) -> None:
    """Send points as they are made."""
    _send_count(link, number)
    left = iter(points)
    while batch := list(islice(left, BATCH)):
        link.send(1 - link.rank, b"".join(batch))


def _receive(link: Context, number: int) -> list[bytes]:
    """Receive this many points; `AbortedError` if they are other ones or not as many."""
    if _take_count(link) != number:
        raise _broken()
    points: list[bytes] = []
    while len(points) < number:
        data = bytes(link.recv(1 - link.rank))
        if not data or len(data) % POINT or len(data) > POINT * min(BATCH, number - len(points)):
            raise _broken()
        points += [data[k : k + POINT] for k in range(0, len(data), POINT)]
    if len(set(points)) != number:
        raise _broken()
    return points


def _send_count(link: Context, number: int) -> None:
    link.send(1 - link.rank, COUNT.pack(number))


def _take_count(link: Context) -> int:
    data = bytes(link.recv(1 - link.rank))
    if len(data) != COUNT.size or COUNT.unpack(data)[0] > MOST:
        raise _broken()
    number: int = COUNT.unpack(data)[0]
    return number


def _shuffled(values: Sequence[T]) -> list[T]:
    return secrets.SystemRandom().sample(list(values), len(values))


def _broken() -> AbortedError:
    return AbortedError(
        "The other party sent points that are none. Check that both parties have the same version.",
        reason="broken message",
    )
