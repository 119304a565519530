"""`isthmus coordinator`: draft a study, wait for its sites, and learn from them."""

from __future__ import annotations

import argparse
import json
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from isthmus.cli.actions import add_action
from isthmus.cli.board import Board, RunState
from isthmus.cli.exit_codes import ExitCode
from isthmus.cli.learn import writer
from isthmus.cli.site import described, say
from isthmus.cli.strategies import admm_from, score_from, search_from
from isthmus.errors import AbortedError, FormatError, IsthmusError, MismatchError

PORT = 9092


def add(commands: Any) -> None:
    """Describe the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "coordinator",
        help="lead a federation",
        description="What a coordinator does. HOME is its own folder: it holds private keys and "
        "the journal. STUDY is the folder that the parties share.",
    )
    actions = command.add_subparsers(title="actions", metavar="ACTION", required=True)
    action = partial(add_action, actions, "coordinator")
    new = action("new", "make keys and certificates", _new, study=False)
    new.add_argument(
        "--host",
        action="append",
        required=True,
        help="name or address of this machine, as the sites reach it; may be repeated",
    )
    _draft_options(action("draft", "write a study and sign it as its author", _draft))
    run = action("run", "wait for the sites, learn, write the result", _run)
    run.add_argument(
        "--listen",
        default="0.0.0.0",
        metavar="ADDRESS",
        help="address of this machine to listen at; without it, all it has",
    )
    run.add_argument(
        "-o",
        "--output",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="where to write the result, as for isthmus learn; may be repeated",
    )
    run.add_argument("--score", type=score_from, help="what is good; chosen by default")
    run.add_argument("--search", type=search_from, help="how to look; chosen by default")
    run.add_argument(
        "--admm",
        type=admm_from,
        metavar="MODEL",
        help="for studies by ADMM: LinearADMM, DynamicADMM or PerceptronADMM with its options, as "
        "'LinearADMM(penalty=0.05)'; what the study is for by default",
    )
    run.add_argument(
        "--anew",
        action="store_true",
        help="ask again for all that was summed before, to learn with other options of ADMM; what "
        "was opened counts towards the rounds of the study",
    )
    run.add_argument("--seed", type=int, default=0, help="of all random choices")
    for name, meaning in (
        ("answer", "for the answer of a site to one message"),
        ("gather", "for all sites to come at the beginning"),
        ("pause", "for silent sites to come back, where nothing goes on without them"),
    ):
        run.add_argument(f"--{name}", type=float, metavar="SECONDS", help=f"time {meaning}")
    action("status", "print how a run stands", _status)


def _draft_options(draft: argparse.ArgumentParser) -> None:
    draft.add_argument("--title", required=True, help="for people")
    draft.add_argument("--purpose", required=True, help="for people, and for their officers")
    draft.add_argument(
        "--variables",
        type=Path,
        required=True,
        metavar="FILE",
        help="TOML with [[variables]]: name, kind, and levels, or low and high",
    )
    draft.add_argument(
        "--card",
        action="append",
        type=Path,
        required=True,
        metavar="FILE",
        help="the card of a site; repeat it for each",
    )
    draft.add_argument(
        "--method",
        default="secure sums",
        choices=["secure sums", "admm"],
        help="how the sites work together; admm tells more, and is for neural networks above all",
    )
    draft.add_argument(
        "--networks", action="store_true", help="admm: a small neural network a variable, no lines"
    )
    draft.add_argument(
        "--lags",
        type=int,
        default=0,
        metavar="NUMBER",
        help="time series: with so many earlier steps of each variable",
    )
    draft.add_argument(
        "--parents",
        type=int,
        default=2,
        metavar="NUMBER",
        help="discrete variables: plan tables for so many parents",
    )
    draft.add_argument(
        "--rounds", type=int, help="the most rounds of questions; 10 by default, 300 for admm"
    )
    draft.add_argument(
        "--address", metavar="HOST:PORT", help=f"of this machine; port {PORT} by default"
    )


def _new(options: argparse.Namespace) -> ExitCode:
    from isthmus.parties.certificates import Authority, write_private
    from isthmus.parties.identity import Identity, key_text

    home: Path = options.home
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    identity = Identity.generate()
    identity.save(home / "identity.pem")
    Identity.generate().save(home / "author.pem")
    authority = Authority("isthmus coordinator")
    hosts = dict.fromkeys([*options.host, "localhost", "127.0.0.1"])
    certificate, key = authority.server(list(hosts))
    (home / "ca.crt").write_bytes(authority.text)
    (home / "server.crt").write_bytes(certificate)
    write_private(home / "server.pem", key)
    (home / "host").write_text(options.host[0], encoding="utf-8")
    say(f"Made the coordinator's keys and certificates in {home}. Private keys stay there.")
    say(f"Its public key is {key_text(identity.public)}")
    return ExitCode.DONE


def _draft(options: argparse.Namespace) -> ExitCode:
    from isthmus.federated.admm.choice import model_of
    from isthmus.parties.agreement.cards import Card, Folder
    from isthmus.parties.agreement.study import Method, Study, read_variables
    from isthmus.parties.identity import Identity
    from isthmus.sources.horizontal.requests.sums import Message
    from isthmus.sources.horizontal.series import lagged_variables
    from isthmus.statistics import Kind, Plan

    schema, bounds = read_variables(options.variables)
    if options.lags:
        schema, bounds = lagged_variables(schema, bounds, options.lags)
    method = Method(options.method)
    discrete = schema.of_kind(Kind.DISCRETE)
    messages = [Message.MOMENTS]
    plan = None
    if method is Method.ADMM:
        messages = [Message.TOTALS, Message.NETWORKS if options.networks else Message.CONSENSUS]
    elif options.networks:
        raise FormatError("Neural networks are learned by --method admm; secure sums have none.")
    elif len(discrete) == len(schema):
        messages, plan = [Message.COUNTS], Plan.up_to(options.parents + 1)
    author = Identity.load(options.home / "author.pem")
    cards = [Card.read(path) for path in options.card]
    study = Study.draft(
        options.title,
        purpose=options.purpose,
        author=author.public,
        coordinator=Identity.load(options.home / "identity.pem").public,
        members=[card.member for card in cards],
        schema=schema,
        bounds=bounds,
        method=method,
        messages=messages,
        plan=plan,
        rounds=options.rounds or (300 if method is Method.ADMM else 10),
    )
    if method is Method.ADMM:
        model_of(study)  # before anybody signs it
    host = (options.home / "host").read_text(encoding="utf-8")
    folder = Folder(options.study)
    address = options.address or f"{host}:{PORT}"
    folder.write(study, cards, (options.home / "ca.crt").read_bytes(), address)
    folder.sign(study.sign(author))
    say(described(study))
    say(f"Send the folder {options.study} to the sites: they read study.toml and sign it.")
    return ExitCode.DONE


def _state(options: argparse.Namespace) -> Path:
    from isthmus.parties.agreement.cards import Folder

    home: Path = options.home
    return home / f"study-{Folder(options.study).study().identity.hex()[:16]}"


def _status(options: argparse.Namespace) -> ExitCode:
    path = _state(options) / "status.json"
    say(path.read_text(encoding="utf-8") if path.exists() else "This study was never run here.")
    return ExitCode.DONE


def _run(options: argparse.Namespace) -> ExitCode:
    from isthmus.parties.agreement.cards import Folder
    from isthmus.parties.agreement.study import Method

    study = Folder(options.study).study()
    _require_fitting(options, by_admm=study.method is Method.ADMM)
    state = _state(options)
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    same = "the same command" + (" without --anew" if options.anew else "")
    say(described(study))
    with Board(state / "status.json", [m.name for m in study.members]) as board:
        signal.signal(signal.SIGTERM, _interrupted)
        try:
            found = _learned(options, state, board)
        except AbortedError as error:
            paused = bool(error.silent)
            board.end(RunState.PAUSED if paused else RunState.ABORTED, str(error))
            if not paused:
                raise
            say(f"PAUSED: {error}\nRun {same} again when they are back: it goes on.")
            return ExitCode.PAUSED
        except KeyboardInterrupt:
            board.end(RunState.INTERRUPTED, f"run {same} again to go on")
            raise
        except (IsthmusError, OSError) as error:
            board.end(RunState.FAILED, str(error))
            raise
        board.end(RunState.DONE, "")
    say(f"DONE: {found}")
    for a, b in found.dag.edges:
        say(f"{a} → {b}")
    say(f"What left the sites:\n{found.disclosure}")
    for path in options.output:
        _write(found, path)
        say(f"Wrote {path}")
    return ExitCode.DONE


def _require_fitting(options: argparse.Namespace, *, by_admm: bool) -> None:
    """Refuse options that mean nothing to the method of the study, before anybody is asked."""
    for path in options.output:
        writer(path)
        if by_admm and path.suffix == ".bif":
            raise FormatError("ADMM gives weights, and BIF holds tables: write .json, or .html.")
    others = ("score", "search") if by_admm else ("admm",)
    wrong = [f"--{name}" for name in others if getattr(options, name) is not None]
    wrong += ["--anew"] if options.anew and not by_admm else []
    if wrong:
        method = "ADMM, which takes --admm" if by_admm else "secure sums, not by ADMM"
        raise MismatchError(f"{wrong[0]} does nothing here: the study is by {method}.")


def _write(found: Any, path: Path) -> None:
    from isthmus.federated.admm.agreed import Agreed

    if isinstance(found, Agreed) and path.suffix == ".json":
        path.write_text(json.dumps(found.to_dict(), indent=1) + "\n", encoding="utf-8")
    else:
        writer(path)(found, path)


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def _learned(options: argparse.Namespace, state: Path, board: Board) -> Any:
    """Start all, learn, and stop all."""
    from isthmus.federated.admm.choice import model_of
    from isthmus.parties.agreement.cards import Folder
    from isthmus.parties.agreement.study import Method
    from isthmus.parties.identity import Identity
    from isthmus.parties.records.journal import FileJournal
    from isthmus.parties.transport.base import Timeouts
    from isthmus.parties.transport.flower.flower import Flower
    from isthmus.parties.transport.flower.flower_link import Link
    from isthmus.sources.horizontal.federation import Federation
    from isthmus.sources.horizontal.leader import begin_anew

    folder, home = Folder(options.study), options.home
    study, cards = folder.study(), folder.cards()
    given = {n: getattr(options, n) for n in ("answer", "gather", "pause")}
    timeouts = replace(Timeouts(), **{n: v for n, v in given.items() if v is not None})
    identity = Identity.load(home / "identity.pem")
    link = Link(
        state,
        options.listen,
        _port(folder.address()),
        (home / "ca.crt", home / "server.crt", home / "server.pem"),
        {name: card.node for name, card in cards.items()},
    )
    transport = Flower(link, timeouts, board.watch)
    journal = FileJournal(state / "journal")
    try:
        if options.anew:
            begin_anew(journal, study)
        federation = Federation(study, folder.signatures(), identity, transport, journal=journal)
        model = model_of(study, options.admm) if study.method is Method.ADMM else None
        if federation.kept:
            board.say(f"{federation.kept} sums of the last run are kept, and not asked for again")
        transport.gather(m.name for m in study.members)
        board.state(RunState.RUNNING)
        return _solved(federation, model, options, board)
    finally:
        link.stop()
        journal.close()


def _solved(federation: Any, model: Any, options: argparse.Namespace, board: Board) -> Any:
    from isthmus.compose.learn import learn
    from isthmus.federated.admm.learn import learn_admm

    if model is not None:
        return learn_admm(federation, model, watch=lambda step: board.step(step, model.rounds))
    return learn(
        federation,
        score=options.score,
        search=options.search,
        seed=options.seed,
        progress=False,
    )


def _port(address: str) -> int:
    _, _, port = address.rpartition(":")
    if not port.isdigit():
        raise FormatError(f"{address!r} is not HOST:PORT.")
    return int(port)
