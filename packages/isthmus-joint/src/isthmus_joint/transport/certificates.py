"""Certificates and keys of the transport. Each certificate signs itself, and a study names it.

They protect the connection only. Every message is also signed by the identities that a study names,
which does not depend on these certificates.
"""

from __future__ import annotations

import hashlib
import ipaddress
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP384R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.hashes import SHA384
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from isthmus.errors import FormatError, StudyError

DAY = timedelta(days=1)
CLOCKS = timedelta(days=2)
"""Certificates are valid from this long ago, for machines whose clocks are slow, even by a day."""


def own_certificate(
    name: str, hosts: Sequence[str] = (), *, key: bytes | None = None, days: int = 825
) -> tuple[bytes, bytes]:
    """Return a certificate that signs itself, and its private key: this one, or a new one.

    Another party trusts this certificate alone, because a study names its fingerprint. That of a
    server has the names and addresses of its `hosts`.
    """
    private = generate_private_key(SECP384R1()) if key is None else _read_key(key)
    return _signed_by_itself(name, private, days, hosts), _pem(private)


def _read_key(private: bytes) -> EllipticCurvePrivateKey:
    try:
        key = load_pem_private_key(private, password=None)
    except ValueError as error:
        raise FormatError("This is not a private key in PEM format.") from error
    if not isinstance(key, EllipticCurvePrivateKey):
        raise FormatError("The key of connections must be on an elliptic curve.")
    return key


def _signed_by_itself(
    name: str, key: EllipticCurvePrivateKey, days: int, hosts: Sequence[str] = ()
) -> bytes:
    # X.509 allows 64 letters; the whole name of a host is in the alternative names.
    named = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])
    until = datetime.now(UTC) + days * DAY
    builder = (
        x509.CertificateBuilder()
        .subject_name(named)
        .issuer_name(named)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(datetime.now(UTC) - CLOCKS, until - 30 * DAY))
        .not_valid_after(until)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    )
    if hosts:
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
        builder = builder.add_extension(usage, critical=False)
        alternatives = x509.SubjectAlternativeName([_host(host) for host in hosts])
        builder = builder.add_extension(alternatives, critical=False)
    return builder.sign(key, SHA384()).public_bytes(Encoding.PEM)


FINGERPRINT = re.compile(r"sha256:[0-9a-f]{64}")
"""The form of what `fingerprint` returns."""


def fingerprint(certificate: bytes | str) -> str:
    """Return the SHA-256 of a certificate in PEM format, as a study names it."""
    made = _first(certificate)
    return "sha256:" + hashlib.sha256(made.public_bytes(Encoding.DER)).hexdigest()


def alone(certificate: bytes | str) -> bytes:
    """Return the certificate that `fingerprint` is of, without anything that follows it.

    TLS trusts every certificate of a text, also those after the one that a study names.
    """
    return _first(certificate).public_bytes(Encoding.PEM)


def require_in_time(certificate: bytes | str, whose: str, now: datetime | None = None) -> None:
    """Raise `StudyError` if a certificate is not valid yet or any more, by the own clock."""
    made, now = _first(certificate), datetime.now(UTC) if now is None else now
    begin, end = made.not_valid_before_utc, made.not_valid_after_utc
    if not begin <= now <= end:
        raise StudyError(
            f"The certificate of {whose} is valid from {begin:%Y-%m-%d} to {end:%Y-%m-%d}, and the "
            f"clock of this machine says {now:%Y-%m-%d %H:%M} UTC. If the clock is right, a new "
            "certificate is needed ('isthmus site certify', or 'isthmus coordinator new'), and a "
            "new study that names it."
        )


def _first(certificate: bytes | str) -> x509.Certificate:
    text = certificate.encode() if isinstance(certificate, str) else certificate
    try:
        return x509.load_pem_x509_certificate(text)
    except ValueError as error:
        raise FormatError("This is not a certificate in PEM format.") from error


def _pem(key: EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


# --- Processes that this one starts, and that end with it ---------------------------------------

PATIENCE = 10.0
"""Seconds that a process has to terminate after it was asked to."""

_BOUND = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # when the parent dies
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""
"""Runs before a program and ties it to its parent: if the parent is killed, it ends too."""


def free_port() -> int:
    """Return a TCP port that, with the next one, is not in use at the moment.

    It is not one of those that systems give to outgoing connections, which may take it meanwhile.
    """
    while True:
        port = secrets.choice(range(10_000, 32_000, 2))
        with suppress(OSError), socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", port))
            second.bind(("127.0.0.1", port + 1))
            return port


@final
class ChildProcess:
    """A process in a process group of its own, whose output is added to a file.

    It inherits the open files with the numbers ``inherited``.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        inherited: Sequence[int] = (),
    ) -> None:
        bound = [sys.executable, "-c", _BOUND, str(os.getpid())]
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                [*(bound if sys.platform.startswith("linux") else ()), *command],
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
                pass_fds=inherited,
            )
        self.pid = self._process.pid

    @property
    def code(self) -> int | None:
        """Its exit code; ``None`` while it runs."""
        return self._process.poll()

    def stop(self, patience: float = PATIENCE) -> None:
        """Stop the process and everything that it started; kill it after this many seconds."""
        for how in (signal.SIGTERM, signal.SIGKILL):
            self._signal(how)
            try:
                self._process.wait(patience)
            except subprocess.TimeoutExpired:
                continue
            break
        self._signal(signal.SIGKILL)  # processes that it left behind

    def _signal(self, how: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, how)
