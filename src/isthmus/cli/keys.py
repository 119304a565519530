"""Keys of parties on the command line: passphrases, rotation, and peers of a policy."""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from isthmus.cli.exit_codes import ExitCode
from isthmus.cli.output import say as say
from isthmus.errors import FormatError

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


def load_identity(path: Path) -> Any:
    """Load a key; ask for its passphrase if it has one."""
    from isthmus.joint.agreement.identity import Identity, PassphraseError

    given = os.environ.get(PASSPHRASE)
    try:
        return Identity.load(path, given)
    except PassphraseError:
        if given is not None or not sys.stdin.isatty():
            raise
    return Identity.load(path, getpass.getpass(f"Passphrase of {path}: "))


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
    from isthmus.joint.agreement.cards import Card
    from isthmus.joint.agreement.succession import Succession

    if not (home / "card.toml").exists():
        return None
    earlier = [Succession.read(file).old for file in home.glob("succession*.toml")]
    return [Card.read(home / "card.toml").member.key, *earlier]


def rotate(options: argparse.Namespace) -> ExitCode:
    """Replace the key of a site or a party; the old key signs that the new one follows it."""
    from isthmus.joint.records.journal import FolderLock

    with FolderLock(options.home, "the rotation of the key"):
        return _rotated(options.home, passphrase=options.passphrase)


def _rotated(home: Path, *, passphrase: bool) -> ExitCode:
    from dataclasses import replace

    from isthmus.joint.agreement.cards import Card
    from isthmus.joint.agreement.identity import Identity, key_fingerprint
    from isthmus.joint.agreement.policy import Policy
    from isthmus.joint.agreement.succession import Succession

    path, card = home / "identity.pem", Card.read(home / "card.toml")
    old, new = load_identity(path), Identity.generate()
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
        own = Policy.read(policy)
        if own.peers is not None and any(m.key == old.public for m in own.peers):
            policy.write_text(succession.accept(own).to_toml(), encoding="utf-8")
    say(f"The new key has the fingerprint {key_fingerprint(new.public)}.")
    say(f"Send {home / 'succession.toml'} and {home / 'card.toml'} to your peers. Studies that")
    say("name the old key end; draft new ones. If the old key was stolen, do not send the first")
    say("file: tell your peers to revoke the old key and to confirm the new one.")
    return ExitCode.DONE


def accept(options: argparse.Namespace) -> ExitCode:
    """Accept the new key of a peer, which the old one vouches for."""
    from isthmus.joint.agreement.identity import key_fingerprint
    from isthmus.joint.agreement.policy import Policy
    from isthmus.joint.agreement.succession import Succession

    path = options.home / "policy.toml"
    succession = Succession.read(options.succession)
    renewed = succession.accept(Policy.read(path))
    path.write_text(renewed.to_toml(), encoding="utf-8")
    (peer,) = [m for m in renewed.peers or () if m.key == succession.new]
    say(f"{peer.name} ({peer.organisation}) has a new key: {key_fingerprint(peer.key)}")
    _say_restart(options.whose)
    return ExitCode.DONE


def pin(options: argparse.Namespace) -> ExitCode:
    """Add peers to the policy, from their cards."""
    from dataclasses import replace

    from isthmus.errors import StudyError
    from isthmus.joint.agreement.cards import Card
    from isthmus.joint.agreement.identity import key_fingerprint
    from isthmus.joint.agreement.lookalikes import name_problems
    from isthmus.joint.agreement.policy import Policy

    path = options.home / "policy.toml"
    policy = Policy.read(path)
    peers, revoked = list(policy.peers or ()), list(policy.revoked)
    for file in options.card:
        member = Card.read(file).member
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
