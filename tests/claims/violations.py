"""Tables that break an assumption of learned graphs, each with its true graph.

To add one, write a function that returns a `Sample` and decorate it with `violation`. The tests in
``test_registry.py`` and ``benchmarks/claims/registry.py`` cross it with every answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import isthmus as ist

Column = NDArray[Any]
Table = dict[str, Column]
Rng = np.random.Generator

EDGES = (("a", "z"), ("b", "z"), ("z", "u"), ("z", "v"), ("z", "w"))
"""Two causes of z, which has three effects; "f" is related to nothing."""


@dataclass(frozen=True)
class Sample:
    """A table and what is true of it.

    Attributes
    ----------
    table
        The columns.
    edges
        Effects of one column on another.
    dependent
        Pairs without an effect that depend on each other given any others, because of a hidden
        cause: an edge is right, and no direction is.
    options
        Arguments of `learn` and the other verbs.
    ignored
        Columns whose edges do not count, because the table says that they follow from others.
    """

    table: Table
    edges: tuple[tuple[str, str], ...] = EDGES
    dependent: tuple[tuple[str, str], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True)
class Violation:
    """A way in which tables break an assumption.

    Attributes
    ----------
    name
        What is broken.
    make
        Makes a table from a generator of random numbers and a number of rows.
    note
        Part of a note that speaks of it. A note in these words that names a column of each false
        edge, or is about `rows`, excuses them.
    rows
        Whether the note is about rows, that is, about all edges.
    """

    name: str
    make: Callable[[Rng, int], Sample]
    note: str = ""
    rows: bool = False


VIOLATIONS: list[Violation] = []


def violation(name: str, note: str = "", *, rows: bool = False) -> Callable[..., Any]:
    """Add a function that makes tables to `VIOLATIONS`."""

    def add(make: Callable[[Rng, int], Sample]) -> Callable[[Rng, int], Sample]:
        VIOLATIONS.append(Violation(name, make, note, rows))
        return make

    return add


Draw = Callable[[], Column]
Effect = Callable[[Column, Column], Column]
"""An effect of the standardised z, and noise."""


def straight(z: Column, e: Column) -> Column:
    return np.asarray(z + e)


def columns(n: int, draw: Draw, effect: Effect = straight) -> Table:
    """Return the columns of the graph above, with some noise and some shape of effects."""
    a, b, f = draw(), draw(), draw()
    z = 0.8 * a + 0.8 * b + draw()
    unit = z / 1.51
    effects = {name: effect(unit, draw()) for name in "uvw"}
    assert len(z) == n
    return {"a": a, "b": b, "z": z, **effects, "f": f}


def normal(rng: Rng, n: int) -> Draw:
    return lambda: rng.normal(size=n)


def of_shape(name: str, note: str = "") -> Callable[[Callable[..., Effect]], Callable[..., Effect]]:
    """Add a violation whose columns u, v and w are another function of z."""

    def add(shape: Callable[..., Effect]) -> Callable[..., Effect]:
        def make(rng: Rng, n: int) -> Sample:
            return Sample(columns(n, normal(rng, n), shape(rng)))

        violation(name, note)(make)
        return shape

    return add


@of_shape("none")
def _straight(rng: Rng) -> Effect:
    return straight


@of_shape("counts (Poisson)")
def _counts(rng: Rng) -> Effect:
    return lambda z, e: rng.poisson(np.exp(1.0 + 0.5 * z))


@of_shape("censored at zero")
def _censored(rng: Rng) -> Effect:
    return lambda z, e: np.maximum(0.0, z + e)


@of_shape("saturating (tanh)")
def _saturating(rng: Rng) -> Effect:
    return lambda z, e: np.tanh(z) + 0.5 * e


@of_shape("rises and falls (parabola)")
def _parabola(rng: Rng) -> Effect:
    return lambda z, e: z**2 + e


@of_shape("three levels")
def _levels(rng: Rng) -> Effect:
    return lambda z, e: np.array(list("lmh"))[np.digitize(1.5 * z + e, [-1, 1])]


@of_shape("two levels, one rare")
def _rare(rng: Rng) -> Effect:
    return lambda z, e: np.where(1.2 * z + e > 2.0, "y", "n")


@of_shape("log-normal")
def _lognormal(rng: Rng) -> Effect:
    return lambda z, e: np.exp(0.5 * z + 0.5 * e)


@of_shape("zero inflated", "into levels and compare")
def _zeros(rng: Rng) -> Effect:
    return lambda z, e: np.where(rng.random(len(z)) < 0.5, 0.0, np.exp(0.7 * z + 0.4 * e))


@of_shape("spread grows with the cause")
def _spread(rng: Rng) -> Effect:
    return lambda z, e: z + (0.3 + 0.3 * np.abs(z)) * e


@of_shape("rounded to few values")
def _rounded(rng: Rng) -> Effect:
    return lambda z, e: np.round(z + e)


@of_shape("levels of one row in a hundred")
def _rare_levels(rng: Rng) -> Effect:
    def effect(z: Column, e: Column) -> Column:
        common = np.array(["c0", "c1", "c2"])[np.digitize(1.5 * z + e, [-0.8, 0.8])]
        others = np.array([f"r{i}" for i in range(5)])[rng.integers(0, 5, len(z))]
        return np.where(rng.random(len(z)) < 0.05, others, common)

    return effect


@violation("heavy tails (t, 2.5 degrees)", "normal scores")
def _tails(rng: Rng, n: int) -> Sample:
    return Sample(columns(n, lambda: rng.standard_t(2.5, n)))


@violation("skewed noise (exponential)", "normal scores")
def _skewed(rng: Rng, n: int) -> Sample:
    return Sample(columns(n, lambda: rng.exponential(size=n) - 1.0))


@violation("one corrupt row", "Check row", rows=True)
def _corrupt(rng: Rng, n: int) -> Sample:
    table = columns(n, normal(rng, n))
    for column in table.values():
        column[n // 3] = 1e4
    return Sample(table)


def of_groups(rng: Rng, n: int, groups: int, spread: float) -> tuple[Table, Column]:
    group = rng.integers(0, groups, n)
    table = columns(n, normal(rng, n))
    levels = rng.normal(size=(len(table), groups)) * spread
    return {
        name: column + level[group]
        for (name, column), level in zip(table.items(), levels, strict=True)
    }, group


@violation("six sites, named")
def _named(rng: Rng, n: int) -> Sample:
    table, group = of_groups(rng, n, 6, 1.0)
    return Sample(table | {"site": group}, options={"groups": "site"})


@violation("six sites, a column that is not named", "Learn within the groups of 'site'")
def _unnamed(rng: Rng, n: int) -> Sample:
    table, group = of_groups(rng, n, 6, 1.0)
    return Sample(table | {"site": group + 1}, ignored=("site",))


@violation("six sites that are not in the table")
def _unseen(rng: Rng, n: int) -> Sample:
    return Sample(of_groups(rng, n, 6, 1.0)[0])


@violation("30 clinics as numbers, not named", "the groups of 'clinic'|of each 'clinic'")
def _clinics(rng: Rng, n: int) -> Sample:
    table, group = of_groups(rng, n, 30, 0.65)  # an intraclass correlation of 0.3
    return Sample(table | {"clinic": group + 100}, ignored=("clinic",))


@violation("30 clinics as text, not named", "the groups of 'clinic'|of each 'clinic'")
def _clinic_names(rng: Rng, n: int) -> Sample:
    table, group = of_groups(rng, n, 30, 0.65)
    names = np.array([f"clinic {i}" for i in range(30)])[group]
    return Sample(table | {"clinic": names}, ignored=("clinic",))


@violation("rows copied", "remove the copies", rows=True)
def _copied(rng: Rng, n: int) -> Sample:
    table = columns(n // 3, normal(rng, n // 3))
    rows = rng.integers(0, n // 3, n)
    return Sample({name: column[rows] for name, column in table.items()})


@violation("patients of five rows", "of each 'patient'", rows=True)
def _patients(rng: Rng, n: int) -> Sample:
    units = n // 5
    patient = np.repeat(np.arange(units), 5)
    table = columns(units, normal(rng, units))
    repeated = {k: v[patient] + 0.3 * rng.normal(size=5 * units) for k, v in table.items()}
    return Sample(repeated | {"patient": patient}, ignored=("patient",))


def autoregressive(rng: Rng, n: int, weight: float) -> Draw:
    def draw() -> Column:
        from scipy.signal import lfilter

        steps = rng.normal(size=n + 200)
        return np.asarray(lfilter([1.0], [1.0, -weight], steps)[200:])

    return draw


@violation("rows in order of time", "Series", rows=True)
def _time(rng: Rng, n: int) -> Sample:
    return Sample(columns(n, autoregressive(rng, n, 0.9)))


@violation("drift over time", "Series", rows=True)
def _drift(rng: Rng, n: int) -> Sample:
    time = np.linspace(-2.0, 2.0, n)
    table = columns(n, normal(rng, n))
    return Sample({k: v + rng.normal() * time for k, v in table.items()})


@violation("one scale of all noise", "Divide each row by its scale", rows=True)
def _common_scale(rng: Rng, n: int) -> Sample:
    scale = np.exp(1.2 * rng.normal(size=n))
    return Sample(columns(n, lambda: scale * rng.normal(size=n)))


@violation("hidden cause of two effects")
def _hidden(rng: Rng, n: int) -> Sample:
    table, hidden = columns(n, normal(rng, n)), rng.normal(size=n)
    table["u"] = table["u"] + hidden
    table["v"] = table["v"] + hidden
    return Sample(table, dependent=(("u", "v"),))


@violation("hidden cause of a cause and an effect")
def _hidden_confounder(rng: Rng, n: int) -> Sample:
    draw, hidden = normal(rng, n), rng.normal(size=n)
    a, b = draw(), draw()
    f = draw() + hidden
    z = 0.8 * a + 0.8 * b + hidden + draw()
    table = {"a": a, "b": b, "z": z, "u": z / 1.8 + draw(), "v": z / 1.8 + draw()}
    table |= {"w": z / 1.8 + draw(), "f": f}
    return Sample(table, dependent=(("f", "z"),))


@violation("rows selected by three columns")
def _selected(rng: Rng, n: int) -> Sample:
    table = columns(6 * n, normal(rng, 6 * n))
    kept = np.flatnonzero(table["a"] + table["b"] + table["f"] > 1.5)[:n]
    return Sample({name: column[kept] for name, column in table.items()})


def with_gaps(table: Table, rng: Rng, share: float) -> Table:
    return {k: np.where(rng.random(len(v)) < share, np.nan, v) for k, v in table.items()}


@violation("gaps, rows dropped")
def _dropped(rng: Rng, n: int) -> Sample:
    table = with_gaps(columns(n, normal(rng, n)), rng, 0.1)
    return Sample(table, options={"missing": ist.DropRows()})


@violation("gaps, completed by expectation")
def _completed(rng: Rng, n: int) -> Sample:
    table = with_gaps(columns(n, normal(rng, n)), rng, 0.2)
    return Sample(table, options={"missing": ist.ExpectationMaximisation()})


@violation("gaps where values are large, rows dropped")
def _dropped_large(rng: Rng, n: int) -> Sample:
    table = columns(n, normal(rng, n))
    large = table["u"] > 0.7
    table["f"] = np.where(large & (rng.random(n) < 0.9), np.nan, table["f"])
    return Sample(table, options={"missing": ist.DropRows()})


@violation("a total and its parts", "determine 'total' exactly")
def _total(rng: Rng, n: int) -> Sample:
    table = columns(n, normal(rng, n))
    total = table["u"] + table["v"]
    return Sample(table | {"total": total}, (*EDGES, ("u", "total"), ("v", "total")))


@violation("a ratio and its parts", "product or a ratio")
def _ratio(rng: Rng, n: int) -> Sample:
    table = columns(n, normal(rng, n))
    table["u"], table["v"] = (np.exp(0.1 * table[name]) for name in "uv")
    ratio = np.round(100 * table["v"] / table["u"] ** 2, 1)
    return Sample(table | {"ratio": ratio}, (*EDGES, ("u", "ratio"), ("v", "ratio")))


@violation("levels and their numbers", "determine")
def _recoded(rng: Rng, n: int) -> Sample:
    table = columns(n, normal(rng, n))
    levels = np.digitize(1.5 * table["z"], [-3, -1.5, 0, 1.5, 3])
    words = np.array(["none", "school", "high", "college", "master", "doctor"])
    word = words[np.where(rng.random(n) < 0.7, levels, rng.integers(0, 6, n))]
    number = (words == word[:, None]).argmax(axis=1)
    edges = (*EDGES, ("z", "education"), ("z", "number"), ("education", "number"))
    return Sample(table | {"education": word, "number": number}, edges)


@violation("an effect that depends on a group", "Learn the groups of 'arm' separately")
def _interaction(rng: Rng, n: int) -> Sample:
    draw = normal(rng, n)
    arm = rng.random(n) < 0.5
    table = columns(n, draw, lambda z, e: np.where(arm, 1.5, -0.2) * z + e)
    edges = (*EDGES, ("arm", "u"), ("arm", "v"), ("arm", "w"))
    return Sample(table | {"arm": np.where(arm, "drug", "none")}, edges)
