"""The options of a run of ADMM that the sites must know, too."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self, final

import numpy as np

from isthmus.errors import FormatError
from isthmus.types import Bools

SMALLEST, LARGEST = 1e-9, 1e16
"""Limits of the penalties in all steps."""


@final
@dataclass(frozen=True)
class ADMMOptions:
    """What a coordinator chooses for a run, before any number of a site is known.

    Attributes
    ----------
    penalty, lagged_penalty, rho1, rho2, growth1, growth2
        As for `ADMM`.
    together
        Whether ``rho2`` is the penalty of all sites together.
    forbidden
        Pairs of a cause and an effect that must not be an edge.
    hidden, seed
        Units in the hidden layer of each neural network, and the seed of their initial parameters;
        without effect for linear models.
    """

    penalty: float = 0.01
    lagged_penalty: float = 0.01
    rho1: float = 1e-3
    rho2: float = 1e-3
    growth1: float = 1.75
    growth2: float = 1.25
    together: bool = False
    forbidden: tuple[tuple[str, str], ...] = ()
    hidden: int = 10
    seed: int = 0

    def forbidden_among(self, names: tuple[str, ...]) -> Bools:
        """Return which edges ``[cause, effect]`` must not be in the graph; no loop may be."""
        found = np.eye(len(names), dtype=np.bool_)
        for cause, effect in self.forbidden:
            found[names.index(cause), names.index(effect)] = True
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self) | {"forbidden": [list(pair) for pair in self.forbidden]}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], names: tuple[str, ...]) -> Self:
        """Read what `to_dict` wrote; `FormatError` for options that no run has."""
        numbers = {name: plain[name] for name in NUMBERS}
        hidden, seed, together = plain["hidden"], plain["seed"], plain["together"]
        forbidden = tuple((cause, effect) for cause, effect in plain["forbidden"])
        valid = (
            all(type(v) in (int, float) and math.isfinite(v) and v >= 0 for v in numbers.values())
            and SMALLEST <= numbers["rho1"] <= LARGEST
            and SMALLEST <= numbers["rho2"] <= LARGEST
            and type(together) is bool
            and all(name in names for pair in forbidden for name in pair)
            and type(hidden) is type(seed) is int
            and 1 <= hidden <= 2**16
            and 0 <= seed < 2**64
        )
        if not valid:
            raise FormatError("The request does not have the options of a run of ADMM.")
        values = {name: float(value) for name, value in numbers.items()}
        return cls(**values, together=together, forbidden=forbidden, hidden=hidden, seed=seed)


NUMBERS = ("penalty", "lagged_penalty", "rho1", "rho2", "growth1", "growth2")
