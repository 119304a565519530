"""A site's end of enrolment. It checks all that the coordinator passes on."""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import shutil
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, final

from isthmus.errors import StudyError
from isthmus.joint.agreement.cards import Card, Folder
from isthmus.joint.agreement.identity import Identity
from isthmus.joint.agreement.lookalikes import printable
from isthmus.joint.agreement.signatures import AUTHOR
from isthmus.joint.agreement.study import Study
from isthmus.joint.enrolment.desk import (
    CARDS,
    FILES,
    PATIENCE,
    SIGNATURES,
    STATE,
    enrolled_bytes,
)
from isthmus.joint.enrolment.invitation import Invitation
from isthmus.joint.federation.over_grpc import require_pins
from isthmus.joint.transport.certificates import fingerprint

PAUSE = 1.0
"""Seconds between two questions how far the others are."""

LARGEST = 2**26
"""Bytes of the longest answer of the coordinator."""

FILE = re.compile(
    r"study\.toml|coordinator\.crt|connect\.toml|cards/\d{3,}\.toml|[\w.-]+\.signature"
)


@final
class Visitor:
    """A site that enrols.

    Parameters
    ----------
    invitation
        The line that the operator of the coordinator has sent.
    card
        The file of the site's card.
    identity
        The key of the site.
    say
        Called with a line for the person at the site.
    """

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
                self._tell(f"not connected to {self._invitation.address}: {error}; trying again")
                time.sleep(PAUSE)
        try:
            found = json.loads(content)
            if status == http.client.OK and isinstance(found, dict):
                return found
            why = str(found["why"])
        except (ValueError, KeyError, TypeError):
            why = f"answer {status}; the invitation may be an old one"
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
