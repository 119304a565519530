"""`isthmus coordinator`: draft a study, wait for its sites, and learn from them."""

from __future__ import annotations

import argparse
import json
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isthmus.cli.actions import LOOPBACK, add_action, add_carrier
from isthmus.cli.described import described, described_solution
from isthmus.cli.drafting import add_draft_options, draft, estimation_of
from isthmus.cli.exit_codes import ExitCode
from isthmus.cli.keys import load_identity, say
from isthmus.cli.outputs import check_outputs, write_outputs, write_result
from isthmus.cli.parsing import host_name
from isthmus.cli.strategies import admm_from, missing_from, score_from, search_from
from isthmus.errors import AbortedError, FormatError, IsthmusError, MismatchError

if TYPE_CHECKING:
    from isthmus.cli.board import Board


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
        type=host_name,
        action="append",
        required=True,
        help="name or address under which the sites reach this machine; may be repeated",
    )
    add_draft_options(action("draft", "write a study and sign it as its author", draft))
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
        "--missing",
        type=missing_from,
        metavar="STRATEGY",
        help="for studies that allow missing values: options of the estimation, for instance "
        "'ExpectationMaximisation(tolerance=1e-6)'",
    )
    run.add_argument(
        "--restart",
        action="store_true",
        help="discard the sums of earlier runs and request them again, to use other options of "
        "ADMM; earlier rounds still count towards the limit of the study",
    )
    run.add_argument("--seed", type=int, default=0, help="random seed")
    for name, usual, meaning in (
        ("answer", "300", "for the answer of a site to one message"),
        ("gather", "3600", "for all sites to connect at the beginning"),
        ("pause", "86400", "for silent sites to come back, where a round needs them"),
        ("reconnect", "60", "for a new connection of a site that has not answered (gRPC)"),
    ):
        text = f"waiting time {meaning}; by default {usual}"
        run.add_argument(f"--{name}", type=float, metavar="SECONDS", help=text)
    action("status", "print the state of a run", _status)


def _new(options: argparse.Namespace) -> ExitCode:
    from isthmus.joint.agreement.identity import Identity, key_text
    from isthmus.joint.transport.certificates import Authority, write_private

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


def _state(options: argparse.Namespace) -> Path:
    from isthmus.joint.agreement.cards import Folder

    home: Path = options.home
    return home / f"study-{Folder(options.study).study().identity.hex()[:16]}"


def _status(options: argparse.Namespace) -> ExitCode:
    path = _state(options) / "status.json"
    say(
        path.read_text(encoding="utf-8") if path.exists() else "This study has never been run here."
    )
    return ExitCode.DONE


def _run(options: argparse.Namespace) -> ExitCode:
    from isthmus.cli.board import Board, RunState
    from isthmus.joint.agreement.cards import Folder
    from isthmus.joint.methods.admm.model_choice import uses_admm

    study = Folder(options.study).study()
    _require_fitting(options, by_admm=uses_admm(study))
    estimation_of(study, options.missing)
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
    say(f"DONE: {described_solution(solution)}")
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
    from isthmus.joint.methods.admm.result import ADMMResult

    if isinstance(solution, ADMMResult) and path.suffix == ".json":
        path.write_text(json.dumps(solution.to_dict(), indent=1) + "\n", encoding="utf-8")
    else:
        write_result(solution, path)


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def _learned(options: argparse.Namespace, state: Path, board: Board) -> Any:
    """Start all processes, learn, and stop them."""
    from isthmus.cli.board import RunState
    from isthmus.joint.agreement.cards import Folder
    from isthmus.joint.federation.carriers import carrier_named
    from isthmus.joint.federation.federation import Federation
    from isthmus.joint.federation.round_scheduler import restart
    from isthmus.joint.methods.admm.model_choice import model_of, uses_admm
    from isthmus.joint.records.journal import FileJournal
    from isthmus.joint.transport.base import Timeouts

    folder, home = Folder(options.study), options.home
    study = folder.study()
    given = {n: getattr(options, n) for n in ("answer", "gather", "pause", "reconnect")}
    timeouts = replace(Timeouts(), **{n: v for n, v in given.items() if v is not None})
    identity = load_identity(home / "identity.pem")
    journal = FileJournal(state / "journal")  # a second run of the same study ends here
    try:
        with carrier_named(options.carrier).coordinator_transport(
            home, state, folder, options.listen, timeouts, board.watch
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
    from isthmus.joint.methods.shared_result import shared_result

    received = federation.send_result(shared_result(solution, federation.study, federation.active))
    missing = [name for name in federation.active or () if name not in received]
    if missing:
        board.say(f"not confirmed the result: {missing}; run the same command to send it again")


def _solved(federation: Any, model: Any, options: argparse.Namespace, board: Board) -> Any:
    from isthmus.compose.learn import learn
    from isthmus.joint.methods.admm.learn import learn_admm

    if model is not None:
        return learn_admm(federation, model, watch=lambda step: board.step(step, model.rounds))
    return learn(
        federation,
        score=options.score,
        search=options.search,
        missing=estimation_of(federation.study, options.missing),
        seed=options.seed,
        progress=False,
    )
