"""Cross every answer in numbers with tables that break an assumption, in a known causal graph.

Each answer has 95% intervals. It holds for a table if they contain the truth, or a note says why
they may not. To add a violation, write a function that returns `Numbers` and decorate it with
`of_numbers`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import isthmus as ist
from isthmus.errors import IsthmusError
from isthmus.tables import Missing

LEAST_COVERED = 0.9
"""Share of intervals that must contain the truth, or whose table must have a note."""
_DRAWS = 39
"""Completed tables: the least and the largest draw are then an interval of 95%."""
_NEW_ROWS = 20

Column = NDArray[Any]
Table = dict[str, Column]
Rng = np.random.Generator


@dataclass(frozen=True)
class Numbers:
    """A table with causes z… of x and y, and an effect of x on y.

    Attributes
    ----------
    table
        The columns.
    effect
        The average effect of one unit of x, or of its level "t" instead of "c".
    mean
        The mean of y if x is set to 1, or to "t".
    options
        Arguments of the verbs.
    """

    table: Table
    effect: float
    mean: float
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def dag(self) -> ist.DAG:
        """The true graph."""
        causes = [name for name in self.table if name.startswith("z")]
        nodes = [*causes, "x", "y"]
        return ist.DAG(nodes, [(z, end) for z in causes for end in "xy"] + [("x", "y")])

    @property
    def level(self) -> Any:
        """The value that x is set to."""
        return "t" if self.table["x"].dtype.kind == "U" else 1.0


@dataclass(frozen=True)
class Broken:
    """A way in which tables break an assumption of numbers.

    Attributes
    ----------
    name
        What is broken.
    make
        Makes a table from a generator of random numbers and a number of rows.
    note
        Part of a note that excuses intervals that do not cover.
    """

    name: str
    make: Callable[[Rng, int], Numbers]
    note: str = ""


BROKEN: list[Broken] = []


def of_numbers(name: str, note: str = "") -> Callable[..., Any]:
    """Add a function that makes tables to `BROKEN`."""

    def add(make: Callable[[Rng, int], Numbers]) -> Callable[[Rng, int], Numbers]:
        BROKEN.append(Broken(name, make, note))
        return make

    return add


def confounded(
    rng: Rng,
    n: int,
    shape: Callable[[Column], Column] = lambda z: z,
    noise: Callable[[], Column] | None = None,
) -> Table:
    """Return a table with one confounder and an effect of one."""
    draw = noise or (lambda: rng.normal(size=n))
    z = draw()
    x = shape(z) + draw()
    return {"z": z, "x": x, "y": x + 2.0 * shape(z) + draw()}


@of_numbers("none")
def _straight(rng: Rng, n: int) -> Numbers:
    return Numbers(confounded(rng, n), 1.0, 1.0)


@of_numbers("curved confounder")
def _curved(rng: Rng, n: int) -> Numbers:
    return Numbers(confounded(rng, n, np.square), 1.0, 3.0)


@of_numbers("saturating confounder")
def _saturating(rng: Rng, n: int) -> Numbers:
    return Numbers(confounded(rng, n, lambda z: 2.0 * np.tanh(2.0 * z)), 1.0, 1.0)


@of_numbers("product of two confounders")
def _product(rng: Rng, n: int) -> Numbers:
    z, w = rng.normal(size=(2, n))
    x = z * w + rng.normal(size=n)
    return Numbers({"z": z, "z2": w, "x": x, "y": x + 2 * z * w + rng.normal(size=n)}, 1.0, 1.0)


@of_numbers("spread grows with the cause")
def _spread(rng: Rng, n: int) -> Numbers:
    z = rng.normal(size=n)
    x = z + rng.normal(size=n)
    return Numbers({"z": z, "x": x, "y": x + z + (0.2 + x**2) * rng.normal(size=n)}, 1.0, 1.0)


@of_numbers("curved effect")
def _bent(rng: Rng, n: int) -> Numbers:
    z = rng.normal(size=n)
    x = 1.0 + 0.5 * z + rng.normal(size=n)
    return Numbers({"z": z, "x": x, "y": x + 0.5 * x**2 + z + rng.normal(size=n)}, 2.0, 1.5)


@of_numbers("heavy tails (t, 2.5 degrees)")
def _tails(rng: Rng, n: int) -> Numbers:
    return Numbers(confounded(rng, n, noise=lambda: rng.standard_t(2.5, n)), 1.0, 1.0)


@of_numbers("skewed noise (exponential)")
def _skewed(rng: Rng, n: int) -> Numbers:
    return Numbers(confounded(rng, n, noise=lambda: rng.exponential(size=n) - 1.0), 1.0, 1.0)


@of_numbers("binary cause, curved confounder")
def _binary(rng: Rng, n: int) -> Numbers:
    z = rng.normal(size=n)
    treated = rng.random(n) < 1.0 / (1.0 + np.exp(1.0 - z**2))
    y = treated + z**2 + rng.normal(size=n)
    return Numbers({"z": z, "x": np.where(treated, "t", "c"), "y": y}, 1.0, 2.0)


def with_gaps(numbers: Numbers, rng: Rng, share: float, missing: Missing) -> Numbers:
    """Return the same with values missing completely at random."""
    table = {
        name: np.where(rng.random(len(column)) < share, np.nan, column)
        for name, column in numbers.table.items()
    }
    return Numbers(table, numbers.effect, numbers.mean, {"missing": missing})


@of_numbers("30% missing, completed by expectation")
def _incomplete(rng: Rng, n: int) -> Numbers:
    return with_gaps(_straight(rng, n), rng, 0.3, ist.ExpectationMaximisation())


@of_numbers("curved confounder, 30% missing, completed by expectation")
def _incomplete_curved(rng: Rng, n: int) -> Numbers:
    return with_gaps(_curved(rng, n), rng, 0.3, ist.ExpectationMaximisation())


@of_numbers("curved confounder, 20% missing, rows dropped")
def _dropped(rng: Rng, n: int) -> Numbers:
    return with_gaps(_curved(rng, n), rng, 0.2, ist.DropRows())


@of_numbers("rows copied", "remove the copies")
def _copied(rng: Rng, n: int) -> Numbers:
    table = confounded(rng, n // 4)
    rows = rng.integers(0, n // 4, n)
    return Numbers({name: column[rows] for name, column in table.items()}, 1.0, 1.0)


@of_numbers("rows in order of time", "Series")
def _time(rng: Rng, n: int) -> Numbers:
    from scipy.signal import lfilter

    def draw() -> Column:
        return np.asarray(lfilter([1.0], [1.0, -0.9], rng.normal(size=n + 200))[200:])

    return Numbers(confounded(rng, n, noise=draw), 1.0, 1.0)


@of_numbers("slope that depends on another number")
def _slope_by_number(rng: Rng, n: int) -> Numbers:
    z = rng.normal(size=n)
    x = 0.7 * z + rng.normal(size=n)
    y = x + 0.7 * x * (z - z.mean()) + z + rng.normal(size=n)
    return Numbers({"z": z, "x": x, "y": y}, 1.0, 1.0)


@of_numbers("slope that depends on a level")
def _slope_by_level(rng: Rng, n: int) -> Numbers:
    z = rng.random(n) < 0.5
    x = z + np.where(z, 0.6, 1.5) * rng.normal(size=n)
    y = np.where(z, 2.0, 0.0) * x + z + rng.normal(size=n)
    return Numbers({"z": np.where(z, "q", "p"), "x": x, "y": y}, 1.0, 1.5)


@of_numbers("threshold of a confounder")
def _threshold(rng: Rng, n: int) -> Numbers:
    return Numbers(confounded(rng, n, lambda z: 2.0 * (z > 0.5)), 1.0, 1.0 + 4.0 * 0.3085)


@of_numbers("levels of one row in a hundred")
def _rare_levels(rng: Rng, n: int) -> Numbers:
    code = rng.choice(6, n, p=[0.5, 0.46, 0.01, 0.01, 0.01, 0.01])
    x = 0.5 * code + rng.normal(size=n)
    y = x + code + rng.normal(size=n)
    return Numbers({"z": np.array(list("abcdef"))[code], "x": x, "y": y}, 1.0, 1.6)


@of_numbers("confounders that are nearly equal")
def _collinear(rng: Rng, n: int) -> Numbers:
    table = confounded(rng, n)
    return Numbers(
        {"z": table["z"], "z2": table["z"] + 0.01 * rng.normal(size=n)} | table, 1.0, 1.0
    )


@of_numbers("confounders that determine each other", "determine|dependent|follows exactly")
def _determined(rng: Rng, n: int) -> Numbers:
    table = confounded(rng, n)
    return Numbers({"z": table["z"], "z2": 2.0 * table["z"]} | table, 1.0, 1.0)


@of_numbers("one corrupt row of the cause", "Check row")
def _corrupt(rng: Rng, n: int) -> Numbers:
    table = confounded(rng, n)
    table["x"][n // 3] = 1e4
    return Numbers(table, 1.0, 1.0)


@of_numbers("units that differ by a factor of a billion")
def _units(rng: Rng, n: int) -> Numbers:
    table = confounded(rng, n)
    return Numbers({"z": 1e6 * table["z"], "x": table["x"], "y": 1e-3 * table["y"]}, 1e-3, 1e-3)


@of_numbers("outcome censored at zero", "least value")
def _censored(rng: Rng, n: int) -> Numbers:
    table = confounded(rng, n, lambda z: 0.5 * z)
    mean, spread = 1.0, 2.0**0.5
    density = np.exp(-((mean / spread) ** 2) / 2.0) / (2.0 * np.pi) ** 0.5
    set_to_one = mean * 0.7602 + spread * density
    return Numbers(table | {"y": np.maximum(0.0, table["y"])}, 0.5, set_to_one)


@of_numbers("counts")
def _counts(rng: Rng, n: int) -> Numbers:
    z = rng.normal(size=n)
    x = 0.5 * z + rng.normal(size=n)
    y = rng.poisson(np.exp(0.5 + 0.3 * x + 0.3 * z)).astype(np.float64)
    # The exponent has the variance 0.09 + 0.45**2, and 0.09 if x is set.
    average = np.exp(0.5 + (0.09 + 0.45**2) / 2.0)
    return Numbers({"z": z, "x": x, "y": y}, 0.3 * average, np.exp(0.8 + 0.09 / 2.0))


@of_numbers("half of the outcomes are zero")
def _zeros(rng: Rng, n: int) -> Numbers:
    table = confounded(rng, n)
    y = np.where(rng.random(n) < 0.5, 0.0, 10.0 + table["y"])
    return Numbers(table | {"y": y}, 0.5, 5.5)


@of_numbers("outcome rounded to whole numbers")
def _rounded(rng: Rng, n: int) -> Numbers:
    table = confounded(rng, n)
    return Numbers(table | {"y": np.round(table["y"])}, 1.0, 1.0)


@of_numbers("cause with three values")
def _ties(rng: Rng, n: int) -> Numbers:
    z = rng.normal(size=n)
    x = np.clip(np.round(z + 0.7 * rng.normal(size=n)), -1.0, 1.0)
    x[:3] = [-0.5, 0.5, 0.25]  # so that it is read as a number
    return Numbers({"z": z, "x": x, "y": x + 2.0 * z + rng.normal(size=n)}, 1.0, 1.0)


@of_numbers("30 rows, three confounders")
def _few(rng: Rng, n: int) -> Numbers:
    z = rng.normal(size=(3, 30))
    x = z.sum(axis=0) + rng.normal(size=30)
    table = {"z": z[0], "z2": z[1], "z3": z[2], "x": x}
    return Numbers(table | {"y": x + z.sum(axis=0) + rng.normal(size=30)}, 1.0, 1.0)


@of_numbers("5% treated")
def _imbalanced(rng: Rng, n: int) -> Numbers:
    z = rng.normal(size=n)
    treated = rng.random(n) < 1.0 / (1.0 + np.exp(3.2 - 0.7 * z))
    y = treated + z + rng.normal(size=n)
    return Numbers({"z": z, "x": np.where(treated, "t", "c"), "y": y}, 1.0, 1.0)


@of_numbers("nobody treated in one level", "overlap|not occur|no row|prior")
def _positivity(rng: Rng, n: int) -> Numbers:
    z = rng.choice(3, n)
    treated = (rng.random(n) < 0.5) & (z != 2)
    y = treated * (1.0 + (z == 2)) + z + rng.normal(size=n)
    table = {"z": np.array(list("pqr"))[z], "x": np.where(treated, "t", "c"), "y": y}
    return Numbers(table, 4.0 / 3.0, 1.0 + 4.0 / 3.0)


@of_numbers("drift over time", "Series")
def _drift(rng: Rng, n: int) -> Numbers:
    time = np.linspace(-2.0, 2.0, n)
    return Numbers({k: v + time for k, v in confounded(rng, n).items()}, 1.0, 1.0)


@of_numbers("six sites, named")
def _sites(rng: Rng, n: int) -> Numbers:
    site = rng.integers(0, 6, n)
    level = rng.normal(size=(3, 6))
    z = level[0, site] + rng.normal(size=n)
    x = z + level[1, site] + rng.normal(size=n)
    y = x + 2.0 * z + level[2, site] + rng.normal(size=n)
    return Numbers({"z": z, "x": x, "y": y, "site": site}, 1.0, np.nan, {"groups": "site"})


@of_numbers("30 clinics, named as clusters")
def _clusters(rng: Rng, n: int) -> Numbers:
    clinic = rng.integers(0, 30, n)
    common = rng.normal(size=(3, 30))[:, clinic]
    z, x, y = common + rng.normal(size=(3, n))
    table = {"z": z, "x": x + z, "y": y + x + 2.0 * z, "clinic": clinic}
    return Numbers(table, 1.0, np.nan, {"clusters": "clinic"})


@of_numbers("one scale of all noise")
def _common_scale(rng: Rng, n: int) -> Numbers:
    scale = np.exp(0.7 * rng.normal(size=n))
    return Numbers(confounded(rng, n, noise=lambda: scale * rng.normal(size=n)), 1.0, 1.0)


@of_numbers("gaps that depend on the confounder, completed by expectation")
def _at_random(rng: Rng, n: int) -> Numbers:
    table = confounded(rng, n)
    gone = rng.random(n) < 1.0 / (1.0 + np.exp(1.0 - 2.0 * table["z"]))
    table["y"] = np.where(gone, np.nan, table["y"])
    return Numbers(table, 1.0, 1.0, {"missing": ist.ExpectationMaximisation()})


@of_numbers("gaps where the outcome is large, rows dropped")
def _not_at_random(rng: Rng, n: int) -> Numbers:
    table = confounded(rng, n)
    gone = rng.random(n) < 1.0 / (1.0 + np.exp(1.0 - table["y"]))
    table["y"] = np.where(gone, np.nan, table["y"])
    return Numbers(table, 1.0, 1.0, {"missing": ist.DropRows()})


@of_numbers("hidden common cause")
def _hidden(rng: Rng, n: int) -> Numbers:
    table = confounded(rng, n)
    hidden = rng.normal(size=n)
    y = table["y"] + 2.0 * hidden
    return Numbers(table | {"x": table["x"] + hidden, "y": y + hidden}, 1.0, 1.0)


@of_numbers("rows selected by the outcome")
def _selected(rng: Rng, n: int) -> Numbers:
    table = confounded(rng, 3 * n)
    kept = np.flatnonzero(table["y"] > 1.0)[:n]
    return Numbers({k: v[kept] for k, v in table.items()}, 1.0, 1.0)


@dataclass(frozen=True)
class Stated:
    """What an answer says of one table.

    Attributes
    ----------
    covered
        Share of its intervals that contain the truth.
    notes
        What is printed with it.
    warns
        Whether that includes a note.
    """

    covered: float
    notes: str
    warns: bool = False


def effect(numbers: Numbers, rng: Rng) -> Stated:
    """Ask for the effect of x on y."""
    options = {**numbers.options, **({"change": ("c", "t")} if numbers.level == "t" else {})}
    found = ist.effect(numbers.table, numbers.dag, "x", "y", **options)
    low, high = found.interval()
    warns = bool(found.notes) or any(own.without_overlap for own in found.alternatives)
    return Stated(low <= numbers.effect <= high, str(found), warns)


def query(numbers: Numbers, rng: Rng) -> Stated:
    """Ask for the mean of y if x is set to a value."""
    network: Any = ist.fit(numbers.table, numbers.dag, **numbers.options)
    answer = network.query("y", do={"x": numbers.level})
    low, high = (float(np.ravel(end)[0]) for end in answer.confidence_interval())
    return Stated(low <= numbers.mean <= high, str(answer), bool(answer.note))


def posterior(numbers: Numbers, rng: Rng) -> Stated:
    """Ask for draws of the effect in the true graph."""
    known = ist.Knowledge(required=numbers.dag.edges)
    drawn = ist.sample(numbers.table, knowledge=known, draws=400, **numbers.options)
    low, high = np.quantile(drawn.effects("x", "y"), [0.025, 0.975])
    return Stated(bool(low <= numbers.effect <= high), " ".join(drawn.notes), bool(drawn.notes))


def new_rows(numbers: Numbers, rng: Rng) -> Stated:
    """Ask for y in rows that were left out, given the other columns."""
    n = len(numbers.table["y"])
    whole = np.all([np.isin(v, ["c", "t"]) | (v == v) for v in numbers.table.values()], axis=0)
    left = rng.choice(np.flatnonzero(whole), min(_NEW_ROWS, n // 5), replace=False)
    kept = np.setdiff1d(np.arange(n), left)
    network: Any = ist.fit(
        {name: column[kept] for name, column in numbers.table.items()},
        numbers.dag,
        **{name: value for name, value in numbers.options.items() if name == "missing"},
    )
    inside, notes = [], ""
    for row in left:
        given = {v: numbers.table[v][row].item() for v in numbers.dag.nodes if v != "y"}
        answer = network.query("y", evidence=given)
        low, high = (float(np.ravel(answer.quantile(share))[0]) for share in (0.025, 0.975))
        inside.append(low <= numbers.table["y"][row] <= high)
        notes = answer.note
    return Stated(float(np.mean(inside)), notes, bool(notes))


def imputed(numbers: Numbers, rng: Rng) -> Stated:
    """Ask for values of y that were hidden."""
    own = numbers.table["y"]
    hidden = (rng.random(len(own)) < 0.2) & ~np.isnan(own)
    table = numbers.table | {"y": np.where(hidden, np.nan, own)}
    network = ist.fit(table, numbers.dag, missing=ist.ExpectationMaximisation())
    draws = ist.impute(table, network, draws=_DRAWS)
    drawn = np.array([one["y"][hidden] for one in draws])
    inside = (drawn.min(axis=0) <= own[hidden]) & (own[hidden] <= drawn.max(axis=0))
    return Stated(float(inside.mean()), "")


ANSWERS: dict[str, Callable[[Numbers, Rng], Stated]] = {
    "effect": effect,
    "query": query,
    "posterior": posterior,
    "new rows": new_rows,
    "imputed": imputed,
}

_FOR_NUMBERS = "effects of draws are for numbers"
NOT_ASKED: Mapping[tuple[str, str], str] = {
    ("binary cause, curved confounder", "posterior"): _FOR_NUMBERS,
    ("5% treated", "posterior"): _FOR_NUMBERS,
    ("nobody treated in one level", "posterior"): _FOR_NUMBERS,
    ("slope that depends on a level", "posterior"): _FOR_NUMBERS,
    ("levels of one row in a hundred", "posterior"): _FOR_NUMBERS,
    ("six sites, named", "query"): "means differ between the sites",
    ("30 clinics, named as clusters", "query"): "only `effect` has clusters",
    ("30 clinics, named as clusters", "posterior"): "only `effect` has clusters",
}
"""Cells without an answer, with the reason."""
_NO_TRACE = "the table has no trace of it"
_ABSENT = "values that are missing because of themselves leave no trace"
_CHOSEN = (
    "means of 40 tables average the truth and spread by 0.096, of which the sampling error has "
    "0.072: curves and products are chosen from the same rows"
)
KNOWN_GAPS: Mapping[tuple[str, str], tuple[float, str]] = {
    **{
        (name, answer): (0.0, _NO_TRACE)
        for name in ("hidden common cause", "rows selected by the outcome")
        for answer in ("effect", "query", "posterior")
    },
    ("gaps where the outcome is large, rows dropped", "effect"): (0.85, _ABSENT),
    ("gaps where the outcome is large, rows dropped", "posterior"): (0.85, _ABSENT),
    ("gaps where the outcome is large, rows dropped", "query"): (0.0, _ABSENT),
    ("outcome censored at zero", "query"): (
        0.8,
        _CHOSEN,
    ),
}
"""Cells that do not hold: the share of intervals that contain the truth, of ten tables of 300 rows
and ten of 500, and the reason. No note excuses the others."""


CLEAN = (
    "none",
    "curved confounder",
    "saturating confounder",
    "product of two confounders",
    "curved effect",
    "skewed noise (exponential)",
    "slope that depends on another number",
    "slope that depends on a level",
    "units that differ by a factor of a billion",
    "outcome rounded to whole numbers",
)
"""Tables that the default models describe, so that a note with an answer is a false alarm."""


def ask(broken: Broken, answer: str, seed: int, rows: int) -> Stated:
    """Return what an answer says of a table with this seed; a refusal is a note."""
    rng = np.random.default_rng([seed, *broken.name.encode()])
    numbers = broken.make(rng, rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ANSWERS[answer](numbers, rng)
        except IsthmusError as refusal:
            return Stated(0.0, str(refusal), warns=True)


def covered(broken: Broken, answer: str, seed: int, rows: int) -> tuple[float, bool]:
    """Return the share of intervals that contain the truth, and whether a note excuses others."""
    stated = ask(broken, answer, seed, rows)
    noted = bool(broken.note) and re.search(broken.note, stated.notes) is not None
    return float(stated.covered), noted
