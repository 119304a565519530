"""Sites enrol through a coordinator that exchanges cards, and through somebody in between."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from isthmus.cli import ExitCode, main
from isthmus.errors import FormatError, StudyError
from isthmus.statistics import Schema
from isthmus_joint import AskMoments, Identity, SecureSums, Study
from isthmus_joint.agreement.cards import Card, Folder
from isthmus_joint.enrolment import (
    LONGEST,
    Desk,
    Invitation,
    Visitor,
    enrolled_bytes,
    roster_code,
    same_code,
    serving,
)
from isthmus_joint.transport.certificates import fingerprint, free_port, own_certificate

NAMES = ("east", "north", "south")


def run(*arguments: object) -> int:
    return main([str(a) for a in arguments])


class Parties:
    """Homes of three sites, a coordinator, and a key of the author."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in NAMES:
            run("site", "new", folder / name, "--name", name, "--organisation", f"Org {name}")
        self.lead = self.coordinator("lead")
        self.author = Identity.generate()
        self.stack = ExitStack()

    def coordinator(self, name: str) -> Path:
        home = self.folder / name
        run("coordinator", "new", home, "--host", "127.0.0.1", "--port", free_port())
        return home

    @property
    def invitation(self) -> Invitation:
        return Invitation.read(self.lead / "invitation")

    def card(self, name: str) -> Card:
        return Card.read(self.folder / name / "card.toml")

    def identity(self, name: str) -> Identity:
        return Identity.load(self.folder / name / "identity.pem")

    def visitor(self, name: str, invitation: Invitation | None = None) -> Visitor:
        home = self.folder / name
        invited = self.invitation if invitation is None else invitation
        return Visitor(invited, home / "card.toml", self.identity(name), lambda _: None)

    def forged(self, name: str) -> Card:
        """A card of the same name and organisation with keys of somebody else."""
        member = replace(self.card(name).member, key=Identity.generate().public)
        return Card(member, own_certificate(name)[0].decode())

    def study(self, cards: list[Card], path: Path) -> Study:
        """Write the folder of a study with these cards, as the coordinator and its author would."""
        certificate = (self.lead / "connection.crt").read_bytes()
        study = Study.draft(
            "T",
            purpose="P",
            author=self.author.public,
            coordinator=Identity.load(self.lead / "identity.pem").public,
            members=[c.member for c in cards],
            schema=Schema.continuous(["a", "b"]),
            bounds={"a": (0.0, 9.0), "b": (0.0, 9.0)},
            protocol=SecureSums(
                certificates=tuple(fingerprint(c.certificate) for c in cards),
                coordinator_certificate=fingerprint(certificate),
            ),
            requests=[AskMoments.name],
        )
        folder = Folder(path)
        folder.write(study, cards)
        folder.write_coordinator(certificate, self.invitation.address)
        folder.sign(study.sign(self.author))
        return study

    def desk(self, cards: list[Card] | None = None) -> Desk:
        """A coordinator that answers; with cards, it offers a study of these."""
        path = self.folder / f"study{len(list(self.folder.iterdir()))}"
        desk = Desk(Folder(path), len(NAMES), lambda _: None)
        if cards is not None:
            desk.offer(self.study(cards, path))
        self.stack.enter_context(serving(desk, self.lead, self.invitation, "127.0.0.1"))
        return desk

    def enrol(self, name: str, code: str, monkeypatch: pytest.MonkeyPatch) -> int:
        """Run the command of a site, whose person types a code."""
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{code}\n"))
        table = self.folder / "table.csv"
        table.write_text("a,b\n" + "".join(f"{i % 9},{i * i % 8}\n" for i in range(90)))
        home, study = self.folder / name, self.folder / f"{name}-study"
        return run("site", "enrol", home, study, self.invitation, "--data", table, "--exact")


@pytest.fixture
def parties(tmp_path: Path) -> Iterator[Parties]:
    made = Parties(tmp_path)
    with made.stack:
        yield made


@pytest.mark.long
def test_honest_parties_enrol(parties: Parties, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = parties.desk()
    for name in NAMES:
        parties.visitor(name).send_card()
        parties.visitor(name).send_card()  # after a crash
    assert [c.member.name for c in desk.cards()] == list(NAMES)
    with desk.changed:
        study = parties.study(desk.cards(), desk._folder.path)
        desk.offer(study)
    for name in NAMES[:2]:
        folder = Folder(parties.folder / f"{name}-study")
        assert parties.visitor(name).await_study(folder) == study
        folder.sign(study.sign(parties.identity(name), name))
        parties.visitor(name).send_signature(folder)
    assert desk.unsigned() == ["south"]
    waiting = threading.Thread(target=_complete, args=(parties, "north"))
    waiting.start()
    assert parties.enrol("south", roster_code(study).lower(), monkeypatch) == 0
    waiting.join(60)
    assert not desk.is_done()
    _complete(parties, "east")
    assert desk.is_done()
    assert (parties.folder / "south" / "confirmed").read_text() == roster_code(study) + "\n"


def _complete(parties: Parties, name: str) -> None:
    folder = Folder(parties.folder / f"{name}-study")
    parties.visitor(name).await_signatures(folder)
    folder.study().require(folder.signatures(), ["author", *NAMES])


def test_a_site_notices_that_its_own_card_was_exchanged(parties: Parties) -> None:
    parties.desk([parties.forged("east"), parties.card("north"), parties.card("south")])
    with pytest.raises(StudyError, match="another card of 'east'"):
        parties.visitor("east").await_study(Folder(parties.folder / "a"))
    assert not (parties.folder / "a").exists()


def test_a_certificate_of_somebody_else_is_noticed(parties: Parties) -> None:
    own = parties.card("east")
    changed = replace(own, certificate=parties.forged("east").certificate)
    parties.desk([changed, parties.card("north"), parties.card("south")])
    with pytest.raises(StudyError, match="another card of 'east'"):
        parties.visitor("east").await_study(Folder(parties.folder / "a"))


@pytest.mark.long
def test_different_rosters_have_different_codes(
    parties: Parties, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each site sees its own card, and the coordinator's keys in place of the others."""
    shown = [parties.card(n) if n == "north" else parties.forged(n) for n in NAMES]
    parties.desk(shown)
    honest = parties.study([parties.card(n) for n in NAMES], parties.folder / "honest")
    code = parties.enrol("north", roster_code(honest), monkeypatch)
    assert code == ExitCode.STUDY
    home = parties.folder / "north"
    assert not (home / "confirmed").exists()
    assert not (home / "policy.toml").exists()
    assert not list(parties.folder.glob("*/north.signature"))


def test_an_empty_line_is_no_code(parties: Parties, monkeypatch: pytest.MonkeyPatch) -> None:
    parties.desk([parties.card(n) for n in NAMES])
    assert parties.enrol("north", "", monkeypatch) == ExitCode.STUDY


@pytest.mark.long
def test_a_new_party_needs_a_new_code(parties: Parties) -> None:
    cards = [parties.card(n) for n in NAMES]
    study = parties.study(cards, parties.folder / "first")
    again = parties.study(cards[::-1], parties.folder / "again")
    assert study.identity != again.identity
    code = roster_code(study)
    assert code == roster_code(again)  # confirmed once
    others = {code}
    for i, card in enumerate(cards):
        for member in (
            replace(card.member, key=Identity.generate().public),
            replace(card.member, organisation="Another"),
            replace(card.member, name="another"),
        ):
            changed = [replace(c, member=member) if c is card else c for c in cards]
            path = parties.folder / f"changed{i}{len(others)}"
            others.add(roster_code(parties.study(changed, path)))
    parties.author = Identity.generate()
    others.add(roster_code(parties.study(cards, parties.folder / "author")))
    parties.lead = parties.coordinator("another")
    others.add(roster_code(parties.study(cards, parties.folder / "coordinator")))
    assert len(others) == 1 + 9 + 2


def test_codes_are_read_as_people_type_them(parties: Parties) -> None:
    code = roster_code(parties.study([parties.card(n) for n in NAMES], parties.folder / "s"))
    assert len(code.replace("-", "")) == 24
    assert same_code(f" {code.lower().replace('-', ' ')}\n", code)
    assert same_code(code.replace("O", "0").replace("I", "1").replace("B", "8"), code)
    assert not same_code(code[:-1], code)
    assert not same_code(code[:-1] + ("A" if code[-1] != "A" else "B"), code)


def test_somebody_in_between_gets_nothing(parties: Parties) -> None:
    """Another server at the address of the invitation, with another certificate."""
    other = parties.coordinator("other")
    address = Invitation.read(other / "invitation").address
    heard = list[str]()

    desk = Desk(Folder(parties.folder / "ear"), 3, heard.append)
    misled = replace(parties.invitation, address=address)
    with serving(desk, other, misled, "127.0.0.1"):
        with pytest.raises(StudyError, match="another certificate"):
            parties.visitor("north", misled).send_card()
        assert not heard
        correct = replace(misled, certificate=fingerprint((other / "connection.crt").read_bytes()))
        parties.visitor("north", correct).send_card()
        assert heard


def test_strangers_and_forgeries_are_refused(parties: Parties) -> None:
    desk = parties.desk()
    stranger = replace(parties.invitation, token="0" * 32)
    with pytest.raises(StudyError, match="answer 403"):
        parties.visitor("north", stranger).send_card()
    parties.visitor("north").send_card()
    data = (parties.folder / "east" / "card.toml").read_bytes()
    not_own = parties.identity("north").sign(enrolled_bytes(data))
    attempts: list[tuple[Callable[[], object], str]] = [
        (lambda: desk.take_card(data, not_own), "not signed by its own key"),
        (lambda: desk.take_card(b"\x00", not_own), "not TOML"),
        (lambda: desk.take_signature(b""), "no study"),
    ]
    for attempt, why in attempts:
        with pytest.raises(StudyError, match=why):
            attempt()
    thief = parties.folder / "thief"
    run("site", "new", thief, "--name", "north", "--organisation", "Org north")
    with pytest.raises(StudyError, match="Another site has enrolled as 'north'"):
        parties.visitor("thief").send_card()
    (thief / "card.toml").write_bytes(bytes(LONGEST + 1))
    assert [c.member for c in desk.cards()] == [parties.card("north").member]


def test_nobody_else_signs_for_a_site(parties: Parties) -> None:
    desk = parties.desk([parties.card(n) for n in NAMES])
    folder = Folder(parties.folder / "a")
    study = parties.visitor("east").await_study(folder)
    folder.sign(study.sign(Identity.generate(), "east"))
    with pytest.raises(StudyError, match="no valid signature"):
        parties.visitor("east").send_signature(folder)
    # A coordinator that invents signatures does not get a site to join.
    for name in NAMES:
        desk._folder.sign(study.sign(Identity.generate(), name))
    with pytest.raises(StudyError, match="no valid signature"):
        parties.visitor("east").await_signatures(folder)


def test_files_with_other_names_are_not_written(
    parties: Parties, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = parties.desk([parties.card(n) for n in NAMES])
    files = desk.files("east")
    files |= {"../planted.toml": "x", "cards/../../planted.toml": "x", "north.signature": "x"}
    monkeypatch.setattr(desk, "files", lambda _: files)
    folder = Folder(parties.folder / "deep" / "a")
    folder.path.parent.mkdir()
    parties.visitor("east").await_study(folder)
    assert not list(parties.folder.rglob("planted.toml"))
    assert not (folder.path / "north.signature").exists()


def test_what_is_no_invitation_is_refused() -> None:
    for text in ("", "isthmus://host/x", "http://a:1/" + "0" * 32, "isthmus://a:1/0/sha256:0"):
        with pytest.raises(FormatError, match="is not an invitation"):
            Invitation.parse(text)
    line = f"isthmus://[::1]:9092/{'0' * 32}/sha256:{'a' * 64}"
    assert str(Invitation.parse(f" {line}\n")) == line
