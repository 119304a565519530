"""Enrolment: cards and signatures travel through the coordinator, which nobody has to trust."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import os
import re
import secrets
import shutil
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self, final

from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from isthmus.errors import FormatError, IsthmusError, StudyError
from isthmus_joint.agreement.cards import SHARED_FILE_NAME, Card, Folder
from isthmus_joint.agreement.identity import (
    AUTHOR,
    Identity,
    Signature,
    Verifier,
    digest,
    read_signatures,
)
from isthmus_joint.agreement.roster import printable
from isthmus_joint.agreement.study import Study
from isthmus_joint.federation.over_grpc import require_pins
from isthmus_joint.records.private_files import require_private, write_private
from isthmus_joint.transport.certificates import fingerprint

# --- The invitation to enrol, and the code by which people compare what they enrolled in --------

_FORM = re.compile(r"isthmus://([^/\s]+:\d{1,5})/([0-9a-f]{32})/(sha256:[0-9a-f]{64})")

CODE = 15
"""Bytes of a roster's code: 24 characters."""

MEMORY, WORK = 2**14, 8
"""Cost of Scrypt: 16 MiB, about a third of a second. Somebody who controls the network and wants to
show two rosters with the same code needs 2^60 such computations, because any two rosters will do.
"""


READ_AS = str.maketrans("018", "OIB")
"""Codes have letters and the digits 2 to 7, so these digits are letters that were misread."""


@final
@dataclass(frozen=True)
class Invitation:
    """Where sites enrol: one line that the coordinator's operator sends to each of them.

    Attributes
    ----------
    token
        A number that keeps strangers out. It protects no data.
    certificate
        SHA-256 of the coordinator's certificate, the only one that a site accepts.
    """

    address: str
    token: str
    certificate: str

    @classmethod
    def create(cls, address: str, certificate: bytes) -> Self:
        """Invite to an address where a server shows this certificate."""
        return cls(address, secrets.token_hex(16), fingerprint(certificate))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the line."""
        found = _FORM.fullmatch(text.strip())
        if found is None:
            raise FormatError(
                f"{text[:200]!r} is not an invitation, which has the form "
                "isthmus://HOST:PORT/TOKEN/sha256:FINGERPRINT. Copy the whole line that "
                "'isthmus coordinator new' has printed."
            )
        return cls(*found.groups())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file that `write` wrote."""
        return cls.parse(Path(path).read_text(encoding="utf-8"))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a file that only its owner can read."""
        write_private(path, f"{self}\n".encode())

    def __str__(self) -> str:
        return f"isthmus://{self.address}/{self.token}/{self.certificate}"


def roster_code(study: Study) -> str:
    """Return the code that people at the sites read to each other.

    It follows from the name, the organisation and the key of each site, and from the keys of the
    author and the coordinator. The same parties have the same code in every study.
    """
    members = sorted((m.name, m.organisation, m.key) for m in study.members)
    texts = [(name.encode(), organisation.encode(), key) for name, organisation, key in members]
    parties = digest(study.author, study.coordinator or b"", *(digest(*m) for m in texts))
    kdf = Scrypt(salt=b"isthmus roster code", length=CODE, n=MEMORY, r=8, p=WORK)
    text = base64.b32encode(kdf.derive(parties)).decode()
    return "-".join(text[i : i + 4] for i in range(0, len(text), 4))


def same_code(typed: str, code: str) -> bool:
    """Return whether somebody typed this code, in capitals or not, with or without dashes."""
    letters = re.sub(r"[\s-]", "", typed).upper().translate(READ_AS)
    return letters == code.replace("-", "")


# --- The coordinator's desk ----------------------------------------------------------------------
#
# The coordinator's end of enrolment: it collects cards, offers the study, collects signatures.
#
# Sites trust nothing of what it passes on: each checks signatures and its own entry, and its
# people compare the code of the roster with the others.

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
    """Keeps what sites send, in the folder of the study."""

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

    def number_of_cards(self) -> int:
        """Return how many cards have come; sites ask every second."""
        return len(list(self._kept.glob("*.toml")))

    def is_full(self) -> bool:
        """Return whether as many cards have come as are expected."""
        return self.number_of_cards() >= self._number

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
        return {"cards": self.number_of_cards(), "of": self._number} | (
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
    """Answer sites over TLS while the context is open."""
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


# --- A site's end of enrolment. It checks all that the coordinator passes on --------------------

PAUSE = 1.0
"""Seconds between two questions how far the others are."""

LARGEST = 2**26
"""Bytes of the longest answer of the coordinator."""

FILE = re.compile(
    r"study\.toml|coordinator\.crt|connect\.toml|cards/\d{3,}\.toml|[\w.-]+\.signature"
)


def _unreachable(error: Exception) -> str:
    """Return why a coordinator cannot be reached, and where to look."""
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there, so ask the coordinator whether it runs, and compare the port"
    if isinstance(error, socket.gaierror):
        return f"the name of the machine is not known here ({error.strerror})"
    if isinstance(error, TimeoutError):
        return "no answer; a firewall may be in between"
    return str(error)


@final
class Visitor:
    """A site that enrols."""

    def __init__(
        self, invitation: Invitation, card: Path, identity: Identity, say: Callable[[str], None]
    ) -> None:
        self._invitation, self._identity, self._say = invitation, identity, say
        self._said = ""
        self._bytes, self._card = card.read_bytes(), Card.read(card)

    def send_card(self) -> None:
        """Send the card, signed by its key."""
        signed = self._identity.sign(enrolled_bytes(self._bytes))
        self._ask("POST", CARDS, self._bytes, {"Signature": signed.hex()})

    def send_signature(self, folder: Folder) -> None:
        """Send the signature of this site on the study."""
        name = self._card.member.name
        self._ask("POST", SIGNATURES, (folder.path / f"{name}.signature").read_bytes())

    def await_study(self, folder: Folder) -> Study:
        """Wait for the study, check it and write its folder.

        Raises
        ------
        StudyError
            The coordinator offers a study that its author has not signed, that has another card of
            this site, or that is not the one in the folder.
        """
        self._await(lambda state: "unsigned" in state)
        offered = self._files()
        beside = folder.path.with_name(folder.path.name + ".offered")
        shutil.rmtree(beside, ignore_errors=True)
        (beside / "cards").mkdir(parents=True)
        for name, text in offered.items():
            if FILE.fullmatch(name) and (name == "author.signature" or "signature" not in name):
                (beside / name).write_text(text, encoding="utf-8")
        study = self._checked(Folder(beside))
        if folder.path.exists() and any(folder.path.iterdir()):
            shutil.rmtree(beside)
            if folder.study().text != study.text:
                raise StudyError(
                    f"{folder.path} holds another study than the coordinator offers. Name another "
                    "folder for this one."
                )
        else:
            beside.replace(folder.path)
        return study

    def _checked(self, folder: Folder) -> Study:
        """Return the study in a folder, if this site could sign it."""
        study, own = folder.study(), self._card
        study.require(folder.signatures(), [AUTHOR])
        cards = folder.cards()
        if cards.get(own.member.name) != own:
            raise StudyError(
                f"The study has another card of {own.member.name!r}, or none. Do not sign it, and "
                "ask its author: somebody may have enrolled in your place."
            )
        certificate = folder.certificate.read_bytes()
        require_pins(study, cards, certificate)
        if fingerprint(certificate) != self._invitation.certificate:
            raise StudyError("The coordinator of the study is not the one that invited this site.")
        return study

    def await_signatures(self, folder: Folder) -> None:
        """Wait until all sites have signed, and write their signatures into the folder."""
        self._await(lambda state: state.get("unsigned") == [])
        study, offered, written = folder.study(), self._files(), []
        for member in study.members:
            path = folder.path / f"{member.name}.signature"
            if not path.exists():
                path.write_text(offered.get(path.name, ""), encoding="utf-8")
                written.append(path)
        try:
            study.require(folder.signatures(), [AUTHOR, *(m.name for m in study.members)])
        except StudyError:
            for path in written:
                path.unlink()
            raise

    def _files(self) -> dict[str, str]:
        found = self._ask("GET", f"{FILES}?{self._card.member.name}")
        return {str(name): str(text) for name, text in found.items()}

    def _await(self, is_reached: Callable[[Any], bool]) -> None:
        while not is_reached(state := self._ask("GET", STATE)):
            unsigned = ", ".join(map(printable, state.get("unsigned", ())))
            enrolled = f"{state.get('cards')} of {state.get('of')} sites have enrolled"
            self._tell(f"not signed yet: {unsigned}" if unsigned else printable(enrolled))
            time.sleep(PAUSE)

    def _tell(self, text: str) -> None:
        if text != self._said:
            self._said = text
            self._say(text)

    def _ask(
        self, method: str, path: str, body: bytes | None = None, more: Mapping[str, str] = {}
    ) -> Any:
        """Return the answer to a request; try again until the coordinator can be reached."""
        while True:
            try:
                status, content = self._exchange(method, path, body, more)
                break
            except (OSError, http.client.HTTPException) as error:
                why = _unreachable(error)
                self._tell(f"not connected to {self._invitation.address}: {why}; trying again")
                time.sleep(PAUSE)
        try:
            found = json.loads(content)
            if status == http.client.OK and isinstance(found, dict):
                return found
            why = str(found["why"])
        except (ValueError, KeyError, TypeError):
            raise StudyError(
                f"The coordinator refuses the invitation (answer {status}): it may be an old one. "
                "Ask the coordinator for the line in its file 'invitation'."
            ) from None
        raise StudyError(f"The coordinator says: {printable(why)}")

    def _exchange(
        self, method: str, path: str, body: bytes | None, more: Mapping[str, str]
    ) -> tuple[int, bytes]:
        """Send a request over a connection whose certificate is the one of the invitation."""
        address = self._invitation.address
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False  # the certificate itself is pinned
        context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection(address, timeout=PATIENCE, context=context)
        try:
            connection.connect()
            shown: bytes = connection.sock.getpeercert(binary_form=True) or b""
            if "sha256:" + hashlib.sha256(shown).hexdigest() != self._invitation.certificate:
                raise StudyError(
                    f"What answers at {address} is not the coordinator of the invitation: it has "
                    "another certificate. Nothing was sent."
                )
            headers = {"Authorization": f"Bearer {self._invitation.token}", **more}
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.read(LARGEST)
        finally:
            connection.close()
