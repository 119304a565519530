"""The carrier that the command line of Isthmus finds by its entry point."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import final

from isthmus.joint import Carrier, Folder, RemoteTransport, SiteService, Timeouts
from isthmus.joint.federation.carriers import port_of
from isthmus.joint.transport.base import Watcher
from isthmus_flower.flower_transport import FlowerTransport
from isthmus_flower.sockets import Service, socket_path
from isthmus_flower.superlink import FlowerSuperLink
from isthmus_flower.supernode import FlowerSuperNode


@final
class FlowerCarrier(Carrier):
    """Messages over Flower: a SuperLink at the coordinator, and a SuperNode at each site."""

    @contextmanager
    def coordinator_transport(
        self,
        home: Path,
        state: Path,
        folder: Folder,
        listen: str,
        timeouts: Timeouts,
        watch: Watcher,
    ) -> Iterator[RemoteTransport]:
        files = home / "server.crt", home / "server.pem"
        nodes = {name: card.node for name, card in folder.cards().items()}
        link = FlowerSuperLink(state, listen, port_of(folder.address()), files, nodes)
        try:
            yield FlowerTransport(link, timeouts, watch)
        finally:
            link.stop()

    def serve(
        self,
        site: SiteService,
        folder: Folder,
        address: str,
        until: Callable[[], bool],
        say: Callable[[str], None],
    ) -> None:
        home = site.state
        path = socket_path(home)
        service = Service(path, site.handle, site.longest, site.reject)
        service.start()
        node = FlowerSuperNode(home, path, address, folder.certificate, home / "node.pem")
        try:
            node.run(until)
        finally:
            node.stop()
            service.close()
