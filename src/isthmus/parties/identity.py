"""The cryptographic primitives, all from `cryptography`, in the few forms that we use.

The library is imported where it is used: a bare install must import this module.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, final

from isthmus.errors import FormatError, MissingExtraError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

KEY = 32
SIGNATURE = 64
TAG = 16
REMEMBERED = 2**20
"""So many good signatures are remembered."""

_PREFIX = "ed25519:"


def require() -> None:
    """Raise `MissingExtraError` where `cryptography` is not installed."""
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("cryptography", "horizontal", "A federation") from error


def digest(*parts: bytes) -> bytes:
    """SHA-256 over parts, each with its length before it, so that no two lists run together."""
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return found.digest()


@final
class Secret:
    """Bytes that no representation, log or copy to disk shows."""

    __slots__ = ("_value",)

    def __init__(self, value: bytes) -> None:
        self._value = value

    @classmethod
    def fresh(cls) -> Secret:
        """256 bits from the system's generator."""
        return cls(secrets.token_bytes(KEY))

    def reveal(self) -> bytes:
        """The bytes."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(hidden)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("A secret is not written to disk or sent.")


@final
class Agreement:
    """One X25519 key pair, for one round."""

    def __init__(self, private: X25519PrivateKey | None = None) -> None:
        require()
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        self._private = X25519PrivateKey.generate() if private is None else private
        self.public: bytes = self._private.public_key().public_bytes_raw()

    @classmethod
    def from_secret(cls, secret: Secret) -> Agreement:
        """The key pair of these private bytes."""
        require()
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        return cls(X25519PrivateKey.from_private_bytes(secret.reveal()))

    def secret(self) -> Secret:
        """The private bytes."""
        return Secret(self._private.private_bytes_raw())

    def shared(self, public: bytes) -> Secret:
        """What both ends know; `ValueError` for a public key of small order."""
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

        return Secret(self._private.exchange(X25519PublicKey.from_public_bytes(public)))

    def __repr__(self) -> str:
        return f"Agreement({self.public.hex()[:8]}…)"


def derive(secret: Secret, salt: bytes, info: bytes, length: int = KEY) -> Secret:
    """HKDF with SHA-256."""
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return Secret(HKDF(SHA256(), length, salt, info).derive(secret.reveal()))


def stream(key: Secret, length: int) -> bytes:
    """A ChaCha20 key stream. The key is used once, so the nonce may be fixed."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

    cipher: Any = Cipher(algorithms.ChaCha20(key.reveal(), bytes(16)), mode=None)
    found: bytes = cipher.encryptor().update(bytes(length))
    return found


def seal(key: Secret, message: bytes, bound: bytes) -> bytes:
    """Encrypt and authenticate with ChaCha20-Poly1305. The key is used once."""
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    return ChaCha20Poly1305(key.reveal()).encrypt(bytes(12), message, bound)


def unseal(key: Secret, sealed: bytes, bound: bytes) -> bytes | None:
    """Decrypt; ``None`` when a byte was changed or the key is another."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    try:
        return ChaCha20Poly1305(key.reveal()).decrypt(bytes(12), sealed, bound)
    except InvalidTag:
        return None


@final
class Verifier:
    """Checks signatures and remembers which were good.

    Sites simulated in one process share one, because they all check the same signatures.
    """

    def __init__(self) -> None:
        self._good: set[bytes] = set()

    def verify(self, public: bytes, signature: bytes, message: bytes) -> bool:
        """Whether the signature is of this message, by this key."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

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
    """The long-lived Ed25519 key of a site, a coordinator or an author."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public: bytes = private.public_key().public_bytes_raw()

    @classmethod
    def generate(cls) -> Identity:
        """Make a new identity from the system's generator."""
        require()
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Identity:
        """Read what `save` wrote."""
        require()
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            key = load_pem_private_key(Path(path).read_bytes(), password=None)
        except (ValueError, TypeError) as error:
            raise FormatError(f"{path} does not hold a private key in PEM form.") from error
        if not isinstance(key, Ed25519PrivateKey):
            raise FormatError(f"{path} holds a key of another kind; an Ed25519 key is needed.")
        return cls(key)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a new file (PKCS #8, PEM) that only its owner may read."""
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
        )

        text = self._private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())

    def sign(self, message: bytes) -> bytes:
        """Sign a message."""
        return self._private.sign(message)

    def fingerprint_key(self, purpose: bytes) -> Secret:
        """A key that only this identity has, for what must be recognised again and not shown."""
        return derive(Secret(self._private.private_bytes_raw()), b"isthmus identity", purpose)

    def __repr__(self) -> str:
        return f"Identity({key_text(self.public)})"


def key_text(public: bytes) -> str:
    """A public key as it stands in files."""
    return _PREFIX + public.hex()


def key_bytes(text: str) -> bytes:
    """Read what `key_text` wrote."""
    try:
        found = bytes.fromhex(text.removeprefix(_PREFIX))
    except ValueError:
        found = b""
    if not text.startswith(_PREFIX) or len(found) != KEY:
        raise FormatError(
            f"{text!r} is not a public key; {_PREFIX} and 64 hexadecimal digits are needed."
        )
    return found
