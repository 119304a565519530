"""y23: three studies whose windows differ by a hair: their second difference is a needle."""

from __future__ import annotations

import numpy as np
import pytest
from tests.attacks.exact_sums import Table, seen
from tests.attacks.malicious import Attacked

from isthmus.cli.described import signed_pages
from isthmus.errors import RefusedError
from isthmus.statistics import Chebyshev, Expansion, Schema

NAMES = ("weight", "age", "hiv")
BOUNDS = {"weight": (0.0, 300.0), "age": (0.0, 120.0), "hiv": (0.0, 1.0)}
NEEDLE, WIDTH, TOP = 84.37, 0.02, 110.0
VICTIM = {"weight": NEEDLE, "age": 71.0, "hiv": 1.0}


def tables() -> dict[str, Table]:
    rng = np.random.default_rng(23)
    found: dict[str, Table] = {}
    for name, n in (("north", 400), ("east", 700), ("south", 250)):
        weight = rng.normal(80, 15, n).round(2)
        weight[np.abs(weight - NEEDLE) < 0.05] += 0.2
        found[name] = {
            "weight": weight,
            "age": rng.integers(20, 95, n).astype(float),
            "hiv": (rng.random(n) < 0.2).astype(float),
        }
    for name, value in VICTIM.items():
        found["east"][name][137] = value
    return found


def window(low: float) -> Expansion:
    centres, scales = ((low + TOP) / 2, 60.0, 0.5), ((TOP - low) / 2, 60.0, 1.5)
    return Expansion(Chebyshev(2, 1.0), NAMES, centres, scales)


def world(low: float, earlier: Attacked | None = None, *, protected: bool = True) -> Attacked:
    return Attacked(
        tables() if earlier is None else earlier.tables,
        Schema.continuous(NAMES),
        BOUNDS,
        requests=("features",),
        features=window(low),
        earlier=earlier,
        purpose=f"curves from {low}",
        protected=protected,
    )


def ramps(world: Attacked, low: float) -> np.ndarray:
    """Sums of the ramp that begins at a value, alone and times each variable."""
    found, half = seen(world, window(low)), (TOP - low) / 2
    products = [found.products["weight~1", name] + found.sums[name] for name in NAMES]
    values = [found.sums["weight~1"] + found.n, *products]
    return np.array([float(v) * half for v in values])


LOWS = (NEEDLE - WIDTH, NEEDLE, NEEDLE + WIDTH)


def test_three_windows_do_not_show_the_person_between_them() -> None:
    one, two, three = (ramps(world(low, protected=False), low) for low in LOWS)
    needle = one - 2 * two + three
    assert needle[0] / WIDTH == pytest.approx(1.0, abs=1e-3)
    for name, value in zip(NAMES, needle[1:] / needle[0], strict=True):
        assert value == pytest.approx(VICTIM[name], abs=0.05)
    first = world(LOWS[0])
    seen(first, window(LOWS[0]))
    with pytest.raises(RefusedError, match="other basis functions"):
        world(LOWS[1], first)


def test_windows_are_shown_before_anyone_signs() -> None:
    shown = "\n".join(signed_pages(world(LOWS[0]).study))
    for own in window(LOWS[0]).features.values():
        assert f"centre {own.centre!r}, scale {own.scale!r}" in shown
