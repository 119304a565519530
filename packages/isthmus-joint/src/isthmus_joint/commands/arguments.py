"""Arguments and options of commands on joint studies."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import isthmus_joint as joint
from isthmus.cli.inputs import missing_from, score_from, search_from
from isthmus.cli.output import say
from isthmus.cli.parsing import ExitCode, at_least, host_and_port
from isthmus.errors import FormatError, MismatchError
from isthmus_joint.commands.described import described
from isthmus_joint.commands.keys import enrol_sites, load_identity


def add_action(
    actions: Any,
    whose: str,
    name: str,
    meaning: str,
    run: Callable[[argparse.Namespace], ExitCode],
    *,
    study: bool = True,
) -> argparse.ArgumentParser:
    """Add an action with the arguments HOME, a private folder, and STUDY, a shared folder."""
    action: argparse.ArgumentParser = actions.add_parser(name, help=meaning, description=meaning)
    action.add_argument("home", type=Path, metavar="HOME", help=f"private folder of the {whose}")
    if study:
        action.add_argument("study", type=Path, metavar="STUDY", help="shared folder of the study")
    action.set_defaults(run=run, whose=whose)
    return action


LOOPBACK = "127.0.0.1"


# --- `isthmus coordinator draft`: write a study and sign it as its author -----------------------

ADMM = "admm"
ROUNDS = 10
NOISY_ROUNDS = 30
"""For moments with noise: eight rounds, and room for repeated ones."""
ADMM_ROUNDS = 300
STEP_ROUNDS = 65
"""For expectation-maximisation: keys, available values, and the steps that a study allows."""
DEMAND_ROUNDS = 50
"""For tables on demand: pairs, a few batches, and room for more."""


class DraftedRequests(NamedTuple):
    """Names of the requests, the number of rounds, and the tables and functions they may be of."""

    names: list[str]
    rounds: int
    plan: Any = None
    features: Any = None


def drafted_requests(options: argparse.Namespace, variables: Any) -> DraftedRequests:
    """Return what a study about these variables needs, given the options of `draft`."""
    from isthmus.statistics import CountPlan, Expansion, Kind
    from isthmus_joint.federation.requests.expectation import AskExpectation
    from isthmus_joint.federation.requests.statistics import needs_demand

    schema = variables.schema
    discrete = schema.of_kind(Kind.DISCRETE)
    basis = basis_needed(options, schema)
    if basis is not None:
        if options.method == ADMM or options.missing is not None or discrete:
            raise FormatError(
                f"{basis!r} is for secure sums of complete rows of continuous variables. Leave out "
                "--score and --search, or the options and variables that do not fit."
            )
        names, rounds = [joint.AskMoments.name, joint.AskFeatures.name], options.rounds or ROUNDS
        return DraftedRequests(names, rounds, features=Expansion.within(basis, variables.bounds))
    if options.missing is not None:
        if options.method == ADMM or discrete:
            raise FormatError(
                "--missing is for secure sums of continuous variables. Leave it out, and let each "
                "site drop the rows that lack a value."
            )
        require_estimation(options.missing)
        return DraftedRequests([AskExpectation.name], options.rounds or STEP_ROUNDS)
    if options.method == ADMM:
        step = joint.AskNetworks if options.networks else joint.AskConsensus
        return DraftedRequests([step.name], options.rounds or ADMM_ROUNDS)
    if options.networks:
        raise FormatError("Neural networks need --method admm; secure sums cannot learn them.")
    rounds = options.rounds or (ROUNDS if options.exact else NOISY_ROUNDS)
    if len(discrete) == len(schema):
        plan = CountPlan.up_to(options.parents + 1)
        if options.exact and needs_demand(schema, plan):
            rounds = options.rounds or DEMAND_ROUNDS
        # Within sites, graphs are learned from moments of levels, and tables are for parameters.
        within = options.exact and not options.pooled
        names = [joint.AskMoments.name, joint.AskCounts.name] if within else [joint.AskCounts.name]
        return DraftedRequests(names, rounds, plan)
    return DraftedRequests([joint.AskMoments.name], rounds)


def basis_needed(options: argparse.Namespace, schema: Any) -> Any:
    """Return the basis functions that the named score or search needs; None for most of them."""
    from isthmus.verbs.defaults import choose_score
    from isthmus.verbs.prepare import require_capability

    score, search = options.score, options.search
    if search is not None:
        score = choose_score(schema, search, search.accepts)[0] if score is None else score
        require_capability(score, score.gives, search.accepts, search)
    return None if score is None else score.basis


def estimation_of(study: Any, given: Any) -> Any:
    """Return how missing values of the sites are treated in a run; None if none may be missing."""
    from isthmus.tables.missing import ExpectationMaximisation
    from isthmus_joint.federation.requests.expectation import AskExpectation, allows_holes

    if given is not None:
        require_estimation(given)
        if not allows_holes(study):
            raise MismatchError(
                f"--missing has no effect here: the study does not allow {AskExpectation.name!r}. "
                "Draft a study with --missing."
            )
        return given
    return ExpectationMaximisation() if allows_holes(study) else None


def require_estimation(missing: Any) -> None:
    """Raise `FormatError` unless this is the strategy that federations offer."""
    from isthmus.tables.missing import ExpectationMaximisation

    if not isinstance(missing, ExpectationMaximisation):
        raise FormatError(
            f"Federations offer ExpectationMaximisation; {missing!r} was given. Sites can drop "
            "incomplete rows, or make missing a level, before they take part."
        )


NOISE_OPTIONS = ("epsilon", "delta", "rows_per_person", "expected_rows")


def add_draft_options(draft: argparse.ArgumentParser) -> None:
    """Describe the options of ``draft``."""
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
        help="file of variables, which 'isthmus study variables' writes",
    )
    sites = draft.add_mutually_exclusive_group(required=True)
    sites.add_argument(
        "--sites",
        type=at_least(2),
        metavar="NUMBER",
        help="wait until so many sites have enrolled ('isthmus site enrol'), draft the study with "
        "them, and collect their signatures",
    )
    sites.add_argument(
        "--card",
        action="append",
        type=Path,
        metavar="FILE",
        help="without a network: card of a site; repeat for each site",
    )
    draft.add_argument(
        "--listen",
        default=LOOPBACK,
        metavar="ADDRESS",
        help="with --sites: network address to listen on, as for 'isthmus coordinator run'",
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
    for name, convert in (("score", score_from), ("search", search_from)):
        draft.add_argument(
            f"--{name}",
            type=convert,
            help=f"{name} of the run, if it needs basis functions, such as "
            f"{'NonlinearLikelihoodRatio' if name == 'score' else 'LiNGAM'}: the study then allows "
            "their sums, and fixes the functions by the bounds of the variables",
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
        help="discrete variables: plan tables for this many parents; by default 2",
    )
    draft.add_argument(
        "--exact",
        action="store_true",
        help="no noise: the sums of the sites are exact, and only the rules on data protect a "
        "person. Every site sees and signs this",
    )
    draft.add_argument(
        "--pooled",
        action="store_true",
        help="sums of products of all rows. By default each site subtracts its own "
        "means, so that sites of different levels cause no edges",
    )
    draft.add_argument(
        "--epsilon",
        type=float,
        metavar="NUMBER",
        help="differential privacy: the budget ε of the whole study per person. Sites clip values "
        "to the low and high of each variable, and add noise; by default 1",
    )
    draft.add_argument(
        "--delta",
        type=float,
        metavar="NUMBER",
        help="differential privacy: the δ of the budget; by default 1e-6",
    )
    draft.add_argument(
        "--expected-rows",
        type=int,
        metavar="NUMBER",
        help="differential privacy: about how many rows all sites have together, if that is "
        "public. The study then says how many rows without noise the result will be worth",
    )
    draft.add_argument(
        "--rows-per-person",
        type=int,
        metavar="NUMBER",
        help="differential privacy: how many rows of one person are used; by default 1",
    )
    draft.add_argument(
        "--rounds",
        type=int,
        help="maximum number of rounds; by default 30, with --exact 10, with --missing 65, for "
        "tables on demand 50, for ADMM 300",
    )
    draft.add_argument(
        "--admit",
        action="append",
        default=[],
        metavar="CODE",
        help="another version that may answer, as its 'isthmus study code' prints it; may be "
        "repeated. The version that is installed here always may",
    )
    draft.add_argument(
        "--missing",
        type=missing_from,
        metavar="STRATEGY",
        help="ExpectationMaximisation: values of continuous variables may be missing at the "
        "sites, and moments are estimated by one secure sum per step",
    )
    draft.add_argument(
        "--address",
        type=host_and_port,
        metavar="HOST:PORT",
        help="address under which sites reach this machine in the study; by default that of the "
        "invitation",
    )


def draft(options: argparse.Namespace) -> ExitCode:
    """Write a study, sign it as its author, and let the sites enrol if they are to."""
    prepared = require_drafted(options)
    if options.sites is not None:
        return enrol_sites(options, partial(write_draft, options, prepared))
    write_draft(options, prepared, [joint.Card.read(path) for path in options.card])
    say(f"Send the folder {options.study} to the sites, which read study.toml and sign it.")
    return ExitCode.DONE


def require_drafted(options: argparse.Namespace) -> tuple[Any, DraftedRequests]:
    """Return the variables and the requests of a draft, and raise what is wrong with them."""
    from isthmus_joint.agreement.study import read_variables
    from isthmus_joint.federation.common_schema import lagged_variables

    variables = read_variables(options.variables)
    if options.lags:
        variables = lagged_variables(variables, options.lags)
    drafted = drafted_requests(options, variables)
    _privacy(options, drafted)
    return variables, drafted


def write_draft(
    options: argparse.Namespace, prepared: tuple[Any, DraftedRequests], cards: list[joint.Card]
) -> None:
    """Write the folder of a study with these sites, signed by its author."""
    from isthmus_joint.agreement.study import code_hash
    from isthmus_joint.enrolment import Invitation
    from isthmus_joint.methods import admm
    from isthmus_joint.noise.answers import require_possible
    from isthmus_joint.transport.certificates import fingerprint

    variables, drafted = prepared
    author = load_identity(_author(options))
    certificate = (options.home / "connection.crt").read_bytes()
    study = joint.Study.draft(
        options.title,
        purpose=options.purpose,
        author=author.public,
        coordinator=load_identity(options.home / "identity.pem").public,
        members=[card.member for card in cards],
        schema=variables.schema,
        bounds=variables.bounds,
        protocol=joint.SecureSums(
            certificates=tuple(fingerprint(card.certificate) for card in cards),
            coordinator_certificate=fingerprint(certificate),
        ),
        requests=drafted.names,
        plan=drafted.plan,
        features=drafted.features,
        rounds=drafted.rounds,
        privacy=_privacy(options, drafted),
        within_sites=not options.pooled,
        exact=options.exact,
        code=list(dict.fromkeys([code_hash(), *options.admit])),
    )
    require_possible(study)
    if options.method == ADMM:
        admm.ADMM().allowed(study)  # raises an error before anyone signs
    folder = joint.Folder(options.study)
    address = options.address or Invitation.read(options.home / "invitation").address
    folder.write(study, cards)
    folder.write_coordinator(certificate, address)
    folder.sign(study.sign(author))
    say(described(study))


def _privacy(options: argparse.Namespace, drafted: DraftedRequests) -> Any:
    """Return the section on differential privacy, unless the study is to be exact."""
    from isthmus_joint.agreement.study import EPSILON

    given = {n: getattr(options, n) for n in NOISE_OPTIONS if getattr(options, n) is not None}
    if options.exact:
        if given:
            option = f"--{next(iter(given)).replace('_', '-')}"
            raise FormatError(f"{option} has no effect with --exact. Leave out one of them.")
        return None
    without = "ADMM" if options.method == ADMM else "--missing" if options.missing else ""
    if drafted.features is not None:
        without = f"the basis functions {drafted.features.basis!r}"
    if without:
        raise FormatError(
            f"There is no noise for {without}. Pass --exact to draft a study whose numbers have "
            "none; every site sees this when it signs."
        )
    if options.lags and "rows_per_person" not in given:
        raise FormatError(
            "With noise, one row of each person is used, which is too little of a time series. "
            "State how many with --rows-per-person, or pass --exact."
        )
    return joint.DifferentialPrivacy(**({"epsilon": EPSILON} | given))


def _author(options: argparse.Namespace) -> Path:
    """Return the key of the author, which must not be that of the coordinator."""
    given: Path | None = options.author
    if given is None:
        raise FormatError(
            "Name the key of the author with --author, for instance the identity.pem of the site "
            "that leads the study. The coordinator does not sign studies."
        )
    return given
