"""`isthmus study`: what all parties do with a study, which is a folder that they share."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import isthmus_joint as joint
from isthmus.cli.output import give, say
from isthmus.cli.parsing import ExitCode, UsageError
from isthmus.errors import StudyError, counted
from isthmus.tables.write_table import check_place
from isthmus_joint.commands.arguments import add_action
from isthmus_joint.commands.described import described, signed_pages, turn_page
from isthmus_joint.commands.keys import load_identity
from isthmus_joint.commands.ledger import spent_before


def add(command: argparse.ArgumentParser) -> None:
    """Describe the command."""
    command.description = (
        "Describe the variables of a study, and read, check and sign it. STUDY is the folder that "
        "all parties share, HOME the private folder of a site or a party. A study is drafted by "
        "'isthmus coordinator draft' or 'isthmus party draft'."
    )
    actions = command.add_subparsers(title="actions", metavar="ACTION", required=True)
    _variables_options(actions)
    meaning = "print a study, and who has signed it"
    show = actions.add_parser("show", help=meaning, description=meaning)
    show.add_argument("study", type=Path, metavar="STUDY", help="shared folder of the study")
    show.set_defaults(run=_show)
    meaning = "write a draft of a data protection impact assessment, filled from a study"
    assess = actions.add_parser("assess", help=meaning, description=meaning)
    assess.add_argument("study", type=Path, metavar="STUDY", help="shared folder of the study")
    assess.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="Markdown file to write"
    )
    assess.set_defaults(run=_assess)
    meaning = "print the hash of the installed version, as studies list it"
    code = actions.add_parser("code", help=meaning, description=meaning)
    code.set_defaults(run=_code)
    whose = "site or party"
    add_action(actions, whose, "check", "check the author's signature and the policy", _check)
    add_action(actions, whose, "sign", "check a study and sign it", sign)


class _Described(argparse.Action):
    """Collects descriptions of variables in their order, each with the name of its option."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        """Add a description."""
        setattr(namespace, self.dest, [*getattr(namespace, self.dest), (option, values)])


def _variables_options(actions: Any) -> None:
    action = actions.add_parser(
        "variables",
        help="write the file of variables that a draft needs",
        description="Write the file of variables that 'isthmus coordinator draft' and 'isthmus "
        "party draft' need. Bounds and levels are part of the agreement: state what can occur, "
        "from what a variable means and not from data.",
    )
    action.add_argument(
        "--continuous",
        action=_Described,
        nargs=3,
        dest="variables",
        default=[],
        metavar=("NAME", "LOW", "HIGH"),
        help="a number, with the lowest and the highest value that can occur; may be repeated",
    )
    action.add_argument(
        "--discrete",
        action=_Described,
        nargs="+",
        dest="variables",
        default=[],
        metavar=("NAME", "LEVEL"),
        help="a category with its levels, at least two; may be repeated. Levels that are all "
        "whole numbers, or true and false, are written as such",
    )
    action.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="file to write"
    )
    action.set_defaults(run=_variables)


def _variables(options: argparse.Namespace) -> ExitCode:
    from isthmus.statistics import Kind, Schema, Variable
    from isthmus_joint.agreement.study import require_bounds, variable_entries
    from isthmus_joint.agreement.toml import document

    variables, bounds = [], {}
    for option, (name, *values) in options.variables:
        if option == "--continuous":
            bounds[name] = (_number(name, values[0]), _number(name, values[1]))
            variables.append(Variable(name, Kind.CONTINUOUS))
        else:
            variables.append(Variable(name, Kind.DISCRETE, _levels(values)))
    if not variables:
        raise UsageError("Name variables: --continuous NAME LOW HIGH or --discrete NAME LEVEL ...")
    check_place(options.output)
    schema = Schema(tuple(variables))
    require_bounds(schema, bounds)
    text = document({}, {"variables": variable_entries(schema, bounds)}).lstrip()
    options.output.write_text(text, encoding="utf-8")
    say(f"Wrote {counted(len(schema), 'variable')} to {options.output}.")
    give(variables=schema.names, written=str(options.output))
    return ExitCode.DONE


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"The bounds of {name!r} are numbers; got {text!r}.") from None


def _levels(given: list[str]) -> tuple[Any, ...]:
    """Return levels as a table has them: whole numbers, Booleans or text."""
    if all(re.fullmatch(r"0|-?[1-9][0-9]*", level) for level in given):
        return tuple(map(int, given))
    if {level.lower() for level in given} <= {"true", "false"}:
        return tuple(level.lower() == "true" for level in given)
    return tuple(given)


def _show(options: argparse.Namespace) -> ExitCode:
    from isthmus_joint.agreement.identity import AUTHOR

    folder = joint.Folder(options.study)
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


def _assess(options: argparse.Namespace) -> ExitCode:
    from isthmus_joint.commands.assessment import ASK, assessment

    check_place(options.output)
    text = assessment(joint.Folder(options.study).study())
    options.output.write_text(text, encoding="utf-8")
    left = counted(text.count(ASK), "entry")
    say(f"Wrote {options.output}, in which {left} are left to complete.")
    give(written=str(options.output), to_complete=text.count(ASK))
    return ExitCode.DONE


def _code(_: argparse.Namespace) -> ExitCode:
    from isthmus_joint.agreement.study import code_hash

    say(code_hash())
    give(code=code_hash())
    return ExitCode.DONE


def _check(options: argparse.Namespace) -> ExitCode:
    study, _, names = _checked(options)
    path = options.home / "policy.toml"
    if not path.exists():
        raise StudyError(
            f"There is no policy {str(path)!r}. Draft one with 'isthmus site policy' or 'isthmus "
            "party policy', and edit it."
        )
    joint.Policy.read(path).require(study, spent_before(options.home, study))
    say(described(study))
    say(f"The author has signed, {names[0]!r} takes part, and the policy {path} allows the study.")
    give(name=names[0], hash=study.identity.hex())
    return ExitCode.DONE


def sign(options: argparse.Namespace) -> ExitCode:
    """Show all that a signature covers, page by page, and sign."""
    from isthmus_joint.agreement.study import code_hash

    study, folder, names = _checked(options)
    if (options.home / "policy.toml").exists():
        policy = joint.Policy.read(options.home / "policy.toml")
        policy.require(study, spent_before(options.home, study))
    pages = list(signed_pages(study))
    for page in pages:
        say(page)
        turn_page(last=page is pages[-1])
    identity = load_identity(options.home / "identity.pem")
    written = folder.sign(study.sign(identity, names[0]))
    say(f"Signed as {names[0]!r}: {written}")
    if code_hash() not in study.code:
        say(
            "The version of isthmus that is installed here is not one that the study lists. If the "
            "site runs on this machine, install a listed version before it joins: any other "
            "refuses to answer."
        )
    give(name=names[0], hash=study.identity.hex(), signature=str(written))
    return ExitCode.DONE


def _checked(options: argparse.Namespace) -> tuple[Any, Any, list[str]]:
    """Return a study that its author has signed, its folder, and the own name in its roster."""
    from isthmus_joint.agreement.identity import AUTHOR

    folder = joint.Folder(options.study)
    study = folder.study()
    study.require(folder.signatures(), [AUTHOR])
    identity = load_identity(options.home / "identity.pem")
    names = [m.name for m in study.members if m.key == identity.public]
    if not names:
        raise StudyError(
            "This site is not in the roster of the study. Send its card to the author of the study."
        )
    return study, folder, names
