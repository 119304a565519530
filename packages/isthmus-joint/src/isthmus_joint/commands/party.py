"""`isthmus party`: two parties with different columns learn a network, without anyone else."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import isthmus_joint as joint
from isthmus.cli.output import say
from isthmus.cli.parsing import ExitCode, host_and_port
from isthmus.cli.result_files import check_outputs
from isthmus.errors import ArgumentError, MismatchError, counted
from isthmus.tables.read_table import read_table
from isthmus_joint.commands.arguments import add_action
from isthmus_joint.commands.described import described
from isthmus_joint.commands.joint_runs import (
    add_joint_options,
    finish,
    learn_jointly,
    print_status,
    shown,
)
from isthmus_joint.commands.keys import (
    add_file_actions,
    add_key_actions,
    add_names,
    load_identity,
    new_card,
)
from isthmus_joint.commands.site import draft_policy

RUNS = 3


def add(command: argparse.ArgumentParser) -> None:
    """Describe the command."""
    command.description = (
        "What each of two parties does (experimental until audited). HOME is the private folder of "
        "the party: it holds private keys and the ledger. STUDY is the folder that both share."
    )
    actions = command.add_subparsers(title="actions", metavar="ACTION", required=True)
    action = partial(add_action, actions, "party")
    new = action("new", "create keys, a certificate and a card", _new, study=False)
    add_names(new, "party")
    new.add_argument(
        "--address",
        required=True,
        metavar="HOST:PORT",
        help="where the other party reaches this one; the next port must be free as well. Only the "
        "first party of a study listens",
    )
    add_key_actions(action, "party")
    add_file_actions(action)
    _draft_options(action("draft", "write a study and sign it as its author", _draft))
    policy = action("policy", "draft the policy, or check a study against it", draft_policy)
    policy.add_argument(
        "--newer-values",
        action="store_true",
        help="in this study, columns that were shared with the other party before may have other "
        "values. The difference of the two results is about those whose values differ",
    )
    dry = action("dry-run", "check the table and print what would leave; no connection", _dry_run)
    run = action("run", "learn together with the other party, which runs the same command", _run)
    for each in (dry, run):
        each.add_argument(
            "--data", type=Path, required=True, metavar="FILE", help="table of the party"
        )
    _run_options(run)
    action("status", "print the state of a run", print_status)


def _draft_options(draft: argparse.ArgumentParser) -> None:
    draft.add_argument("--title", required=True, help="title of the study")
    draft.add_argument("--purpose", required=True, help="purpose of the study")
    draft.add_argument(
        "--party",
        action="append",
        nargs=2,
        type=Path,
        required=True,
        metavar=("CARD", "VARIABLES"),
        help="card of a party, and the file of variables that it holds, which 'isthmus study "
        "variables' writes; twice",
    )
    draft.add_argument(
        "--people",
        nargs=2,
        type=int,
        required=True,
        metavar=("FIRST", "SECOND"),
        help="maximum number of people whom each party may bring, in the order of --party",
    )
    draft.add_argument("--identifier", required=True, help="column that identifies a person")
    draft.add_argument(
        "--identifier-kind",
        default="text",
        choices=["text", "integer"],
        help="how identifiers are written; by default text",
    )
    draft.add_argument(
        "--request",
        default="private k2",
        choices=["private k2", "structure only", "cross moments"],
        help="what is computed; by default private k2",
    )
    draft.add_argument(
        "--order",
        nargs="+",
        metavar="VARIABLE",
        help="order of the variables: only earlier ones can be parents; by default as listed",
    )
    draft.add_argument(
        "--parents", type=int, default=2, help="maximum number of parents; by default 2"
    )
    draft.add_argument(
        "--score", default="K2", choices=["K2", "BDeu", "BIC"], help="score; by default K2"
    )
    draft.add_argument(
        "--ess", type=float, default=1.0, help="equivalent sample size of BDeu; by default 1"
    )
    draft.add_argument(
        "--minimum-cohort",
        type=int,
        default=50,
        help="smallest number of people of each party, and of common people; by default 50",
    )
    draft.add_argument(
        "--intersection",
        default="both",
        metavar="PARTY",
        help="name of the one party that learns which people are common; by default both do",
    )
    draft.add_argument(
        "--count", action="store_true", help="allow counting the common people beforehand"
    )
    draft.add_argument(
        "--tables",
        action="store_true",
        help="give each party the tables of its own variables and their parents, too",
    )
    draft.add_argument(
        "--minimum-cell",
        type=int,
        default=5,
        help="smallest number of people in a non-empty cell of such a table; by default 5",
    )
    draft.add_argument(
        "--runs", type=int, default=RUNS, help=f"maximum number of runs; by default {RUNS}"
    )


def _run_options(run: argparse.ArgumentParser) -> None:
    add_joint_options(run, "PrivateK2 or StructureOnly")
    run.add_argument(
        "--listen",
        type=host_and_port,
        metavar="HOST:PORT",
        help="address on which the first party of the study listens, if not its card's",
    )
    run.add_argument(
        "--count",
        action="store_true",
        help="only count the common people; the study must allow it",
    )
    run.add_argument(
        "--connect",
        type=host_and_port,
        metavar="HOST:PORT",
        help="address at which the second party reaches the first one, if not its card's",
    )
    run.add_argument(
        "--gather",
        type=float,
        default=3600.0,
        metavar="SECONDS",
        help="waiting time for the other party to start; by default an hour",
    )
    run.add_argument(
        "--message-timeout",
        type=float,
        default=300.0,
        metavar="SECONDS",
        help="waiting time for one message of the other engine; by default 300 seconds",
    )


def _new(options: argparse.Namespace) -> ExitCode:
    from isthmus_joint.shares.two_party import address_of
    from isthmus_joint.transport.certificates import fingerprint

    address_of(options.address)
    card = new_card(options, "party", options.address)
    say(f"Certificate: {fingerprint(card.certificate)}")
    path = options.home / "card.toml"
    say(f"Exchange {path} with the other party; confirm both by another channel.")
    return ExitCode.DONE


def _draft(options: argparse.Namespace) -> ExitCode:
    from isthmus.statistics import Schema
    from isthmus_joint.agreement.study import read_variables
    from isthmus_joint.request_catalogue import registered_request
    from isthmus_joint.shares.protocol import Holding, IdentifierKind, TwoParties
    from isthmus_joint.shares.requests import TwoPartyRequest
    from isthmus_joint.transport.certificates import fingerprint

    if len(options.party) != 2:
        raise ArgumentError(
            f"--party was given {counted(len(options.party), 'time')}. Give it twice: with the "
            "card and the variables of each party."
        )
    cards = [joint.Card.read(path) for path, _ in options.party]
    held = [read_variables(path) for _, path in options.party]
    schema = Schema(tuple(v for each in held for v in each.schema.variables))
    author = load_identity(options.home / "identity.pem")
    requests = [options.request, *(["own tables"] if options.tables else [])]
    requests += ["intersection size"] if options.count else []
    study = joint.Study.draft(
        options.title,
        purpose=options.purpose,
        author=author.public,
        members=[card.member for card in cards],
        schema=schema,
        bounds={name: bounds for each in held for name, bounds in each.bounds.items()},
        protocol=TwoParties(
            tuple(
                Holding(card.member.name, fingerprint(card.certificate), each.schema.names, most)
                for card, each, most in zip(cards, held, options.people, strict=True)
            ),
            options.identifier,
            tuple(options.order or schema.names),
            IdentifierKind(options.identifier_kind),
            options.intersection,
            minimum_cohort=options.minimum_cohort,
            max_parents=options.parents,
            score=options.score,
            ess=options.ess,
            minimum_cell=options.minimum_cell,
        ),
        requests=requests,
        rounds=options.runs,
    )
    broken = []
    for name in requests:
        kind = registered_request(name)
        assert issubclass(kind, TwoPartyRequest)
        broken += kind.of(study).violations(study)
    if broken:
        raise MismatchError("; ".join(broken) + ".")
    folder = joint.Folder(options.study)
    folder.write(study, cards)
    folder.sign(study.sign(author))
    say(described(study))
    say(f"Send the folder {options.study} to the other party. Both read study.toml and sign it.")
    return ExitCode.DONE


def _source(options: argparse.Namespace, **more: Any) -> Any:
    from isthmus_joint.shares.protocol import IdentifierKind, two_parties

    terms = two_parties(joint.Folder(options.study).study().protocol)
    is_text = terms.identifier_kind is IdentifierKind.TEXT
    named = "text" if is_text else "numbers"
    table = read_table(options.data, **{named: [terms.identifier]})
    identity = load_identity(options.home / "identity.pem")
    return joint.TwoParty(options.home, options.study, table, identity=identity, **more)


def _dry_run(options: argparse.Namespace) -> ExitCode:
    say(_source(options).preview())
    return ExitCode.DONE


def _run(options: argparse.Namespace) -> ExitCode:
    check_outputs(options.output, options.search)
    with shown(options, []) as board:
        source = _source(
            options,
            listen=options.listen,
            connect=options.connect,
            gather=options.gather,
            message_timeout=options.message_timeout,
            on_event=board.say,
        )
        people = source.count_people() if options.count else None
        solution = None if options.count else learn_jointly(source, options, board)
    if solution is None:
        least = source.study.protocol.minimum_cohort
        say(f"DONE: {people or f'fewer than {least}'} people in common.")
        return ExitCode.DONE
    return finish(solution, options)
