"""Answers of a site to a study with differential privacy."""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats, Integers
from isthmus.errors import DataError, IsthmusError, MissingExtraError, StudyError
from isthmus.statistics import Kind, Schema
from isthmus_joint.agreement.identity import digest
from isthmus_joint.agreement.study import Study
from isthmus_joint.extracts.extract import Extract
from isthmus_joint.federation.requests.base import SumRequest
from isthmus_joint.federation.requests.statistics import AskCounts, AskMoments
from isthmus_joint.noise.statistics import (
    NoisyCounts,
    NoisyMoments,
    NoisyRelease,
    SiteAnswer,
    first_rows,
    planned_pairs,
    widened,
)
from isthmus_joint.noise.structure import PAIRS
from isthmus_joint.noise.whitening import LAST, SURVEY
from isthmus_joint.records.ledger_writer import LedgerWriter, NoisyAnswer
from isthmus_joint.secure_sum.protocol import secure_sums
from isthmus_joint.secure_sum.terms import LimbArray

PURPOSE = "A study with differential privacy"


def require_opendp() -> Any:
    """Import OpenDP, or raise `MissingExtraError`."""
    try:
        import opendp.prelude as dp
    except ImportError:
        raise MissingExtraError("opendp", "privacy", PURPOSE) from None
    dp.enable_features("contrib")
    return dp


def discrete_gaussian(scale: float, size: int) -> Integers:
    """Return integers from the discrete Gaussian distribution, from the system's random numbers.

    OpenDP draws them with exact integer arithmetic (Canonne, Kamath and Steinke 2020). No
    floating-point number is involved whose last digits could tell the value without noise.

    Parameters
    ----------
    scale
        Standard deviation of the continuous Gaussian of the same shape.
    """
    dp = require_opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="i64")
    draw: Any = dp.m.make_gaussian(*space, scale=float(scale))
    return np.array(draw([0] * size), dtype=np.int64)


def confirmed_epsilon(rho: float, delta: float) -> float:
    """Return the ε of ρ-zCDP at this δ, as OpenDP computes it."""
    dp = require_opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="i64")
    one = dp.m.make_gaussian(*space, scale=math.sqrt(1.0 / (2.0 * rho)))
    return float(dp.c.make_zCDP_to_approxDP(one).map(1).epsilon(delta))


TAIL = 64
"""Noise is never farther from zero than this many standard deviations (probability e^-2048)."""

LARGEST_SUM = 2**62
"""Sums are integers of 64 bits with a sign; half of them are left as a margin."""


def noisy_release(request: SumRequest[Any], study: Study) -> NoisyRelease:
    """Return how a request is answered with noise.

    Raises
    ------
    DataError
        There is no noise for such requests.
    """
    if isinstance(request, AskMoments) and request.round is not None:
        return NoisyMoments(study, request.round, request.map)
    if isinstance(request, AskCounts) and request.round is not None and study.plan is not None:
        return NoisyCounts(study, request.round, request.plan)
    raise DataError(f"Requests for {request.name} cannot be answered with noise.")


def require_possible(study: Study) -> None:
    """Raise `StudyError` if sums with the noise of a study could be too large for their integers.

    Studies without differential privacy pass.
    """
    if study.privacy is None:
        return
    rows, sites = secure_sums(study.protocol).rows, len(study.members)
    releases: list[NoisyRelease] = []
    if AskMoments.name in study.requests:
        releases += [NoisyMoments(study, number) for number in range(SURVEY, LAST + 1)]
    if AskCounts.name in study.requests and study.plan is not None:
        releases.append(NoisyCounts(study, PAIRS, planned_pairs(study)))
    for release in releases:
        spread = math.ceil(release.spread.max(initial=1.0))
        largest = spread * (release.unit * rows + TAIL * math.ceil(release.scale))
        if largest * sites >= LARGEST_SUM:
            raise StudyError(
                f"Sums over {sites} sites of up to {rows:,} rows each, with noise for "
                f"ε = {study.privacy.epsilon:g}, do not fit into integers of 64 bits. State a "
                "smaller number of rows, a larger epsilon, or fewer rows_per_person."
            )


@final
class NoisyAnswers:
    """Draws the noise of a site, once per question.

    A question that is repeated gets the same answer, even after a restart: nobody can average the
    noise away. The answers are kept beside the ledger, whose entries refer to them.
    """

    def __init__(self, study: Study, writer: LedgerWriter) -> None:
        self._study = study
        self._writer = writer
        self._drawn: dict[str, SiteAnswer] = {}

    def problem(self) -> str | None:
        """Return why this site cannot add the noise of the study; ``None`` if it can.

        OpenDP must be installed and agree with the budget of the study.
        """
        privacy = self._study.privacy
        assert privacy is not None
        try:
            require_possible(self._study)
            counted = confirmed_epsilon(privacy.rho, privacy.delta)
        except IsthmusError as error:
            return str(error).rstrip(".")
        if counted > privacy.epsilon * (1 + 1e-9):
            return (
                f"OpenDP counts a cost of ε = {counted:.6g} and this package one of "
                f"ε = {privacy.epsilon:.6g}, so nothing is sent"
            )
        return None

    def is_taken(self, request: SumRequest[Any]) -> bool:
        """Return whether another question was answered in the place of this one.

        Each round of a study is answered once. The same question gets the same answer again.
        """
        taken = self._writer.here.answers
        return any(q.startswith(f"{_place(request)}:") and q != _name(request) for q in taken)

    def price(self, request: SumRequest[Any]) -> float:
        """Return what the answer costs from now on: nothing if it was sent before."""
        if self._writer.noisy_answer(_name(request)) is not None:
            return 0.0
        return noisy_release(request, self._study).rho

    def describe(self, request: SumRequest[Any]) -> str:
        """Describe the noise in a phrase."""
        release = noisy_release(request, self._study)
        return (
            f"each with noise of standard deviation {release.scale / release.unit:.3g} in units of "
            "one row"
        )

    def numbers(self, request: SumRequest[Any], extract: Extract) -> LimbArray:
        """Return the site's integers with noise."""
        name, release = _name(request), noisy_release(request, self._study)
        if name not in self._drawn:
            kept = self._writer.noisy_answer(name)
            self._drawn[name] = (
                release.answer(self.rows(extract), self._offset_before(request), drawn_noise)
                if kept is None
                else SiteAnswer.from_bytes(kept, release.numbers)
            )
        return widened(self._drawn[name].numbers, request.limbs)

    def record(self, request: SumRequest[Any]) -> NoisyAnswer:
        """Keep the answer that is about to leave, and return what the ledger says about it."""
        name = _name(request)
        kept = self._writer.keep(self._drawn[name].to_bytes())
        return NoisyAnswer(name, noisy_release(request, self._study).rho, kept)

    def rows(self, extract: Extract) -> Floats:
        """Return the rows that answers are computed from."""
        # A site with more rows than the study states answers, too: a refusal would tell whether one
        # more person is in its table. The integers have room for many times as many rows.
        assert extract.values is not None
        assert self._study.privacy is not None
        values, persons = np.asarray(extract.values), extract.persons
        complete = usable(self._study.schema, values)
        values, persons = values[complete], None if persons is None else persons[complete]
        if persons is not None:
            values = values[first_rows(persons, self._study.privacy.rows_per_person)]
        return values

    def _offset_before(self, request: SumRequest[Any]) -> Floats:
        """Return the centre of the site after the last round of moments before this one."""
        if not isinstance(request, AskMoments):
            return np.empty(0)
        for number in range((request.round or SURVEY) - 1, SURVEY, -1):
            start = f"{request.name} {number}:"
            for name in self._writer.here.answers:
                if name.startswith(start):
                    kept = self._writer.noisy_answer(name)
                    assert kept is not None
                    numbers = NoisyMoments(self._study, number).numbers
                    return SiteAnswer.from_bytes(kept, numbers).offset
        return np.empty(0)


def drawn_noise(spread: Floats, scale: float) -> Integers:
    """Return noise for each number of an answer: its `spread` times `scale` wide."""
    noise = np.zeros(len(spread), dtype=np.int64)
    for each in np.unique(spread):
        same = spread == each
        noise[same] = discrete_gaussian(float(each) * scale, int(same.sum()))
    return noise


def usable(schema: Schema, values: Floats) -> NDArray[np.bool_]:
    """Return which rows have a number, or a level that the study lists, for every variable.

    The others are left out, whatever else is known of them: a refusal because of one row would tell
    of its person what the noise hides.
    """
    complete = np.asarray(np.isfinite(values).all(axis=1))
    for i, v in enumerate(schema.variables):
        if v.kind is Kind.DISCRETE:
            complete &= (values[:, i] >= 0) & (values[:, i] < len(v.levels))
    return complete


def _place(request: SumRequest[Any]) -> str:
    """Return the place of a request in its study; one question is answered in each."""
    if isinstance(request, AskMoments | AskCounts):
        return f"{request.name} {request.round}"
    return request.name


def _name(request: SumRequest[Any]) -> str:
    return f"{_place(request)}:{digest(request.to_bytes()).hex()}"
