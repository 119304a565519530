"""Connections of two parties by mutual TLS, where each trusts exactly one certificate.

One party listens and the other one dials. Strangers who connect and say nothing delay neither.
"""

from __future__ import annotations

import contextlib
import hashlib
import queue
import socket
import ssl
import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import final

from isthmus.errors import AbortedError, FederationError, FormatError
from isthmus_joint.records.private_files import require_private

HANDSHAKE = 10.0
"""Seconds for the TLS handshake."""

POLL = 0.05
"""Seconds between two checks whether someone has come."""

STRANGERS = 30.0
"""Seconds that a party still dials where something with a wrong certificate answers."""

HANDSHAKES = 64
"""Maximum number of handshakes at the same time; the oldest one ends when there are more."""


@final
@dataclass(frozen=True)
class Credentials:
    """The certificates of both ends.

    Attributes
    ----------
    fingerprint
        The SHA-256 of the other party's certificate, as the study names it.
    """

    certificate: Path
    key: Path
    trusted: Path
    fingerprint: str

    def context(self, side: int) -> ssl.SSLContext:
        """Return the TLS settings of one side."""
        made = ssl.SSLContext(side)
        made.minimum_version = ssl.TLSVersion.TLSv1_3
        made.check_hostname = False  # the certificate itself is pinned
        made.verify_mode = ssl.CERT_REQUIRED
        require_private(self.key)
        try:
            made.load_cert_chain(self.certificate, self.key)
            made.load_verify_locations(self.trusted)
        except ssl.SSLError:
            raise FormatError(
                f"The certificate {self.certificate}, its key {self.key} or the other party's "
                f"certificate {self.trusted} is damaged, or the key does not belong to the "
                "certificate. Copy them again from the folder in which they were created."
            ) from None
        return made

    def accepts(self, connection: ssl.SSLSocket) -> bool:
        """Return whether the other end has shown the pinned certificate."""
        shown = connection.getpeercert(binary_form=True) or b""
        return "sha256:" + hashlib.sha256(shown).hexdigest() == self.fingerprint


def listen(
    address: tuple[str, int], credentials: Credentials, other: str, seconds: float
) -> ssl.SSLSocket:
    """Wait for the other party to connect.

    Raises
    ------
    AbortedError
        The other party does not come.
    FederationError
        The address is not one of this computer, or its port is in use.
    """
    context = credentials.context(ssl.PROTOCOL_TLS_SERVER)
    end = time.monotonic() + seconds
    came: queue.Queue[ssl.SSLSocket] = queue.Queue()
    refused: deque[ssl.SSLError] = deque(maxlen=1)
    shaking: deque[ssl.SSLSocket] = deque()

    def greet(connection: ssl.SSLSocket) -> None:
        """Do the handshake beside the others: whoever is silent delays nobody."""
        failure: OSError | None = None
        try:
            _shake_hands(connection, credentials)
        except OSError as error:
            failure = error
        try:
            shaking.remove(connection)
        except ValueError:  # it was the oldest one, and was ended
            connection.close()
            return
        if failure is None:
            came.put(connection)
        elif isinstance(failure, ssl.SSLError) and _is_certificate(failure):
            refused.append(failure)

    with _listening(address) as listener:
        listener.settimeout(POLL)
        while time.monotonic() < end and came.empty():
            try:
                connection = _wrapped(listener.accept()[0], context, server=True)
            except OSError:
                continue
            if len(shaking) >= HANDSHAKES:
                with contextlib.suppress(OSError, IndexError):  # it has just ended by itself
                    socket.socket.shutdown(shaking.popleft(), socket.SHUT_RDWR)
            shaking.append(connection)
            threading.Thread(target=greet, args=(connection,), daemon=True).start()
    if not came.empty():
        return came.get()
    if refused:
        raise _refused(other, refused[0])
    raise AbortedError(
        f"{other!r} did not connect within {seconds:g} seconds. Run the command again when it "
        "is ready.",
        silent=(other,),
        reason="silent",
    )


def dial(
    address: tuple[str, int], credentials: Credentials, other: str, seconds: float
) -> ssl.SSLSocket:
    """Connect to the other party, and try again until it listens."""
    context = credentials.context(ssl.PROTOCOL_TLS_CLIENT)
    end = time.monotonic() + seconds
    refused: ssl.SSLError | None = None
    while True:
        try:
            raw = socket.create_connection(address, timeout=HANDSHAKE)
            connection = _wrapped(raw, context, server=False)
            _shake_hands(connection, credentials)
            return connection
        except OSError as error:
            if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
                if refused is None:
                    end = min(end, time.monotonic() + STRANGERS)
                # A refused certificate can also look like a connection that was closed.
                if refused is None or not _is_certificate(refused):
                    refused = error
            why = described(error)
        if time.monotonic() >= end:
            break
        time.sleep(0.5)
    if refused is not None:
        raise _refused(other, refused)
    raise AbortedError(
        f"{other!r} does not listen at {address[0]}:{address[1]} ({why}). Run the command "
        "again when it is ready.",
        silent=(other,),
        reason="silent",
    )


def _listening(address: tuple[str, int]) -> socket.socket:
    try:
        return socket.create_server(address, backlog=2 * HANDSHAKES)
    except OSError as error:
        raise FederationError(
            f"This party cannot listen at {address[0]}:{address[1]} ({described(error)}). End the "
            "program that uses the port, or listen at another address of this computer: --listen "
            "0.0.0.0:PORT listens at all of them."
        ) from error


def _wrapped(raw: socket.socket, context: ssl.SSLContext, *, server: bool) -> ssl.SSLSocket:
    """Prepare a connection for TLS, or close it if the other end is gone."""
    raw.settimeout(HANDSHAKE)
    try:
        raw.getpeername()  # wrap_socket would not close a connection that is gone already
        return context.wrap_socket(raw, server_side=server, do_handshake_on_connect=False)
    except OSError:
        raw.close()
        raise


def _shake_hands(connection: ssl.SSLSocket, credentials: Credentials) -> None:
    """Do the handshake, including a first byte each way: TLS 1.3 checks clients only then."""
    try:
        connection.do_handshake()
    except OSError:
        _close_after_reading(connection)
        raise
    try:
        if not credentials.accepts(connection):
            raise ssl.SSLCertVerificationError("the certificate is not the pinned one")
        connection.sendall(b"\x01")
        if connection.recv(1) != b"\x01":
            raise ssl.SSLError("the other end does not greet")
        connection.settimeout(None)
    except ValueError as error:  # the other end left before the handshake
        connection.close()
        raise ConnectionResetError("the other end left during the handshake") from error
    except OSError:
        connection.close()
        raise


def _close_after_reading(connection: ssl.SSLSocket) -> None:
    """Close a connection so that the other end learns why.

    Where something was not read, closing would also take away the message that says so.
    """
    with contextlib.suppress(OSError), connection:
        connection.settimeout(1.0)
        connection.shutdown(socket.SHUT_WR)
        for _ in range(16):
            if not socket.socket.recv(connection, 4096):
                break


def _is_certificate(error: ssl.SSLError) -> bool:
    """Return whether a handshake failed for the certificate, and not by a port scan."""
    text = str(error).upper()
    return (
        isinstance(error, ssl.SSLCertVerificationError)
        or "CERTIFICATE" in text
        or "UNKNOWN_CA" in text
    )


def described(error: OSError) -> str:
    """Return why a connection failed, in few words."""
    reason = getattr(error, "reason", None)
    return str(reason or error.strerror or error)[:120]


def _refused(other: str, error: ssl.SSLError) -> AbortedError:
    if not _is_certificate(error):
        return AbortedError(
            f"What listens at the address of {other!r} does not speak TLS 1.3 "
            f"({described(error)}). Check the address and the port.",
            reason="broken message",
        )
    return AbortedError(
        f"The connection to {other!r} was refused: one of the two certificates is not the one that "
        f"the study names ({described(error)}). Compare the cards of both parties with the study; "
        "someone else may be answering at this address.",
        reason="wrong certificate",
    )
