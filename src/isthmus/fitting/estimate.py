"""What the estimation of an effect returns."""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np


@final
class Estimate(NamedTuple):
    """An estimated effect; the attributes are those of `isthmus.results.PossibleEffect`."""

    value: float
    standard_error: float
    degrees: float
    robust: bool = True
    averages: tuple[float, float] | None = None
    partial_correlation: float = np.nan
    first_stage: float = np.nan
    largest: float = np.inf
    without_overlap: float = 0.0
    extrapolated: bool = False
    terms: tuple[str, ...] = ()
    averaged: bool = False
    challenged: bool = True
    clusters: int = 0
    complete_rows: int = 0
