"""Steps of ADMM, as they are asked of the sites."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np

from isthmus.errors import DataError, FormatError
from isthmus.federated.admm.consensus import Client, LinearClient, NetworkClient
from isthmus.numerics import perceptron
from isthmus.sources.base import Source
from isthmus.sources.horizontal.requests.base import Matrix, Message, Request
from isthmus.sources.horizontal.requests.grid import LIMBS, Grid
from isthmus.sources.horizontal.secure_sum.words import Words, from_ints, to_ints
from isthmus.statistics import Counts, Kind, Moments

PARAMETER = 20
"""Parameters of a model are smaller than two to this power."""


@final
@dataclass(frozen=True)
class AskConsensus(Request):
    """One step of ADMM for linear models.

    Attributes
    ----------
    asked
        The variables.
    step
        Number of the step.
    rows
        Number of rows of all sites.
    rho
        Penalty on disagreement.
    weights
        The common weights, a row for each variable, a column for each of the first variables
        that are effects.
    centre
        About which second moments are taken; ``None`` for each site's own means.
    """

    asked: tuple[str, ...]
    step: int
    rows: int
    rho: float
    weights: tuple[tuple[float, ...], ...]
    centre: tuple[float, ...] | None
    message = Message.CONSENSUS
    limbs = LIMBS

    @property
    def names(self) -> tuple[str, ...]:
        """The variables it is about."""
        return self.asked

    def size(self, common: Grid) -> int:
        """How many numbers the answer is."""
        common.schema.subset(self.asked).require(Kind.CONTINUOUS, "ADMM for linear models")
        return len(self.weights) * len(self.weights[0])

    def gather(self, source: Source) -> Moments:
        """Compute the moments of one site, which stay there."""
        return source.moments(self.asked)

    def second(self, moments: Moments) -> Matrix:
        """The site's second moments about the centre, as a share of all sites'."""
        centre = moments.mean() if self.centre is None else np.array(self.centre)
        return moments.shifted(centre).gram / self.rows

    def common(self) -> Matrix:
        """The common weights."""
        return np.array(self.weights, dtype=np.float64)

    def client(self, source: Source, found: Moments) -> Client:
        """The site at the beginning of the first step."""
        return LinearClient(self.second(found), len(self.weights[0]))

    def encode(self, found: Moments | Counts | Matrix, common: Grid) -> Words:
        """Put the parameters of one site on the grid."""
        assert isinstance(found, np.ndarray)
        return _encoded(found, common)

    def decode(self, words: Words, common: Grid) -> Matrix:
        """Read the sum of the parameters of all sites."""
        return _decoded(words, common).reshape(len(self.weights), -1)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
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
            f"parameters of ADMM for {len(self.asked)} variables; sums over many rounds can tell "
            "few sites apart, see 'What ADMM tells' in the documentation"
        )


@final
@dataclass(frozen=True)
class AskNetworks(Request):
    """One step of ADMM for one small neural network a node.

    Attributes
    ----------
    asked
        The variables.
    hidden
        Units in the hidden layer of each network.
    step
        Number of the step.
    rows
        Number of rows of all sites.
    rho
        Penalty on disagreement.
    parameters
        The common parameters, as little-endian 64-bit numbers.
    centre
        What is taken off the rows; ``None`` for each site's own means.
    """

    asked: tuple[str, ...]
    hidden: int
    step: int
    rows: int
    rho: float
    parameters: bytes
    centre: tuple[float, ...] | None
    message = Message.NETWORKS
    limbs = LIMBS

    @property
    def names(self) -> tuple[str, ...]:
        """The variables it is about."""
        return self.asked

    def size(self, common: Grid) -> int:
        """How many numbers the answer is."""
        common.schema.subset(self.asked).require(Kind.CONTINUOUS, "ADMM for neural networks")
        return perceptron.size(len(self.asked), self.hidden)

    def gather(self, source: Source) -> Moments:
        """Compute the moments of one site, which stay there."""
        return source.moments(self.asked)

    def common(self) -> Matrix:
        """The common parameters."""
        return np.frombuffer(self.parameters, "<f8").astype(np.float64)

    def client(self, source: Source, found: Moments) -> Client:
        """The site at the beginning of the first step."""
        columns = list(source.schema().indices(self.asked))
        # In one layout, for sums depend on it in their last digits.
        values = np.ascontiguousarray(source.rows()[:, columns])
        centre = values.mean(axis=0) if self.centre is None else np.array(self.centre)
        return NetworkClient(values - centre, self.hidden, self.rows)

    def encode(self, found: Moments | Counts | Matrix, common: Grid) -> Words:
        """Put the parameters of one site on the grid."""
        assert isinstance(found, np.ndarray)
        return _encoded(found, common)

    def decode(self, words: Words, common: Grid) -> Matrix:
        """Read the sum of the parameters of all sites."""
        return _decoded(words, common)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
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
            f"parameters of ADMM for neural networks of {len(self.asked)} variables; sums over "
            "many rounds can tell few sites apart, see 'What ADMM tells' in the documentation"
        )


Step: TypeAlias = AskConsensus | AskNetworks
"""A step of ADMM: what a site answers depends on the steps before."""


def _encoded(found: Matrix, common: Grid) -> Words:
    if not np.abs(found).max() < 2.0**PARAMETER:
        raise DataError("The parameters of this site are too large to be summed.")
    scaled = np.ldexp(found, _fraction(common)).ravel().tolist()
    return from_ints([round(v) for v in scaled], LIMBS)


def _decoded(words: Words, common: Grid) -> Matrix:
    one = 1 << _fraction(common)
    return np.array([v / one for v in to_ints(words)])


def _fraction(common: Grid) -> int:
    return 32 * LIMBS - 2 - PARAMETER - common.sites.bit_length()


def read_consensus(plain: Mapping[str, Any]) -> AskConsensus:
    """Read a step for linear models; `FormatError` for anything else."""
    asked = tuple(map(str, plain["consensus"]))
    weights = np.array(plain["weights"], dtype=np.float64)
    right = (
        weights.ndim == 2
        and len(weights) == len(asked)
        and 1 <= weights.shape[1] <= len(asked)
        and np.isfinite(weights).all()
    )
    if not right:
        raise FormatError("not a step of ADMM")
    rows = tuple(map(tuple, weights.tolist()))
    centre = _centre(plain, asked)
    return AskConsensus(asked, plain["step"], plain["rows"], float(plain["rho"]), rows, centre)


def read_networks(plain: Mapping[str, Any]) -> AskNetworks:
    """Read a step for neural networks; `FormatError` for anything else."""
    asked = tuple(map(str, plain["networks"]))
    hidden = plain["hidden"]
    try:
        parameters = base64.b64decode(plain["parameters"], validate=True)
    except binascii.Error as error:
        raise FormatError("not a step of ADMM") from error
    right = (
        type(hidden) is int
        and 1 <= hidden <= 2**16
        and len(parameters) == 8 * perceptron.size(len(asked), hidden)
        and np.isfinite(np.frombuffer(parameters, "<f8")).all()
    )
    if not right:
        raise FormatError("not a step of ADMM")
    centre = _centre(plain, asked)
    rho = float(plain["rho"])
    return AskNetworks(asked, hidden, plain["step"], plain["rows"], rho, parameters, centre)


def _centre(plain: Mapping[str, Any], asked: tuple[str, ...]) -> tuple[float, ...] | None:
    """The centre, having looked at the numbers of step and rows."""
    centre = None if plain["centre"] is None else tuple(map(float, plain["centre"]))
    right = (
        type(plain["step"]) is int
        and type(plain["rows"]) is int
        and plain["rows"] > 0
        and (centre is None or len(centre) == len(asked))
    )
    if not right:
        raise FormatError("not a step of ADMM")
    return centre
