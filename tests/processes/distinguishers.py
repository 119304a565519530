"""Guess from a party's transcripts which of two inputs the other party had.

Transcripts are recorded in rounds, one of each input in a round. A distinguisher measures how
similar transcripts are. It guesses the input to whose transcripts, in all other rounds, one is more
similar on average.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Transcript = tuple[bytes, int]
"""What a party received, and which input the other party had."""

Rounds = NDArray[np.int_]
"""The round of each transcript."""

Similarities = NDArray[np.float64]
FACTOR = 0x9E3779B97F4A7C15
INVERSE = pow(FACTOR, -1, 1 << 64)
WINDOWS = (16, 128)
"""Lengths of the pieces of transcripts that are compared: 16 bytes, and 16 integers."""


def by_length(transcripts: Sequence[bytes], rounds: Rounds) -> Similarities:
    """Compare lengths, from the mean of the round: in some rounds, randomness is prepared."""
    sizes = np.array([len(t) for t in transcripts], dtype=np.float64)
    sizes -= (np.bincount(rounds, sizes) / np.bincount(rounds))[rounds]
    similarities: Similarities = -np.abs(sizes[:, None] - sizes)
    return similarities


def by_bytes(transcripts: Sequence[bytes], _: Rounds) -> Similarities:
    """Compare the frequencies of bytes."""
    counts = [np.bincount(np.frombuffer(t, np.uint8), minlength=256) for t in transcripts]
    shares = np.array([c / c.sum() for c in counts])
    similarities: Similarities = -((shares[:, None] - shares) ** 2).sum(axis=2)
    return similarities


def by_pieces(transcripts: Sequence[bytes], _: Rounds) -> Similarities:
    """Count pieces that two transcripts have in common, at whatever place.

    Anything that depends on the input alone is found: columns in any encoding, and columns under
    a mask that is used twice.
    """
    pieces = [_pieces(t) for t in transcripts]
    merged = np.concatenate(pieces)
    order = np.argsort(merged)
    whose = np.repeat(np.arange(len(pieces)), [len(p) for p in pieces])[order]
    merged = merged[order]
    starts = np.concatenate([[True], merged[1:] != merged[:-1]])
    group = np.cumsum(starts) - 1
    several = np.bincount(group)[group] > 1
    _, rows = np.unique(group[several], return_inverse=True)
    holds = np.zeros((int(rows.max(initial=-1)) + 1, len(pieces)), dtype=np.float64)
    holds[rows, whose[several]] = 1.0
    similarities: Similarities = holds.T @ holds
    return similarities


DISTINGUISHERS: dict[str, Callable[[Sequence[bytes], Rounds], Similarities]] = {
    "length": by_length,
    "bytes": by_bytes,
    "pieces": by_pieces,
}


def correct_guesses(rounds: Sequence[Sequence[Transcript]], distinguisher: str) -> int:
    """How many inputs a distinguisher guesses."""
    flat = [(seen, label, i) for i, each in enumerate(rounds) for seen, label in each]
    labels = np.array([label for _, label, _ in flat])
    number = np.array([i for _, _, i in flat])
    similarities = DISTINGUISHERS[distinguisher]([seen for seen, _, _ in flat], number)
    right = 0
    for row, label, i in zip(similarities, labels, number, strict=True):
        zero, one = (row[(number != i) & (labels == k)].mean() for k in (0, 1))
        right += int(one > zero) == label
    return right


def _pieces(data: bytes) -> NDArray[np.uint64]:
    """Hashes of all different pieces, by sums that are shifted to the same start."""
    values = np.frombuffer(data, np.uint8).astype(np.uint64) + np.uint64(1)
    with np.errstate(over="ignore"):
        ups = np.cumprod(np.full(len(values), FACTOR, np.uint64))
        downs = np.cumprod(np.full(len(values), INVERSE, np.uint64))
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values * ups)])
        hashes = [(sums[w:] - sums[:-w]) * downs[: max(len(values) - w + 1, 0)] for w in WINDOWS]
    merged = np.concatenate(hashes)
    return np.unique(merged[merged >> np.uint64(61) == 0])  # an eighth, the same everywhere
