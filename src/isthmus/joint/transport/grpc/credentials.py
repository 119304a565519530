"""TLS of the gRPC transport: version 1.3 only, and only certificates that the study names."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from isthmus.errors import MissingExtraError, StudyError
from isthmus.joint.transport.certificates import alone, fingerprint, require_in_time

CIPHER_SUITES_OF_TLS_1_2 = "ECDHE-RSA-AES256-GCM-SHA384"
"""gRPC has no option for the lowest version of TLS. These suites of TLS 1.2 need an RSA key, and
our keys are on elliptic curves. So TLS 1.2 finds no common suite, and TLS 1.3 is not affected."""


SUITES = "GRPC_SSL_CIPHER_SUITES"


def grpc_library() -> Any:
    """Import gRPC with TLS 1.3 only, or raise `MissingExtraError` if it is not installed."""
    if "grpc" not in sys.modules:
        os.environ[SUITES] = CIPHER_SUITES_OF_TLS_1_2  # read once, when gRPC is loaded
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it would write refused connections to stderr
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
    try:
        import grpc
    except ImportError as error:
        raise MissingExtraError("grpcio", "horizontal", "A federation over a network") from error
    return grpc


@final
@dataclass(frozen=True)
class CoordinatorCredentials:
    """The coordinator's certificate, and the certificates that it accepts.

    Attributes
    ----------
    certificate, key
        Certificate and private key of the coordinator, in PEM format.
    sites
        The certificate of each site, in PEM format.
    """

    certificate: bytes
    key: bytes
    sites: Mapping[str, bytes]

    def server(self) -> Any:
        """Return the credentials of the server."""
        grpc = grpc_library()
        pinned = b"".join(map(alone, self.sites.values()))
        pair = (self.key, self.certificate)
        return grpc.ssl_server_credentials([pair], pinned, require_client_auth=True)

    def site_of(self, context: Any) -> str | None:
        """Return the site whose certificate a client has shown; ``None`` for no or another one."""
        shown: Mapping[str, list[bytes]] = context.auth_context()
        if not _is_tls_1_3(shown):
            return None
        certificates = shown.get("x509_pem_cert", [])
        if len(certificates) != 1:
            return None
        actual = fingerprint(certificates[0])
        names = [n for n, pinned in self.sites.items() if fingerprint(pinned) == actual]
        return names[0] if len(names) == 1 else None


def _is_tls_1_3(shown: Mapping[str, list[bytes]]) -> bool:
    """Return whether a connection uses TLS 1.3; gRPC tells it since version 1.85."""
    version = shown.get("ssl_tls_version")
    if version is None:
        return os.environ.get(SUITES) == CIPHER_SUITES_OF_TLS_1_2
    return version == [b"TLSv1.3"]


@final
@dataclass(frozen=True)
class SiteCredentials:
    """A site's certificate, and the only certificate that it accepts.

    Attributes
    ----------
    certificate, key
        Certificate and private key of the site, in PEM format.
    coordinator
        Certificate of the coordinator, in PEM format.
    """

    certificate: bytes
    key: bytes
    coordinator: bytes

    def channel(self) -> Any:
        """Return the credentials of a connection."""
        pinned = alone(self.coordinator)
        return grpc_library().ssl_channel_credentials(pinned, self.key, self.certificate)


def require_pinned(certificate: bytes | str, pinned: str, whose: str) -> None:
    """Raise `StudyError` unless a certificate is the one that the study names."""
    if not pinned:
        raise StudyError(
            "The study names no certificates, which connections need. Draft it again with the "
            "cards of its sites."
        )
    if fingerprint(certificate) != pinned:
        raise StudyError(
            f"The certificate of {whose} is not the one that the study names. Get the folder of "
            "the study again from its author."
        )
    require_in_time(certificate, whose)
