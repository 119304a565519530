"""A coordinator and its sites over gRPC, with mutual TLS and the certificates of a study."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from isthmus.errors import FormatError
from isthmus_joint.agreement.cards import Card, Folder
from isthmus_joint.agreement.study import Study
from isthmus_joint.federation.site_controller import SiteService
from isthmus_joint.records.private_files import require_private
from isthmus_joint.secure_sum.envelopes import LARGEST, size_of
from isthmus_joint.secure_sum.protocol import secure_sums
from isthmus_joint.transport.base import RemoteTransport, Timeouts, Watcher


@contextmanager
def listen(
    home: Path, folder: Folder, address: str, timeouts: Timeouts, watch: Watcher
) -> Iterator[RemoteTransport]:
    """Listen for the sites of a study.

    Parameters
    ----------
    address
        The network address to listen on; the port is that of the study folder.
    """
    from isthmus_joint.transport.over_grpc import CoordinatorCredentials, GrpcTransport

    study, cards, port = folder.study(), folder.cards(), port_of(folder.address())
    certificate = (home / "connection.crt").read_bytes()
    require_pins(study, cards, certificate)
    credentials = CoordinatorCredentials(
        certificate,
        _private(home / "connection.pem"),
        {name: card.certificate.encode() for name, card in cards.items()},
    )
    with GrpcTransport(
        address, port, credentials, study.identity, size_of(LARGEST), timeouts, watch
    ) as transport:
        yield transport


def serve(
    site: SiteService,
    folder: Folder,
    address: str,
    until: Callable[[], bool],
    say: Callable[[str], None],
) -> None:
    """Connect a site to the coordinator, and answer until a condition is met."""
    from isthmus_joint.transport.over_grpc import GrpcSite, SiteCredentials

    study, cards, coordinator = folder.study(), folder.cards(), folder.certificate.read_bytes()
    require_pins(study, cards, coordinator)
    credentials = SiteCredentials(
        cards[site.controller.name].certificate.encode(),
        _private(site.state / "connection.pem"),
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


def port_of(address: str) -> int:
    """Return the port of an address of the form HOST:PORT."""
    _, _, port = address.rpartition(":")
    if not port.isdigit():
        raise FormatError(f"The address {address!r} must have the form HOST:PORT.")
    return int(port)


def require_pins(study: Study, cards: Mapping[str, Card], coordinator: bytes) -> None:
    """Raise `StudyError` unless these certificates are the ones that the study names."""
    from isthmus_joint.transport.over_grpc import require_pinned

    protocol = secure_sums(study.protocol)
    require_pinned(coordinator, protocol.coordinator_certificate, "the coordinator")
    for member, pin in zip(study.members, protocol.certificates, strict=True):
        require_pinned(cards[member.name].certificate, pin, f"the site {member.name!r}")


def _private(path: Path) -> bytes:
    """Read a private key, unless others can read it, too."""
    require_private(path)
    return path.read_bytes()
