"""Keys of parties on the command line: passphrases, rotation, and peers of a policy."""

from __future__ import annotations

import argparse
import getpass
import os
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import isthmus_joint as joint
from isthmus.cli.output import give, say
from isthmus.cli.parsing import ExitCode
from isthmus.errors import FormatError, StudyError
from isthmus_joint.commands.described import parties_of

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

PASSPHRASE = "ISTHMUS_PASSPHRASE"
"""Environment variable with the passphrase of keys, for services without a terminal."""


def add_key_actions(action: Callable[..., argparse.ArgumentParser], whose: str) -> None:
    """Add the actions on the keys of a site or a party."""
    pinned = action("pin", "add peers to the policy, from their cards", pin, study=False)
    pinned.add_argument("card", nargs="+", type=Path, metavar="CARD", help="card of a peer")
    pinned.add_argument(
        "--replace",
        action="store_true",
        help="a peer has lost its key: revoke the old one, and take that of the card. Confirm the "
        "fingerprint with the peer, because the old key does not vouch for the new one",
    )
    rotation = action("rotate", f"replace the key of the {whose} by a new one", rotate, study=False)
    rotation.add_argument(
        "--passphrase", action="store_true", help="protect the new key by a passphrase"
    )
    accepted = action("accept", "accept the new key of a peer", accept, study=False)
    accepted.add_argument(
        "succession", type=Path, metavar="FILE", help="the peer's succession.toml"
    )


def add_names(parser: argparse.ArgumentParser, whose: str, *, required: bool = True) -> None:
    """Add the options of a new site or party."""
    parser.add_argument("--name", required=required, help=f"name of the {whose} in studies")
    parser.add_argument(
        "--organisation", required=required, help=f"legal entity that operates the {whose}"
    )
    parser.add_argument(
        "--passphrase", action="store_true", help="protect the private key by a passphrase"
    )


def new_card(options: argparse.Namespace, whose: str, address: str = "") -> joint.Card:
    """Create the private folder of a site or a party, with its keys and its card."""
    from isthmus_joint.agreement.identity import key_fingerprint, key_text
    from isthmus_joint.records.private_files import write_private
    from isthmus_joint.transport.certificates import own_certificate

    if not NAME.fullmatch(options.name):
        raise FormatError(
            f"{options.name!r} cannot be the name of a {whose}. Use letters, digits, '-', '_' and "
            "'.'."
        )
    home: Path = options.home
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    identity = joint.Identity.generate()
    identity.save(home / "identity.pem", new_passphrase() if options.passphrase else None)
    certificate, key = own_certificate(options.name)
    write_private(home / "connection.pem", key)
    member = joint.Member(options.name, options.organisation, identity.public)
    card = joint.Card(member, certificate.decode(), address)
    card.write(home / "card.toml")
    say(
        f"Created the {whose} {options.name!r} in {home}. Its private keys never leave this folder."
    )
    say(f"Public key: {key_text(identity.public)}")
    say(f"Fingerprint: {key_fingerprint(identity.public)}")
    return card


def load_identity(path: Path) -> Any:
    """Load a key; ask for its passphrase if it has one."""
    from isthmus_joint.agreement.identity import PassphraseError

    given = os.environ.get(PASSPHRASE)
    try:
        return joint.Identity.load(path, given)
    except PassphraseError:
        if given is not None or not sys.stdin.isatty():
            raise
    return joint.Identity.load(path, getpass.getpass(f"Passphrase of {path}: "))


def new_passphrase() -> str:
    """Ask for a new passphrase, or take it from the environment."""
    given = os.environ.get(PASSPHRASE)
    if given is None:
        given = getpass.getpass("New passphrase: ")
        if given != getpass.getpass("Once more: "):
            raise FormatError("The two passphrases differ.")
    if not given:
        raise FormatError("The passphrase is empty.")
    return given


def own_keys(home: Path) -> list[bytes] | None:
    """Return the keys of a folder, also the earlier ones; ``None`` if the folder has no card."""
    from isthmus_joint.agreement.cards import Succession

    if not (home / "card.toml").exists():
        return None
    earlier = [Succession.read(file).old for file in home.glob("succession*.toml")]
    return [joint.Card.read(home / "card.toml").member.key, *earlier]


def rotate(options: argparse.Namespace) -> ExitCode:
    """Replace the key of a site or a party; the old key signs that the new one follows it."""
    from isthmus_joint.records.journal import FolderLock

    with FolderLock(options.home, "the rotation of the key"):
        return _rotated(options.home, passphrase=options.passphrase)


def _rotated(home: Path, *, passphrase: bool) -> ExitCode:
    from isthmus_joint.agreement.cards import Succession
    from isthmus_joint.agreement.identity import key_fingerprint

    path, card = home / "identity.pem", joint.Card.read(home / "card.toml")
    old, new = load_identity(path), joint.Identity.generate()
    # The old key is put aside last: whatever fails before leaves the folder as it was.
    beside = home / "identity.new"
    beside.unlink(missing_ok=True)
    new.save(beside, new_passphrase() if passphrase else None)
    succession = Succession.sign(old, new)
    written = home / "succession.toml"
    if written.exists():
        written.rename(home / f"succession-{old.public.hex()[:16]}.toml")
    succession.write(written)
    path.rename(home / f"identity-{old.public.hex()[:16]}.pem")
    beside.rename(path)
    replace(card, member=replace(card.member, key=new.public)).write(home / "card.toml")
    policy = home / "policy.toml"
    if policy.exists():
        own = joint.Policy.read(policy)
        if own.peers is not None and any(m.key == old.public for m in own.peers):
            policy.write_text(succession.accept(own).to_toml(), encoding="utf-8")
    say(f"The new key has the fingerprint {key_fingerprint(new.public)}.")
    say(f"Send {home / 'succession.toml'} and {home / 'card.toml'} to your peers. Studies that")
    say("name the old key end; draft new ones. If the old key was stolen, do not send the first")
    say("file: tell your peers to revoke the old key and to confirm the new one.")
    return ExitCode.DONE


def accept(options: argparse.Namespace) -> ExitCode:
    """Accept the new key of a peer, which the old one vouches for."""
    from isthmus_joint.agreement.cards import Succession
    from isthmus_joint.agreement.identity import key_fingerprint

    path = options.home / "policy.toml"
    succession = Succession.read(options.succession)
    renewed = succession.accept(joint.Policy.read(path))
    path.write_text(renewed.to_toml(), encoding="utf-8")
    (peer,) = [m for m in renewed.peers or () if m.key == succession.new]
    say(f"{peer.name} ({peer.organisation}) has a new key: {key_fingerprint(peer.key)}")
    _say_restart(options.whose)
    return ExitCode.DONE


def pin(options: argparse.Namespace) -> ExitCode:
    """Add peers to the policy, from their cards."""
    from isthmus_joint.agreement.identity import key_fingerprint
    from isthmus_joint.agreement.roster import name_problems

    path = options.home / "policy.toml"
    policy = joint.Policy.read(path)
    peers, revoked = list(policy.peers or ()), list(policy.revoked)
    for file in options.card:
        member = joint.Card.read(file).member
        if options.replace:
            lost = [m for m in peers if m.name == member.name and m.key != member.key]
            peers = [m for m in peers if m not in lost]
            revoked += [m.key for m in lost]
        if any(m.name == member.name and m != member for m in peers):
            raise StudyError(
                f"The policy knows {member.name!r} with another key or organisation. A new key "
                f"is accepted with 'isthmus {options.whose} accept'; if the peer has lost the old "
                f"one, pass --replace after you have confirmed the new one."
            )
        if member.key in policy.revoked:
            raise StudyError(
                f"The key of {member.name!r} was revoked: {key_fingerprint(member.key)}. Ask its "
                "owner for a new card."
            )
        if member not in peers:
            peers.append(member)
        say(f"{member.name} ({member.organisation}): {key_fingerprint(member.key)}")
    problems = name_problems(peers)
    if problems:
        raise StudyError(f"The peers cannot be told apart: {'; '.join(problems)}.")
    renewed = replace(policy, peers=tuple(peers), revoked=tuple(revoked))
    path.write_text(renewed.to_toml(), encoding="utf-8")
    say("Confirm these fingerprints with their owners by another channel, such as the telephone.")
    _say_restart(options.whose)
    return ExitCode.DONE


def _say_restart(whose: str) -> None:
    say(f"A {whose} that is running read its policy when it started: restart it.")


# --- Enrolment and peers -------------------------------------------------------------------------
#
# What `isthmus site enrol` and `isthmus coordinator draft --sites` need: codes, and the desk.

CONFIRMED = "confirmed"
"""File in the folder of a site: the codes that its people have compared with the other sites."""


def confirm_roster(study: Any, home: Path) -> None:
    """Ask for the code of the roster, unless it was confirmed before."""
    from isthmus_joint.enrolment import roster_code, same_code
    from isthmus_joint.records.private_files import replace_private

    path, code = home / CONFIRMED, roster_code(study)
    known = path.read_text(encoding="utf-8").split() if path.exists() else []
    if code in known:
        return
    say("These parties take part:")
    for line in parties_of(study):
        say(line)
    say(f"The code of this roster is {code}")
    say("Compare it with the others by a channel on which you know each other, such as a call. An")
    say("organisation that nobody has heard say this code may have been invented by somebody.")
    sys.stdout.write("Type the code as another site reads it to you: ")
    sys.stdout.flush()
    if not same_code(sys.stdin.readline(), code):
        raise StudyError(
            "This is not the code of the roster. If it was not mistyped, somebody shows different "
            "parties to different sites: do not sign, and tell the others."
        )
    replace_private(path, "\n".join([*known, code, ""]).encode())


def add_peers(study: Any, home: Path) -> None:
    """Add the confirmed sites to the peers of the policy."""
    path = home / "policy.toml"
    policy = joint.Policy.read(path)
    if policy.peers is None or set(study.members) <= set(policy.peers):
        return
    peers = {m.name: m for m in policy.peers} | {m.name: m for m in study.members}
    path.write_text(replace(policy, peers=tuple(peers.values())).to_toml(), encoding="utf-8")
    say(f"Added the confirmed sites to the peers of {path}.")


def enrol_sites(
    options: argparse.Namespace, write_draft: Callable[[list[joint.Card]], None]
) -> ExitCode:
    """Collect the cards of sites, write the draft, and collect the signatures."""
    from isthmus_joint.enrolment import Desk, Invitation, roster_code, serving

    folder = joint.Folder(options.study)
    invitation = Invitation.read(options.home / "invitation")
    desk = Desk(folder, options.sites, say)
    with serving(desk, options.home, invitation, options.listen):
        say(f"Waiting for {options.sites} sites, which were invited by: {invitation}")
        with desk.changed:
            if not (folder.path / "study.toml").exists():
                desk.changed.wait_for(desk.is_full)
                write_draft(desk.cards())
            study = folder.study()
            desk.offer(study)
            say(f"The code of this roster is {roster_code(study)}")
            say("Compare it with all sites by a channel on which you know each other.")
            desk.changed.wait_for(desk.is_done)
    say("All sites have signed. Learn with:")
    say(f"isthmus coordinator run {options.home} {options.study} -o network.html")
    return ExitCode.DONE


# --- `files` and `erase` of sites, coordinators and parties: what a private folder contains -----

LEDGER = "ledger.jsonl"
ANSWER = re.compile(r"[0-9a-f]{64}")
"""Names of files in the folder ``ledger.jsonl.kept`` that hold an answer with noise."""

KINDS = (
    (r"identity\.pem", "private key, which signs", "while studies name it"),
    (r"identity-.*\.pem", "earlier private key", "not needed any more"),
    (r"connection\.pem", "private key of connections", "while studies name it"),
    (
        r"card\.toml|succession.*\.toml|.*\.crt|invitation|confirmed",
        "public keys, address, codes",
        "with the keys",
    ),
    (r"policy\.toml|STOP", "rules of the site", "while it takes part in studies"),
    (r"lock", "says which process uses the folder", "empty between runs"),
    (r"ledger\.jsonl(\.(part|torn)-.*)?", "what was sent; no values", "as long as the data"),
    (r"ledger\.jsonl\.kept", "answers with noise, as they were sent", "until the study is over"),
    (r"extract-.*", "rows that were frozen for a study", "until the study is over"),
    (r"study-.*", "state of a study, to resume it", "until the study is over"),
    (r"result-.*", "result of a study", "as long as you want"),
    (r"nvflare\.log", "why the site did not answer", "not needed between runs"),
    (r"flower-.*", "results of a run of Flower", "as long as you want"),
)
"""Names of files, what they contain, and how long they are needed; see files-at-rest.md."""


def add_file_actions(action: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the actions on the files of a private folder."""
    action("files", "list what the folder contains, and how long it is needed", _files, study=False)
    erased = action("erase", "delete what is not needed after a study", _erase, study=False)
    which = erased.add_mutually_exclusive_group(required=True)
    which.add_argument("--study", type=Path, metavar="STUDY", help="shared folder of the study")
    which.add_argument("--all", action="store_true", help="all studies are over")


def _files(options: argparse.Namespace) -> ExitCode:
    found = [_described(path) for path in sorted(options.home.iterdir())]
    width = max((len(file["name"]) for file in found), default=0)
    now, mode = datetime.now(UTC), options.home.stat().st_mode & 0o777
    for file in found:
        age = f"{max((now - file['changed']).days, 0)} days"
        say(
            f"{file['name']:<{width}}  {file['bytes']:>12,} bytes  {age:>9}  {file['content']}; "
            f"keep: {file['keep']}"
        )
    if mode & 0o077:
        say(f"Others can enter the folder (mode {mode:o}). Run chmod 700 on it.")
    give(files=found, mode=f"{mode:o}")
    return ExitCode.DONE


def _described(path: Path) -> dict[str, Any]:
    inside = [path, *path.rglob("*")] if path.is_dir() else [path]
    known = (kind[1:] for kind in KINDS if re.fullmatch(kind[0], path.name))
    content, keep = next(known, ("not written by Isthmus", "your decision"))
    return {
        "name": path.name,
        "bytes": sum(p.stat().st_size for p in inside if p.is_file()),
        "changed": datetime.fromtimestamp(max(p.stat().st_mtime for p in inside), UTC),
        "content": content,
        "keep": keep,
    }


def _erase(options: argparse.Namespace) -> ExitCode:
    study = None if options.all else joint.Folder(options.study).study().identity.hex()
    deleted = _erased(options.home, study)
    for path in deleted:
        say(f"Deleted {path}")
    if not deleted:
        say("Nothing was left of it.")
    if (options.home / LEDGER).exists():
        say("The ledger stays: it is how this folder knows what was sent, it contains no values,")
        say("and other organisations do not go on with a party that has lost it. Delete the whole")
        say("folder when it never takes part in a study again.")
    give(deleted=[str(path) for path in deleted])
    return ExitCode.DONE


def _erased(home: Path, study: str | None) -> list[Path]:
    """Delete what is not needed after a study, or after all, and return what it was."""
    from isthmus_joint.records.journal import FolderLock
    from isthmus_joint.records.private_files import sync_folder

    with FolderLock(home, "the deletion of files"):
        name = "*" if study is None else study[:16]
        patterns = [f"study-{name}", f"extract-{name}", f"result-{name}.*"]
        patterns += ["identity-*.pem", "flower-*", "nvflare.log"] if study is None else []
        paths = [path for pattern in patterns for path in sorted(home.glob(pattern))]
        for journal in (path / "journal" for path in paths):
            if journal.exists():
                joint.FileJournal(journal).close()  # raises an error if a run uses it
        paths += _answers(home, study)
        for path in paths:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for folder in {path.parent for path in paths}:
            sync_folder(folder)
        return paths


def _answers(home: Path, study: str | None) -> list[Path]:
    """Return the answers with noise that were sent in a study, or in all."""
    kept = home / f"{LEDGER}.kept"
    names = {path.name for path in kept.glob("*") if ANSWER.fullmatch(path.name)}
    if study is not None and names:
        entries = joint.FileLedger(home / LEDGER).read()
        names &= {str(e["answer"]) for e in entries if "answer" in e and e.get("study") == study}
    return [kept / name for name in sorted(names)]
