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
from isthmus.cli.carriers import (
    LOOPBACK,
    add_carrier,
    certificates,
    coordinator_transport,
)
from isthmus.cli.described import described
from isthmus.cli.exit_codes import ExitCode
from isthmus.cli.keys import load_identity, say
from isthmus.cli.outputs import check_outputs, write_outputs, write_result
from isthmus.cli.strategies import admm_from, score_from, search_from
from isthmus.errors import AbortedError, FormatError, IsthmusError, MismatchError

PORT = 9092
ADMM = "admm"
ROUNDS = 10
ADMM_ROUNDS = 300


def add(command: argparse.ArgumentParser) -> None:
    """Describe the command."""
    command.description = (
        "What a coordinator does. HOME is its private folder: it holds private keys "
        "and the journal. STUDY is the folder that all parties share."
    )
    actions = command.add_subparsers(title="actions", metavar="ACTION", required=True)
    action = partial(add_action, actions, "coordinator")
    new = action("new", "create keys and certificates", _new, study=False)
    new.add_argument(
        "--host",
        action="append",
        required=True,
        help="name or address under which the sites reach this machine; may be repeated",
    )
    _draft_options(action("draft", "write a study and sign it as its author", _draft))
    run = action("run", "wait for the sites, learn, and write the result", _run)
    run.add_argument(
        "--listen",
        default=LOOPBACK,
        metavar="ADDRESS",
        help="network address to listen on, for instance 0.0.0.0 for all addresses of this "
        "machine; by default 127.0.0.1, which only this machine reaches",
    )
    add_carrier(run)
    run.add_argument(
        "-o",
        "--output",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="output file, as for isthmus learn; may be repeated",
    )
    run.add_argument(
        "--score",
        type=score_from,
        help="score to optimise; by default chosen from the column types",
    )
    run.add_argument(
        "--search", type=search_from, help="search algorithm; by default chosen from the data"
    )
    run.add_argument(
        "--admm",
        type=admm_from,
        metavar="MODEL",
        help="for studies that use ADMM: LinearADMM, DynamicADMM or PerceptronADMM with options, "
        "for instance 'LinearADMM(penalty=0.05)'; by default the model of the study",
    )
    run.add_argument(
        "--restart",
        action="store_true",
        help="discard the sums of earlier runs and request them again, to use other options of "
        "ADMM; earlier rounds still count towards the limit of the study",
    )
    run.add_argument("--anew", dest="restart", action="store_true", help=argparse.SUPPRESS)
    run.add_argument("--seed", type=int, default=0, help="random seed")
    for name, meaning in (
        ("answer", "for the answer of a site to one message"),
        ("gather", "for all sites to connect at the beginning"),
        ("pause", "for silent sites to come back, where a round needs them"),
    ):
        run.add_argument(f"--{name}", type=float, metavar="SECONDS", help=f"waiting time {meaning}")
    action("status", "print the state of a run", _status)


def _draft_options(draft: argparse.ArgumentParser) -> None:
    draft.add_argument(
        "--author",
        type=Path,
        metavar="FILE",
        help="private key of the author, for instance the identity.pem of the leading site",
    )
    draft.add_argument("--title", required=True, help="title of the study")
    draft.add_argument("--purpose", required=True, help="purpose of the study")
    draft.add_argument(
        "--variables",
        type=Path,
        required=True,
        metavar="FILE",
        help="TOML file with [[variables]]: name, kind, and either levels or low and high",
    )
    draft.add_argument(
        "--card",
        action="append",
        type=Path,
        required=True,
        metavar="FILE",
        help="card of a site; repeat for each site",
    )
    draft.add_argument(
        "--method",
        default="secure sums",
        choices=["secure sums", ADMM],
        help="secure sums of statistics, or ADMM, which reveals more and is mainly useful for "
        "neural networks",
    )
    draft.add_argument(
        "--networks",
        action="store_true",
        help="ADMM: one small neural network per variable instead of linear models",
    )
    draft.add_argument(
        "--lags",
        type=int,
        default=0,
        metavar="NUMBER",
        help="time series: number of lags of each variable",
    )
    draft.add_argument(
        "--parents",
        type=int,
        default=2,
        metavar="NUMBER",
        help="discrete variables: plan tables for this many parents",
    )
    draft.add_argument(
        "--rounds", type=int, help="maximum number of rounds; by default 10, for ADMM 300"
    )
    draft.add_argument(
        "--address", metavar="HOST:PORT", help=f"address of this machine; by default port {PORT}"
    )


def _new(options: argparse.Namespace) -> ExitCode:
    from isthmus.parties.certificates import Authority, write_private
    from isthmus.parties.identity import Identity, key_text

    home: Path = options.home
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    identity = Identity.generate()
    identity.save(home / "identity.pem")
    authority = Authority("isthmus coordinator")
    hosts = dict.fromkeys([*options.host, "localhost", "127.0.0.1"])
    certificate, key = authority.server(list(hosts))
    (home / "ca.crt").write_bytes(authority.text)
    (home / "server.crt").write_bytes(certificate)
    write_private(home / "server.pem", key)
    (home / "host").write_text(options.host[0], encoding="utf-8")
    say(f"Created keys and certificates in {home}. The private keys never leave this folder.")
    say(f"Public key: {key_text(identity.public)}")
    return ExitCode.DONE


def _draft(options: argparse.Namespace) -> ExitCode:
    from isthmus.federated.admm.model_choice import model_of
    from isthmus.federated.admm.requests import AskConsensus, AskNetworks
    from isthmus.parties.agreement.cards import Card, Folder
    from isthmus.parties.agreement.study import Study
    from isthmus.parties.agreement.variables import read_variables
    from isthmus.sources.horizontal.requests.statistics import AskCounts, AskMoments, AskTotals
    from isthmus.sources.horizontal.secure_sum.protocol import SecureSums
    from isthmus.sources.horizontal.series import lagged_variables
    from isthmus.statistics import Kind, Plan

    schema, bounds = read_variables(options.variables)
    if options.lags:
        schema, bounds = lagged_variables(schema, bounds, options.lags)
    by_admm = options.method == ADMM
    requests = [AskMoments.name]
    plan = None
    if by_admm:
        step = AskNetworks if options.networks else AskConsensus
        requests = [AskTotals.name, step.name]
    elif options.networks:
        raise FormatError("Neural networks need --method admm; secure sums cannot learn them.")
    elif len(schema.of_kind(Kind.DISCRETE)) == len(schema):
        requests, plan = [AskCounts.name], Plan.up_to(options.parents + 1)
    author = load_identity(_author(options))
    cards = [Card.read(path) for path in options.card]
    authority = (options.home / "ca.crt").read_bytes()
    study = Study.draft(
        options.title,
        purpose=options.purpose,
        author=author.public,
        coordinator=load_identity(options.home / "identity.pem").public,
        members=[card.member for card in cards],
        schema=schema,
        bounds=bounds,
        protocol=SecureSums(**certificates({c.member.name: c for c in cards}, authority)),
        requests=requests,
        plan=plan,
        rounds=options.rounds or (ADMM_ROUNDS if by_admm else ROUNDS),
    )
    if by_admm:
        model_of(study)  # raises an error before anyone signs
    host = (options.home / "host").read_text(encoding="utf-8")
    folder = Folder(options.study)
    address = options.address or f"{host}:{PORT}"
    folder.write(study, cards)
    folder.write_coordinator(authority, address)
    folder.sign(study.sign(author))
    say(described(study))
    say(f"Send the folder {options.study} to the sites, which read study.toml and sign it.")
    return ExitCode.DONE


def _author(options: argparse.Namespace) -> Path:
    """Return the key of the author, which must not be that of the coordinator."""
    earlier: Path = options.home / "author.pem"  # earlier versions created it
    given: Path | None = options.author
    if given is None and not earlier.exists():
        raise FormatError(
            "Name the key of the author with --author, for instance the identity.pem of the site "
            "that leads the study. The coordinator does not sign studies."
        )
    return earlier if given is None else given


def _state(options: argparse.Namespace) -> Path:
    from isthmus.parties.agreement.cards import Folder

    home: Path = options.home
    return home / f"study-{Folder(options.study).study().identity.hex()[:16]}"


def _status(options: argparse.Namespace) -> ExitCode:
    path = _state(options) / "status.json"
    say(
        path.read_text(encoding="utf-8") if path.exists() else "This study has never been run here."
    )
    return ExitCode.DONE


def _run(options: argparse.Namespace) -> ExitCode:
    from isthmus.federated.admm.model_choice import uses_admm
    from isthmus.parties.agreement.cards import Folder

    study = Folder(options.study).study()
    _require_fitting(options, by_admm=uses_admm(study))
    state = _state(options)
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    same = "the same command" + (" without --restart" if options.restart else "")
    say(described(study))
    with Board(state / "status.json", [m.name for m in study.members]) as board:
        signal.signal(signal.SIGTERM, _interrupted)
        try:
            solution = _learned(options, state, board)
        except AbortedError as error:
            paused = bool(error.silent)
            board.end(RunState.PAUSED if paused else RunState.ABORTED, str(error))
            if not paused:
                raise
            say(f"PAUSED: {error}\nTo resume, run {same} again when the sites are back.")
            return ExitCode.PAUSED
        except KeyboardInterrupt:
            board.end(RunState.INTERRUPTED, f"run {same} again to resume")
            raise
        except (IsthmusError, OSError) as error:
            board.end(RunState.FAILED, str(error))
            raise
        board.end(RunState.DONE, "")
    say(f"DONE: {solution}")
    for a, b in solution.dag.edges:
        say(f"{a} → {b}")
    say(f"Data released by the sites:\n{solution.disclosure}")
    return write_outputs(solution, options.output, write=_write)


def _require_fitting(options: argparse.Namespace, *, by_admm: bool) -> None:
    """Reject options that have no effect for this study, before any site is asked."""
    check_outputs(options.output)
    for path in options.output:
        if by_admm and path.suffix == ".bif":
            raise FormatError(
                "ADMM learns weights, and BIF files hold tables. Write a .json or .html file."
            )
    others = ("score", "search") if by_admm else ("admm",)
    unused = [f"--{name}" for name in others if getattr(options, name) is not None]
    unused += ["--restart"] if options.restart and not by_admm else []
    if unused:
        method = "uses ADMM; set its options with --admm" if by_admm else "does not use ADMM"
        raise MismatchError(f"{unused[0]} has no effect here: the study {method}.")


def _write(solution: Any, path: Path) -> None:
    from isthmus.federated.admm.result import ADMMResult

    if isinstance(solution, ADMMResult) and path.suffix == ".json":
        path.write_text(json.dumps(solution.to_dict(), indent=1) + "\n", encoding="utf-8")
    else:
        write_result(solution, path)


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def _learned(options: argparse.Namespace, state: Path, board: Board) -> Any:
    """Start all processes, learn, and stop them."""
    from isthmus.federated.admm.model_choice import model_of, uses_admm
    from isthmus.parties.agreement.cards import Folder
    from isthmus.parties.records.journal import FileJournal
    from isthmus.parties.transport.base import Timeouts
    from isthmus.sources.horizontal.federation import Federation
    from isthmus.sources.horizontal.round_scheduler import restart

    folder, home = Folder(options.study), options.home
    study = folder.study()
    given = {n: getattr(options, n) for n in ("answer", "gather", "pause")}
    timeouts = replace(Timeouts(), **{n: v for n, v in given.items() if v is not None})
    identity = load_identity(home / "identity.pem")
    journal = FileJournal(state / "journal")  # a second run of the same study ends here
    try:
        with coordinator_transport(
            options.carrier, home, state, folder, options.listen, timeouts, board.watch
        ) as transport:
            if options.restart:
                restart(journal, study)
            federation = Federation(
                study, folder.signatures(), identity, transport, journal=journal
            )
            model = model_of(study, options.admm) if uses_admm(study) else None
            if federation.kept:
                board.say(
                    f"resumed: {federation.kept} sums of the last run are not requested again"
                )
            transport.gather(m.name for m in study.members)
            board.state(RunState.RUNNING)
            solution = _solved(federation, model, options, board)
            _share(federation, solution, board)
            return solution
    finally:
        journal.close()


def _share(federation: Any, solution: Any, board: Board) -> None:
    """Send the result to the sites that took part."""
    from isthmus.federated.shared_result import shared_result

    received = federation.send_result(shared_result(solution, federation.study, federation.active))
    missing = [name for name in federation.active or () if name not in received]
    if missing:
        board.say(f"not confirmed the result: {missing}; run the same command to send it again")


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
