"""What passes between two engines, and what is in their memory: shares, and nobody's columns."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import final

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.processes.companies import ROOT, Companies
from tests.processes.distinguishers import DISTINGUISHERS, correct_guesses
from tests.processes.recording_proxy import Recording, proxies_of

from isthmus_joint.transport.certificates import free_port

Codes = NDArray[np.uint8]
SHAPES = [["a", 0, 2], ["b", 1, 2], ["c", 1, 3]]
ROWS = 120
PAGE, CHUNK = 4096, 2**24
SEEN = 40
"""Length of the sequences of values that are looked for."""


def encodings(column: Codes) -> dict[str, bytes]:
    """A column as it could be found in memory or on the wire, each form once."""
    forms = {}
    for level in (None, 1):
        values = column if level is None else (column == level).astype(np.uint8)
        for kind in ("u1", "<i4", "<i8", "<f8"):
            forms[f"{kind} of {level}"] = values[:SEEN].astype(kind).tobytes()
        forms[f"bits of {level}"] = np.packbits(values[: 8 * SEEN]).tobytes()[: SEEN // 4]
    forms["text"] = "\n".join(map(str, column[:SEEN])).encode()
    forms["commas"] = ",".join(map(str, column[:SEEN])).encode()
    return {name: form for form, name in {f: n for n, f in reversed(forms.items())}.items()}


def found_in(data: bytes, column: Codes) -> list[str]:
    return [name for name, form in encodings(column).items() if form in data]


def resident(pid: int) -> Iterator[tuple[int, int]]:
    """The writable regions of a process of which something is in memory."""
    where = rights = ""
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        first, *rest = line.split()
        if not first.endswith(":"):
            where, rights = first, rest[0]
        elif first == "Rss:" and int(rest[0]) and rights.startswith("rw"):
            low, high = (int(x, 16) for x in where.split("-"))
            yield low, high


@final
class Engines:
    """Two engines that talk through a proxy."""

    def __init__(self, folder: Path, leak: str = "") -> None:
        self.folder = folder
        port = free_port()
        self.proxy = Recording(port)
        self.processes = [
            subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.processes.plain_engine", str(rank)),
                    *(str((port, self.proxy.port)[rank]), json.dumps(SHAPES), leak),
                ],
                cwd=ROOT,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            for rank in (0, 1)
        ]
        self._answers("ready")

    def _answers(self, expected: str | None = None) -> list[str]:
        answers = []
        for process in self.processes:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith(expected or "["):
                    answers.append(line)
                    break
        assert len(answers) == 2
        return answers

    def network(self, first: Codes, second: Codes) -> list[list[str]]:
        for rank, (process, codes) in enumerate(zip(self.processes, (first, second), strict=True)):
            path = self.folder / f"codes{rank}"
            np.ascontiguousarray(codes).tofile(path)
            assert process.stdin is not None
            process.stdin.write(f"{path}\n")
            process.stdin.flush()
        one, other = map(json.loads, self._answers())
        assert one == other
        found: list[list[str]] = one
        return found

    def seen_by_first(self) -> bytes:
        """Everything that the second engine has sent to the first so far, once it has arrived."""
        size = -1
        while size != (size := self._size()):
            time.sleep(0.1)
        return b"".join(map(bytes, self.proxy.forth))

    def transcript(self, first: Codes, second: Codes) -> bytes:
        """What the first engine receives while both compute one network."""
        before = len(self.seen_by_first())
        assert self.network(first, second) == [["a", "b"], ["b", "c"]]
        return self.seen_by_first()[before:]

    def sent_by_first(self) -> bytes:
        return b"".join(map(bytes, self.proxy.back))

    def _size(self) -> int:
        return sum(map(len, self.proxy.forth))

    def memory(self, rank: int) -> Iterator[bytes]:
        """The writable memory of an engine, region by region."""
        pid = self.processes[rank].pid
        with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
            for low, high in resident(pid):
                for start in range(low, high, CHUNK):
                    try:
                        memory.seek(start)
                        data = memory.read(min(CHUNK + PAGE, high - start))
                    except OSError:
                        continue
                    pages = np.frombuffer(data[: len(data) // PAGE * PAGE], np.uint8)
                    pages = pages.reshape(-1, PAGE)
                    yield pages[pages.any(axis=1)].tobytes()

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait(20)
            for stream in (process.stdin, process.stdout):
                assert stream is not None
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        self.proxy.close()


@pytest.fixture
def engines(folder: Path) -> Iterator[Engines]:
    made = Engines(folder)
    yield made
    made.close()


def chain(seed: int) -> tuple[Codes, Codes]:
    """Codes of a → b → c."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, ROWS)
    b = np.where(rng.random(ROWS) < 0.9, a, 1 - a)
    c = np.where(rng.random(ROWS) < 0.8, b, rng.integers(0, 3, ROWS))
    return a[:, None].astype(np.uint8), np.stack([b, c], axis=1).astype(np.uint8)


def test_neither_wire_nor_memory_has_the_columns_of_the_other(engines: Engines) -> None:
    bank, shop = chain(0)
    assert engines.network(bank, shop) == [["a", "b"], ["b", "c"]]
    assert len(engines.seen_by_first()) > 10000
    for column in (*bank.T, *shop.T):
        assert found_in(engines.seen_by_first(), column) == []
        assert found_in(engines.sent_by_first(), column) == []
    everything = [set[str](), set[str]()]
    for rank, (own, others) in enumerate(((bank, shop), (shop, bank))):
        for region in engines.memory(rank):
            for column in own.T:  # the search does find columns that are there
                everything[rank].update(found_in(region, column))
            for column in others.T:
                assert found_in(region, column) == []
    assert all("<i8 of None" in seen for seen in everything)


LEAKS = ("", "plain", "masked", "length")
CHANCE = 14
"""Of 16 guesses; more are right with a probability of 0.03 % if they are guesses."""


@pytest.mark.skipif("ISTHMUS_LONG" not in os.environ, reason="half a minute each")
@pytest.mark.parametrize("leak", LEAKS)
def test_transcripts_of_two_inputs_cannot_be_told_apart(folder: Path, leak: str) -> None:
    """The same decisions from other columns of the shop: the bank sees nothing of the difference.

    Renaming levels does not change a K2 score. The bank's whole transcript is what it received and
    what was revealed. Two pairs of engines run in step, one with each input, in turns: engines
    prepare randomness now and then, whatever the input. With a leak that is built into the engine,
    the same distinguishers do tell them apart.
    """
    bank, shop = chain(1)
    inputs = (shop, np.stack([1 - shop[:, 0], 2 - shop[:, 1]], axis=1))
    pairs = [Engines(folder, leak), Engines(folder, leak)]
    rounds = []
    try:
        for each in pairs:
            each.network(bank, shop)  # keys are exchanged only once
        for first in (0, 1, 1, 0, 1, 0, 0, 1):
            labels = (first, 1 - first)
            seen = [p.transcript(bank, inputs[k]) for p, k in zip(pairs, labels, strict=True)]
            rounds.append(list(zip(seen, labels, strict=True)))
    finally:
        for each in pairs:
            each.close()
    right = {name: correct_guesses(rounds, name) for name in DISTINGUISHERS}
    if leak:
        assert max(right.values()) > CHANCE, right
        return
    assert max(right.values()) <= CHANCE, right
    for (one, _), (other, _) in rounds:
        assert len(one) == len(other)
    # The same transcripts with a leak inside: a column with the same mask in each run, somewhere.
    draw = np.random.default_rng(2)
    mask = draw.integers(0, 256, 8 * ROWS, dtype=np.uint8)
    codes = [x[:, 1].astype("<i8").view(np.uint8) ^ mask for x in inputs]
    leaking = [
        [(insert(seen, codes[k].tobytes(), int(draw.integers(len(seen)))), k) for seen, k in each]
        for each in rounds
    ]
    assert correct_guesses(leaking, "pieces") > CHANCE
    longer = [[(insert(seen, bytes(5000 * k), 0), k) for seen, k in each] for each in rounds]
    assert correct_guesses(longer, "length") > CHANCE


def insert(transcript: bytes, leak: bytes, place: int) -> bytes:
    return transcript[:place] + leak + transcript[place:]


def run_over_proxies(world: Companies) -> list[bytes]:
    """Run both parties to their ends, and return what a listener on the network sees."""
    proxies = proxies_of(world)
    world.start("bank", stand_in=False)
    world.start("shop", "--connect", f"127.0.0.1:{proxies[0].port}", stand_in=False)
    ends = world.ends()
    for proxy in proxies:
        proxy.close()
    assert ends == (0, 0)
    return [bytes(s) for proxy in proxies for s in (*proxy.forth, *proxy.back) if s]


def require_only_tls(world: Companies, streams: Sequence[bytes]) -> None:
    """A listener sees records of TLS and nothing else."""
    assert len(streams) >= 4
    for stream in streams:
        assert stream[:2] == b"\x16\x03"  # every connection begins with a handshake of TLS
        for text in (b"p0150", b"person", b"decision", world.identity().encode(), b"parent"):
            assert text not in stream
        assert records_of(stream) == len(stream)  # and consists of its records alone


def records_of(stream: bytes) -> int:
    """How many bytes are complete records of TLS."""
    place = 0
    while place + 5 <= len(stream):
        assert stream[place] in (20, 21, 22, 23)
        size = 5 + int.from_bytes(stream[place + 3 : place + 5], "big")
        if place + size > len(stream):
            break
        place += size
    return place
