"""What a question to the sites is."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from isthmus.sources.base import Source
from isthmus.sources.horizontal.requests.grid import Grid
from isthmus.sources.horizontal.secure_sum.words import Words
from isthmus.statistics import Counts, Moments

Matrix: TypeAlias = NDArray[np.float64]


class Message(StrEnum):
    """The kinds of statistics that a study may allow."""

    MOMENTS = "moments"
    COUNTS = "counts"
    FEATURES = "features"
    TOTALS = "totals"
    CONSENSUS = "consensus"
    NETWORKS = "networks"


class Request(ABC):
    """A question to all sites, answered by one secure sum."""

    @property
    @abstractmethod
    def message(self) -> Message:
        """What kind of statistic it asks for."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The variables it is about."""

    @property
    @abstractmethod
    def limbs(self) -> int:
        """Length of a number in 32-bit limbs."""

    @abstractmethod
    def size(self, common: Grid) -> int:
        """How many numbers the answer is."""

    @abstractmethod
    def gather(self, source: Source) -> Moments | Counts:
        """Compute the statistic of one site."""

    @abstractmethod
    def encode(self, found: Moments | Counts | Matrix, common: Grid) -> Words:
        """Put the statistic of one site on the grid."""

    @abstractmethod
    def decode(self, words: Words, common: Grid) -> Moments | Counts | Matrix:
        """Read the statistic of all sites."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""

    @abstractmethod
    def __str__(self) -> str: ...

    def to_bytes(self) -> bytes:
        """As it travels: JSON without spaces."""
        return json.dumps(self.to_dict(), separators=(",", ":"), allow_nan=False).encode()
