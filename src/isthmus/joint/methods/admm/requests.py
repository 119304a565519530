"""Requests for the steps of ADMM."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError
from isthmus.joint.agreement.study import Study
from isthmus.joint.federation.requests.fixed_point import (
    IMPOSSIBLE,
    FixedPointEncoding,
    require_count,
)
from isthmus.joint.federation.requests.statistics import show_array
from isthmus.joint.federation.requests.steps import SiteSteps, StepRequest
from isthmus.joint.methods.admm.clients import Client, LinearClient, NetworkClient
from isthmus.joint.methods.admm.course import ADMMCourse
from isthmus.joint.methods.admm.models import (
    ADMMOptions,
    ConsensusModel,
    LinearConsensus,
    PerceptronConsensus,
)
from isthmus.joint.secure_sum.limbs import LimbArray, from_ints, to_ints
from isthmus.sources.base import Source
from isthmus.statistics import Kind, Moments, Schema

Matrix: TypeAlias = NDArray[np.float64]

LIMBS = 4
"""Parameters are sent as integers of 128 bits."""

PARAMETER_BITS = 20
"""Parameters of a model are smaller than two to this power."""

CAUTION = (
    "ADMM reveals more than one secure sum: the sums of many rounds can reveal the statistics of "
    "single sites if there are few sites. See 'What ADMM reveals' in the documentation."
)


@dataclass(frozen=True)
class StepOfADMM(StepRequest[Matrix]):
    """One step of ADMM.

    Step 0 asks for the number of sites and of rows. Every later step asks for the parameters that a
    site fits near the common ones, which follow from all sums before.
    """

    options: ADMMOptions = ADMMOptions()
    limbs: ClassVar[int] = LIMBS
    caution: ClassVar[str] = CAUTION

    @staticmethod
    def steps_allowed(study: Study) -> int:
        return study.rounds

    @abstractmethod
    def model(self, schema: Schema) -> ConsensusModel:
        """Return the model that the sites fit."""

    @abstractmethod
    def client(self, source: Source, moments: Moments, rows: int) -> Client:
        """Return the site before step 1, given the number of rows of all sites."""

    def violations(self, study: Study) -> list[str]:
        fit = self.options.fit(self.asked)
        return super().violations(study) + ([] if fit else ["no run of ADMM has these options"])

    def begin(self, source: Source, grid: FixedPointEncoding) -> ADMMAtSite:
        return ADMMAtSite(self, source, grid)

    def size(self, grid: FixedPointEncoding) -> int:
        schema = grid.schema.subset(self.asked)
        schema.require(Kind.CONTINUOUS, "ADMM needs")
        return 2 if self.step == 0 else math.prod(self.model(schema).shape)

    def decode(self, total: LimbArray, grid: FixedPointEncoding) -> Matrix:
        if self.step == 0:
            return np.array(to_ints(total), dtype=np.float64)
        one = 1 << _fraction(grid)
        numbers = np.array([v / one for v in to_ints(total)])
        return numbers.reshape(self.model(grid.schema).shape)

    def require_plausible(self, total: LimbArray, grid: FixedPointEncoding) -> None:
        if self.step == 0:
            sites, rows = to_ints(total)
            require_count(sites, grid.sites)
            require_count(rows, grid.rows * grid.sites)
        elif np.abs(self.decode(total, grid)).max(initial=0.0) > grid.sites * 2**PARAMETER_BITS:
            raise DataError(IMPOSSIBLE)

    def show(self, numbers: LimbArray, grid: FixedPointEncoding) -> list[str]:
        value = self.decode(numbers, grid)
        if self.step == 0:
            return [f"  sites: {value[0]:.0f}", f"  rows: {value[1]:.0f}"]
        return [show_array(value)]

    def __str__(self) -> str:
        if self.step == 0:
            return "number of sites and rows"
        kind = "neural networks of " if self.name == AskNetworks.name else ""
        return (
            f"parameters of ADMM for {kind}{len(self.asked)} variables; sums of many rounds can "
            "reveal single sites, see 'What ADMM reveals' in the documentation"
        )


@final
class AskConsensus(StepOfADMM):
    """Request one step of ADMM for linear models."""

    name: ClassVar[str] = "consensus"

    def model(self, schema: Schema) -> LinearConsensus:
        return LinearConsensus(schema, self.options)

    def client(self, source: Source, moments: Moments, rows: int) -> LinearClient:
        second = moments.shifted(moments.mean()).gram / rows
        return LinearClient(second, self.model(moments.schema).effects)


@final
class AskNetworks(StepOfADMM):
    """Request one step of ADMM for one small neural network per variable."""

    name: ClassVar[str] = "networks"
    caution: ClassVar[str] = f"{CAUTION} Sites whose rows describe persons refuse neural networks."

    def model(self, schema: Schema) -> PerceptronConsensus:
        return PerceptronConsensus(schema, self.options)

    def client(self, source: Source, moments: Moments, rows: int) -> NetworkClient:
        columns = list(source.schema().indices(self.asked))
        # A fixed memory layout, because the last digits of sums depend on it.
        values = np.ascontiguousarray(source.rows()[:, columns])
        return NetworkClient(values - values.mean(axis=0), self.options.hidden, rows)


@final
class ADMMAtSite(SiteSteps):
    """ADMM at a site."""

    def __init__(self, request: StepOfADMM, source: Source, grid: FixedPointEncoding) -> None:
        self._request, self._source, self._grid = request, source, grid
        self._moments = source.moments(request.asked)
        self._course = ADMMCourse(request.model(grid.schema), request.options)
        self._client: Client | None = None
        self._next: LimbArray | None = from_ints([1, self._moments.n], LIMBS)

    def contribution(self) -> LimbArray:
        if self._next is None:
            course = self._course
            if self._client is None:
                self._client = self._request.client(self._source, self._moments, course.rows)
            self._next = encoded_parameters(
                self._client.answer(course.common, course.rho), self._grid
            )
        return self._next

    def take(self, total: LimbArray) -> None:
        self.contribution()  # the next one depends on it, also when steps are done again
        request = replace(self._request, step=self._course.step)
        self._course.take(request.decode(total, self._grid))
        self._next = None


def encoded_parameters(parameters: Matrix, grid: FixedPointEncoding) -> LimbArray:
    """Return the parameters of a site as integers."""
    # Whether a site answers must not depend on its data: large numbers are cut, not refused.
    most = np.nextafter(2.0**PARAMETER_BITS, 0.0)
    cut = np.clip(np.nan_to_num(parameters), -most, most)
    scaled = np.ldexp(cut, _fraction(grid)).ravel().tolist()
    return from_ints([round(v) for v in scaled], LIMBS)


def _fraction(grid: FixedPointEncoding) -> int:
    """Return the binary digits after the point of a summed parameter."""
    return 32 * LIMBS - 2 - PARAMETER_BITS - grid.sites.bit_length()
