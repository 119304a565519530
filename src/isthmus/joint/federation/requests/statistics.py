"""Requests for moments, counts, and moments of basis functions."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.joint.agreement.study import Study
from isthmus.joint.extracts.reading import rows_with_holes
from isthmus.joint.federation.requests.base import StatisticRequest
from isthmus.joint.federation.requests.fixed_point import (
    LIMBS,
    FixedPointEncoding,
    encode_rows,
)
from isthmus.joint.federation.requests.within_sites import (
    decode_within,
    encode_within,
    require_plausible_within,
    size_within,
)
from isthmus.joint.noise.whitening import LARGEST_ENTRY, LAST, SURVEY, ColumnLayout
from isthmus.joint.secure_sum.limbs import LimbArray
from isthmus.sources.base import Source
from isthmus.sources.tables.lazy import Lazy
from isthmus.statistics import Expansion, Moments
from isthmus.types import Floats


class _MomentsRequest(StatisticRequest[Moments]):
    """A request for moments of some columns."""

    limbs: ClassVar[int] = LIMBS

    @abstractmethod
    def _grid(self, common: FixedPointEncoding) -> FixedPointEncoding:
        """Return the units of these columns."""

    def size(self, grid: FixedPointEncoding) -> int:
        own = self._grid(grid)
        return size_within(own) if own.within else own.size

    def encode(self, source: Source, grid: FixedPointEncoding) -> LimbArray:
        """Encode the rows: the sum then does not depend on how they are split over sites."""
        own = self._grid(grid)
        rows = rows_with_holes(source) if isinstance(source, Lazy) else source.rows()
        if isinstance(source, Lazy):  # of a simulation, which may drop incomplete rows
            rows = rows[~np.isnan(rows).any(axis=1)]
        encode = encode_within if own.within else encode_rows
        return encode(own, rows, source.schema().indices(own.schema.names))

    def decode(self, total: LimbArray, grid: FixedPointEncoding) -> Moments:
        own = self._grid(grid)
        return decode_within(own, total) if own.within else own.decode(total)

    def require_plausible(self, total: LimbArray, grid: FixedPointEncoding) -> None:
        own = self._grid(grid)
        if own.within:
            require_plausible_within(own, total)
        else:
            own.require_plausible(total)

    def show(self, numbers: LimbArray, grid: FixedPointEncoding) -> list[str]:
        own, value = self._grid(grid), self.decode(numbers, grid)
        about = "the means of this site" if own.within else show_array(value.shift)
        return [
            f"  rows: {value.number_of_rows}",
            f"  columns: {', '.join(value.columns)}",
            "  sums:",
            show_array(value.number_of_rows * value.shift + value.sums),
            f"  products of deviations from {about}:",
            show_array(value.gram),
        ]


@final
@dataclass(frozen=True)
class AskMoments(_MomentsRequest):
    """Request number of rows, sums and products of variables.

    In a study with differential privacy, moments of all variables are requested in rounds; see
    `isthmus.joint.noise.whitening`.

    Parameters
    ----------
    asked
        Names of the variables.
    round
        Number of the round; ``None`` without differential privacy.
    transform
        The map of the rows before their products are summed, row by row; empty for the survey.
    """

    asked: tuple[str, ...]
    round: int | None = None
    transform: tuple[float, ...] = ()
    name: ClassVar[str] = "moments"

    @property
    def map(self) -> Floats | None:
        """The map of the rows; ``None`` for the survey."""
        width = math.isqrt(len(self.transform))
        return np.array(self.transform).reshape(width, width) if width else None

    def violations(self, study: Study) -> list[str]:
        if study.privacy is None:
            exact = self.round is None and not self.transform
            return [] if exact else ["rounds of moments are for studies with privacy"]
        if self.asked != study.schema.names or self.round not in range(SURVEY, LAST + 1):
            return ["with privacy, moments of all variables are released in rounds"]
        entries = 0 if self.round == SURVEY else (1 + study.schema.width) ** 2
        fits = len(self.transform) == entries
        small = all(abs(v) <= LARGEST_ENTRY for v in self.transform)  # False for NaN
        return [] if fits and small else ["the map of the rows does not fit the study"]

    def _grid(self, common: FixedPointEncoding) -> FixedPointEncoding:
        return common.over(common.schema.subset(self.asked))

    def size(self, grid: FixedPointEncoding) -> int:
        if self.round == SURVEY:
            return 1 + sum(ColumnLayout(grid.schema, grid.bounds).bins)
        return super().size(grid)

    def show(self, numbers: LimbArray, grid: FixedPointEncoding) -> list[str]:
        shown = super().show(numbers, grid)
        if self.round == SURVEY:
            what = "how many rows have a value in each interval of its range"
            return [*shown[:1], *(f"  {name}: {what}" for name in self.asked)]
        return shown

    def __str__(self) -> str:
        if self.round == SURVEY:
            return f"number of rows, and where the values of {len(self.asked)} variables are"
        what = f"number of rows, sums and products of {len(self.asked)} variables"
        return what if self.round is None else f"{what}, after a map of the rows"


@final
@dataclass(frozen=True)
class AskFeatures(_MomentsRequest):
    """Request moments of basis functions of continuous variables.

    The basis functions and their windows are those of the study.
    """

    expansion: Expansion
    name: ClassVar[str] = "features"

    @property
    def variables(self) -> tuple[str, ...]:
        return (*self.expansion.names, *self.expansion.beside)

    def violations(self, study: Study) -> list[str]:
        return []

    def window_violations(self, study: Study) -> list[str]:
        agreed = study.features
        if agreed is not None and agreed.basis == self.expansion.basis:
            known, asked = agreed.features, self.expansion.features
            if all(known.get(name) == own for name, own in asked.items()):
                return []
        return ["the study does not fix these basis functions, with these centres and scales"]

    def _grid(self, common: FixedPointEncoding) -> FixedPointEncoding:
        return common.over(self.expansion.widen(common.schema))

    def __str__(self) -> str:
        functions = sum(own.size for own in self.expansion.features.values())
        return (
            f"sums and products of {functions} basis functions of {len(self.variables)} variables"
        )


def show_array(values: NDArray[Any]) -> str:
    """Return all numbers of an array as text."""
    with np.printoptions(threshold=2**31, linewidth=100):
        return str(values)
