"""Certificates and keys of the transport, signed by a small certificate authority.

They protect the connection only. Every message is also signed by the identities that a study names,
which does not depend on these certificates.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, final

from isthmus.errors import FormatError, StudyError
from isthmus.joint.agreement.identity import require

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

DAY = timedelta(days=1)
CLOCKS = timedelta(days=2)
"""Certificates are valid from this long ago, for machines whose clocks are slow, even by a day."""


@final
class Authority:
    """A certificate authority that signs the certificate of one server.

    Its private key is never saved. For another certificate, create another authority and send its
    certificate to the sites.
    """

    def __init__(self, name: str, *, days: int = 825) -> None:
        require()
        self._key = _new_key()
        self._name = name
        self._until = datetime.now(UTC) + days * DAY
        self._certificate = self._authority()

    def _authority(self) -> Any:
        from cryptography import x509
        from cryptography.hazmat.primitives.hashes import SHA384

        usage = x509.KeyUsage(
            digital_signature=False,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        return (
            self._started(f"{self._name} authority", self._key, self._until)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(self._key, SHA384())
        )

    def _started(self, name: str, key: EllipticCurvePrivateKey, until: datetime) -> Any:
        """Return a builder with the fields that both certificates have."""
        from cryptography import x509

        public, issuer = key.public_key(), self._key.public_key()
        return (
            _builder(name, f"{self._name} authority", key, until)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer), critical=False
            )
        )

    @property
    def text(self) -> bytes:
        """The certificate of the authority, which the sites need."""
        from cryptography.hazmat.primitives.serialization import Encoding

        text: bytes = self._certificate.public_bytes(Encoding.PEM)
        return text

    def server(self, hosts: Sequence[str], *, until: datetime | None = None) -> tuple[bytes, bytes]:
        """Return a certificate and its private key for a server with these names and addresses."""
        from cryptography import x509
        from cryptography.hazmat.primitives.hashes import SHA384
        from cryptography.hazmat.primitives.serialization import Encoding
        from cryptography.x509.oid import ExtendedKeyUsageOID

        key = _new_key()
        made = (
            self._started(hosts[0], key, self._until if until is None else until)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([_host(h) for h in hosts]), critical=False)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .sign(self._key, SHA384())
        )
        return made.public_bytes(Encoding.PEM), _pem(key)


def own_certificate(name: str, *, days: int = 825) -> tuple[bytes, bytes]:
    """Return a certificate that signs itself, and its private key.

    Another party trusts this certificate alone, because a study names its fingerprint.
    """
    require()
    key = _new_key()
    return _signed_by_itself(name, key, days), _pem(key)


def node_certificate(name: str, private: bytes, *, days: int = 825) -> bytes:
    """Return a certificate that signs itself, for a private key that `node_key` returned."""
    return _signed_by_itself(name, _read_node_key(private), days)


def node_key_pem(private: bytes) -> bytes:
    """Return a private key that `node_key` returned in the format that TLS needs."""
    return _pem(_read_node_key(private))


def _read_node_key(private: bytes) -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key

    require()
    try:
        key = load_ssh_private_key(private, password=None)
    except ValueError as error:
        raise FormatError("This is not a private key in OpenSSH format.") from error
    if not isinstance(key, EllipticCurvePrivateKey):
        raise FormatError("The key of the transport must be on an elliptic curve.")
    return key


def _signed_by_itself(name: str, key: EllipticCurvePrivateKey, days: int) -> bytes:
    from cryptography import x509
    from cryptography.hazmat.primitives.hashes import SHA384
    from cryptography.hazmat.primitives.serialization import Encoding

    made = (
        _builder(name, name, key, datetime.now(UTC) + days * DAY)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, SHA384())
    )
    text: bytes = made.public_bytes(Encoding.PEM)
    return text


def _builder(name: str, issuer: str, key: EllipticCurvePrivateKey, until: datetime) -> Any:
    """Return a certificate builder with the fields that all certificates have."""
    from cryptography import x509

    return (
        x509.CertificateBuilder()
        .subject_name(_named(name))
        .issuer_name(_named(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(datetime.now(UTC) - CLOCKS, until - 30 * DAY))
        .not_valid_after(until)
    )


FINGERPRINT = re.compile(r"sha256:[0-9a-f]{64}")
"""The form of what `fingerprint` returns."""


def fingerprint(certificate: bytes | str) -> str:
    """Return the SHA-256 of a certificate in PEM format, as a study names it."""
    from cryptography.hazmat.primitives.serialization import Encoding

    made = _first(certificate)
    return "sha256:" + hashlib.sha256(made.public_bytes(Encoding.DER)).hexdigest()


def alone(certificate: bytes | str) -> bytes:
    """Return the certificate that `fingerprint` is of, without anything that follows it.

    TLS trusts every certificate of a text, also those after the one that a study names.
    """
    from cryptography.hazmat.primitives.serialization import Encoding

    text: bytes = _first(certificate).public_bytes(Encoding.PEM)
    return text


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


def _first(certificate: bytes | str) -> Any:
    from cryptography import x509

    require()
    text = certificate.encode() if isinstance(certificate, str) else certificate
    try:
        return x509.load_pem_x509_certificate(text)
    except ValueError as error:
        raise FormatError("This is not a certificate in PEM format.") from error


def node_key() -> tuple[bytes, bytes]:
    """Return the private and public key that identify a site to the transport, for OpenSSH."""
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )

    require()
    key = _new_key()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    return private, key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)


def _new_key() -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ec import SECP384R1, generate_private_key

    return generate_private_key(SECP384R1())


def _pem(key: EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _named(name: str) -> Any:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    # X.509 allows 64 letters; the whole name of a host is in the alternative names.
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])


def _host(name: str) -> Any:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
