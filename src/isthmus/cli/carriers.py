"""What carries the messages of a federation: gRPC by default, or Flower."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isthmus.errors import FormatError

if TYPE_CHECKING:
    from isthmus.joint.agreement.cards import Card, Folder
    from isthmus.joint.agreement.study import Study
    from isthmus.joint.federation.site_service import SiteService
    from isthmus.joint.transport.base import Timeouts, Watcher
    from isthmus.joint.transport.remote import RemoteTransport

LOOPBACK = "127.0.0.1"


class Carrier(StrEnum):
    """Transport of messages between machines. All parties of a study use the same one."""

    GRPC = "grpc"
    FLOWER = "flower"


def add_carrier(parser: argparse.ArgumentParser) -> None:
    """Add the option that chooses the carrier."""
    parser.add_argument(
        "--carrier",
        type=Carrier,
        choices=list(Carrier),
        default=Carrier.GRPC,
        help="what carries messages, the same at all parties; flower needs the extra 'flower'",
    )


def port_of(address: str) -> int:
    """Return the port of an address of the form HOST:PORT."""
    _, _, port = address.rpartition(":")
    if not port.isdigit():
        raise FormatError(f"The address {address!r} must have the form HOST:PORT.")
    return int(port)


def certificates(cards: Mapping[str, Card], authority: bytes) -> dict[str, Any]:
    """Return the certificates that a study pins, as options of its protocol."""
    from isthmus.joint.transport.certificates import fingerprint

    missing = [name for name, card in cards.items() if not card.certificate]
    if missing:
        raise FormatError(
            f"The cards of {missing} hold no certificate, because an earlier version created them. "
            "These sites create new ones with 'isthmus site certify'."
        )
    return {
        "certificates": tuple(fingerprint(card.certificate) for card in cards.values()),
        "coordinator_certificate": fingerprint(authority),
    }


@contextmanager
def coordinator_transport(
    carrier: Carrier,
    home: Path,
    state: Path,
    folder: Folder,
    listen: str,
    timeouts: Timeouts,
    watch: Watcher,
) -> Iterator[RemoteTransport]:
    """Listen for the sites of a study."""
    study, cards, port = folder.study(), folder.cards(), port_of(folder.address())
    if carrier is Carrier.FLOWER:
        from isthmus.joint.transport.flower.flower_transport import FlowerTransport
        from isthmus.joint.transport.flower.superlink import FlowerSuperLink

        files = home / "ca.crt", home / "server.crt", home / "server.pem"
        nodes = {name: card.node for name, card in cards.items()}
        link = FlowerSuperLink(state, listen, port, files, nodes)
        try:
            yield FlowerTransport(link, timeouts, watch)
        finally:
            link.stop()
        return
    from isthmus.joint.secure_sum.frames import LARGEST, size_of
    from isthmus.joint.transport.grpc.credentials import CoordinatorCredentials
    from isthmus.joint.transport.grpc.grpc_transport import GrpcTransport

    require_pins(study, cards, (home / "ca.crt").read_bytes())
    credentials = CoordinatorCredentials(
        (home / "server.crt").read_bytes(),
        _private(home / "server.pem"),
        {name: card.certificate.encode() for name, card in cards.items()},
    )
    with GrpcTransport(
        listen, port, credentials, study.identity, size_of(LARGEST), timeouts, watch
    ) as transport:
        yield transport


def require_pins(study: Study, cards: Mapping[str, Card], authority: bytes) -> None:
    """Raise `StudyError` unless these certificates are the ones that the study names."""
    from isthmus.joint.secure_sum.protocol import secure_sums
    from isthmus.joint.transport.grpc.credentials import require_pinned

    protocol = secure_sums(study.protocol)
    require_pinned(authority, protocol.coordinator_certificate, "the coordinator")
    for member, pin in zip(study.members, protocol.certificates, strict=True):
        require_pinned(cards[member.name].certificate, pin, f"the site {member.name!r}")


def serve(
    carrier: Carrier,
    site: SiteService,
    folder: Folder,
    address: str,
    until: Callable[[], bool],
    say: Callable[[str], None],
) -> None:
    """Connect a site to the coordinator, and answer until a condition is met."""
    home = site.state
    if carrier is Carrier.FLOWER:
        from isthmus.joint.transport.flower.supernode import FlowerSuperNode

        node = FlowerSuperNode(
            home, site.open_socket(), address, folder.authority, home / "node.pem"
        )
        try:
            node.run(until)
        finally:
            node.stop()
        return
    from isthmus.joint.transport.certificates import node_key_pem
    from isthmus.joint.transport.grpc.credentials import SiteCredentials
    from isthmus.joint.transport.grpc.grpc_site import GrpcSite

    study, authority = folder.study(), folder.authority.read_bytes()
    cards = folder.cards()
    require_pins(study, cards, authority)
    credentials = SiteCredentials(
        cards[site.controller.name].certificate.encode(),
        node_key_pem(_private(home / "node.pem")),
        authority,
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


def _private(path: Path) -> bytes:
    """Read a private key, unless others can read it, too."""
    from isthmus.joint.agreement.identity import require_private

    require_private(path)
    return path.read_bytes()
