"""`isthmus site`: what a site of a federation does, from its keys to its ledger."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import Any

import isthmus_joint as joint
from isthmus.cli.output import give, say
from isthmus.cli.parsing import ExitCode, UsageError, host_and_port
from isthmus.errors import FormatError, counted
from isthmus.tables.read_table import read_table
from isthmus_joint.commands.arguments import add_action
from isthmus_joint.commands.described import NOT_PROMISED, parties_of
from isthmus_joint.commands.keys import (
    add_file_actions,
    add_key_actions,
    add_names,
    add_peers,
    confirm_roster,
    load_identity,
    new_card,
)
from isthmus_joint.commands.ledger import spent_before
from isthmus_joint.commands.operation import SiteWatch, add_operation_options, watched
from isthmus_joint.commands.study import sign

# --- `isthmus site freeze`: the rows from which a site answers a study --------------------------

MANY_CLIPPED, FEW_CLIPPED = 0.001, 10
"""Wider bounds are suggested if more than this share of the rows, and more than this number, have a
clipped value. Normal variables with bounds of four standard deviations have fewer, and exponential
ones have more."""


def add_freeze_action(action: Callable[..., argparse.ArgumentParser]) -> None:
    """Describe the action."""
    parser = action("freeze", "freeze the table of the site for a study", freeze)
    add_table_options(parser, required=True)


def add_table_options(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Add the options that name the table of a site."""
    parser.add_argument(
        "--data", type=Path, required=required, metavar="FILE", help="table of the site"
    )
    parser.add_argument(
        "--few-more-rows",
        action="store_true",
        help="the officer accepts that this table has a few rows more or less than an earlier one",
    )
    parser.add_argument(
        "--time", metavar="COLUMN", help="time series: column to sort by and to detect gaps"
    )
    parser.add_argument(
        "--by", metavar="COLUMN", help="time series: column that identifies a realisation"
    )


def freeze(options: argparse.Namespace) -> ExitCode:
    """Freeze the table of a site for a study."""
    from isthmus_joint.federation.common_schema import as_studied

    study = joint.Folder(options.study).study()
    policy = joint.Policy.read(options.home / "policy.toml")
    policy.require(study, spent_before(options.home, study))
    # A level of the study may be called NA.
    table = read_table(options.data, missing=("",))
    table = as_studied(table, study.schema, by=options.by, time=options.time)
    store = joint.ExtractStore(options.home)
    extract = store.freeze(study, table, policy, few_more_rows=options.few_more_rows)
    for line in _frozen(study, extract):
        say(line)
    rows = 0 if extract.values is None else len(extract.values)
    give(identity=extract.identity, rows=rows, persons=extract.number_of_persons)
    return ExitCode.DONE


def _frozen(study: Any, extract: Any) -> Iterator[str]:
    """Yield lines about a new extract. Nobody but the site sees them."""
    frozen = extract.frozen
    yield (
        f"Froze the table for {study.title!r}: {counted(len(frozen.values), 'row')} of "
        f"{counted(extract.number_of_persons, 'person')}."
    )
    dropped = f": {frozen.why_dropped()}" if frozen.absent else ""
    clipped = f": {frozen.why_clipped()}" if frozen.outside else ""
    yield (
        f"  dropped    {counted(frozen.dropped, 'row')} that lack a value or have another level"
        f"{dropped}"
    )
    yield (
        f"  clipped    {counted(frozen.clipped, 'row')} with a value outside of the bounds{clipped}"
    )
    most = [name for name, rows in frozen.outside.items() if 2 * rows > len(frozen.values)]
    if most:
        from isthmus.graphs.names import listed

        yield (
            f"             Most values of {listed(most)} are outside: check the unit and the "
            "column, and freeze a corrected table."
        )
    elif frozen.clipped > max(MANY_CLIPPED * len(frozen.values), FEW_CLIPPED):
        yield (
            "             These are so many that edges may be learned that are not there: ask the "
            "author of the study for wider bounds, or to take logarithms of skewed variables."
        )
    if extract.checked is not None:
        yield "  checked    everything that the study allows keeps the rules of the policy"


# --- `isthmus site`: what a site of a federation does, from its keys to its ledger --------------

MINIMUM_COHORT = 50
MINIMUM_CELL = 5
"""Limits of a drafted policy, which the site is expected to edit."""

STUDIES_PER_YEAR = 10
"""A drafted policy allows as many rounds per year as this many studies like the first one."""


def add(command: argparse.ArgumentParser) -> None:
    """Describe the command."""
    command.description = (
        "What a site of a federation does. HOME is the site's private folder: it "
        "holds private keys and the ledger. STUDY is the folder that all parties share."
    )
    actions = command.add_subparsers(title="actions", metavar="ACTION", required=True)
    action = partial(add_action, actions, "site")
    new = action("new", "create keys and a card to give to others", _new, study=False)
    add_names(new, "site")
    enrolled = action("enrol", "send the card, confirm the roster, sign the study", _enrol)
    enrolled.add_argument(
        "invitation", metavar="INVITATION", help="the line that invites the site, isthmus://…"
    )
    add_names(enrolled, "site", required=False)
    _add_exact(enrolled)
    add_table_options(enrolled, required=False)
    add_key_actions(action, "site")
    add_file_actions(action)
    action("certify", "create a new certificate, before the old one expires", _certify, study=False)
    policy = action("policy", "draft the policy, or check a study against it", draft_policy)
    _add_exact(policy)
    add_freeze_action(action)
    action("dry-run", "print what would leave the site; opens no connection", _dry_run)
    join = action("join", "answer the coordinator until stopped", _join)
    join.add_argument(
        "--coordinator",
        type=host_and_port,
        metavar="HOST:PORT",
        help="address of the coordinator; by default as in the study folder",
    )
    join.add_argument(
        "--socket",
        type=Path,
        metavar="PATH",
        help="answer on a Unix socket instead, for a system such as Flower that carries messages",
    )
    add_operation_options(join)


def _add_exact(parser: argparse.ArgumentParser) -> None:
    """Add the option by which the officer of a site allows a study of exact sums."""
    parser.add_argument(
        "--exact",
        action="store_true",
        help="allow this study without noise. Its sums protect the sites from each other, and no "
        "person from an analyst: whoever is responsible for the data decides",
    )


def _enrol(options: argparse.Namespace) -> ExitCode:
    """Take a site from its keys to a study that all sites have signed.

    The same command continues where it was left.
    """
    from isthmus_joint.enrolment import Invitation, Visitor

    home, folder = options.home, joint.Folder(options.study)
    invitation = Invitation.parse(options.invitation)
    if not (home / "card.toml").exists():
        if options.name is None or options.organisation is None:
            raise UsageError("A new site needs --name and --organisation.")
        _new(options)
    identity = load_identity(home / "identity.pem")
    visitor = Visitor(invitation, home / "card.toml", identity, say)
    visitor.send_card()
    say("Enrolled. The author drafts the study when all sites have; this command waits for it.")
    study = visitor.await_study(folder)
    confirm_roster(study, home)
    known = (home / "policy.toml").exists()
    if known:
        add_peers(study, home)
    if options.exact or not known:
        draft_policy(options, confirmed=True)
    if options.data is not None:
        freeze(options)
    elif not joint.ExtractStore(home).folder(study).exists():
        say(f"Edit {home / 'policy.toml'}, and run the same command with --data FILE.")
        return ExitCode.DONE
    if _dry_run(options) is not ExitCode.DONE:
        return ExitCode.REFUSED
    sign(options)
    visitor.send_signature(folder)
    visitor.await_signatures(folder)
    say("All sites have signed. Answer the coordinator with:")
    say(f"isthmus site join {home} {options.study}")
    return ExitCode.DONE


def _new(options: argparse.Namespace) -> ExitCode:
    new_card(options, "site")
    say(
        f"Its card is {options.home / 'card.toml'}. 'isthmus site enrol' sends it to the "
        "coordinator of a study."
    )
    return ExitCode.DONE


def _certify(options: argparse.Namespace) -> ExitCode:
    from isthmus_joint.transport.certificates import own_certificate

    path: Path = options.home / "card.toml"
    card = joint.Card.read(path)
    # Only who can use the identity may change what it is known by.
    if load_identity(options.home / "identity.pem").public != card.member.key:
        raise FormatError(
            f"{path} is the card of another key than that of {options.home / 'identity.pem'}. "
            "Restore both from the same backup."
        )
    key = (options.home / "connection.pem").read_bytes()
    certificate, _ = own_certificate(card.member.name, key=key)
    replace(card, certificate=certificate.decode()).write(path)
    say(f"Wrote a new certificate to {path}. Studies that are drafted with it name it.")
    return ExitCode.DONE


def draft_policy(options: argparse.Namespace, *, confirmed: bool = False) -> ExitCode:
    """Draft a policy, or check a study against it.

    Parameters
    ----------
    confirmed
        Whether the parties were confirmed before, by the code of the roster.
    """
    study, path = joint.Folder(options.study).study(), options.home / "policy.toml"
    exact = study.protocol.results_add_up and study.privacy is None
    if exact:
        say(fill(NOT_PROMISED, 96))
    # A site allows exact sums study by study, and a party newer values of shared columns.
    allowed = getattr(options, "newer_values", False) or (exact and options.exact)
    if not path.exists():
        draft = joint.Policy(
            minimum_cohort=MINIMUM_COHORT,
            minimum_cell=MINIMUM_CELL,
            minimum_organisations=study.protocol.minimum_parties,
            variables=study.schema.names,
            protocols=(study.protocol.name,),
            requests=tuple(sorted(study.requests)),
            rounds_per_study=study.rounds,
            rounds_per_year=STUDIES_PER_YEAR * study.rounds,
            queries_per_year=STUDIES_PER_YEAR * study.rounds,
            stop_file=Path("STOP"),
            peers=study.members,
        )
        draft = draft.allowing(study) if allowed else draft
        if study.privacy is not None:
            epsilon, delta = study.privacy.epsilon, study.privacy.delta
            draft = replace(
                draft, maximum_epsilon=epsilon, maximum_delta=delta, epsilon_per_study=epsilon
            )
        path.write_text(draft.to_toml(), encoding="utf-8")
        say(f"Drafted {path} for this study. Whoever is responsible for the data should edit it:")
        say(draft.to_toml())
        if not confirmed:
            say("It names these peers. Confirm their fingerprints by another channel, such as the")
            say("telephone, before you sign:")
            for line in parties_of(study):
                say(line)
        return ExitCode.DONE
    own = joint.Policy.read(path)
    if allowed:
        own = own.allowing(study)
        path.write_text(own.to_toml(), encoding="utf-8")
    own.require(study, spent_before(options.home, study))
    say(f"The policy {path} allows the study {study.title!r}.")
    return ExitCode.DONE


def _dry_run(options: argparse.Namespace) -> ExitCode:
    from isthmus_joint.federation.requests.expectation import AskExpectation, allows_holes
    from isthmus_joint.federation.requests.statistics import largest_table, needs_demand

    folder, ledger = joint.Folder(options.study), options.home / "ledger.jsonl"
    study = folder.study()
    controller = joint.SiteController(
        study,
        folder.signatures(),
        load_identity(options.home / "identity.pem"),
        joint.ExtractStore(options.home).read(study),
        joint.Policy.read(options.home / "policy.toml"),
        joint.FileLedger(ledger) if ledger.exists() else joint.MemoryLedger(),
    )
    runs = [controller.dry_run(request) for request in planned(study)]
    for run in runs:
        say(f"{run}\n")
    if study.privacy is not None:
        say(
            "Further rounds follow, which depend on the answers so far. All of them have noise, and"
        )
        say(f"together cost at most ε = {study.privacy.epsilon:g} per person.")
    if allows_holes(study):
        steps = AskExpectation.steps_allowed(study)
        say(f"Up to {steps} steps follow, with expected sums and products of all variables.")
    if joint.AskCounts.name in study.requests and needs_demand(study.schema, study.plan):
        most = largest_table(study.schema, study.plan)
        say(f"Tables of at most {most} of these variables follow on demand, each")
        say(f"hidden in the sum over all sites, in at most {study.rounds} rounds.")
    if study.requests & {joint.AskConsensus.name, joint.AskNetworks.name}:
        _, rounds = joint.ADMM().allowed(study)
        say(f"Up to {rounds} such steps follow. This preview uses the site's own")
        say("number of rows, because that of all sites is not known yet.")
    return ExitCode.REFUSED if any(run.violations for run in runs) else ExitCode.DONE


def planned(study: Any) -> list[Any]:
    """Return the requests that a coordinator will send, as far as they are known beforehand."""
    from isthmus_joint.federation.requests.expectation import AskExpectation
    from isthmus_joint.federation.requests.statistics import in_pieces, needs_demand
    from isthmus_joint.noise.statistics import planned_pairs
    from isthmus_joint.noise.structure import PAIRS
    from isthmus_joint.noise.whitening import SURVEY

    names = study.schema.names
    requests: list[Any] = []
    if AskExpectation.name in study.requests:
        requests.append(AskExpectation(names, 0))
    if joint.AskMoments.name in study.requests:
        requests.append(joint.AskMoments(names, None if study.privacy is None else SURVEY))
    if joint.AskFeatures.name in study.requests and study.features is not None:
        requests.append(joint.AskFeatures(study.features))
    for step in (joint.AskConsensus, joint.AskNetworks):
        if step.name in study.requests:
            requests += [step(names, 0), step(names, 1)]
    if joint.AskCounts.name in study.requests and study.plan is not None:
        if study.privacy is not None:
            requests.append(joint.AskCounts(planned_pairs(study), round=PAIRS))
        elif needs_demand(study.schema, study.plan):
            singles = [(i,) for i in range(len(study.schema))]
            requests += [own for own, _ in in_pieces(study.schema, study.plan, singles)]
        else:
            requests.append(joint.AskCounts(study.plan))
    return requests


def site_service(home: Path, study: Path, watch: Callable[[Any], None] = lambda _: None) -> Any:
    """Return the service of a site that answers for a study, from the folders of both.

    Parameters
    ----------
    watch
        Called with each entry of the ledger when it is written.

    Raises
    ------
    RefusedError
        The policy of the site does not allow the study.
    """
    from isthmus_joint.agreement.identity import AUTHOR

    folder = joint.Folder(study)
    agreed = folder.study()
    agreed.require(folder.signatures(), [AUTHOR])
    identity, extract = load_identity(home / "identity.pem"), joint.ExtractStore(home).read(agreed)
    policy = joint.Policy.read(home / "policy.toml")
    return joint.SiteService(
        home, agreed, folder.signatures(), identity, extract, policy, watch=watch
    )


def _join(options: argparse.Namespace) -> ExitCode:
    from isthmus_joint.federation import over_grpc, over_socket

    folder = joint.Folder(options.study)
    study = folder.study()
    stop = joint.Policy.read(options.home / "policy.toml").stop_path
    watch = SiteWatch(options.home, study, stop, say, as_json=options.log == "json")
    site = site_service(options.home, options.study, watch.entry)
    signals: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: signals.append(number))

    def is_over() -> bool:
        return bool(signals) or datetime.now(UTC) >= study.expires

    watch.say(
        f"{site.controller.name} is ready for {study.title!r}. Ctrl-C ends this process; with the"
    )
    watch.say("stop file it answers nothing any more.")
    watch.say(f"Everything that leaves is first written to {site.state / 'ledger.jsonl'}:")
    try:
        with watched(options.metrics, watch.figures, watch.problem):
            if options.socket is not None:
                over_socket.serve(site, options.socket, is_over)
            else:
                address = options.coordinator or folder.address()
                over_grpc.serve(site, folder, address, is_over, watch.say)
    finally:
        site.close()
    return ExitCode.DONE
