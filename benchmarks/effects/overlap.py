"""Coverage of the 95% intervals of effects of a discrete cause if its levels hardly overlap.

The cause t depends on a confounder z: by a logistic curve of some slope, by a threshold (no
overlap), or by the share of treated women. The effect is adjusted for z. Run it with

    python benchmarks/effects/overlap.py --tables 400 > benchmarks/results/effects-overlap.md
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np

from isthmus.errors import DataError
from isthmus.fitting.standardised import standardised_effect
from isthmus.results import PossibleEffect
from isthmus.statistics import Kind, Schema, Variable


@dataclass(frozen=True)
class Setting:
    """How tables are simulated: outcome, rows, and the slope or share of treated."""

    outcome: str
    rows: int
    slope: float = 0.0
    treated: float = 0.0

    @property
    def name(self) -> str:
        """Return what the cause depends on."""
        if self.treated:
            return f"{100 * self.treated:g}% of women treated"
        return "t = z > 0" if np.isinf(self.slope) else f"logistic, slope {self.slope:g}"


SETTINGS = (
    *[Setting("linear", n, s) for n in (200, 1000) for s in (1, 2, 3, 5, np.inf)],
    *[Setting("curved", 1000, s) for s in (1, 2)],
    *[Setting("binary", n, s) for n in (200, 1000) for s in (1, 2, 3)],
    *[Setting("binary", 1000, treated=p) for p in (0.9, 0.95, 0.98, 0.99, 1.0)],
    *[Setting("linear", 1000, treated=p) for p in (0.9, 0.98, 0.99)],
)


def _chance(value: Any) -> Any:
    return 0.5 + 0.5 * np.tanh(value / 2)


def one_table(setting: Setting, rng: np.random.Generator) -> tuple[dict[str, Any], float]:
    """Return a table and the true effect."""
    n, draw = setting.rows, rng.random(setting.rows)
    z: Any
    if setting.treated:
        z = rng.choice(["f", "m"], n)
        women = z == "f"
        t = rng.random(n) < np.where(women, setting.treated, 0.5)
        if setting.outcome == "linear":
            return {"z": z, "t": t, "y": 2.0 * women + t * women + rng.normal(size=n)}, 0.5
        return {"z": z, "t": t, "y": draw < np.where(women, 0.6 - 0.3 * t, 0.2)}, -0.15
    z = rng.normal(size=n)
    t = z > 0 if np.isinf(setting.slope) else rng.random(n) < _chance(setting.slope * z)
    if setting.outcome == "binary":
        points, weights = np.polynomial.hermite_e.hermegauss(80)
        lift = _chance(points) - _chance(points - 1)
        return {"z": z, "t": t, "y": draw < _chance(z + t - 1)}, float(
            weights @ lift / weights.sum()
        )
    shape = np.exp(0.7 * z) if setting.outcome == "curved" else 2.0 * z
    return {"z": z, "t": t, "y": shape - t + rng.normal(size=n)}, -1.0


def measured(setting: Setting, tables: int) -> str:
    """Return a row of the table of results."""
    inside, refused, widths, outside, led = [], 0, [], [], []
    for seed in range(tables):
        table, truth = one_table(setting, np.random.default_rng([seed, setting.rows]))
        z = table["z"] if setting.slope else np.searchsorted(["f", "m"], table["z"])
        rows = np.column_stack([table["t"], table["y"], z]).astype(np.float64)
        numbers = ["y"] * (setting.outcome != "binary") + ["z"] * (setting.slope > 0)
        schema = Schema(
            tuple(
                Variable(v, Kind.CONTINUOUS) if v in numbers else Variable(v, Kind.DISCRETE, (0, 1))
                for v in "tyz"
            )
        )
        try:
            found = standardised_effect(schema, rows, (0, 1), None if "y" in numbers else 1)
        except DataError:
            refused += 1
            continue
        low, high = PossibleEffect((), (), *found).interval()
        inside.append(low <= truth <= high)
        widths.append(high - low)
        outside.append(found.without_overlap)
        led.append(found.extrapolated)
    cells = [setting.outcome, setting.name, f"{setting.rows:,}"]
    cells.append(f"{100 * np.mean(inside):.1f} ({len(inside)})" if inside else "–")
    cells.append(f"{np.median(widths):.2g}" if inside else "–")
    cells.append(f"{100 * np.mean(outside):.1f}" if inside else "–")
    cells.append(f"{100 * np.mean(led):.0f}" if inside else "–")
    return f"| {' | '.join(cells)} | {100 * refused / tables:.0f} |"


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=400)
    parser.add_argument("--only", type=int, nargs="*", default=range(len(SETTINGS)))
    options = parser.parse_args()
    print("# Coverage of the 95% intervals of effects with little overlap\n\n<!-- table -->\n")
    print(
        "| outcome | cause | rows | coverage | width | without overlap, % | extrapolated, % "
        "| refused, % |"
    )
    print("| --- |" + 7 * " --- |")
    for place in options.only:
        print(measured(SETTINGS[place], options.tables), flush=True)
    print(
        "\nPercent of intervals that cover the true effect (number of tables in brackets), their "
        "median width, the mean share of rows without overlap, and how often an answer leads with "
        "the extrapolation, or is refused. "
        f"Command: `python benchmarks/effects/overlap.py --tables {options.tables}`."
    )


if __name__ == "__main__":
    main()
