"""Discrete Gaussian noise, which the library OpenDP draws."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from isthmus.errors import MissingExtraError
from isthmus.types import Integers

PURPOSE = "A study with differential privacy"


def require_opendp() -> Any:
    """Import OpenDP, or raise `MissingExtraError`."""
    try:
        import opendp.prelude as dp
    except ImportError:
        raise MissingExtraError("opendp", "privacy", PURPOSE) from None
    dp.enable_features("contrib")
    return dp


def discrete_gaussian(scale: float, size: int) -> Integers:
    """Return integers from the discrete Gaussian distribution, from the system's random numbers.

    OpenDP draws them with exact integer arithmetic (Canonne, Kamath and Steinke 2020). No
    floating-point number is involved whose last digits could tell the value without noise.

    Parameters
    ----------
    scale
        Standard deviation of the continuous Gaussian of the same shape.
    size
        How many numbers.
    """
    dp = require_opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="i64")
    draw: Any = dp.m.make_gaussian(*space, scale=float(scale))
    return np.array(draw([0] * size), dtype=np.int64)


def confirmed_epsilon(rho: float, delta: float) -> float:
    """Return the ε of ρ-zCDP at this δ, as OpenDP computes it."""
    dp = require_opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="i64")
    one = dp.m.make_gaussian(*space, scale=math.sqrt(1.0 / (2.0 * rho)))
    return float(dp.c.make_zCDP_to_approxDP(one).map(1).epsilon(delta))
