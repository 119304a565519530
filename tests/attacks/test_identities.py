"""Attacks by who takes part: invented hospitals, groups of sites, stolen and readable keys."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.attacks.malicious import Attacked, drafted_policy

from isthmus.cli import ExitCode, main
from isthmus.errors import AbortedError, FormatError, RefusedError, StudyError
from isthmus.statistics import Schema
from isthmus_joint import Identity, Member, MemoryLedger, Policy, SecureSums, SiteController, Study
from isthmus_joint.agreement.cards import Card, Succession
from isthmus_joint.agreement.identity import PassphraseError, key_fingerprint, key_text
from isthmus_joint.secure_sum.terms import Terms
from isthmus_joint.transport.certificates import own_certificate, require_in_time

NAMES = ("a", "b")
SCHEMA = Schema.continuous(NAMES)
BOUNDS = dict.fromkeys(NAMES, (-50, 50))


def hospitals(*names: str) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {n: {k: rng.normal(i, 1, 200) for k in NAMES} for i, n in enumerate(names)}


def pinned(world: Attacked, **changes: Any) -> Policy:
    return replace(drafted_policy(world.study, peers=world.study.members), **changes)


# --- invented parties --------------------------------------------------------------------------


def test_hospitals_that_the_author_invented_are_not_among_the_peers() -> None:
    """A study with the victim's real key, and two hospitals whose keys the attacker has."""
    honest = Attacked(hospitals("north", "east", "south"), SCHEMA, BOUNDS)
    policy = pinned(honest)
    policy.require(honest.study)
    sybil = Attacked(hospitals("north", "east", "south"), SCHEMA, BOUNDS)
    sybil.keys["north"] = honest.keys["north"]
    members = [Member(n, f"{n} hospital", k.public) for n, k in sybil.keys.items()]
    study = Study.draft(
        "S",
        purpose="p",
        author=sybil.author.public,
        coordinator=sybil.boss.public,
        members=members,
        schema=SCHEMA,
        bounds=BOUNDS,
        protocol=SecureSums(),
        requests=["moments"],
        exact=True,
    )
    with pytest.raises(RefusedError, match=r"\['east', 'south'\] are not among the peers"):
        policy.require(study)


@pytest.mark.parametrize("field", ["name", "organisation"])
def test_a_peer_under_another_name_is_a_stranger(field: str) -> None:
    """Two rosters that differ only in names must not look like different hospitals."""
    world = Attacked(hospitals("north", "east", "south"), SCHEMA, BOUNDS)
    changes: dict[str, Any] = {field: "another"}
    renamed = replace(world.study.members[1], **changes)
    policy = pinned(world, peers=(world.study.members[0], renamed, world.study.members[2]))
    with pytest.raises(RefusedError, match="not among the peers"):
        policy.require(world.study)


@pytest.mark.parametrize("missing", ["author", "east", "south"])
def test_a_site_does_not_serve_without_all_signatures(missing: str) -> None:
    world = Attacked(hospitals("north", "east", "south"), SCHEMA, BOUNDS)
    signatures = [s for s in world.signatures if s.role != missing]
    with pytest.raises(StudyError, match=missing):
        SiteController(
            world.study,
            signatures,
            world.keys["north"],
            world.extract("north"),
            pinned(world),
            MemoryLedger(),
        ).site()


def test_the_coordinator_is_not_the_author() -> None:
    same = Identity.generate().public
    with pytest.raises(StudyError, match="author and the coordinator"):
        Attacked(hospitals("x", "y", "z"), SCHEMA, BOUNDS, author=same, coordinator=same)


def test_signing_shows_every_key_and_how_many_must_collude(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = Attacked(hospitals("north", "east", "south"), SCHEMA, BOUNDS)
    from isthmus_joint.commands.described import described

    text = described(world.study)
    for member in world.study.members:
        assert f"{key_fingerprint(member.key)}, {member.name} ({member.organisation})" in text
    assert key_fingerprint(world.study.author) in text
    assert world.study.coordinator is not None
    assert key_fingerprint(world.study.coordinator) in text
    assert "2 organisations must collude" in text


# --- groups ------------------------------------------------------------------------------------


def clinics(clinic: int, outside: int) -> dict[str, str]:
    return {f"clinic{i}": "Group" for i in range(clinic)} | {
        f"h{i}": f"H{i}" for i in range(outside)
    }


def test_a_group_of_clinics_does_not_hold_enough_shares() -> None:
    """Eight of ten sites belong to one organisation, which also coordinates."""
    owners = clinics(8, 2)
    world = Attacked(hospitals(*owners), SCHEMA, BOUNDS, members=owners)
    terms = Terms(world.study.roster, world.study.protocol.threshold)  # type: ignore[attr-defined]
    assert terms.tolerated >= 8
    assert terms.threshold == 10
    assert terms.colluders == 2  # the group alone is not enough
    with pytest.raises(StudyError, match="operates 8 of 10 sites"):
        Attacked(
            hospitals(*owners), SCHEMA, BOUNDS, members=owners, protocol=SecureSums(threshold=7)
        )


@pytest.mark.parametrize("group", range(1, 9))
@pytest.mark.parametrize("outside", range(2, 6))
def test_no_organisation_can_join_the_shares_of_another(group: int, outside: int) -> None:
    owners = clinics(group, outside)
    members = tuple(Member(n, o, bytes([i + 1]) * 32) for i, (n, o) in enumerate(owners.items()))
    study = Study.draft(
        "S",
        purpose="p",
        author=bytes([98]) * 32,
        coordinator=bytes([99]) * 32,
        members=members,
        schema=SCHEMA,
        bounds=BOUNDS,
        protocol=SecureSums(),
        requests=["moments"],
        exact=True,
    )
    terms = Terms(study.roster, study.protocol.threshold)  # type: ignore[attr-defined]
    assert group <= terms.tolerated < terms.threshold <= len(members)
    assert terms.colluders >= 2


# --- membership --------------------------------------------------------------------------------


def test_an_author_cannot_let_sums_be_over_different_sites() -> None:
    tables = hospitals("n1", "n2", "n3", "victim")
    world = Attacked(tables, SCHEMA, BOUNDS)
    assert world.federation().moments().n == 800
    with pytest.raises(AbortedError):
        world.federation(2, lost=[("victim", 0)]).moments()
    assert world.why("n1")[-1] == "membership"
    assert world.federation(10).moments().n == 800


# --- keys --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o620, 0o604, 0o660])
def test_a_key_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "identity.pem"
    Identity.generate().save(path)
    Identity.load(path)
    path.chmod(mode)
    with pytest.raises(FormatError, match=f"mode {mode:o}"):
        Identity.load(path)


def test_a_key_may_have_a_passphrase(tmp_path: Path) -> None:
    path, key = tmp_path / "identity.pem", Identity.generate()
    key.save(path, "correct horse")
    assert b"ENCRYPTED" in path.read_bytes()
    assert Identity.load(path, "correct horse").public == key.public
    with pytest.raises(PassphraseError, match="protected by a passphrase"):
        Identity.load(path)
    with pytest.raises(PassphraseError, match="is wrong"):
        Identity.load(path, "battery staple")


def test_a_revoked_key_takes_no_part() -> None:
    world = Attacked(hospitals("north", "east", "south"), SCHEMA, BOUNDS)
    parties = [world.study.author, world.study.coordinator, world.study.members[1].key]
    for key in parties:
        assert key is not None
        with pytest.raises(RefusedError, match="revoked"):
            pinned(world, revoked=(key,)).require(world.study)


def test_a_new_key_needs_the_signature_of_the_old_one(tmp_path: Path) -> None:
    world = Attacked(hospitals("north", "east", "south"), SCHEMA, BOUNDS)
    policy, path = pinned(world), tmp_path / "succession.toml"
    old, new, thief = world.keys["east"], Identity.generate(), Identity.generate()
    Succession.sign(old, new).write(path)
    renewed = Succession.read(path).accept(policy)
    assert renewed.peers is not None
    assert [m.key for m in renewed.peers if m.name == "east"] == [new.public]
    assert renewed.revoked == (old.public,)
    assert Policy.parse(renewed.to_toml().encode()) == renewed
    with pytest.raises(StudyError, match="cannot vouch"):  # not twice, and not by a stranger
        Succession.sign(old, thief).accept(renewed)
    with pytest.raises(StudyError, match="cannot vouch"):
        Succession.sign(thief, new).accept(policy)
    text = path.read_text().replace(key_text(new.public), key_text(thief.public))
    path.write_text(text)
    with pytest.raises(StudyError, match="not signed"):
        Succession.read(path)


def run(*arguments: object) -> int:
    return main([str(a) for a in arguments])


@pytest.mark.long
def test_keys_are_pinned_rotated_and_accepted_by_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cards: list[object] = []
    for name in ("north", "east", "south"):
        assert run("site", "new", tmp_path / name, "--name", name, "--organisation", name) == 0
        cards += ["--card", tmp_path / name / "card.toml"]
    (tmp_path / "variables.toml").write_text(
        '[[variables]]\nname = "a"\nkind = "continuous"\nlow = 0.0\nhigh = 1.0\n'
    )
    assert run("coordinator", "new", tmp_path / "lead", "--host", "example.org") == 0
    draft = ["coordinator", "draft", tmp_path / "lead", tmp_path / "study", "--title", "T"]
    draft += ["--purpose", "P", "--variables", tmp_path / "variables.toml", *cards]
    assert run(*draft) == ExitCode.FORMAT  # who is the author?
    same = ["--author", tmp_path / "lead" / "identity.pem"]
    assert run(*draft, *same) == ExitCode.STUDY
    assert run(*draft, "--author", tmp_path / "north" / "identity.pem") == 0
    home, study = tmp_path / "south", tmp_path / "study"
    assert run("site", "policy", home, study) == 0
    assert "Confirm their fingerprints" in capsys.readouterr().out
    monkeypatch.setenv("ISTHMUS_PASSPHRASE", "correct horse")
    assert run("site", "rotate", tmp_path / "east", "--passphrase") == 0
    assert b"ENCRYPTED" in (tmp_path / "east" / "identity.pem").read_bytes()
    again = ["coordinator", "draft", tmp_path / "lead", tmp_path / "next", *draft[4:]]
    assert run(*again, "--author", tmp_path / "north" / "identity.pem") == 0
    assert run("study", "sign", home, tmp_path / "next") == ExitCode.REFUSED  # a stranger
    assert run("site", "pin", home, tmp_path / "east" / "card.toml") == ExitCode.STUDY
    assert run("site", "accept", home, tmp_path / "east" / "succession.toml") == 0
    assert run("study", "sign", home, tmp_path / "next") == 0
    assert run("study", "sign", home, study) == ExitCode.REFUSED  # it names the old key
    assert run("study", "sign", tmp_path / "east", tmp_path / "next") == 0
    monkeypatch.setenv("ISTHMUS_PASSPHRASE", "wrong")
    assert run("study", "sign", tmp_path / "east", tmp_path / "next") == ExitCode.FORMAT


# --- names that look alike ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"east": "north hospitаl"}, "several alphabets"),  # one Cyrillic letter
        ({"east": "North  Hospital"}, "look alike"),
        ({"east": "north-hospital"}, "look alike"),
        ({"east": "north hospital\u200b"}, "invisible"),
        ({"east": "north hospital "}, "invisible"),
        ({"east": "СОРЕ", "south": "COPE"}, "look alike"),  # all Cyrillic, all Latin
        ({"east": "Hôpital", "south": "Ho\u0302pital"}, "look alike"),
    ],
)
def test_one_organisation_cannot_pass_for_two(given: dict[str, str], why: str) -> None:
    """Three organisations must be behind every sum, and people sign what they read."""
    owners = {"north": "north hospital", "south": "south hospital"} | given
    with pytest.raises(StudyError, match=why):
        Attacked(hospitals("north", "east", "south"), SCHEMA, BOUNDS, members=owners)


@pytest.mark.parametrize("name", ["nоrth", "NORTH", "Author", "аuthor"])  # some are Cyrillic
def test_a_site_cannot_pass_for_another_one_or_for_the_author(name: str) -> None:
    with pytest.raises(StudyError, match=r"look alike|several alphabets|cannot be named"):
        Attacked(hospitals("north", name, "south"), SCHEMA, BOUNDS)


def test_names_of_other_languages_are_allowed() -> None:
    owners = {"north": "Больница № 1", "east": "Νοσοκομείο Αθηνών", "south": "Charité – Süd"}
    assert Attacked(hospitals(*owners), SCHEMA, BOUNDS, members=owners).federation().moments().n


def test_a_peer_that_looks_like_another_one_is_not_pinned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = Attacked(hospitals("north", "east", "south"), SCHEMA, BOUNDS)
    policy = pinned(world, stop_file=Path("STOP"))
    (tmp_path / "policy.toml").write_text(policy.to_toml())
    stolen = Identity.generate().public
    for name, organisation in (("nоrth", "other"), ("west", "North Hospital")):
        Card(Member(name, organisation, stolen), "certificate").write(tmp_path / "card.toml")
        assert run("site", "pin", tmp_path, tmp_path / "card.toml") == ExitCode.STUDY
        assert "cannot be told apart" in capsys.readouterr().err
    assert Policy.read(tmp_path / "policy.toml") == policy


# --- careless operators ------------------------------------------------------------------------


def test_a_succession_to_a_revoked_or_known_key_is_refused() -> None:
    world = Attacked(hospitals("north", "east", "south"), SCHEMA, BOUNDS)
    old, stolen = world.keys["east"], Identity.generate()
    for policy, new in (
        (pinned(world, revoked=(stolen.public,)), stolen),
        (pinned(world), world.keys["south"]),
        (pinned(world), old),
    ):
        with pytest.raises(StudyError, match="revoked"):
            Succession.sign(old, new).accept(policy)


def test_a_card_with_a_revoked_key_is_not_pinned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = Attacked(hospitals("north", "east", "south"), SCHEMA, BOUNDS)
    stolen = Identity.generate().public
    (tmp_path / "policy.toml").write_text(pinned(world, revoked=(stolen,)).to_toml())
    Card(Member("west", "West", stolen), "certificate").write(tmp_path / "card.toml")
    assert run("site", "pin", tmp_path, tmp_path / "card.toml") == ExitCode.STUDY
    assert "revoked" in capsys.readouterr().err


def test_a_policy_that_everybody_can_change_is_refused(tmp_path: Path) -> None:
    world = Attacked(hospitals("north", "east", "south"), SCHEMA, BOUNDS)
    path = tmp_path / "policy.toml"
    policy = pinned(world, stop_file=Path("STOP"))
    path.write_text(policy.to_toml())
    path.chmod(0o644)
    assert Policy.read(path) == policy
    path.chmod(0o666)
    with pytest.raises(StudyError, match="mode 666"):
        Policy.read(path)


def test_a_rotation_that_fails_leaves_the_old_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    assert run("site", "new", home, "--name", "north", "--organisation", "North") == 0
    before = Identity.load(home / "identity.pem").public
    monkeypatch.setenv("ISTHMUS_PASSPHRASE", "")
    assert run("site", "rotate", home, "--passphrase") == ExitCode.FORMAT
    assert Identity.load(home / "identity.pem").public == before
    assert Card.read(home / "card.toml").member.key == before
    monkeypatch.delenv("ISTHMUS_PASSPHRASE")
    assert run("site", "rotate", home) == 0
    assert Identity.load(home / "identity.pem").public != before


@pytest.mark.parametrize(("days", "valid"), [(-1, True), (0, True), (1, True), (900, False)])
def test_a_clock_that_is_a_day_off_does_not_matter(days: int, valid: bool) -> None:
    certificate, _ = own_certificate("north")
    now = datetime.now(UTC) + timedelta(days=days)
    if valid:
        require_in_time(certificate, "the site 'north'", now)
    else:
        with pytest.raises(StudyError, match=f"north.* clock of this machine says {now:%Y-%m-%d}"):
            require_in_time(certificate, "the site 'north'", now)
