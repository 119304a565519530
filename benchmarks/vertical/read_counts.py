"""A party that changes its program reads secret counts, and by them values of people of its choice.

    nice python benchmarks/vertical/read_counts.py [ROWS FIRST SECOND]

Needs the extra `vertical` and `pip install zstandard`. The first party is unchanged and computes
private K2. The second party gives powers of two for a few people instead of zeros and ones, so that
a count is made of their values. To read the counts, a relay changes what its engine sends: numbers
of its choice instead of ciphertexts, and a public key whose second half is zero. The second half of
the answers is not masked: it is the random numbers by which the first party hides its shares.
"""

from __future__ import annotations

import json
import math
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

PEOPLE = 7
"""Values in a count: the first bit of a group's count must be zero."""

DEGREE = 8192
MAGIC = b"\x5e\xa1"  # SEAL's objects begin with it
HEADER = struct.Struct("<2sBBBBHQ")
FACTS = struct.calcsize("<32s?QQQdQ")
NOISE = 8
"""Bits below the numbers that are read, for the noise that the other engine adds."""

RING = 1 << 128
SCALE, SLOPE = 0, 2

Change = Callable[[str, bytes], bytes]


def columns_of(rank: int, widths: list[int], rows: int) -> Any:
    return np.random.default_rng([7, rank]).integers(0, 2, (rows, widths[rank]))


def person(column: int, k: int) -> int:
    """Return the k-th of the people whose values are read with a column of the second party."""
    return PEOPLE * column + k


# --- the two parties ----------------------------------------------------------------------------


def party(rank: int, ports: list[int], widths: list[int], rows: int, notes: str) -> None:
    """Run private K2 on random columns of two levels; the second party deviates."""
    from isthmus.joint.methods.private_k2 import private_k2
    from isthmus.joint.shares.columns import Columns, SharedColumn
    from isthmus.joint.shares.engine import SecretSharingRuntime, connect_local
    from isthmus.joint.shares.secret_scores import CountScore

    shapes = [SharedColumn(f"v{r}{i}", r, 2) for r in (0, 1) for i in range(widths[r])]
    mine = [c.name for c in shapes if c.owner == rank]
    values = dict(zip(mine, columns_of(rank, widths, rows).T, strict=True))
    runtime = SecretSharingRuntime(connect_local(rank, (ports[0], ports[1])))
    kept: dict[str, Any] = deviate(runtime) if rank == 1 else {}
    columns = Columns(shapes, values, rank, rows)
    private_k2(runtime, columns, columns.names, 1, CountScore())
    if rank == 1:
        Path(notes).write_text(json.dumps(kept, default=np.ndarray.tolist))


def deviate(runtime: Any) -> dict[str, Any]:
    """Give powers of two as columns, and keep the own shares of what is multiplied first."""
    from isthmus.joint.shares import secret_functions, secret_scores, secret_tables
    from isthmus.joint.shares.secret_products import ColumnProducts, SecretProducts

    kept: dict[str, Any] = {}
    counts, run = SecretProducts.counts, runtime.run
    evaluate, unchanged = secret_scores.evaluate, secret_functions.piecewise

    def powers(at: slice, width: int) -> Any:
        numbers = np.zeros((at.stop - at.start, width), dtype=np.uint8)
        for j in range(width):
            for k in range(PEOPLE):
                if at.start <= person(j, k) < at.stop:
                    numbers[person(j, k) - at.start, j] = 1 << k
        return numbers

    def changed_counts(self: Any, wanted: Any, rows: int) -> Any:
        chosen = [
            ColumnProducts(0, w.widths, lambda at, width=w.widths[1]: powers(at, width))
            for w in wanted
        ]
        return counts(self, chosen, rows)

    def piecewise(*given: Any) -> Any:
        import jax.numpy as jnp

        value, bounds, identity, jumps, middle, first, steps = given
        beyond = (value[:, None] >= bounds[None, :]).astype(jnp.int64) @ identity
        rest = value - middle - beyond @ jumps
        return unchanged(*given), rest, first + jnp.sum(beyond[:, :, None] * steps, axis=1)

    def changed_run(program: Any, *inputs: Any) -> Any:
        if program is not unchanged:
            return run(program, *inputs)
        result, rest, table = run(piecewise, *inputs)
        kept.setdefault("rest", rest.numbers())
        kept.setdefault("table", np.array(table.numbers(), dtype=object).reshape(table.shape))
        return [result]

    def changed_evaluate(
        engine: Any, values: Any, intervals: Any, tables: Any, **options: Any
    ) -> Any:
        kept.setdefault("tables", tables)
        kept.setdefault("middles", intervals.middles)
        return evaluate(engine, values, intervals, tables, **options)

    def changed_share(self: Any, members: Any) -> Any:
        kept.setdefault("members", []).append(members)
        return share(self, members)

    share = secret_tables.SecretTables.share
    secret_tables.SecretTables.share = changed_share  # type: ignore[method-assign]
    SecretProducts.counts = changed_counts  # type: ignore[method-assign]
    secret_scores.evaluate = changed_evaluate
    runtime.run = changed_run
    return kept


# --- messages of brpc ---------------------------------------------------------------------------


def varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return number, at


def as_varint(number: int) -> bytes:
    low, rest = number & 127, number >> 7
    return bytes([low | 128]) + as_varint(rest) if rest else bytes([low])


def fields(data: bytes) -> list[tuple[int, Any]]:
    """Return tags and values of a message of numbers and bytes."""
    at, found = 0, []
    while at < len(data):
        tag, at = varint(data, at)
        value, at = varint(data, at)
        if tag & 7 == 2:
            value, at = data[at : at + value], at + value
        found.append((tag, value))
    return found


def joined(parts: list[tuple[int, Any]]) -> bytes:
    return b"".join(
        as_varint(tag) + (as_varint(len(v)) + v if tag & 7 == 2 else as_varint(v))
        for tag, v in parts
    )


def relay(port: int, target: int, change: Change) -> None:
    """Relay connections to a port, and change the values of requests."""

    def read(source: socket.socket, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = source.recv(size - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def requests(source: socket.socket, sink: socket.socket) -> None:
        with suppress(EOFError, OSError):
            while True:
                _, size, meta = struct.unpack(">4sII", read(source, 12))
                body = read(source, size)
                parts = fields(body[meta:])
                key = next((v.decode("latin1") for tag, v in parts if tag >> 3 == 2), "")
                parts = [(t, change(key, v) if t >> 3 == 3 else v) for t, v in parts]
                head, sent = body[:meta], joined(parts)
                size = len(head) + len(sent)
                sink.sendall(struct.pack(">4sII", b"PRPC", size, meta) + head + sent)

    def answers(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while part := source.recv(1 << 16):
                sink.sendall(part)

    def serve() -> None:
        while True:
            source = server.accept()[0]
            while True:
                with suppress(OSError):
                    sink = socket.create_connection(("127.0.0.1", target))
                    break
                time.sleep(0.1)
            threading.Thread(target=requests, args=(source, sink), daemon=True).start()
            threading.Thread(target=answers, args=(sink, source), daemon=True).start()

    server = socket.create_server(("127.0.0.1", port))
    threading.Thread(target=serve, daemon=True).start()


# --- ciphertexts of SEAL ------------------------------------------------------------------------


def primes(bits: int, number: int) -> list[int]:
    """Return the largest primes of so many bits that are 1 modulo twice the degree."""
    found: list[int] = []
    tried = ((1 << bits) - 1) // (2 * DEGREE) * (2 * DEGREE) + 1
    while len(found) < number:
        if all(pow(a, tried - 1, tried) == 1 for a in (2, 3, 5, 7, 11)):
            found.append(tried)
        tried -= 2 * DEGREE
    return found


MODULI = [primes(bits, 1)[0] for bits in (60, 32, 52)]
PLAIN = primes(45, 3)
"""The first three of seven: a number of 128 bits follows from its remainders."""


def content(data: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdDecompressor().decompressobj().decompress(data[HEADER.size :])


def packed(like: bytes, body: bytes) -> bytes:
    magic, size, major, minor, _, reserved, _ = HEADER.unpack(like[: HEADER.size])
    return HEADER.pack(magic, size, major, minor, 0, reserved, HEADER.size + len(body)) + body


def ciphertext(like: bytes, second: int) -> bytes:
    """Return the form of a ciphertext or a public key, whose second half is this number."""
    halves = np.ones((2, len(MODULI), DEGREE), dtype="<u8")
    halves[1] = 0
    halves[1, :, 0] = [second % modulus for modulus in MODULI]
    array = packed(like, struct.pack("<Q", halves.size) + halves.tobytes())
    return packed(like, content(like)[:FACTS] + array)


def numbers_of(answer: bytes, prime: int, places: list[int]) -> list[int]:
    """Return some of the numbers, modulo a prime, by which the other party multiplied."""
    words = np.frombuffer(content(answer)[FACTS + HEADER.size + 8 :], "<u8")[DEGREE : 2 * DEGREE]
    signed = [int(x) - MODULI[0] if x > MODULI[0] // 2 else int(x) for x in words]
    polynomial = [((x + (1 << NOISE - 1)) >> NOISE) % prime for x in signed]
    other = next(g for g in range(2, 100) if pow(g, (prime - 1) // 2, prime) != 1)
    root = pow(other, (prime - 1) // (2 * DEGREE), prime)
    least = min(pow(root, k, prime) for k in range(1, 2 * DEGREE, 2))
    found = []
    for place in places:
        point = pow(least, 2 * int(format(place, "013b")[::-1], 2) + 1, prime)
        value = 0
        for coefficient in reversed(polynomial):
            value = (value * point + coefficient) % prime
        found.append(value)
    return found


def masks(answers: dict[int, bytes], places: list[int]) -> list[int]:
    """Return random numbers of the other party, from their remainders."""
    modulus = math.prod(PLAIN)
    remainders = [numbers_of(answers[3 + i], p, places) for i, p in enumerate(PLAIN)]
    found = []
    for values in zip(*remainders, strict=True):
        parts = (
            modulus // p * pow(modulus // p, -1, p) * x for x, p in zip(values, PLAIN, strict=True)
        )
        total = sum(parts) % modulus
        found.append(total - modulus if total > modulus // 2 else total)
    return found


def counts_of(answers: dict[int, bytes], sums: dict[int, bytes], kept: dict[str, Any]) -> list[int]:
    """Return the secret counts: factors of the first two products are slopes, scales and counts."""
    size = len(kept["rest"])
    factors = []
    for step in (0, 1):
        starts = step * size, DEGREE // 2 + step * size
        hidden = masks(answers, [start + i for start in starts for i in range(size)])
        sent = np.frombuffer(sums[3 + step], "<u8").reshape(-1, 2).tolist()
        factors.append(
            [low + (high << 64) + x for (low, high), x in zip(sent, hidden, strict=True)]
        )

    def value(own: int, other: int) -> int:
        total = (own + other) % RING
        return total - RING if total >= RING // 2 else total

    counts = []
    for i, table in enumerate(kept["tables"]):
        slope = value(kept["table"][i][SLOPE], factors[0][i]) / 2**40
        scale = value(kept["table"][i][SCALE], factors[1][i]) / 2**40
        slopes, scales = np.array(table)[:, [SLOPE, SCALE]].T
        errors = np.abs(slopes - slope) + np.abs(scales - scale)
        middle = int(kept["middles"][errors.argmin()])
        counts.append(value(kept["rest"][i], factors[0][size + i]) + middle)
    return counts


def main(rows: int = 5_000, first: int = 4, second: int = 4) -> None:
    from isthmus.joint.transport.child_process import free_port

    answers: dict[int, bytes] = {}
    sums: dict[int, bytes] = {}

    def numbered(key: str, value: bytes) -> int:
        """Return the number of a message of the first runtime, if it is an object of SEAL."""
        wanted = key.startswith("root-0:P2P-") and value[:2] == MAGIC
        return int(key.split("-")[2].split(":")[0]) if wanted else 0

    def sent(key: str, value: bytes) -> bytes:
        number = numbered(key, value)
        if not number:
            return value
        return ciphertext(value, 0 if number == 2 else MODULI[1] * MODULI[2] << NOISE)

    def received(key: str, value: bytes) -> bytes:
        if number := numbered(key, value):
            answers[number] = value
        elif key.startswith("root-0:") and "ALLGATHER" in key:
            sums[int(key.split(":")[1])] = value
        return value

    ports = [free_port() for _ in range(4)]
    relay(ports[2], ports[0], sent)
    relay(ports[3], ports[1], received)
    seen = [(ports[0], ports[3]), (ports[2], ports[1])]
    shape = [str(rows), str(first), str(second)]
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes"
        runs = [
            subprocess.Popen(
                [sys.executable, __file__, *shape, str(rank), *map(str, seen[rank]), str(notes)]
            )
            for rank in (0, 1)
        ]
        codes = [run.wait() for run in runs]
        kept = json.loads(notes.read_text())
    counts = counts_of(answers, sums, kept)
    own = columns_of(0, [first, second], rows)
    right = pairs = 0
    for table, members in enumerate(kept["members"]):
        i, j = members[0], members[1] - first
        # A table has no column for the last level of a variable; its first cell is the product.
        read = [counts[4 * table] >> k & 1 for k in range(PEOPLE)]
        right += sum(read[k] == 1 - own[person(j, k), i] for k in range(PEOPLE))
        pairs += 1
    print(
        f"{right} of {PEOPLE * pairs} values of the first party read from {pairs} counts, of "
        f"{own.size}; both ended: {codes}"
    )


if __name__ == "__main__":
    given = sys.argv[1:]
    if len(given) > 3:
        numbers = [int(text) for text in given[:6]]
        party(numbers[3], numbers[4:6], numbers[1:3], numbers[0], given[6])
    else:
        main(*map(int, given))
