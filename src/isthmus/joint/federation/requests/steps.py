"""Requests for the steps of a method: each step follows from the sums of all earlier ones.

A request says which method it is for, with which options, and the number of the step. It carries no
parameters: every site computes them from the sums, which it has computed itself from what all sites
signed. So nobody can choose them.
"""

from __future__ import annotations

import base64
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Generic, Self, TypeVar, final

import numpy as np

from isthmus.errors import FormatError, LedgerError, RefusedError
from isthmus.joint.agreement.study import Study
from isthmus.joint.federation.requests.base import Contribution, SumRequest
from isthmus.joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus.joint.secure_sum.limbs import LimbArray, from_bytes, to_bytes
from isthmus.sources.base import Source

T = TypeVar("T")


class SiteSteps(ABC, Generic[T]):
    """A method at one site, before its next step.

    The contribution depends on the rows of the site and on the sums so far, and on nothing else.
    """

    @abstractmethod
    def contribution(self) -> Contribution[T]:
        """Compute the contribution of the site to the next step; the same when called again."""

    @abstractmethod
    def take(self, total: LimbArray) -> None:
        """Take the sum of this step over all sites; `DataError` if no tables could have it."""


class StepRequest(SumRequest[T], Generic[T]):
    """A request for one step of a method. Step 0 begins a run and fixes its options.

    Attributes
    ----------
    asked
        Names of the variables: all of the study.
    step
        Number of the step, from zero.
    """

    asked: tuple[str, ...]
    step: int

    @property
    def variables(self) -> tuple[str, ...]:
        return self.asked

    @abstractmethod
    def begin(self, source: Source, grid: FixedPointEncoding) -> SiteSteps[T]:
        """Return the method at a site before step 0."""

    @abstractmethod
    def options(self) -> dict[str, Any]:
        """Return what must be the same in all steps of a run, as plain data."""

    @staticmethod
    @abstractmethod
    def steps_allowed(study: Study) -> int:
        """Return how many steps a study allows, after that with number zero."""

    def violations(self, study: Study) -> list[str]:
        broken = []
        if self.asked != study.schema.names:
            broken.append(f"steps of {self.name} are of all variables of the study")
        if not 0 <= self.step <= self.steps_allowed(study):
            broken.append("the number of the step is outside of what the study allows")
        return broken

    @property
    def previous(self) -> Self | None:
        """The request from whose sum this one follows; ``None`` for step 0."""
        return self._at(self.step - 1) if self.step > 0 else None

    def _at(self, step: int) -> Self:
        request: Self = replace(self, step=step)  # type: ignore[type-var]
        return request

    def preview(self, source: Source, grid: FixedPointEncoding) -> Contribution[T]:
        """Return the contribution of a site as if there were no other site, for a dry run."""
        site = self.begin(source, grid)
        for step in range(self.step):
            site.take(self._at(step).encode(site.contribution().value, grid))
        return site.contribution()

    def to_dict(self) -> dict[str, Any]:
        return {self.name: list(self.asked), "step": self.step, **self.options()}


@final
class MethodState:
    """A method at a site: the sums so far, and what follows from them.

    Only the sums are kept over a restart. Everything else is computed again.

    Parameters
    ----------
    grid
        The units of the study.
    """

    def __init__(self, grid: FixedPointEncoding) -> None:
        self._grid = grid
        self._options: dict[str, Any] = {}
        self._sums: list[LimbArray] = []
        self._site: SiteSteps[Any] | None = None
        self._taken = 0

    def take(self, request: StepRequest[Any], total: LimbArray) -> None:
        """Take the sum of the step before a request; the same sum may be taken again."""
        self._require_same(request)
        if len(self._sums) == request.step - 1:
            self._sums.append(total)
        elif len(self._sums) != request.step or not np.array_equal(self._sums[-1], total):
            raise _wrong_order(request)

    def answer(self, request: StepRequest[T], source: Source) -> Contribution[T]:
        """Compute the contribution of the site to a step."""
        if request.step == 0:
            self._options, self._sums, self._site = request.options(), [], None
        self._require_same(request)
        if len(self._sums) != request.step:
            raise _wrong_order(request)
        if self._site is None:  # a new run, or after a restart
            self._site, self._taken = request.begin(source, self._grid), 0
        try:
            while self._taken < request.step:
                self._site.take(self._sums[self._taken])
                self._taken += 1
        except Exception:
            del self._sums[self._taken :]  # a sum that was refused is refused again
            self._site = None
            raise
        return self._site.contribution()

    def _require_same(self, request: StepRequest[Any]) -> None:
        if request.options() != self._options:
            raise RefusedError(
                "The options of a run are those of its step 0. Begin a new run to use others."
            )

    def to_bytes(self) -> bytes:
        """Return the state, to be kept over a restart."""
        limbs = self._sums[0].shape[1] if self._sums else 0
        plain = {
            "options": self._options,
            "limbs": limbs,
            "sums": [base64.b64encode(to_bytes(total)).decode() for total in self._sums],
        }
        return json.dumps(plain).encode()

    def restore(self, data: bytes) -> None:
        """Continue from what `to_bytes` returned."""
        try:
            plain = json.loads(data)
            limbs = plain["limbs"]
            self._options = plain["options"]
            self._sums = [from_bytes(base64.b64decode(text), limbs) for text in plain["sums"]]
        except (ValueError, KeyError, TypeError) as error:
            raise LedgerError(
                "The saved state of a method cannot be read by this version. Start a new run."
            ) from error
        self._site = None


def read_step(plain: Mapping[str, Any], name: str) -> tuple[tuple[str, ...], int]:
    """Return variables and number of the step of a request in plain data."""
    step = plain["step"]
    if type(step) is not int:
        raise FormatError(f"The request is not a step of {name}.")
    return tuple(map(str, plain[name])), step


def _wrong_order(request: StepRequest[Any]) -> RefusedError:
    return RefusedError(
        f"Step {request.step} was requested. Steps must follow each other, and each has one sum."
    )
