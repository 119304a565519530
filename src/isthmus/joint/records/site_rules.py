"""The rules that a site applies to every request: the stricter of study and policy."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import final

from isthmus.errors import RefusedError
from isthmus.joint.agreement.policy import Policy
from isthmus.joint.agreement.requests import Request
from isthmus.joint.agreement.study import Study
from isthmus.joint.noise.accounting import epsilon_of
from isthmus.joint.records.events import Denial, DeniedError
from isthmus.joint.records.ledger_writer import LedgerWriter

YEAR = timedelta(days=365)
REPETITIONS = 10
"""On average, a question may be repeated this often after rounds that failed."""


@final
class SiteRules:
    """Decides whether a request may be answered, whatever its protocol.

    Parameters
    ----------
    study, policy
        The study that the site has countersigned, and the site's own policy.
    writer
        The site's ledger, which knows what was answered before.
    clock
        Returns the current time.
    code
        Hash of the installed package.
    simulated
        Whether the data are simulated, so that any basis functions may be asked for.
    """

    def __init__(
        self,
        study: Study,
        policy: Policy,
        writer: LedgerWriter,
        clock: Callable[[], datetime],
        code: str,
        *,
        simulated: bool = False,
    ) -> None:
        policy.require(study)
        self._study = study
        self._policy = policy
        self._writer = writer
        self._clock = clock
        self._code = code
        self._simulated = simulated

    def _closed(self) -> tuple[Denial, str] | None:
        """Return why the site answers nothing at all, for programs and for people."""
        stop_file = self._policy.stop_path
        if stop_file.exists():
            return Denial.STOPPED, (
                f"The site is stopped because the file {stop_file} exists. Whoever created it may "
                "remove it."
            )
        if self._clock() >= self._study.expires:
            return Denial.EXPIRED, "The study has expired. Its author may draft a new one."
        if self._code not in self._study.code:
            return Denial.OTHER_CODE, (
                f"The installed package has the hash {self._code}, which the study does not list. "
                "Install a version that the study lists."
            )
        return None

    def require_open(self) -> None:
        """Raise `RefusedError` with a sentence if the site answers nothing at all."""
        closed = self._closed()
        if closed is not None:
            raise RefusedError(closed[1])

    def require_running(self) -> None:
        """Raise `DeniedError` with a code if the site answers nothing at all."""
        closed = self._closed()
        if closed is not None:
            raise DeniedError(closed[0])

    def violations(self, request: Request) -> list[str]:
        """Return a phrase for each rule of the study and of the policy that a request breaks."""
        broken = []
        if request.name not in self._study.requests:
            broken.append(f"the study does not allow requests for {request.name}")
        if request.name not in self._policy.requests:
            broken.append(f"the policy does not allow requests for {request.name}")
        if not self._simulated:
            broken += request.window_violations(self._study)
        return broken + request.violations(self._study) + self.limits()

    def limits(self) -> list[str]:
        """Return a phrase for each limit on rounds and queries that is reached."""
        broken = []
        opened = self._writer.here.tally.questions
        limit = min(self._study.rounds, self._policy.rounds_per_study)
        if opened >= limit:
            broken.append(f"{opened} rounds were opened in this study; {limit} are allowed")
        openings = self._writer.here.tally.openings
        if openings >= REPETITIONS * max(limit, REPETITIONS):
            broken.append(f"{openings} rounds were opened and few of them were completed")
        rounds, queries = self._writer.count_since(self._clock() - YEAR)
        for number, limit, name in (
            (rounds, self._policy.rounds_per_year, "rounds"),
            (queries, self._policy.queries_per_year, "queries"),
        ):
            if number >= limit:
                broken.append(f"the policy allows {limit} {name} per year")
        return broken

    def budget_violations(self, rho: float) -> list[str]:
        """Return a phrase for each budget that another answer of this cost exceeds."""
        policy, privacy = self._policy, self._study.privacy
        if rho == 0.0:
            return []
        broken = []
        own, whole = self._writer.here.rho(), 0.0 if privacy is None else privacy.rho
        # The first answer needs room for the whole study: a series of rounds is not cut short.
        total = self._writer.everything.rho() - own + max(whole, own + rho)
        if epsilon_of(total, policy.maximum_delta) > policy.epsilon_limit:
            limit = f"ε = {policy.maximum_epsilon:g} at δ = {policy.maximum_delta:g}"
            broken.append(f"the policy allows {limit} over all studies")
        if own + rho > whole * (1 + 1e-9):
            broken.append("the budget of the study is used up")
        return broken

    def row_violations(self, rows: int) -> list[str]:
        """Return a phrase if the policy does not allow results of so few rows."""
        least = self._policy.minimum_cohort
        return [f"fewer than {least} rows"] if rows < least else []
