"""Requests for the steps of ADMM."""

from __future__ import annotations

import base64
import binascii
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import FormatError
from isthmus.joint.agreement.study import Study
from isthmus.joint.federation.requests.base import Contribution, MethodState, SumRequest
from isthmus.joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus.joint.federation.requests.statistics import show_array
from isthmus.joint.methods.admm.clients import Client, LinearClient, NetworkClient
from isthmus.joint.methods.admm.site_state import ADMMState
from isthmus.joint.secure_sum.limbs import LimbArray, from_ints, to_ints
from isthmus.joint.secure_sum.protocol import secure_sums
from isthmus.neural import perceptron
from isthmus.sources.base import Source
from isthmus.statistics import Kind, Moments

Matrix: TypeAlias = NDArray[np.float64]

METHOD = "admm"
LIMBS = 4
"""Parameters are sent as integers of 128 bits."""

PARAMETER_BITS = 20
"""Parameters of a model are smaller than two to this power."""

LIMITS = {"rho_low": 1e-9, "rho_high": 1e16, "parameter": 1024.0}
"""What a study allows if it does not say otherwise.

Penalties are between the first two numbers, and common parameters are not larger than the third.
The parameters of a site are then far below two to the power of `PARAMETER_BITS`, whatever its data
are.
"""

CAUTION = (
    "ADMM reveals more than one secure sum: the sums of many rounds can reveal the statistics of "
    "single sites if there are few sites. See 'What ADMM reveals' in the documentation."
)


class StepOfADMM(SumRequest[Matrix]):
    """One step of ADMM. The answer of a site depends on the steps before."""

    limbs: ClassVar[int] = LIMBS
    needs_all_sites: ClassVar[bool] = True
    method: ClassVar[str] = METHOD
    caution: ClassVar[str] = CAUTION

    asked: tuple[str, ...]
    step: int
    rows: int
    rho: float
    centre: tuple[float, ...] | None

    @staticmethod
    def allowed_by(study: Study) -> bool:
        """Return whether a study allows steps of ADMM."""
        return bool(study.requests & {AskConsensus.name, AskNetworks.name})

    @property
    def variables(self) -> tuple[str, ...]:
        return self.asked

    def violations(self, study: Study) -> list[str]:
        limits = LIMITS | dict(study.limits.get(self.name, {}))
        broken = []
        if not limits["rho_low"] <= self.rho <= limits["rho_high"]:
            broken.append("the penalty is outside of what the study allows")
        if not np.abs(self.common()).max(initial=0.0) <= limits["parameter"]:
            broken.append("the common parameters are larger than the study allows")
        if not 1 <= self.step <= study.rounds:
            broken.append("the number of the step is outside of what the study allows")
        if not 1 <= self.rows <= secure_sums(study.protocol).rows * len(study.members):
            broken.append("the number of rows is outside of what the study allows")
        for name, value in zip(self.asked, self.centre or (), strict=False):
            low, high = study.bounds[name]
            if not low <= value <= high:
                broken.append("the centre is outside of the bounds")
                break
        return broken

    def window_violations(self, study: Study) -> list[str]:
        # Second moments about several centres show the means of sites, see the threat model.
        if self.centre is None or self.centre == fixed_centre(study, self.name, self.asked):
            return []
        return ["the study does not fix this centre of the variables"]

    def new_state(self) -> ADMMState:
        return ADMMState()

    def contribute(self, source: Source, state: MethodState | None) -> Contribution[Matrix]:
        assert isinstance(state, ADMMState)
        return state.answer(self, source)

    @abstractmethod
    def common(self) -> Matrix:
        """Return the common parameters."""

    @abstractmethod
    def client(self, source: Source, moments: Moments) -> Client:
        """Return the site at the beginning of the first step."""

    def encode(self, value: Matrix, grid: FixedPointEncoding) -> LimbArray:
        # Whether a site answers must not depend on its data: large numbers are cut, not refused.
        most = np.nextafter(2.0**PARAMETER_BITS, 0.0)
        cut = np.clip(np.nan_to_num(value), -most, most)
        scaled = np.ldexp(cut, _fraction(grid)).ravel().tolist()
        return from_ints([round(v) for v in scaled], LIMBS)

    def decode(self, total: LimbArray, grid: FixedPointEncoding) -> Matrix:
        one = 1 << _fraction(grid)
        return np.array([v / one for v in to_ints(total)]).reshape(self.common().shape)

    def show(self, value: Matrix) -> list[str]:
        return [show_array(value)]


@final
@dataclass(frozen=True)
class AskConsensus(StepOfADMM):
    """Request one step of ADMM for linear models.

    Attributes
    ----------
    asked
        Names of the variables.
    step
        Number of the step.
    rows
        Number of rows of all sites.
    rho
        Penalty on disagreement.
    weights
        The common weights, one row per variable and one column per effect. The effects are the
        first variables.
    centre
        The point about which second moments are taken; ``None`` for the means of each site.
    """

    asked: tuple[str, ...]
    step: int
    rows: int
    rho: float
    weights: tuple[tuple[float, ...], ...]
    centre: tuple[float, ...] | None
    name: ClassVar[str] = "consensus"

    def size(self, grid: FixedPointEncoding) -> int:
        grid.schema.subset(self.asked).require(Kind.CONTINUOUS, "ADMM for linear models needs")
        return len(self.weights) * len(self.weights[0])

    def second(self, moments: Moments) -> Matrix:
        """Return the site's share of the second moments about the centre."""
        centre = moments.mean() if self.centre is None else np.array(self.centre)
        return moments.shifted(centre).gram / self.rows

    def common(self) -> Matrix:
        return np.array(self.weights, dtype=np.float64)

    def client(self, source: Source, moments: Moments) -> Client:
        return LinearClient(self.second(moments), len(self.weights[0]))

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        asked = tuple(map(str, plain["consensus"]))
        weights = np.array(plain["weights"], dtype=np.float64)
        valid = (
            weights.ndim == 2
            and len(weights) == len(asked)
            and 1 <= weights.shape[1] <= len(asked)
            and np.isfinite(weights).all()
        )
        if not valid:
            raise FormatError("The request is not a step of ADMM for linear models.")
        rows = tuple(map(tuple, weights.tolist()))
        centre = _centre(plain, asked)
        return cls(asked, plain["step"], plain["rows"], float(plain["rho"]), rows, centre)

    def to_dict(self) -> dict[str, Any]:
        return {
            "consensus": list(self.asked),
            "step": self.step,
            "rows": self.rows,
            "rho": self.rho,
            "weights": [list(r) for r in self.weights],
            "centre": None if self.centre is None else list(self.centre),
        }

    def __str__(self) -> str:
        return (
            f"parameters of ADMM for {len(self.asked)} variables; sums of many rounds can reveal "
            "single sites, see 'What ADMM reveals' in the documentation"
        )


@final
@dataclass(frozen=True)
class AskNetworks(StepOfADMM):
    """Request one step of ADMM for one small neural network per variable.

    Attributes
    ----------
    asked
        Names of the variables.
    hidden
        Units in the hidden layer of each network.
    step
        Number of the step.
    rows
        Number of rows of all sites.
    rho
        Penalty on disagreement.
    parameters
        The common parameters, as little-endian 64-bit floating-point numbers.
    centre
        Values that are subtracted from the rows; ``None`` for the means of each site.
    """

    asked: tuple[str, ...]
    hidden: int
    step: int
    rows: int
    rho: float
    parameters: bytes
    centre: tuple[float, ...] | None
    name: ClassVar[str] = "networks"

    def size(self, grid: FixedPointEncoding) -> int:
        grid.schema.subset(self.asked).require(Kind.CONTINUOUS, "ADMM for neural networks needs")
        return perceptron.size(len(self.asked), self.hidden)

    def common(self) -> Matrix:
        return np.frombuffer(self.parameters, "<f8").astype(np.float64)

    def client(self, source: Source, moments: Moments) -> Client:
        columns = list(source.schema().indices(self.asked))
        # A fixed memory layout, because the last digits of sums depend on it.
        values = np.ascontiguousarray(source.rows()[:, columns])
        centre = values.mean(axis=0) if self.centre is None else np.array(self.centre)
        return NetworkClient(values - centre, self.hidden, self.rows)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        asked = tuple(map(str, plain["networks"]))
        hidden = plain["hidden"]
        try:
            parameters = base64.b64decode(plain["parameters"], validate=True)
        except binascii.Error:
            parameters = b""
        valid = (
            type(hidden) is int
            and 1 <= hidden <= 2**16
            and len(parameters) == 8 * perceptron.size(len(asked), hidden)
            and np.isfinite(np.frombuffer(parameters, "<f8")).all()
        )
        if not valid:
            raise FormatError("The request is not a step of ADMM for neural networks.")
        centre = _centre(plain, asked)
        rho = float(plain["rho"])
        return cls(asked, hidden, plain["step"], plain["rows"], rho, parameters, centre)

    def to_dict(self) -> dict[str, Any]:
        return {
            "networks": list(self.asked),
            "hidden": self.hidden,
            "step": self.step,
            "rows": self.rows,
            "rho": self.rho,
            "parameters": base64.b64encode(self.parameters).decode(),
            "centre": None if self.centre is None else list(self.centre),
        }

    def __str__(self) -> str:
        return (
            f"parameters of ADMM for neural networks of {len(self.asked)} variables; sums of many "
            "rounds can reveal single sites, see 'What ADMM reveals' in the documentation"
        )


def fixed_centre(study: Study, request: str, names: Sequence[str]) -> tuple[float, ...] | None:
    """Return the centre of these variables that a study fixes in its limits, if it does."""
    limits = study.limits.get(request, {})
    keys = [f"centre of {name}" for name in names]
    return tuple(limits[key] for key in keys) if all(key in limits for key in keys) else None


def _fraction(grid: FixedPointEncoding) -> int:
    """Return the binary digits after the point of a summed parameter."""
    return 32 * LIMBS - 2 - PARAMETER_BITS - grid.sites.bit_length()


def _centre(plain: Mapping[str, Any], asked: tuple[str, ...]) -> tuple[float, ...] | None:
    """Return the centre, after checking the numbers of the step and of rows."""
    centre = None if plain["centre"] is None else tuple(map(float, plain["centre"]))
    valid = (
        type(plain["step"]) is int
        and type(plain["rows"]) is int
        and plain["rows"] > 0
        and (centre is None or len(centre) == len(asked))
    )
    if not valid:
        raise FormatError("The request is not a step of ADMM.")
    return centre
