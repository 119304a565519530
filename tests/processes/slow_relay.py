"""A slow, lossy network in user space: forwards TCP with a delay, and stalls as lost packets do.

    python slow_relay.py PORT TARGET_HOST TARGET_PORT DELAY_SECONDS LOSS

A lost packet of TCP shows as a pause until it is sent again, and what follows waits behind it.
"""

from __future__ import annotations

import asyncio
import random
import sys

RETRANSMISSION = 0.3
PACKET = 1400


async def forward(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float, loss: float
) -> None:
    """Pass on what comes, late and in order."""
    chance = random.Random(7)
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def send() -> None:
        while True:
            due, data = await queue.get()
            await asyncio.sleep(max(due - loop.time(), 0.0))
            writer.write(data)
            await writer.drain()
            if not data:
                writer.close()
                return

    sender = asyncio.create_task(send())
    try:
        while data := await reader.read(PACKET):
            lost = RETRANSMISSION if chance.random() < loss else 0.0
            await queue.put((loop.time() + delay + lost, data))
    except OSError:
        pass
    await queue.put((loop.time(), b""))
    await asyncio.gather(sender, return_exceptions=True)


async def serve(port: int, target: tuple[str, int], delay: float, loss: float) -> None:
    """Relay each connection to the target."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(*target)
        except OSError:
            writer.close()
            return
        await asyncio.gather(
            forward(reader, far_writer, delay, loss), forward(far_reader, writer, delay, loss)
        )

    server = await asyncio.start_server(connected, "0.0.0.0", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    own, host, far, seconds, share = sys.argv[1:]
    asyncio.run(serve(int(own), (host, int(far)), float(seconds), float(share)))
