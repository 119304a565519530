"""Which requests a drafted study allows, and for how many rounds."""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

from isthmus.errors import FormatError, MismatchError

ADMM = "admm"
ROUNDS = 10
ADMM_ROUNDS = 300
STEP_ROUNDS = 65
"""For expectation-maximisation: keys, available values, and the steps that a study allows."""


class DraftedRequests(NamedTuple):
    """Names of the requests, the tables that may be counted, and the number of rounds."""

    names: list[str]
    plan: Any
    rounds: int


def drafted_requests(options: argparse.Namespace, schema: Any) -> DraftedRequests:
    """Return what a study about these variables needs, given the options of `draft`."""
    from isthmus.joint.federation.requests.expectation import AskExpectation
    from isthmus.joint.federation.requests.statistics import AskCounts, AskMoments, AskTotals
    from isthmus.joint.methods.admm.requests import AskConsensus, AskNetworks
    from isthmus.statistics import Kind, Plan

    discrete = schema.of_kind(Kind.DISCRETE)
    if options.missing is not None:
        if options.method == ADMM or discrete:
            raise FormatError(
                "--missing is for secure sums of continuous variables. Leave it out, and let each "
                "site drop the rows that lack a value."
            )
        require_estimation(options.missing)
        return DraftedRequests([AskExpectation.name], None, options.rounds or STEP_ROUNDS)
    if options.method == ADMM:
        step = AskNetworks if options.networks else AskConsensus
        return DraftedRequests([AskTotals.name, step.name], None, options.rounds or ADMM_ROUNDS)
    if options.networks:
        raise FormatError("Neural networks need --method admm; secure sums cannot learn them.")
    rounds = options.rounds or ROUNDS
    if len(discrete) == len(schema):
        return DraftedRequests([AskCounts.name], Plan.up_to(options.parents + 1), rounds)
    return DraftedRequests([AskMoments.name], None, rounds)


def estimation_of(study: Any, given: Any) -> Any:
    """Return how missing values of the sites are treated in a run; None if none may be missing."""
    from isthmus.joint.federation.requests.expectation import AskExpectation, allows_holes
    from isthmus.sources.tables.missing import ExpectationMaximisation

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
    from isthmus.sources.tables.missing import ExpectationMaximisation

    if not isinstance(missing, ExpectationMaximisation):
        raise FormatError(
            f"Federations offer ExpectationMaximisation; {missing!r} was given. Sites can drop "
            "incomplete rows, or make missing a level, before they take part."
        )
