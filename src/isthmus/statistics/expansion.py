"""A basis fitted to the variables of a table, so that all sites use the same functions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from isthmus.errors import DataError, FormatError
from isthmus.statistics.features.base import Basis, Features, basis_from_dict, basis_to_dict
from isthmus.statistics.moments import Moments, correlate
from isthmus.statistics.schema import Kind, Schema

_MOST_PRODUCTS = 4950
"""Number of products of 100 variables. Those of more would have moments of gigabytes."""


@final
@dataclass(frozen=True)
class Expansion:
    """A basis with the centre and scale of each variable it is applied to.

    If the basis has products, `pairs` are the variables that are multiplied; None for all pairs.
    """

    basis: Basis
    names: tuple[str, ...]
    centres: tuple[float, ...]
    scales: tuple[float, ...]
    pairs: tuple[tuple[str, str], ...] | None = None

    def __post_init__(self) -> None:
        if not len(self.names) == len(self.centres) == len(self.scales) > 0:
            raise DataError(
                f"An expansion needs one centre and one scale per variable; {len(self.names)} "
                f"variables, {len(self.centres)} centres and {len(self.scales)} scales were given."
            )
        _ = self.features  # refuses centres and scales that cannot be used

    @classmethod
    def standardised(cls, basis: Basis, moments: Moments) -> Expansion:
        """Take the centre and scale of each variable from (pooled) moments.

        Of more than 100 variables, not all pairs are multiplied, but those with the largest partial
        correlations, or correlations if there are fewer rows than variables.
        """
        moments.schema.require(Kind.CONTINUOUS, "Basis functions need")
        values = moments.without_features()
        spread = np.sqrt(values.covariance().diagonal())
        scales = np.where(spread > 0, spread, 1.0)
        names, pairs = moments.schema.names, None
        if basis.pairs and math.comb(len(names), 2) > _MOST_PRODUCTS:
            related = values.correlation()
            if moments.n > len(names):
                precision = np.linalg.pinv(related, rcond=1e-9, hermitian=True).astype(np.float64)
                related = correlate(precision)[0]
            i, j = np.triu_indices(len(names), 1)
            strongest = np.sort(np.argsort(-np.abs(related[i, j]), kind="stable")[:_MOST_PRODUCTS])
            pairs = tuple((names[i[k]], names[j[k]]) for k in strongest)
        return cls(basis, names, tuple(values.mean().tolist()), tuple(scales.tolist()), pairs)

    @classmethod
    def within(cls, basis: Basis, bounds: Mapping[str, tuple[float, float]]) -> Expansion:
        """Choose the centre and scale of each variable so that its bounds are the window.

        Bounds are public. Nothing about the data is needed for such an expansion, so that a study
        can fix it before any sum is known. A basis without a window is scaled by a sixth of the
        width. Of a basis with products, there can be at most 100 variables: bounds do not tell
        which pairs matter.
        """
        names = tuple(bounds)
        if basis.pairs and math.comb(len(names), 2) > _MOST_PRODUCTS:
            raise DataError(
                f"{basis!r} multiplies all pairs of variables, so it is for at most 100; there are "
                f"{len(names)}. Choose fewer variables."
            )
        half = basis.window[1] if math.isfinite(basis.window[1]) else 3.0
        return cls(
            basis,
            names,
            tuple(low / 2 + high / 2 for low, high in bounds.values()),
            tuple((high / 2 - low / 2) / half for low, high in bounds.values()),
        )

    @property
    def features(self) -> dict[str, Features]:
        """The basis functions of each variable; products belong to the later one of two."""
        fitted = [*zip(self.names, self.centres, self.scales, strict=True)]
        position = {name: i for i, name in enumerate(self.names)}
        earlier: list[list[int]] = [[] for _ in fitted]
        if self.basis.pairs and self.pairs is None:
            earlier = [[*range(i)] for i in range(len(fitted))]
        for a, b in self.pairs or ():
            first, second = sorted((position[a], position[b]))
            earlier[second].append(first)
        return {
            name: Features(self.basis, centre, scale, tuple(fitted[i] for i in sorted(own)))
            for (name, centre, scale), own in zip(fitted, earlier, strict=True)
        }

    def widen(self, schema: Schema) -> Schema:
        """The variables of the expansion, taken from `schema`, with their basis functions."""
        chosen = schema.subset(self.names)
        chosen.require(Kind.CONTINUOUS, "Basis functions need")
        return chosen.with_features(self.features)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, to be sent to the sites."""
        plain: dict[str, Any] = {
            "basis": basis_to_dict(self.basis),
            "columns": {
                n: [c, s] for n, c, s in zip(self.names, self.centres, self.scales, strict=True)
            },
        }
        return plain if self.pairs is None else plain | {"pairs": [[*pair] for pair in self.pairs]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Expansion:
        """Read what `to_dict` wrote; `FormatError` for anything else."""
        try:
            basis = basis_from_dict(data["basis"])
            columns = {str(n): (float(c), float(s)) for n, (c, s) in data["columns"].items()}
            centres, scales = zip(*columns.values(), strict=True) if columns else ((), ())
            pairs = data.get("pairs")
            if pairs is not None:
                pairs = tuple((str(a), str(b)) for a, b in pairs)
            return cls(basis, tuple(columns), tuple(centres), tuple(scales), pairs)
        except FormatError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise FormatError(f"This is not an expansion: {error}.") from error
