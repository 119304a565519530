"""Encryption that commutes: points of Curve25519, multiplied by secret numbers in any order."""

from __future__ import annotations

import hashlib

from isthmus.errors import AbortedError

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
