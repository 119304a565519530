"""`isthmus site`: all that a site of a federation does, from its keys to its ledger."""

from __future__ import annotations

import argparse
import re
import signal
import sys
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from isthmus.cli.actions import add_action
from isthmus.cli.exit_codes import ExitCode
from isthmus.errors import FormatError, StudyError
from isthmus.sources.tables.read_table import read_table

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def add(commands: Any) -> None:
    """Describe the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "site",
        help="take part in a federation",
        description="What a site of a federation does. HOME is the site's own folder: it holds "
        "private keys and the ledger. STUDY is the folder that the parties share.",
    )
    actions = command.add_subparsers(title="actions", metavar="ACTION", required=True)
    action = partial(add_action, actions, "site")
    new = action("new", "make keys and a card to hand out", _new, study=False)
    new.add_argument("--name", required=True, help="of the site, in studies")
    new.add_argument("--organisation", required=True, help="the legal person behind it")
    action("policy", "draft the site's own rules, or hold a study against them", _policy)
    action("sign", "countersign a study", _sign)
    dry = action("dry-run", "print what would leave; opens no connection", _dry_run)
    join = action("join", "answer the coordinator, until stopped", _join)
    for each in (dry, join):
        each.add_argument("--data", type=Path, required=True, metavar="FILE", help="the table")
        each.add_argument(
            "--time", metavar="COLUMN", help="time series: column to sort by, and to find gaps"
        )
        each.add_argument(
            "--by", metavar="COLUMN", help="time series: column that tells realisations apart"
        )
    join.add_argument("--coordinator", metavar="HOST:PORT", help="if not as the study folder says")
    join.add_argument(
        "--socket-only", action="store_true", help="serve the socket in HOME and start no Flower"
    )
    ledger = action("ledger", "check the ledger and print it", _ledger, study=False)
    ledger.add_argument("--head", metavar="HASH", help="of an entry that must be in it")


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _new(options: argparse.Namespace) -> ExitCode:
    from isthmus.parties.agreement.cards import Card
    from isthmus.parties.agreement.roster import Member
    from isthmus.parties.certificates import node_key, write_private
    from isthmus.parties.identity import Identity, key_text

    if not NAME.fullmatch(options.name):
        raise FormatError(f"{options.name!r} is no name for a site: letters, digits, '-', '_', '.'")
    home: Path = options.home
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    identity = Identity.generate()
    identity.save(home / "identity.pem")
    private, public = node_key()
    write_private(home / "node.pem", private)
    member = Member(options.name, options.organisation, identity.public)
    Card(member, public.decode()).write(home / "card.toml")
    say(f"Made the site {options.name!r} in {home}. Private keys stay there.")
    say(f"Its public key is {key_text(identity.public)}")
    say(f"Hand out {home / 'card.toml'}, and tell the key by another way too.")
    return ExitCode.DONE


def _policy(options: argparse.Namespace) -> ExitCode:
    from isthmus.parties.agreement.cards import Folder
    from isthmus.parties.agreement.policy import Policy

    study, path = Folder(options.study).study(), options.home / "policy.toml"
    if not path.exists():
        drafted = Policy(
            minimum_cohort=50,
            minimum_cell=5,
            minimum_organisations=3,
            variables=study.schema.names,
            methods=(study.method,),
            messages=tuple(sorted(study.messages)),
            rounds_per_study=study.rounds,
            rounds_per_year=10 * study.rounds,
            queries_per_year=10 * study.rounds,
            stop_file=(options.home / "STOP").resolve(),
        )
        path.write_text(drafted.to_toml(), encoding="utf-8")
        say(f"Drafted {path} for this study. Whoever answers for the data should read and edit it:")
        say(drafted.to_toml())
        return ExitCode.DONE
    Policy.read(path).require(study)
    say(f"The policy {path} has nothing against the study {study.title!r}.")
    return ExitCode.DONE


def _sign(options: argparse.Namespace) -> ExitCode:
    from isthmus.parties.agreement.cards import Folder
    from isthmus.parties.agreement.study import AUTHOR
    from isthmus.parties.identity import Identity

    folder = Folder(options.study)
    study = folder.study()
    study.require(folder.signatures(), [AUTHOR])
    identity = Identity.load(options.home / "identity.pem")
    names = [m.name for m in study.members if m.key == identity.public]
    if not names:
        raise StudyError(
            "This site is not in the roster of the study. Send its card to the author."
        )
    say(described(study))
    say(f"Signed as {names[0]!r}: {folder.sign(study.sign(identity, names[0]))}")
    return ExitCode.DONE


def described(study: Any) -> str:
    """A study in a few lines, for people."""
    from isthmus.federated.admm.agreed import TELLS
    from isthmus.parties.agreement.study import Method

    names = ", ".join(study.schema.names[:12]) + (" …" if len(study.schema) > 12 else "")
    lines = [
        f"Study {study.title!r}: {study.purpose}",
        f"  SHA-256    {study.identity.hex()}",
        f"  variables  {len(study.schema)}: {names}",
        f"  method     {study.method.value}; messages: {', '.join(sorted(study.messages))}",
        f"  rounds     {study.rounds} at most, until {study.expires:%Y-%m-%d %H:%M} UTC",
        f"  sums over  {study.threshold} sites and {study.organisations} organisations at least",
        *([f"  tells      {TELLS}"] if study.method is Method.ADMM else []),
        *(f"  site       {m.name} ({m.organisation})" for m in study.members),
    ]
    return "\n".join(lines)


def _dry_run(options: argparse.Namespace) -> ExitCode:
    from isthmus.federated.admm.choice import model_of
    from isthmus.parties.agreement.cards import Folder
    from isthmus.parties.agreement.policy import Policy
    from isthmus.parties.agreement.study import Method
    from isthmus.parties.identity import Identity
    from isthmus.parties.records.ledger import FileLedger, MemoryLedger
    from isthmus.sources.horizontal.station import Station

    folder, ledger = Folder(options.study), options.home / "ledger.jsonl"
    study = folder.study()
    identity = Identity.load(options.home / "identity.pem")
    # One looks before one signs: this signature ends with the command.
    mine = [study.sign(identity, m.name) for m in study.members if m.key == identity.public]
    station = Station(
        study,
        [*folder.signatures(), *mine],
        identity,
        _table(options, study),
        Policy.read(options.home / "policy.toml"),
        FileLedger(ledger) if ledger.exists() else MemoryLedger(),
    )
    shown = [station.dry_run(request) for request in planned(study)]
    if study.method is Method.ADMM and not any(found.against for found in shown):
        shown.append(station.dry_run(_first_step(study, shown[0].statistics)))
    for found in shown:
        say(f"{found}\n")
    if study.method is Method.ADMM:
        say(f"Up to {model_of(study).rounds} such steps follow each other. In this one the site's")
        say("own rows and means stand in for those of all sites, which are not known before.")
    return ExitCode.REFUSED if any(found.against for found in shown) else ExitCode.DONE


def _table(options: argparse.Namespace, study: Any) -> object:
    """The site's table, as the study reads it."""
    from isthmus.sources.horizontal.series import as_studied

    return as_studied(read_table(options.data), study.schema, by=options.by, time=options.time)


def _first_step(study: Any, totals: Any) -> Any:
    """The first step of ADMM, as it would be if this site were all sites."""
    from isthmus.federated.admm.choice import model_of
    from isthmus.federated.admm.steps import Turn

    model, names = model_of(study), study.schema.names
    start = model.start(names)
    centre = tuple(totals.mean().tolist())
    return model.request(Turn(names, totals.n, centre, 1, model.rho2, start))


def planned(study: Any) -> list[Any]:
    """What a coordinator will ask in a study of these messages, as far as it is known before."""
    from isthmus.sources.horizontal.requests.sums import AskCounts, AskMoments, AskTotals, Message
    from isthmus.statistics import Kind

    names = study.schema.names
    found: list[Any] = []
    if Message.MOMENTS in study.messages:
        found.append(AskMoments(names))
    if Message.TOTALS in study.messages:
        found.append(AskTotals(study.schema.of_kind(Kind.CONTINUOUS)))
    if Message.COUNTS in study.messages and study.plan is not None:
        found.append(AskCounts(study.schema.of_kind(Kind.DISCRETE), study.plan))
    return found


def _join(options: argparse.Namespace) -> ExitCode:
    from isthmus.parties.agreement.cards import Folder
    from isthmus.parties.agreement.policy import Policy
    from isthmus.parties.identity import Identity
    from isthmus.parties.records.ledger import readable
    from isthmus.parties.transport.flower.flower_node import Node
    from isthmus.sources.horizontal.host import Host

    folder, home = Folder(options.study), options.home
    study = folder.study()
    host = Host(
        home,
        study,
        folder.signatures(),
        Identity.load(home / "identity.pem"),
        _table(options, study),
        Policy.read(home / "policy.toml"),
        watch=lambda entry: say(readable([entry])),
    )
    ended: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: ended.append(number))

    def over() -> bool:
        return bool(ended) or datetime.now(UTC) >= study.expires

    host.service.start()
    say(f"{host.station.name} is ready for {study.title!r}; Ctrl-C ends it, and so does its")
    say(f"stop file. What leaves is written to {host.state / 'ledger.jsonl'} before it does:")
    try:
        if options.socket_only:
            say(f"socket {host.path}")
            while not over():
                time.sleep(0.2)
        else:
            address = options.coordinator or folder.address()
            node = Node(home, host.path, address, folder.authority, home / "node.pem")
            try:
                node.run(over)
            finally:
                node.stop()
    finally:
        host.close()
    return ExitCode.DONE


def _ledger(options: argparse.Namespace) -> ExitCode:
    from isthmus.parties.records.ledger import readable, summary, verify

    path = options.home / "ledger.jsonl"
    entries = verify(path, head=options.head)
    say(readable(entries))
    if left := summary(entries):
        say(f"What left:\n{left}")
    say(f"{len(entries)} entries, and each follows from the one before it.")
    if entries:
        say(f"Note this elsewhere, to find out later if the end is cut off: {entries[-1]['hash']}")
    return ExitCode.DONE
