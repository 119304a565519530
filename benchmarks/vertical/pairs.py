"""Starts two parties as processes on this machine, if wanted with a delay between them."""

from __future__ import annotations

import asyncio
import json
import math
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from isthmus_joint.transport.certificates import free_port

HERE = Path(__file__).parent


def written(
    job: dict[str, Any],
    names: list[str],
    data: Any,
    levels: list[int],
    owners: list[int],
    folder: Path,
) -> dict[str, Any]:
    """Write each party's columns to a file of its own, and return the job that names them."""
    files = []
    for rank in (0, 1):
        path = folder / f"{job['name']}.{rank}.npz".replace(" ", "-").replace("/", "-")
        np.savez(path, **{n: data[:, i] for i, n in enumerate(names) if owners[i] == rank})
        files.append(str(path))
    columns = [[n, o, k] for n, o, k in zip(names, owners, levels, strict=True)]
    return {**job, "columns": columns, "files": files, "rows": len(data)}


async def _pump(reader: Any, writer: Any, delay: float, bandwidth: float) -> None:
    """Hand on what arrives: each piece takes its time, and arrives after the delay."""
    loop = asyncio.get_running_loop()
    free = 0.0
    pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def deliver() -> None:
        while True:
            due, piece = await pieces.get()
            await asyncio.sleep(max(0.0, due - loop.time()))
            if not piece:
                writer.close()
                return
            writer.write(piece)
            await writer.drain()

    task = asyncio.create_task(deliver())
    while piece := await reader.read(1 << 18):
        free = max(free, loop.time()) + len(piece) / bandwidth
        pieces.put_nowait((free + delay, piece))
    pieces.put_nowait((max(free, loop.time()) + delay, b""))
    await task


def relay(routes: list[tuple[int, int]], delay: float, bandwidth: float = math.inf) -> None:
    """Listen at ports and connect to others, with a delay in each direction; in a thread."""

    async def serve() -> None:
        def handler(target: int) -> Any:
            async def handle(reader: Any, writer: Any) -> None:
                for _ in range(600):  # until someone listens there
                    try:
                        there, back = await asyncio.open_connection("127.0.0.1", target)
                        break
                    except OSError:
                        await asyncio.sleep(0.05)
                else:
                    writer.close()
                    return
                await asyncio.gather(
                    _pump(reader, back, delay, bandwidth),
                    _pump(there, writer, delay, bandwidth),
                    return_exceptions=True,
                )

            return handle

        for port, target in routes:
            await asyncio.start_server(handler(target), "127.0.0.1", port)
        await asyncio.Event().wait()

    threading.Thread(target=lambda: asyncio.run(serve()), daemon=True).start()


def measured_round_trip(round_trip: float, count: int = 20) -> float:
    """Return the median seconds in which an echo comes back through the relay."""
    port = free_port()
    with socket.create_server(("127.0.0.1", 0)) as server:
        relay([(port, server.getsockname()[1])], round_trip / 2)

        def echo() -> None:
            connection, _ = server.accept()
            with connection:
                while data := connection.recv(64):
                    connection.sendall(data)

        threading.Thread(target=echo, daemon=True).start()
        times = []
        with connected(port) as client:
            for _ in range(count):
                started = time.perf_counter()
                client.sendall(b"ping")
                client.recv(64)
                times.append(time.perf_counter() - started)
    return float(np.median(times))


def connected(port: int) -> socket.socket:
    """Connect to a port on which someone is about to listen."""
    for _ in range(100):
        try:
            return socket.create_connection(("127.0.0.1", port))
        except OSError:
            time.sleep(0.05)
    raise TimeoutError(f"Nobody listens on port {port}.")


def run_jobs(
    jobs: list[dict[str, Any]], round_trip: float = 0.0, bandwidth: float = math.inf
) -> Iterator[list[dict[str, Any]]]:
    """Run jobs at both parties; yield both reports of each job as they come."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.json"
        path.write_text(json.dumps(jobs))
        port, to_port = free_port(), free_port()
        seen = [port, port]
        if round_trip:
            relay([(to_port, port)], round_trip / 2, bandwidth)
            seen = [port, to_port]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        parties = []
        for rank in (0, 1):
            command = [sys.executable, str(HERE / "party.py"), str(path), str(rank)]
            command.append(str(seen[rank]))
            parties.append(
                subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
            )
        try:
            for _ in jobs:
                lines = [p.stdout.readline() for p in parties if p.stdout]
                yield [json.loads(line) for line in lines]
        finally:
            for p in parties:
                p.terminate()
                p.wait()
