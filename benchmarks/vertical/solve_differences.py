"""Differences of the other party's columns, from answers that the engine randomises alike.

    nice python benchmarks/vertical/solve_differences.py [PEOPLE COLUMNS COVER]

Needs the extra `vertical` and `pip install zstandard fpylll`. The first party follows the protocol,
but for a detail that makes this script shorter: the second half of its ciphertext is random numbers
that a relay knows, instead of those of a seed that its engine knows. COVER is the number of random
rows of each party in a product, by default 0: products as they were before there were such rows.
"""

from __future__ import annotations

import math
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "src")]

import read_columns as rc  # noqa: E402

MODULUS = rc.FIRST * rc.SECOND
EQUATIONS = 40


def values_at(coefficients: list[int], prime: int) -> Any:
    """Return the values of a polynomial at the points of the engine."""
    degree = rc.DEGREE
    other = next(g for g in range(2, 100) if pow(g, (prime - 1) // 2, prime) != 1)
    root = pow(other, (prime - 1) // (2 * degree), prime)
    least = min(pow(root, k, prime) for k in range(1, 2 * degree, 2))
    values = [c * pow(least, k, prime) % prime for k, c in enumerate(coefficients)]
    step = least * least % prime

    def transformed(part: list[int], root: int) -> list[int]:
        if len(part) == 1:
            return part
        even, odd = (transformed(part[k::2], root * root % prime) for k in (0, 1))
        half, power, out = len(part) // 2, 1, [0] * len(part)
        for k in range(half):
            out[k] = (even[k] + power * odd[k]) % prime
            out[k + half] = (even[k] - power * odd[k]) % prime
            power = power * root % prime
        return out

    found = transformed(values, step)
    return np.array([found[int(format(i, "012b")[::-1], 2)] for i in range(degree)], dtype=object)


def main(people: int = 99, columns: int = 41, cover: int = 0) -> None:
    from fpylll import LLL, IntegerMatrix

    from isthmus.joint.transport.child_process import free_port

    sizes = columns, people + 2 * cover, columns
    block = rc.blocks(sizes)
    answers: dict[int, bytes] = {}
    polynomial = [secrets.randbelow(MODULUS) for _ in range(rc.DEGREE)]
    halves = [values_at([c % p for c in polynomial], p) for p in (rc.FIRST, rc.SECOND)]
    words = np.concatenate([np.ones(2 * rc.DEGREE), *halves]).astype("<u8")

    def number(key: str, value: bytes) -> int | None:
        if not key.startswith("root-0:P2P-") or value[:2] != rc.MAGIC:
            return None
        return int(key.split("-")[2].split(":")[0]) - 3

    def sent(key: str, value: bytes) -> bytes:
        if number(key, value) != 0:
            return value
        array = rc.packed(value, words.size.to_bytes(8, "little") + words.tobytes())
        return rc.packed(value, rc.content(value)[: rc.FACTS] + array)

    def received(key: str, value: bytes) -> bytes:
        k = number(key, value)
        if k is not None and 0 <= k < 2:
            answers[k] = value
        return value

    first, second, to_second, to_first = (free_port() for _ in range(4))
    rc.relay(to_second, second, sent)
    rc.relay(to_first, first, received)
    ports = [(first, to_second), (to_first, second)]
    shape = [str(people), str(columns), str(columns)]
    command = [sys.executable, rc.__file__, *shape]
    runs = [
        subprocess.Popen([*command, str(rank), *map(str, ports[rank]), str(cover)])
        for rank in (0, 1)
    ]
    codes = [run.wait() for run in runs]
    offset = rc.FACTS + rc.HEADER.size + 8
    found = [
        np.frombuffer(rc.content(answers[k])[offset:], "<u8")[rc.DEGREE :].astype(object)
        for k in (0, 1)
    ]
    differences = [int(x) % rc.FIRST for x in (found[1] - found[0])[:EQUATIONS]]
    held = 1 - rc.columns_of(1, [columns, columns], people)
    truth = (held[:, 1] - held[:, 0]).tolist()

    def factor(equation: int, person: int) -> int:
        sign = 1 if equation >= person else -1
        return sign * polynomial[(equation - person) % rc.DEGREE] % MODULUS

    errors = [
        (sum(factor(j, i) * x for i, x in enumerate(truth)) - rc.SECOND * d) % MODULUS
        for j, d in enumerate(differences)
    ]
    error = max(min(e, MODULUS - e) for e in errors) / rc.SECOND
    print(f"blocks {block}, engines ended {codes}; bits of the error: {math.log2(error):.1f} of 58")
    size = people + EQUATIONS + 1
    rows = [[0] * size for _ in range(size)]
    for j in range(EQUATIONS):
        rows[j][people + j] = rc.FIRST
        rows[-1][people + j] = differences[j]
        for i in range(people):
            rows[EQUATIONS + i][people + j] = factor(j, i) // rc.SECOND
    for i in range(people + 1):
        rows[EQUATIONS + i][i if i < people else -1] = 2
    reduced = LLL.reduction(IntegerMatrix.from_matrix(rows))
    for row in reduced:
        vector = list(row)
        if abs(vector[-1]) == 2 and max(map(abs, vector[:people])) <= 2:
            right = sum(-v * vector[-1] == 4 * x for v, x in zip(vector, truth, strict=False))
            print(f"{right} of {people} differences read")
            return
    print("no differences read")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
