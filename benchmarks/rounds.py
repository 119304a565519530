"""Wall time of ADMM over gRPC, with real sites as processes; of any tree of this package.

    python benchmarks/rounds.py            # this tree
    python benchmarks/rounds.py OTHER      # another one, such as an earlier commit
    python benchmarks/rounds.py OTHER 40   # each connection through a relay that adds 40 ms

Three sites on this machine, three variables, no early stop. Times are per step of ADMM; compare two
trees in turn on the same machine. The last argument is the time that a relay adds to each round
trip, in milliseconds.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

TREE = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]).absolute()
sys.path[:0] = [str(TREE / "src"), str(TREE)]
os.environ["PYTHONPATH"] = str(TREE / "src")

STEPS = 100


class Relay:
    """Passes bytes on to a port of this machine, each half a round trip later."""

    def __init__(self, port: int, seconds: float) -> None:
        self._port, self._half = port, seconds / 2
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self.port = 0
        threading.Thread(target=self._run, daemon=True).start()
        self._ready.wait()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._connected, "127.0.0.1", 0)
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        await asyncio.gather(self._pass(reader, back), self._pass(there, writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(2**16):
            self._loop.call_later(self._half, writer.write, data)
        self._loop.call_later(self._half, writer.close)


def main() -> None:
    from tests.processes.hospitals import Hospitals

    import isthmus as ist
    from isthmus_joint import ADMM, Federation, FileJournal, Timeouts

    delay = float(sys.argv[2]) / 1000 if len(sys.argv) > 2 else 0.0
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        world = Hospitals(Path(folder), (200, 200, 200), method="admm")
        stack.callback(world.close)
        world.transport()
        for name in world.names:
            more = ["--coordinator", f"127.0.0.1:{Relay(world.port, delay).port}"] if delay else []
            world.start(name, *more)
        for name in world.names:
            world.await_site(name)
        transport = world.transport(Timeouts(20.0, 20.0, 0.0, 2.0))
        journal = FileJournal(Path(folder) / "journal")
        federation = Federation(
            world.study, world.signatures, world.boss, transport, journal=journal
        )
        start, spent = time.perf_counter(), time.process_time()
        ist.learn(federation, search=ADMM(rounds=STEPS, tolerance=0.0))
        wall, spent = time.perf_counter() - start, time.process_time() - spent
        ticks = os.sysconf("SC_CLK_TCK")
        sites = 0.0
        for name in world.names:
            text = Path(f"/proc/{world.processes[name].pid}/stat").read_text()
            fields = text.rpartition(")")[2].split()
            sites += (int(fields[11]) + int(fields[12])) / ticks
        print(
            f"{TREE.name}: {1000 * wall / STEPS:.1f} ms per step, {1000 * spent / STEPS:.1f} ms of "
            f"CPU of this process, {sites:.1f} s of CPU of all sites with their start"
        )


if __name__ == "__main__":
    main()
