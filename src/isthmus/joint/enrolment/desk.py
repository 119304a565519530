"""The coordinator's end of enrolment: it collects cards, offers the study, collects signatures.

Sites trust nothing of what it passes on: each checks signatures and its own entry, and its people
compare the code of the roster with the others.
"""

from __future__ import annotations

import hmac
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, final

from isthmus.errors import IsthmusError, StudyError
from isthmus.joint.agreement.cards import SHARED_FILE_NAME, Card, Folder
from isthmus.joint.agreement.identity import Verifier, digest
from isthmus.joint.agreement.signatures import Signature, read_signatures
from isthmus.joint.agreement.study import Study
from isthmus.joint.enrolment.invitation import Invitation
from isthmus.joint.records.private_files import require_private

LONGEST = 2**16
"""Bytes of the longest message of a site."""

PATIENCE = 30.0
"""Seconds for a site to send a message."""

CARDS, STATE, FILES, SIGNATURES = "/cards", "/state", "/files", "/signatures"


def enrolled_bytes(card: bytes) -> bytes:
    """Return what a site signs when it sends its card."""
    return digest(b"isthmus enrolment", card)


@final
class Desk:
    """Keeps what sites send, in the folder of the study.

    Parameters
    ----------
    folder
        The folder of the study, in which the draft will be written.
    number
        How many sites are expected.
    say
        Called with a line for the operator.
    """

    def __init__(self, folder: Folder, number: int, say: Callable[[str], None]) -> None:
        self._folder, self._number, self._say = folder, number, say
        self._kept = folder.path / "enrolled"
        self._kept.mkdir(parents=True, exist_ok=True)
        self._study: Study | None = None
        self._served: set[str] = set()
        self.changed = threading.Condition(threading.RLock())

    def cards(self) -> list[Card]:
        """Return the cards so far."""
        return [Card.read(path) for path in sorted(self._kept.glob("*.toml"))]

    def is_full(self) -> bool:
        """Return whether as many cards have come as are expected."""
        return len(self.cards()) >= self._number

    def offer(self, study: Study) -> None:
        """Offer a study, which is complete in the folder and signed by its author."""
        with self.changed:
            self._study = study

    def is_done(self) -> bool:
        """Return whether all sites have signed, and have the signatures of all."""
        return self._study is not None and {m.name for m in self._study.members} <= self._served

    def take_card(self, data: bytes, signed: bytes) -> None:
        """Keep the card of a site; a site may send another one that its own key signs."""
        arrived = self._kept / "arrived"
        arrived.write_bytes(data)
        card = Card.read(arrived)
        member = card.member
        if not SHARED_FILE_NAME.fullmatch(member.name):
            raise StudyError(f"{member.name!r} cannot be the name of a site.")
        if not Verifier().verify(member.key, signed, enrolled_bytes(data)):
            raise StudyError("The card is not signed by its own key.")
        path = self._kept / f"{member.name}.toml"
        known = Card.read(path) if path.exists() else None
        if known == card:
            return
        if self._study is not None or (known is None and self.is_full()):
            raise StudyError("The study is drafted already, with other cards.")
        if known is not None and known.member != member:
            raise StudyError(
                f"Another site has enrolled as {member.name!r}. Ask the operator of the "
                f"coordinator to delete {path.name}, or choose another name."
            )
        arrived.replace(path)
        self._say(f"enrolled: {member.name} ({member.organisation})")

    def take_signature(self, data: bytes) -> None:
        """Keep the signature of a site on the study."""
        if self._study is None:
            raise StudyError("There is no study to be signed yet.")
        arrived = self._kept / "arrived"
        arrived.write_bytes(data)
        found: list[Signature] = read_signatures(arrived)
        if len(found) != 1:
            raise StudyError("A site sends one signature.")
        self._study.require(found, [found[0].role])
        if found[0].role in self.unsigned():
            self._folder.sign(found[0])
            self._say(f"signed: {found[0].role}")

    def unsigned(self) -> list[str]:
        """Return the sites that have not signed yet."""
        names = [] if self._study is None else [m.name for m in self._study.members]
        return [n for n in names if not (self._folder.path / f"{n}.signature").exists()]

    def state(self) -> dict[str, Any]:
        """Return how far the enrolment is."""
        drafted = self._study is not None
        return {"cards": len(self.cards()), "of": self._number} | (
            {"unsigned": self.unsigned()} if drafted else {}
        )

    def files(self, site: str) -> dict[str, str]:
        """Return the files of the study folder, by their names; remember who has all of them."""
        if self._study is None:
            raise StudyError("There is no study yet.")
        complete = not self.unsigned()
        top = self._folder.path
        paths = [p for kind in ("*.*", "cards/*.toml") for p in top.glob(kind) if p.is_file()]
        found = {str(p.relative_to(top)): p.read_text(encoding="utf-8") for p in paths}
        if complete:
            self._served.add(site)
        return found


@contextmanager
def serving(desk: Desk, home: Path, invitation: Invitation, listen: str) -> Iterator[None]:
    """Answer sites over TLS while the context is open.

    Parameters
    ----------
    desk
        Keeps what they send.
    home
        The private folder of the coordinator, with ``connection.crt`` and ``connection.pem``.
    invitation
        The invitation that was sent to the sites, with the port to listen on.
    listen
        The network address to listen on.
    """
    require_private(home / "connection.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(home / "connection.crt", home / "connection.pem")
    port = int(invitation.address.rpartition(":")[2])
    server = _Server((listen, port), desk, invitation.token, context)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self, address: tuple[str, int], desk: Desk, token: str, context: ssl.SSLContext
    ) -> None:
        self.desk, self.token, self._context = desk, f"Bearer {token}", context
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        raw, peer = super().get_request()
        raw.settimeout(PATIENCE)
        # The handshake is done by the thread of the connection: a silent stranger delays nobody.
        wrap = self._context.wrap_socket
        return wrap(raw, server_side=True, do_handshake_on_connect=False), peer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing about connections that break: strangers may connect."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = PATIENCE

    def log_message(self, *_: Any) -> None:
        """Write no log: the desk says what matters."""

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LONGEST:
            self.send_error(413)
            return
        self._answer(self.rfile.read(int(length)))

    def _answer(self, body: bytes) -> None:
        given = self.headers.get("Authorization", "").encode()
        if not hmac.compare_digest(given, self.server.token.encode()):
            self.send_error(403)
            return
        desk = self.server.desk
        try:
            with desk.changed:
                content = self._done(desk, body)
                desk.changed.notify_all()
        except (IsthmusError, ValueError, OSError) as error:
            self._send(409, {"why": str(error)})
        else:
            self._send(200, content)

    def _done(self, desk: Desk, body: bytes) -> dict[str, Any]:
        path, _, query = self.path.partition("?")
        if self.command == "GET" and path == STATE:
            return desk.state()
        if self.command == "GET" and path == FILES:
            return desk.files(query)
        if self.command == "POST" and path == CARDS:
            desk.take_card(body, bytes.fromhex(self.headers.get("Signature", "")))
            return {}
        if self.command == "POST" and path == SIGNATURES:
            desk.take_signature(body)
            return {}
        raise StudyError(f"Nothing is served at {path!r}.")

    def _send(self, code: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
