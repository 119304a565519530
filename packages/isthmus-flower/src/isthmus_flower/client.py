"""At a site: passes a message to the site's own process, which decides what leaves.

Flower starts a process for every message, so this module imports little. Keys, policy, ledger and
the state of a round are in the site's own process, ``isthmus site join HOME STUDY --socket PATH``.
"""

from __future__ import annotations

import logging
from multiprocessing.connection import Client

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from isthmus_flower.messages import packed, unpacked

SOCKET = "isthmus-socket"
"""Name of the path of the socket in the configuration of a SuperNode, which its operator writes."""

LARGEST = 2**29
"""Bytes of the longest answer."""

log = logging.getLogger(__name__)
app = ClientApp()


@app.query()
def answer(message: Message, context: Context) -> Message:
    """Return the answer of the site, or nothing if it does not take part."""
    data, path = unpacked(message.content), context.node_config.get(SOCKET)
    reply = None
    if data is not None:
        try:
            with Client(str(path), "AF_UNIX") as connection:
                connection.send_bytes(data)
                reply = connection.recv_bytes(LARGEST)
        except (OSError, EOFError) as error:
            log.warning("The process of the site does not answer at %s: %s", path, error)
    return Message(packed(reply), reply_to=message)
