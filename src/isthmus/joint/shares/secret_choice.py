"""The largest of secret scores: only its position is opened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus.joint.shares.shares import MODULUS, SecretShare, encoded

if TYPE_CHECKING:
    from isthmus.joint.shares.engine import SecretSharingRuntime

TIE = 2.0**-20
"""Nats by which a later candidate must be better than one before it, so that ties are decided alike
in every run."""

LOWEST = -(2.0**40)


def positions_of_largest(scores: Any) -> Any:
    """Find the position of the largest number in each row (a program of JAX).

    The width is a power of two: a knock-out tournament in which the first of two equals wins.
    """
    import jax.numpy as jnp

    places = jnp.broadcast_to(jnp.arange(scores.shape[1]), scores.shape)
    while scores.shape[1] > 1:
        a, b = scores[:, 0::2], scores[:, 1::2]
        p, q = places[:, 0::2], places[:, 1::2]
        later = b > a
        scores = jnp.where(later, b, a)
        places = jnp.where(later, q, p)
    return places[:, 0]


def choose(engine: SecretSharingRuntime, scores: Sequence[Sequence[int]], what: str) -> list[int]:
    """Open the position of the largest score of each list, and nothing else.

    Parameters
    ----------
    scores
        This party's shares, ring elements of 128 bits. Earlier ones win ties.
    """
    if not scores:
        return []
    width = 1 << max(max(map(len, scores)) - 1, 0).bit_length()
    height = 1 << (len(scores) - 1).bit_length()
    first = engine.rank == 0
    filler = encoded(LOWEST) if first else 0
    numbers: list[int] = []
    for row in scores:
        less = [encoded(k * TIE) if first else 0 for k in range(len(row))]
        numbers += [(x - y) % MODULUS for x, y in zip(row, less, strict=True)]
        numbers += [filler] * (width - len(row))
    numbers += [filler] * (width * (height - len(scores)))
    secret = SecretShare.from_numbers(numbers, (height, width))
    (places,) = engine.run(positions_of_largest, secret, bits=128)
    wanted = SecretShare(places.words[: len(scores)], 128)
    found = engine.open(wanted, what)
    assert found is not None
    return [int(k) for k in np.asarray(found)]
