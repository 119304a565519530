"""A basis fitted to the variables of a table, so that all sites use the same functions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from isthmus.errors import DataError, FormatError
from isthmus.statistics.features import Basis, Features, basis_from_dict, basis_to_dict
from isthmus.statistics.moments import Moments, correlate
from isthmus.statistics.schema import Kind, Schema

_MOST_PRODUCTS = 4950
"""Number of products of 100 variables. Those of more would have moments of gigabytes."""


@final
@dataclass(frozen=True)
class Expansion:
    """A basis with the centre and scale of each variable it is applied to.

    If the basis has products, `pairs` are the variables that are multiplied; None for all pairs.
    The indicators of the discrete variables in `beside` are kept beside the functions.
    """

    basis: Basis
    names: tuple[str, ...]
    centres: tuple[float, ...]
    scales: tuple[float, ...]
    pairs: tuple[tuple[str, str], ...] | None = None
    beside: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not len(self.names) == len(self.centres) == len(self.scales) > 0:
            raise DataError(
                f"An expansion needs one centre and one scale per variable; {len(self.names)} "
                f"variables, {len(self.centres)} centres and {len(self.scales)} scales were given."
            )
        _ = self.features  # refuses centres and scales that cannot be used

    @classmethod
    def standardised(cls, basis: Basis, moments: Moments) -> Expansion:
        """Take the centre and scale of each continuous variable from (pooled) moments.

        Of more than 100 variables, not all pairs are multiplied, but those with the largest partial
        correlations, or correlations if there are fewer rows than variables.
        """
        values = moments.without_features()
        numbers = moments.schema.of_kind(Kind.CONTINUOUS)
        if len(numbers) < len(moments.schema) and numbers:
            values = values.select(numbers)
        values.schema.require(Kind.CONTINUOUS, "Basis functions need")
        spread = np.sqrt(values.covariance().diagonal())
        scales = np.where(spread > 0, spread, 1.0)
        names, pairs = values.schema.names, None
        if basis.pairs and math.comb(len(names), 2) > _MOST_PRODUCTS:
            related = values.correlation()
            if moments.n > len(names):
                precision = np.linalg.pinv(related, rcond=1e-9, hermitian=True).astype(np.float64)
                related = correlate(precision)[0]
            i, j = np.triu_indices(len(names), 1)
            strongest = np.sort(np.argsort(-np.abs(related[i, j]), kind="stable")[:_MOST_PRODUCTS])
            pairs = tuple((names[i[k]], names[j[k]]) for k in strongest)
        beside = moments.schema.of_kind(Kind.DISCRETE)
        means = tuple(values.mean().tolist())
        return cls(basis, names, means, tuple(scales.tolist()), pairs, beside)

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
        schema.subset(self.names).require(Kind.CONTINUOUS, "Basis functions need")
        return schema.subset(self.variables(schema)).with_features(self.features)

    def variables(self, schema: Schema) -> tuple[str, ...]:
        """Names of all variables; if there are discrete ones, in the order of `schema`."""
        if not self.beside:
            return self.names
        return tuple(n for n in schema.names if n in {*self.names, *self.beside})

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, to be sent to the sites."""
        plain: dict[str, Any] = {
            "basis": basis_to_dict(self.basis),
            "columns": {
                n: [c, s] for n, c, s in zip(self.names, self.centres, self.scales, strict=True)
            },
        }
        if self.pairs is not None:
            plain["pairs"] = [[*pair] for pair in self.pairs]
        return plain | {"beside": [*self.beside]} if self.beside else plain

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
            beside = tuple(str(name) for name in data.get("beside", ()))
            return cls(basis, tuple(columns), tuple(centres), tuple(scales), pairs, beside)
        except FormatError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise FormatError(f"This is not an expansion: {error}.") from error
