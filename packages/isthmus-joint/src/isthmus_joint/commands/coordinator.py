"""`isthmus coordinator`: draft a study, wait for its sites, and learn from them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import isthmus_joint as joint
from isthmus.cli.inputs import knowledge_of, missing_from
from isthmus.cli.output import give, say
from isthmus.cli.parsing import ExitCode, host_name, port
from isthmus.cli.result_files import check_outputs
from isthmus_joint.commands.arguments import (
    LOOPBACK,
    add_action,
    add_draft_options,
    draft,
    estimation_of,
)
from isthmus_joint.commands.joint_runs import (
    add_joint_options,
    finish,
    learn_jointly,
    print_status,
    shown,
)
from isthmus_joint.commands.keys import add_file_actions, load_identity
from isthmus_joint.commands.operation import add_operation_options

if TYPE_CHECKING:
    from isthmus_joint.agreement.study import Study
    from isthmus_joint.commands.run_display import RunDisplay
    from isthmus_joint.transport.base import RemoteTransport, Timeouts, Watcher

Connect: TypeAlias = "Callable[[Study, Timeouts, Watcher], AbstractContextManager[RemoteTransport]]"
"""Connects a coordinator to the sites of a study."""


PORT = 9092


def add(command: argparse.ArgumentParser) -> None:
    """Describe the command."""
    command.description = (
        "What a coordinator does. HOME is its private folder: it holds private keys "
        "and the journal. STUDY is the folder that all parties share."
    )
    actions = command.add_subparsers(title="actions", metavar="ACTION", required=True)
    action = partial(add_action, actions, "coordinator")
    new = action("new", "create keys and a certificate", _new, study=False)
    new.add_argument(
        "--host",
        type=host_name,
        action="append",
        required=True,
        help="name or address under which the sites reach this machine; may be repeated",
    )
    new.add_argument(
        "--port", type=port, default=PORT, help=f"TCP port of the coordinator; by default {PORT}"
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
    add_operation_options(run)
    add_joint_options(run, "ADMM")
    run.add_argument(
        "--missing",
        type=missing_from,
        metavar="STRATEGY",
        help="for studies that allow missing values: options of the estimation, for instance "
        "'ExpectationMaximisation(tolerance=1e-6)'",
    )
    run.set_defaults(connect=None)
    run.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="NAME",
        help="leave this site out of all sums of the study; may be repeated. Otherwise every site "
        "is waited for, and a site that refuses ends the run",
    )
    run.add_argument(
        "--restart",
        action="store_true",
        help="discard the sums of earlier runs and request them again, to use other options of "
        "ADMM; earlier rounds still count towards the limit of the study. Leave it out to resume",
    )
    for name, usual, meaning in (
        ("answer", "300", "for the answer of a site to one message"),
        ("gather", "3600", "for all sites to connect at the beginning"),
        ("pause", "86400", "for silent sites to come back, where a round needs them"),
        ("reconnect", "60", "for a new connection of a site that has not answered"),
    ):
        text = f"waiting time {meaning}; by default {usual}"
        run.add_argument(f"--{name}", type=float, metavar="SECONDS", help=text)
    action("status", "print the state of a run", print_status)
    add_file_actions(action)


def _new(options: argparse.Namespace) -> ExitCode:
    from isthmus_joint.agreement.identity import key_text
    from isthmus_joint.enrolment import Invitation
    from isthmus_joint.records.private_files import write_private
    from isthmus_joint.transport.certificates import own_certificate

    home: Path = options.home
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    identity = joint.Identity.generate()
    identity.save(home / "identity.pem")
    hosts = dict.fromkeys([*options.host, "localhost", "127.0.0.1"])
    certificate, key = own_certificate("isthmus coordinator", list(hosts))
    (home / "connection.crt").write_bytes(certificate)
    write_private(home / "connection.pem", key)
    invitation = Invitation.create(f"{options.host[0]}:{options.port}", certificate)
    invitation.write(home / "invitation")
    say(f"Created keys and a certificate in {home}. The private keys never leave this folder.")
    say(f"Public key: {key_text(identity.public)}")
    say("Send this line to the sites; it invites them to enrol:")
    say(str(invitation))
    give(invitation=str(invitation))
    return ExitCode.DONE


def _run(options: argparse.Namespace) -> ExitCode:
    check_outputs(options.output, options.search)
    study = joint.Folder(options.study).study()
    missing = estimation_of(study, options.missing)
    with shown(options, [m.name for m in study.members]) as board:
        solution, sites = _learned(options, missing, board)
    code = finish(solution, options)
    absent = [m.name for m in study.members if m.name not in sites]
    give(sites=sites, missing=absent)
    if absent:
        say(f"The result is over {len(sites)} of {len(study.members)} sites. Missing: {absent}")
    else:
        say(f"The result is over all {len(sites)} sites of the study.")
    return code


def _learned(
    options: argparse.Namespace, missing: Any, board: RunDisplay
) -> tuple[Any, tuple[str, ...]]:
    """Start all processes, learn, and stop them; return the solution and the sites in it."""
    from isthmus.verbs.prepare import prepare_jointly
    from isthmus_joint.commands.run_display import RunState
    from isthmus_joint.federation.round_scheduler import restart

    folder, home = joint.Folder(options.study), options.home
    study = folder.study()
    state = study.state_folder(home)
    given = {n: getattr(options, n) for n in ("answer", "gather", "pause", "reconnect")}
    timeouts = replace(joint.Timeouts(), **{n: v for n, v in given.items() if v is not None})
    identity = load_identity(home / "identity.pem")
    journal = joint.FileJournal(state / "journal")  # a second run of the same study ends here
    try:
        connect: Connect = options.connect or partial(_listening, options)
        with connect(study, timeouts, board.watch) as transport:
            if options.restart:
                restart(journal, study)
            federation = joint.Federation(
                study,
                folder.signatures(),
                identity,
                transport,
                journal=journal,
                without=options.without,
            )
            known = knowledge_of(options)  # options that do not fit are refused before sites wait
            problem = prepare_jointly(
                federation, options.search, knowledge=known, score=options.score
            )
            if problem is not None:
                problem.check()
            if federation.kept:
                board.say(
                    f"resumed: {federation.kept} sums of the last run are not requested again"
                )
            transport.gather(federation.asked)
            board.state(RunState.RUNNING)
            solution = learn_jointly(federation, options, board, missing=missing)
            _share(federation, solution, board)
            return solution, federation.active or ()
    finally:
        journal.close()


def _listening(
    options: argparse.Namespace, _study: Study, timeouts: Timeouts, watch: Watcher
) -> AbstractContextManager[RemoteTransport]:
    """Listen for the sites over gRPC."""
    from isthmus_joint.federation.over_grpc import listen

    return listen(options.home, joint.Folder(options.study), options.listen, timeouts, watch)


def _share(federation: Any, solution: Any, board: RunDisplay) -> None:
    """Send the result, as it may be published, to the sites that took part."""
    study = federation.study
    plain = getattr(solution, "published", lambda: solution)().to_dict()
    del plain["status"]["seconds"]  # the same sums give the same bytes, which sites keep once
    result = {
        "study": study.identity.hex(),
        "title": study.title,
        "sites": list(federation.active or ()),
        **plain,
    }
    received = federation.send_result(json.dumps(result, ensure_ascii=False, indent=1).encode())
    missing = [name for name in federation.active or () if name not in received]
    if missing:
        board.say(f"not confirmed the result: {missing}; run the same command to send it again")
