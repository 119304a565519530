"""Which ADMM a study is for."""

from __future__ import annotations

from dataclasses import replace

from isthmus.errors import MismatchError, StudyError
from isthmus.federated.admm.learn import DynamicADMM, LinearADMM, PerceptronADMM
from isthmus.federated.admm.steps import ADMM
from isthmus.graphs.lags import split_lag
from isthmus.parties.agreement.study import Study
from isthmus.sources.horizontal.requests.sums import Message
from isthmus.statistics import Kind

SPARE = 10
"""Rounds of a study that are no steps: totals, keys, and what has to be opened anew."""


def model_of(study: Study, given: ADMM | None = None) -> ADMM:
    """The model that a study is for, with as many rounds as it allows; or the given one.

    A study whose messages are networks is for `PerceptronADMM`, one with variables of earlier
    steps (``x@1``) for `DynamicADMM`, any other for `LinearADMM`.

    Raises
    ------
    StudyError
        The study allows no ADMM, or not so many rounds.
    MismatchError
        The study is for another model.
    """
    study.schema.require(Kind.CONTINUOUS, "ADMM")
    lagged = any(split_lag(name)[1] for name in study.schema.names)
    kinds: list[type[ADMM]] = []
    if Message.CONSENSUS in study.messages:
        kinds.append(DynamicADMM if lagged else LinearADMM)
    if Message.NETWORKS in study.messages and not lagged:
        kinds.append(PerceptronADMM)
    if not kinds or Message.TOTALS not in study.messages:
        raise StudyError(
            f"The study allows the messages {sorted(study.messages)}. ADMM needs 'totals', and "
            "'consensus' or (not for time series) 'networks'."
        )
    if given is not None and type(given) not in kinds:
        names = " or ".join(kind.__name__ for kind in kinds)
        raise MismatchError(
            f"The study is for {names}; {type(given).__name__} was given. Which it is, follows "
            "from its messages and from the names of its variables."
        )
    found, most = given or kinds[0](), study.rounds - SPARE
    if most < 1 or (given is not None and given.rounds > most):
        raise StudyError(
            f"The study allows {study.rounds} rounds, {SPARE} of which are kept for the first sum, "
            f"for keys, and for what has to be opened anew; so ADMM has {max(most, 0)} steps"
            + ("." if given is None else f", not {given.rounds}.")
        )
    found.start(study.schema.names)  # refuses variables that do not fit
    return replace(found, rounds=min(found.rounds, most))
