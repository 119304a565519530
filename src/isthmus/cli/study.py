"""`isthmus study`: read, check and sign a study, which is a folder that all parties share."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from isthmus.cli.actions import add_action
from isthmus.cli.described import described
from isthmus.cli.exit_codes import ExitCode
from isthmus.cli.keys import load_identity
from isthmus.cli.ledger import spent_before
from isthmus.cli.output import give, say
from isthmus.errors import StudyError


def add(command: argparse.ArgumentParser) -> None:
    """Describe the command."""
    command.description = (
        "Read, check and sign a study. STUDY is the folder that all parties share, HOME the "
        "private folder of a site or a party. A study is drafted by 'isthmus coordinator draft' "
        "or 'isthmus party draft'."
    )
    actions = command.add_subparsers(title="actions", metavar="ACTION", required=True)
    meaning = "print a study, and who has signed it"
    show = actions.add_parser("show", help=meaning, description=meaning)
    show.add_argument("study", type=Path, metavar="STUDY", help="shared folder of the study")
    show.set_defaults(run=_show)
    whose = "site or party"
    add_action(actions, whose, "check", "check the author's signature and the policy", _check)
    add_action(actions, whose, "sign", "check a study and sign it", _sign)


def _show(options: argparse.Namespace) -> ExitCode:
    from isthmus.parties.agreement.cards import Folder
    from isthmus.parties.agreement.signatures import AUTHOR

    folder = Folder(options.study)
    study = folder.study()
    say(described(study))
    signed, absent = [], []
    for role in (AUTHOR, *(m.name for m in study.members)):
        try:
            study.require(folder.signatures(), [role])
        except StudyError:
            absent.append(role)
        else:
            signed.append(role)
    say(f"  signed     {', '.join(signed) or 'by nobody'}")
    if absent:
        say(f"  not signed {', '.join(absent)}")
    give(
        title=study.title,
        purpose=study.purpose,
        hash=study.identity.hex(),
        variables=study.schema.names,
        requests=sorted(study.requests),
        rounds=study.rounds,
        expires=study.expires.isoformat(),
        signed=signed,
        not_signed=absent,
    )
    return ExitCode.DONE


def _check(options: argparse.Namespace) -> ExitCode:
    from isthmus.parties.agreement.policy import Policy

    study, _, names = _checked(options)
    path = options.home / "policy.toml"
    if not path.exists():
        raise StudyError(
            f"There is no policy {str(path)!r}. Draft one with 'isthmus site policy' or 'isthmus "
            "party policy', and edit it."
        )
    Policy.read(path).require(study, spent_before(options.home, study))
    say(described(study))
    say(f"The author has signed, {names[0]!r} takes part, and the policy {path} allows the study.")
    give(name=names[0], hash=study.identity.hex())
    return ExitCode.DONE


def _sign(options: argparse.Namespace) -> ExitCode:
    from isthmus.parties.agreement.policy import Policy

    study, folder, names = _checked(options)
    say(described(study))
    if (options.home / "policy.toml").exists():
        policy = Policy.read(options.home / "policy.toml")
        policy.require(study, spent_before(options.home, study))
    identity = load_identity(options.home / "identity.pem")
    written = folder.sign(study.sign(identity, names[0]))
    say(f"Signed as {names[0]!r}: {written}")
    give(name=names[0], hash=study.identity.hex(), signature=str(written))
    return ExitCode.DONE


def _checked(options: argparse.Namespace) -> tuple[Any, Any, list[str]]:
    """Return a study that its author has signed, its folder, and the own name in its roster."""
    from isthmus.parties.agreement.cards import Folder
    from isthmus.parties.agreement.signatures import AUTHOR

    folder = Folder(options.study)
    study = folder.study()
    study.require(folder.signatures(), [AUTHOR])
    identity = load_identity(options.home / "identity.pem")
    names = [m.name for m in study.members if m.key == identity.public]
    if not names:
        raise StudyError(
            "This site is not in the roster of the study. Send its card to the author of the study."
        )
    return study, folder, names
