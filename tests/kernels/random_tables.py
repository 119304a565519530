"""Random score tables."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np


def random_table(seed: int, d: int, lines: int, most: int = 4) -> tuple[Any, Any, Any]:
    """Starts, sets and scores of up to so many parent sets per node, the empty one among them."""
    rng = np.random.default_rng(seed)
    words = max(1, -(-d // 64))
    starts, masks, scores = [0], [], []
    for v in range(d):
        others = np.delete(np.arange(d), v)
        sets = {
            tuple(rng.permutation(others)[: rng.integers(0, most + 1)].tolist())
            for _ in range(int(rng.integers(1, lines + 1)))
        }
        sets = {tuple(sorted(one)) for one in sets} - {()}
        ordered = [*sorted(sets, key=lambda _: rng.random()), ()]
        masks += [sum(1 << p for p in one) for one in ordered]
        scores.append(np.sort(rng.normal(size=len(ordered)) * 10)[::-1])
        starts.append(starts[-1] + len(ordered))
    packed = [[mask >> 64 * w & 2**64 - 1 for w in range(words)] for mask in masks]
    return (
        np.array(starts, np.int64),
        np.array(packed, np.uint64).reshape(-1, words),
        np.concatenate([np.empty(0), *scores]),
    )


def masks_of(table: tuple[Any, Any, Any]) -> list[list[tuple[int, float]]]:
    """Sets of each node as Python integers with their scores, best first."""
    starts, sets, scores = table
    masks = [sum(int(word) << 64 * w for w, word in enumerate(row)) for row in sets]
    return [
        list(zip(masks[a:b], scores[a:b].tolist(), strict=True))
        for a, b in itertools.pairwise(starts.tolist())
    ]


class SlowTable:
    """A table as Python integers: slow, and shares nothing with the compiled one."""

    def __init__(self, table: tuple[Any, Any, Any]) -> None:
        self._starts = table[0].tolist()
        self._lists = masks_of(table)

    def lines(self, order: Sequence[int]) -> list[int]:
        """The first line of each node that holds nothing from behind it; past its last if none."""
        found, inside = [0] * len(order), 0
        for v in order:
            lines = self._lists[v]
            fits = (i for i, (mask, _) in enumerate(lines) if not mask & ~inside)
            found[v] = self._starts[v] + next(fits, len(lines))
            inside |= 1 << v
        return found

    def total(self, order: Sequence[int]) -> float:
        """Score of an order."""
        lines = zip(self._lists, self._starts, self.lines(order), strict=False)
        return sum(
            own[line - start][1] if line - start < len(own) else -1e15 for own, start, line in lines
        )


def finish(run: Any, seconds: float = 0.01) -> None:
    """Step until it is done."""
    while not run.step(seconds):
        pass
