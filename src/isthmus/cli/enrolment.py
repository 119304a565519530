"""What `isthmus site enrol` and `isthmus coordinator draft --sites` need: codes, and the desk."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isthmus.cli.described import parties_of
from isthmus.cli.exit_codes import ExitCode
from isthmus.cli.output import say
from isthmus.errors import StudyError

if TYPE_CHECKING:
    from isthmus.joint.agreement.cards import Card

CONFIRMED = "confirmed"
"""File in the folder of a site: the codes that its people have compared with the other sites."""


def confirm_roster(study: Any, home: Path) -> None:
    """Ask for the code of the roster, unless it was confirmed before."""
    from isthmus.joint.enrolment.invitation import roster_code, same_code
    from isthmus.joint.records.private_files import replace_private

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
    from isthmus.joint.agreement.policy import Policy

    path = home / "policy.toml"
    policy = Policy.read(path)
    if policy.peers is None or set(study.members) <= set(policy.peers):
        return
    peers = {m.name: m for m in policy.peers} | {m.name: m for m in study.members}
    path.write_text(replace(policy, peers=tuple(peers.values())).to_toml(), encoding="utf-8")
    say(f"Added the confirmed sites to the peers of {path}.")


def enrol_sites(options: argparse.Namespace, write_draft: Callable[[list[Card]], None]) -> ExitCode:
    """Collect the cards of sites, write the draft, and collect the signatures."""
    from isthmus.joint.agreement.cards import Folder
    from isthmus.joint.enrolment.desk import Desk, serving
    from isthmus.joint.enrolment.invitation import Invitation, roster_code

    folder = Folder(options.study)
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
