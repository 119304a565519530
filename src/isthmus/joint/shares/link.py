"""The connection of the two engines: brpc with mutual TLS and pinned certificates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from isthmus.errors import AbortedError, MissingExtraError

if TYPE_CHECKING:
    from spu.libspu.link import Context

TRIES = 30
RETRIES = 2
"""How often a message is sent again that was not confirmed."""

ANSWER = 10.0
"""Seconds for the other engine to confirm a message, and so for each try to connect."""


@final
@dataclass(frozen=True)
class LinkOptions:
    """How to connect to the engine of the other party.

    Attributes
    ----------
    session
        Name of the connection, the same at both parties.
    rank
        Position of this party in the study: 0 or 1.
    addresses
        Host and port of both parties: where this one listens, and where the other is reached.
    certificate, key
        Files with the certificate and private key of this party.
    trusted
        File with the one certificate that the other party must have.
    message_timeout
        Seconds to wait for a message of the other engine.
    """

    session: str
    rank: int
    addresses: tuple[str, str]
    certificate: str
    key: str
    trusted: str
    message_timeout: float


def broken() -> AbortedError:
    """Return the error for messages that an unchanged program would not send."""
    return AbortedError(
        "The other party sent something that does not fit the protocol: its version differs, or "
        "its program was changed. Nothing more was sent.",
        reason="broken message",
    )


def require_spu() -> None:
    """Raise `MissingExtraError` if SPU is not installed."""
    try:
        import spu  # noqa: F401
    except ImportError as error:
        purpose = "A study of two parties (on Python 3.11)"
        raise MissingExtraError("spu", "vertical", purpose) from error


def connect(options: LinkOptions) -> Context:
    """Connect to the engine of the other party, or raise `AbortedError` after half a minute."""
    require_spu()
    from spu.libspu import link

    description = link.Desc()
    description.id = options.session
    for i, address in enumerate(options.addresses):
        description.add_party(f"party {i}", address)
    description.recv_timeout_ms = int(1000 * options.message_timeout)
    description.http_timeout_ms = int(1000 * ANSWER)
    description.connect_retry_interval_ms = 1000
    description.connect_retry_times = TRIES
    description.retry_opts.max_retry = RETRIES
    description.enable_ssl = True
    for side in (description.client_ssl_opts, description.server_ssl_opts):
        _pin(side, options)
    try:
        return link.create_brpc(description, options.rank)
    except RuntimeError as error:
        other = options.addresses[1 - options.rank]
        raise AbortedError(
            f"The engine of the other party does not answer at {other}, or its certificate is "
            "not the one that the study names. Check address, firewall and certificate.",
            reason="no engine",
        ) from error


def _pin(side: Any, options: LinkOptions) -> None:
    """Trust exactly one certificate: it is its own authority, and may not sign others."""
    side.cert.certificate_path = options.certificate
    side.cert.private_key_path = options.key
    side.verify.ca_file_path = options.trusted
    side.verify.verify_depth = 1
