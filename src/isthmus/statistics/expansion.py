"""A basis fitted to the variables of a table, so that all sites use the same functions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from isthmus.errors import DataError, FormatError
from isthmus.statistics.features.base import Basis, Features, basis_from_dict, basis_to_dict
from isthmus.statistics.moments import Moments
from isthmus.statistics.schema import Kind, Schema


@final
@dataclass(frozen=True)
class Expansion:
    """A basis with the centre and scale of each variable it is applied to."""

    basis: Basis
    names: tuple[str, ...]
    centres: tuple[float, ...]
    scales: tuple[float, ...]

    def __post_init__(self) -> None:
        if not len(self.names) == len(self.centres) == len(self.scales) > 0:
            raise DataError(
                f"An expansion needs one centre and one scale per variable; {len(self.names)} "
                f"variables, {len(self.centres)} centres and {len(self.scales)} scales were given."
            )
        _ = self.features  # refuses centres and scales that cannot be used

    @classmethod
    def standardised(cls, basis: Basis, moments: Moments) -> Expansion:
        """Take the centre and scale of each variable from (pooled) moments."""
        moments.schema.require(Kind.CONTINUOUS, "Basis functions need")
        values = moments.without_features()
        spread = np.sqrt(values.covariance().diagonal())
        scales = np.where(spread > 0, spread, 1.0)
        return cls(
            basis, moments.schema.names, tuple(values.mean().tolist()), tuple(scales.tolist())
        )

    @classmethod
    def within(cls, basis: Basis, bounds: Mapping[str, tuple[float, float]]) -> Expansion:
        """Choose the centre and scale of each variable so that its bounds are the window.

        Bounds are public. Nothing about the data is needed for such an expansion, so that a study
        can fix it before any sum is known. A basis without a window is scaled by a sixth of the
        width.
        """
        names = tuple(bounds)
        half = basis.window[1] if math.isfinite(basis.window[1]) else 3.0
        return cls(
            basis,
            names,
            tuple(low / 2 + high / 2 for low, high in bounds.values()),
            tuple((high / 2 - low / 2) / half for low, high in bounds.values()),
        )

    @property
    def features(self) -> dict[str, Features]:
        """The basis functions of each variable."""
        fitted = zip(self.names, self.centres, self.scales, strict=True)
        return {name: Features(self.basis, centre, scale) for name, centre, scale in fitted}

    def widen(self, schema: Schema) -> Schema:
        """The variables of the expansion, taken from `schema`, with their basis functions."""
        chosen = schema.subset(self.names)
        chosen.require(Kind.CONTINUOUS, "Basis functions need")
        return chosen.with_features(self.features)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, to be sent to the sites."""
        return {
            "basis": basis_to_dict(self.basis),
            "columns": {
                n: [c, s] for n, c, s in zip(self.names, self.centres, self.scales, strict=True)
            },
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Expansion:
        """Read what `to_dict` wrote; `FormatError` for anything else."""
        try:
            basis = basis_from_dict(data["basis"])
            columns = {str(n): (float(c), float(s)) for n, (c, s) in data["columns"].items()}
            centres, scales = zip(*columns.values(), strict=True) if columns else ((), ())
            return cls(basis, tuple(columns), tuple(centres), tuple(scales))
        except FormatError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise FormatError(f"This is not an expansion: {error}.") from error
