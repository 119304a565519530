"""Runs k2.mpc on open bits, without an engine: what the circuit computes, and its products.

    python benchmarks/vertical/malicious/clear.py [PROBLEMS]

Compares random problems with K2 on the joined table, ties included, and prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent)]

from plain import k2_score, random_network  # noqa: E402


class Bits:
    """A register: one bit per lane."""

    inputs: tuple[Any, Any]
    products = 0

    def __init__(self, lanes: Any) -> None:
        self.lanes = lanes

    def __xor__(self, other: Bits) -> Bits:
        return Bits(self.lanes ^ other.lanes)

    def __and__(self, other: Bits) -> Bits:
        assert self.lanes.shape == other.lanes.shape
        Bits.products += self.lanes.size
        return Bits(self.lanes & other.lanes)

    def __invert__(self) -> Bits:
        return Bits(~self.lanes)

    def bit_decompose(self) -> list[Bits]:
        return [Bits(lane[None]) for lane in self.lanes]

    def reveal(self) -> int:
        return int(self.lanes[0])

    @staticmethod
    def trans(registers: list[Bits]) -> list[Bits]:
        return [Bits(lanes) for lanes in np.array([r.lanes for r in registers]).T]

    @staticmethod
    def get_type(width: int) -> Any:
        def get_input_from(party: int) -> Bits:
            lanes = next(Bits.inputs[party])
            assert len(lanes) == width
            return Bits(lanes)

        return SimpleNamespace(get_input_from=get_input_from)


def decoded(lines: list[str]) -> tuple[bool, dict[int, list[int | None]]]:
    """Read what a run printed: whether columns are allowed, and the parents of each variable."""
    words = [line.split() for line in lines]
    allowed = next(int(w[1]) for w in words if w[:1] == ["allowed"])
    places: dict[int, list[int]] = {}
    for w in words:
        if w[:1] == ["child"]:
            child, step, bit, value = (int(w[k]) for k in (1, 3, 5, 6))
            places.setdefault(child, [0, 0])[step - 1] += value << bit
    return bool(allowed), {
        child: [place - 1 if place else None for place in found] for child, found in places.items()
    }


def in_the_clear(data: Any, minimum: int) -> tuple[bool, dict[int, list[int | None]], int]:
    """Return what is opened, and the number of products of two bits."""
    rows, variables = data.shape
    Bits.inputs = (iter(data[:, 0::2].astype(bool)), iter(data[:, 1::2].astype(bool)))
    Bits.products = 0
    lines: list[str] = []
    arguments = ["k2", str(rows), str(variables), str(minimum)]
    names = {
        "program": SimpleNamespace(args=arguments),
        "sbits": Bits,
        "print_ln": lambda text, *values: lines.append(text % values),
    }
    exec(compile((HERE / "k2.mpc").read_text(), "k2.mpc", "exec"), names)
    return *decoded(lines), Bits.products


def pooled(data: Any, tie: float = 1e-6) -> tuple[dict[int, list[int | None]], float]:
    """Return what K2 on the joined table decides, and how close its closest decision was."""
    found: dict[int, list[int | None]] = {}
    margin = np.inf
    for child in range(1, data.shape[1]):
        parents: list[int] = []
        found[child] = [None, None]
        for step in range(min(2, child)):
            best, chosen = k2_score(data, [2] * data.shape[1], child, parents), None
            ranked = [best]
            for c in (c for c in range(child) if c not in parents):
                score = k2_score(data, [2] * data.shape[1], child, [*parents, c])
                ranked.append(score)
                if score > best + tie:
                    best, chosen = score, c
            top, second = sorted(ranked)[:-3:-1]
            margin = min(margin, top - second if top - second > tie else np.inf)
            found[child][step] = chosen
            if chosen is None:
                break
            parents.append(chosen)
    return found, float(margin)


def problem(seed: int) -> Any:
    """Columns of a random network; every third problem has a copy and a complement of a column."""
    rng = np.random.default_rng([30, seed])
    variables = int(rng.integers(3, 7))
    data = random_network(rng, int(rng.integers(100, 2_000)), [2] * variables)
    if seed % 3 == 0:
        data[:, 1] = data[:, 0]
        data[:, 2] = 1 - data[:, 0]
    return data


def main(problems: int = 30) -> None:
    decisions, closest = 0, np.inf
    for seed in range(problems):
        data = problem(seed)
        allowed, found, _ = in_the_clear(data, 0)
        expected, margin = pooled(data)
        assert allowed
        assert found == expected, (seed, found, expected)
        decisions += sum(2 if steps[0] is not None and c > 1 else 1 for c, steps in found.items())
        closest = min(closest, margin)
    data = problem(1)
    fewest = int(min(data.sum(0).min(), (1 - data).sum(0).min()))
    assert in_the_clear(data, fewest)[0]
    refused, nothing, _ = in_the_clear(data, fewest + 1)
    assert not refused
    assert all(steps == [None, None] for steps in nothing.values())
    figures = {"problems": problems, "decisions": decisions, "closest": closest}
    print(json.dumps({**figures, "equal to K2": True}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
