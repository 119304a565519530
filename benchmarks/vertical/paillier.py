"""The scalar product of Wright and Yang (2004) on Paillier's cryptosystem, as a reference.

Alice encrypts her zeros and ones; Bob multiplies the ciphertexts where he has a one, adds a random
number, and Alice decrypts: the two hold shares of the number of common ones.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
from gmpy2 import invert, mpz, next_prime, powmod

BITS = 2048


class Alice:
    """The party with the key."""

    def __init__(self, bits: int = BITS) -> None:
        half = bits // 2
        p, q = (next_prime(mpz(secrets.randbits(half) | 3 << half - 2)) for _ in range(2))
        self.n, self.square = p * q, (p * q) ** 2
        self._phi = (p - 1) * (q - 1)
        self._inverse = invert(self._phi, self.n)

    def encrypt(self, vector: Any) -> list[Any]:
        noise = (mpz(secrets.randbelow(int(self.n) - 1) + 1) for _ in vector)
        pairs = zip(vector, noise, strict=True)
        return [
            (1 + int(x) * self.n) * powmod(r, self.n, self.square) % self.square for x, r in pairs
        ]

    def decrypt(self, cipher: Any) -> int:
        plain = (powmod(cipher, self._phi, self.square) - 1) // self.n
        return int(plain * self._inverse % self.n)


def answer(ciphers: list[Any], vector: Any, n: Any) -> tuple[Any, int]:
    """Bob's part: the ciphertext of the masked product, and his share."""
    square = n * n
    mask = secrets.randbelow(int(n))
    total = (1 + mask * n) * powmod(mpz(secrets.randbelow(int(n) - 1) + 1), n, square) % square
    for cipher in (c for c, bit in zip(ciphers, vector, strict=True) if bit):
        total = total * cipher % square
    return total, -mask % int(n)


def scalar_products(first: Any, others: Any, bits: int = BITS) -> list[int]:
    """Products of one vector of Alice with the columns of Bob, opened to check them."""
    alice = Alice(bits)
    ciphers = alice.encrypt(first)
    found = []
    for column in np.asarray(others).T:
        masked, share = answer(ciphers, column, alice.n)
        found.append((alice.decrypt(masked) + share) % int(alice.n))
    return found
