"""Identities and the cryptographic primitives, all from the library `cryptography`."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn, final

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from isthmus.errors import FormatError
from isthmus_joint.agreement.toml import Hex, Reader, Text, document, plain
from isthmus_joint.records.private_files import require_private, write_private

KEY = 32
SIGNATURE = 64
TAG = 16
PIECE = 2**18
"""Number of bytes of a key stream that are made at once."""

REMEMBERED = 2**20
"""Number of valid signatures that a verifier remembers."""

_PREFIX = "ed25519:"


class PassphraseError(FormatError):
    """A key cannot be read without its passphrase."""


def digest(*parts: bytes) -> bytes:
    """Return the SHA-256 of several parts, each preceded by its length to make it unambiguous."""
    sha256 = hashlib.sha256()
    for part in parts:
        sha256.update(len(part).to_bytes(8, "little"))
        sha256.update(part)
    return sha256.digest()


@final
class Secret:
    """Bytes that are not shown in representations and logs, and cannot be pickled."""

    __slots__ = ("_value",)

    def __init__(self, value: bytes) -> None:
        self._value = value

    @classmethod
    def fresh(cls) -> Secret:
        """Return 256 random bits from the operating system."""
        return cls(secrets.token_bytes(KEY))

    def reveal(self) -> bytes:
        """Return the bytes."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(hidden)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("A secret cannot be pickled: it must not be written to disk or sent.")


@final
class Agreement:
    """An X25519 key pair to agree on secrets with others."""

    def __init__(self, private: X25519PrivateKey | None = None) -> None:
        self._private = X25519PrivateKey.generate() if private is None else private
        self.public: bytes = self._private.public_key().public_bytes_raw()

    @classmethod
    def from_secret(cls, secret: Secret) -> Agreement:
        """Return the key pair with these private bytes."""
        return cls(X25519PrivateKey.from_private_bytes(secret.reveal()))

    def shared(self, public: bytes) -> Secret:
        """Return the secret shared with another key; `ValueError` for a key of small order."""
        return Secret(self._private.exchange(X25519PublicKey.from_public_bytes(public)))

    def __repr__(self) -> str:
        return f"Agreement({self.public.hex()[:8]}…)"


def derive(secret: Secret, salt: bytes, info: bytes, length: int = KEY) -> Secret:
    """Derive a key with HKDF-SHA256."""
    return Secret(HKDF(SHA256(), length, salt, info).derive(secret.reveal()))


def stream(key: Secret, length: int) -> Iterator[bytes]:
    """Yield a ChaCha20 key stream in pieces. Each key is used once, so the nonce is fixed.

    Pieces of `PIECE` bytes stay in the processor's cache.
    """
    cipher: Any = Cipher(algorithms.ChaCha20(key.reveal(), bytes(16)), mode=None)
    encryptor, zeros = cipher.encryptor(), bytes(min(PIECE, length))
    for start in range(0, length, PIECE):
        yield encryptor.update(zeros[: length - start])


def seal(key: Secret, message: bytes, bound: bytes) -> bytes:
    """Encrypt and authenticate with ChaCha20-Poly1305. Each key is used only once."""
    return ChaCha20Poly1305(key.reveal()).encrypt(bytes(12), message, bound)


def unseal(key: Secret, sealed: bytes, bound: bytes) -> bytes | None:
    """Decrypt; ``None`` if a byte was changed or the key is wrong."""
    try:
        return ChaCha20Poly1305(key.reveal()).decrypt(bytes(12), sealed, bound)
    except InvalidTag:
        return None


@final
class Verifier:
    """Checks signatures and remembers which were valid.

    Sites that are simulated in one process share one, because they check the same signatures.
    """

    def __init__(self) -> None:
        self._good: set[bytes] = set()

    def verify(self, public: bytes, signature: bytes, message: bytes) -> bool:
        """Return whether this key signed this message."""
        seen = digest(public, signature, message)
        if seen in self._good:
            return True
        try:
            Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        if len(self._good) >= REMEMBERED:
            self._good.clear()
        self._good.add(seen)
        return True


@final
class Identity:
    """The long-term Ed25519 key of a site, a coordinator or an author."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public: bytes = private.public_key().public_bytes_raw()

    @classmethod
    def generate(cls) -> Identity:
        """Create a new identity."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def load(cls, path: str | os.PathLike[str], passphrase: str | None = None) -> Identity:
        """Read a file that `save` wrote, and that nobody but its owner can read."""
        require_private(Path(path))
        data = Path(path).read_bytes()
        if b"ENCRYPTED" in data and passphrase is None:
            raise PassphraseError(
                f"The key {path} is protected by a passphrase. Commands ask for it in a terminal; "
                "elsewhere, put it into the environment variable ISTHMUS_PASSPHRASE."
            )
        try:
            secret = None if passphrase is None or b"ENCRYPTED" not in data else passphrase.encode()
            key = load_pem_private_key(data, password=secret)
        except (ValueError, TypeError) as error:
            if b"ENCRYPTED" in data:
                raise PassphraseError(
                    f"The passphrase of the key {path} is wrong. Try again."
                ) from error
            raise FormatError(f"{path} does not contain a private key in PEM format.") from error
        if not isinstance(key, Ed25519PrivateKey):
            raise FormatError(f"{path} contains a key of another type; it must be an Ed25519 key.")
        return cls(key)

    def save(self, path: str | os.PathLike[str], passphrase: str | None = None) -> None:
        """Write to a new file (PKCS #8, PEM) that only its owner can read, maybe encrypted."""
        hidden = BestAvailableEncryption(passphrase.encode()) if passphrase else NoEncryption()
        text = self._private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, hidden)
        write_private(path, text)

    def sign(self, message: bytes) -> bytes:
        """Sign a message."""
        return self._private.sign(message)

    def fingerprint_key(self, purpose: bytes) -> Secret:
        """Derive a key for fingerprints that only this identity can compute."""
        return derive(Secret(self._private.private_bytes_raw()), b"isthmus identity", purpose)

    def __repr__(self) -> str:
        return f"Identity({key_text(self.public)})"


def key_fingerprint(public: bytes) -> str:
    """Return a short text by which people compare public keys, for instance on the telephone."""
    text = hashlib.sha256(public).hexdigest()[:32]
    return " ".join(text[i : i + 4] for i in range(0, 32, 4))


def key_text(public: bytes) -> str:
    """Return a public key as text, as it is written in files."""
    return _PREFIX + public.hex()


def key_bytes(text: str) -> bytes:
    """Read what `key_text` returned."""
    try:
        key = bytes.fromhex(text.removeprefix(_PREFIX))
    except ValueError:
        key = b""
    if not text.startswith(_PREFIX) or len(key) != KEY:
        raise FormatError(
            f"{text!r} is not a public key, which is {_PREFIX!r} followed by 64 hexadecimal digits."
        )
    return key


Key = Annotated[bytes, Text(key_text, key_bytes)]
"""A public key, as a field of a document."""


# --- Signatures on a study ----------------------------------------------------------------------

FORMAT = "isthmus-signatures/1"
AUTHOR = "author"


@final
@dataclass(frozen=True)
class Signature:
    """A signature on a study.

    Attributes
    ----------
    role
        ``"author"``, or the name of the site.
    key
        The public key.
    value
        The signature.
    """

    role: str
    key: Key
    value: Hex


def signed_bytes(study: bytes, role: str) -> bytes:
    """Return the bytes that are signed: the hash of the study, bound to the role."""
    return digest(b"isthmus study signature", study, role.encode())


def write_signatures(path: str | os.PathLike[str], signatures: Iterable[Signature]) -> None:
    """Write signatures to a file beside the study."""
    text = document({"format": FORMAT}, {"signatures": [plain(s) for s in signatures]})
    Path(path).write_text(text, encoding="utf-8")


def read_signatures(path: str | os.PathLike[str]) -> list[Signature]:
    """Read a file that `write_signatures` wrote."""
    top = Reader.parse(Path(path).read_bytes(), "file of signatures", FORMAT)
    signatures = top.records("signatures", Signature)
    top.finish()
    return signatures
