"""The model of ADMM that a study allows."""

from __future__ import annotations

from dataclasses import replace

from isthmus.errors import MismatchError, StudyError
from isthmus.joint.agreement.study import Study
from isthmus.joint.federation.requests.statistics import AskTotals
from isthmus.joint.methods.admm.learn import DynamicADMM, LinearADMM, PerceptronADMM
from isthmus.joint.methods.admm.requests import AskConsensus, AskNetworks
from isthmus.joint.methods.admm.steps import ADMM
from isthmus.statistics import Kind

SPARE = 10
"""Rounds of a study that are not steps: totals, keys, and rounds that must be repeated."""


def uses_admm(study: Study) -> bool:
    """Return whether a study allows steps of ADMM."""
    return bool(study.requests & {AskConsensus.name, AskNetworks.name})


def model_of(study: Study, given: ADMM | None = None) -> ADMM:
    """Return the model that a study allows, or the given one, with at most the allowed rounds.

    A study that allows requests for networks is for `PerceptronADMM`, one with lagged variables
    for `DynamicADMM`, and any other for `LinearADMM`.

    Raises
    ------
    StudyError
        The study does not allow ADMM, or not as many rounds as the given model asks for.
    MismatchError
        The study is for another model.
    """
    study.schema.require(Kind.CONTINUOUS, "ADMM")
    lagged = study.schema.lags > 0
    kinds: list[type[ADMM]] = []
    if AskConsensus.name in study.requests:
        kinds.append(DynamicADMM if lagged else LinearADMM)
    if AskNetworks.name in study.requests and not lagged:
        kinds.append(PerceptronADMM)
    if not kinds or AskTotals.name not in study.requests:
        raise StudyError(
            f"The study allows the requests {sorted(study.requests)}. ADMM needs 'totals' and "
            "'consensus', or 'totals' and 'networks' (not for time series)."
        )
    if given is not None and type(given) not in kinds:
        names = " or ".join(kind.__name__ for kind in kinds)
        raise MismatchError(
            f"The study is for {names}; {type(given).__name__} was given. The requests of a study "
            "and the time steps of its variables determine its model."
        )
    model, most = given or kinds[0](), study.rounds - SPARE
    if most < 1 or (given is not None and given.rounds > most):
        raise StudyError(
            f"The study allows {study.rounds} rounds, of which {SPARE} are reserved for the first "
            f"sum, for keys, and for rounds that must be repeated. This leaves {max(most, 0)} "
            "steps for ADMM" + ("." if given is None else f"; {given.rounds} were requested.")
        )
    model.start(study.schema)  # raises an error for variables that do not fit
    return replace(model, rounds=min(model.rounds, most))
