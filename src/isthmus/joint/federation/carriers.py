"""Carriers connect the coordinator of a federation and its sites over a network.

gRPC is built in. Other packages register theirs with the entry point group ``isthmus.carriers``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import final

from isthmus.errors import FormatError
from isthmus.joint.agreement.cards import Card, Folder
from isthmus.joint.agreement.study import Study
from isthmus.joint.federation.site_service import SiteService
from isthmus.joint.records.private_files import require_private
from isthmus.joint.secure_sum.envelopes import LARGEST, size_of
from isthmus.joint.secure_sum.protocol import secure_sums
from isthmus.joint.transport.base import RemoteTransport, Timeouts, Watcher
from isthmus.joint.transport.certificates import node_key_pem

GROUP = "isthmus.carriers"
"""Entry points of other carriers: the name of each, and its class."""


class Carrier(ABC):
    """Carries messages between machines. All parties of a study use the same carrier."""

    @abstractmethod
    def coordinator_transport(
        self,
        home: Path,
        state: Path,
        folder: Folder,
        listen: str,
        timeouts: Timeouts,
        watch: Watcher,
    ) -> AbstractContextManager[RemoteTransport]:
        """Listen for the sites of a study.

        Parameters
        ----------
        home
            The private folder of the coordinator, with ``server.crt`` and ``server.pem``.
        state
            A folder for what the carrier stores about this study.
        folder
            The folder that all parties share.
        listen
            The address to listen on; the port is that of the study folder.
        timeouts
            How long to wait.
        watch
            Called when the state of a site changes.
        """

    @abstractmethod
    def serve(
        self,
        site: SiteService,
        folder: Folder,
        address: str,
        until: Callable[[], bool],
        say: Callable[[str], None],
    ) -> None:
        """Connect a site to the coordinator, and answer until a condition is met.

        Parameters
        ----------
        site
            Answers messages (`SiteService.handle`), and records what is not a message
            (`SiteService.reject`).
        folder
            The folder that all parties share.
        address
            Host and port of the coordinator.
        until
            Whether to stop.
        say
            Called with a line for the operator.
        """


def carrier_names() -> tuple[str, ...]:
    """Return the names of the carriers that are installed, the default first."""
    return ("grpc", *sorted(point.name for point in entry_points(group=GROUP)))


def carrier_named(name: str) -> Carrier:
    """Return the carrier of this name."""
    if name == "grpc":
        return GrpcCarrier()
    for point in entry_points(group=GROUP, name=name):
        carrier: Carrier = point.load()()
        return carrier
    raise FormatError(
        f"There is no carrier {name!r}. Installed are {list(carrier_names())}; "
        "'flower' needs the package isthmus-flower."
    )


def port_of(address: str) -> int:
    """Return the port of an address of the form HOST:PORT."""
    _, _, port = address.rpartition(":")
    if not port.isdigit():
        raise FormatError(f"The address {address!r} must have the form HOST:PORT.")
    return int(port)


@final
class GrpcCarrier(Carrier):
    """gRPC over mutual TLS, with the certificates that the study names."""

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
        from isthmus.joint.transport.grpc.credentials import CoordinatorCredentials
        from isthmus.joint.transport.grpc.grpc_transport import GrpcTransport

        study, cards, port = folder.study(), folder.cards(), port_of(folder.address())
        certificate = (home / "server.crt").read_bytes()
        require_pins(study, cards, certificate)
        credentials = CoordinatorCredentials(
            certificate,
            _private(home / "server.pem"),
            {name: card.certificate.encode() for name, card in cards.items()},
        )
        with GrpcTransport(
            listen, port, credentials, study.identity, size_of(LARGEST), timeouts, watch
        ) as transport:
            yield transport

    def serve(
        self,
        site: SiteService,
        folder: Folder,
        address: str,
        until: Callable[[], bool],
        say: Callable[[str], None],
    ) -> None:
        from isthmus.joint.transport.grpc.credentials import SiteCredentials
        from isthmus.joint.transport.grpc.grpc_site import GrpcSite

        study, cards, coordinator = folder.study(), folder.cards(), folder.certificate.read_bytes()
        require_pins(study, cards, coordinator)
        credentials = SiteCredentials(
            cards[site.controller.name].certificate.encode(),
            node_key_pem(_private(site.state / "node.pem")),
            coordinator,
        )
        with GrpcSite(
            address,
            credentials,
            study.identity,
            site.handle,
            site.longest,
            reject=site.reject,
            watch=say,
        ) as connection:
            connection.run(until)


def require_pins(study: Study, cards: Mapping[str, Card], coordinator: bytes) -> None:
    """Raise `StudyError` unless these certificates are the ones that the study names."""
    from isthmus.joint.transport.grpc.credentials import require_pinned

    protocol = secure_sums(study.protocol)
    require_pinned(coordinator, protocol.coordinator_certificate, "the coordinator")
    for member, pin in zip(study.members, protocol.certificates, strict=True):
        require_pinned(cards[member.name].certificate, pin, f"the site {member.name!r}")


def _private(path: Path) -> bytes:
    """Read a private key, unless others can read it, too."""
    require_private(path)
    return path.read_bytes()
