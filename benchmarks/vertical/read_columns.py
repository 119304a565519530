"""A party that changes its engine reads the other party's columns, before anything is opened.

    nice python benchmarks/vertical/read_columns.py [ROWS OWN OTHERS]

Needs the extra `vertical` and `pip install zstandard`. Both engines are unchanged and compute
private K2; a relay at the first party changes what that party's engine sends, and reads what it
receives. It sends numbers of its choice instead of ciphertexts, and a public key whose second half
is zero. The first half of each answer is masked, the second half is not: it is the chosen numbers
times the other party's columns.
"""

from __future__ import annotations

import math
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

DEGREE = 4096
MAGIC = b"\x5e\xa1"  # SEAL's objects begin with it
HEADER = struct.Struct("<2sBBBBHQ")
NOISE = 8
"""Bits below the columns, for the noise that the other engine adds."""

Change = Callable[[str, bytes], bytes]


def engine(
    rank: int, ports: list[int], widths: list[int], rows: int, cover: int | None = None
) -> None:
    """Run private K2 on random columns of two levels, unchanged but for the cover."""
    from isthmus.joint.shares import secret_tables

    if cover is not None:
        secret_tables.COVER = cover
    from isthmus.joint.methods.private_k2 import private_k2
    from isthmus.joint.shares.columns import Columns, SharedColumn
    from isthmus.joint.shares.engine import SecretSharingRuntime, connect_local
    from isthmus.joint.shares.secret_scores import CountScore

    shapes = [SharedColumn(f"v{r}{i}", r, 2) for r in (0, 1) for i in range(widths[r])]
    mine = [c.name for c in shapes if c.owner == rank]
    values = dict(zip(mine, columns_of(rank, widths, rows).T, strict=True))
    runtime = SecretSharingRuntime(connect_local(rank, (ports[0], ports[1])))
    columns = Columns(shapes, values, rank, rows)
    private_k2(runtime, columns, columns.names, 1, CountScore())


def columns_of(rank: int, widths: list[int], rows: int) -> Any:
    return np.random.default_rng([7, rank]).integers(0, 2, (rows, widths[rank]))


# --- messages of brpc --------------------------------------------------------------------------


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


# --- ciphertexts of SEAL -----------------------------------------------------------------------


def prime(bits: int) -> int:
    """Return the largest prime of so many bits that is 1 modulo twice the degree."""
    number = ((1 << bits) - 1) // (2 * DEGREE) * (2 * DEGREE) + 1
    while any(pow(a, number - 1, number) != 1 for a in (2, 3, 5, 7, 11)):
        number -= 2 * DEGREE
    return number


FIRST, SECOND = prime(59), prime(37)
FACTS = struct.calcsize("<32s?QQQdQ")


def content(data: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdDecompressor().decompressobj().decompress(data[HEADER.size :])


def packed(like: bytes, body: bytes) -> bytes:
    magic, size, major, minor, _, reserved, _ = HEADER.unpack(like[: HEADER.size])
    return HEADER.pack(magic, size, major, minor, 0, reserved, HEADER.size + len(body)) + body


def points() -> list[int]:
    """Return the numbers at which the engine keeps the values of a polynomial, in its order."""
    other = next(g for g in range(2, 100) if pow(g, (FIRST - 1) // 2, FIRST) != 1)
    root = pow(other, (FIRST - 1) // (2 * DEGREE), FIRST)
    least = min(pow(root, k, FIRST) for k in range(1, 2 * DEGREE, 2))
    reverse = [int(format(i, "012b")[::-1], 2) for i in range(DEGREE)]
    return [pow(least, 2 * k + 1, FIRST) for k in reverse]


def ciphertext(like: bytes, second: int, power: int = 0) -> bytes:
    """Return the form of a ciphertext or a public key, whose second half is a monomial."""
    values = [second * pow(point, power, FIRST) % FIRST for point in points()]
    halves = [np.ones(2 * DEGREE), np.array(values, dtype=object), np.zeros(DEGREE)]
    words = np.concatenate([half.astype("<u8") for half in halves])
    array = packed(like, struct.pack("<Q", words.size) + words.tobytes())
    return packed(like, content(like)[:FACTS] + array)


def blocks(sizes: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return the size of the blocks in which the engine multiplies two matrices."""
    best, least = (1, 1, 1), math.inf
    for first in range(1, min(DEGREE, sizes[0]) + 1):
        for inner in range(1, min(DEGREE // first, sizes[1]) + 1):
            block = first, inner, min(sizes[2], DEGREE // first // inner)
            a, b, c = (math.ceil(n / k) for n, k in zip(sizes, block, strict=True))
            cost = 1000 * (min(a, c) * b + math.ceil(a * c / inner)) + a * b * c / 10
            if cost <= least:
                best, least = block, cost
    return best


def main(rows: int = 20_000, own: int = 3, others: int = 5) -> None:
    from isthmus.joint.shares.secret_tables import COVER
    from isthmus.joint.transport.child_process import free_port

    sizes = own, rows + 2 * COVER, others
    block = blocks(sizes)
    a, b, c = (math.ceil(n / k) for n, k in zip(sizes, block, strict=True))
    # Blocks of people get different powers of two; the last one also has random numbers, and is put
    # behind the others; the rest is multiplied by zero.
    whole = rows // block[1]
    if a > 1 or own < 2 or whole > 58 - NOISE or block[2] > 1:
        raise SystemExit("The first party needs 2 columns, fewer than the other, and fewer rows.")
    answers: dict[int, bytes] = {}

    def numbered(key: str, value: bytes) -> int | None:
        """Return the number of a message of the first runtime, if it is an object of SEAL."""
        if not key.startswith("root-0:P2P-") or value[:2] != MAGIC:
            return None
        return int(key.split("-")[2].split(":")[0])

    def sent(key: str, value: bytes) -> bytes:
        number = numbered(key, value)
        if number == 2:
            return ciphertext(value, 0)
        if number is None or number >= 3 + b:
            return value
        k = number - 3
        if k < whole:
            return ciphertext(value, SECOND << (NOISE + k))
        return ciphertext(value, SECOND << NOISE if k == whole else 0, block[1])

    def received(key: str, value: bytes) -> bytes:
        number = numbered(key, value)
        if number is not None and 3 <= number < 3 + c:
            answers[number - 3] = value
        return value

    first, second, to_second, to_first = (free_port() for _ in range(4))
    relay(to_second, second, sent)
    relay(to_first, first, received)
    ports = [(first, to_second), (to_first, second)]
    shape = [str(rows), str(own), str(others)]
    runs = [
        subprocess.Popen([sys.executable, __file__, *shape, str(rank), *map(str, ports[rank])])
        for rank in (0, 1)
    ]
    codes = [run.wait() for run in runs]
    read = np.full((rows, others), -1)
    for j, answer in answers.items():
        words = np.frombuffer(content(answer)[FACTS + HEADER.size + 8 :], "<u8")[DEGREE:]
        numbers = [(int(x) - FIRST if x > FIRST // 2 else int(x)) for x in words]
        bits = [(x + (1 << NOISE - 1)) >> NOISE for x in numbers]
        for k, i in product(range(whole + 1), range(block[1])):
            if k * block[1] + i < rows:
                read[k * block[1] + i, j] = bits[i] >> k & 1 if k < whole else bits[block[1] + i]
    # A table has no column for the last level of a variable.
    right = int((read == 1 - columns_of(1, [own, others], rows)).sum())
    print(f"{right} of {read.size} values of the other party read; both engines ended: {codes}")


if __name__ == "__main__":
    numbers = [int(text) for text in sys.argv[1:]]
    if len(numbers) > 3:
        engine(numbers[3], numbers[4:6], numbers[1:3], numbers[0], *numbers[6:])
    else:
        main(*numbers)
