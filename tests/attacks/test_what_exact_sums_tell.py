"""What an analyst reads from exact sums: each is a "yes" in the threat model, shown to work.

Exact sums are for partners who trust each other by contract. The rules on data are against
accidents, and none of these is one. With noise, none of them works: test_noise.py.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from tests.attacks.exact_sums import Table, joined, seen, without
from tests.attacks.malicious import Attacked

from isthmus.errors import RefusedError
from isthmus.statistics import Chebyshev, CountPlan, Expansion, Kind, Schema, Variable

FLAGS = ("hiv", "sex", "smoker", "depression")
SIZES = {"north": 400, "east": 700, "south": 250}
NAMES = ("age", "weight", "hiv")
BOUNDS = {"age": (0.0, 120.0), "weight": (0.0, 300.0), "hiv": (0.0, 1.0)}
SCHEMA = Schema.continuous(NAMES)


def patients(n: int, seed: int) -> Table:
    rng = np.random.default_rng(seed)
    return {
        "age": rng.integers(20, 95, n).astype(float),
        "weight": rng.normal(80, 15, n).round(1),
        "hiv": (rng.random(n) < 0.2).astype(float),
    }


def hospitals(seed: int = 0) -> dict[str, Table]:
    return {name: patients(n, seed + i) for i, (name, n) in enumerate(SIZES.items())}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_the_last_digits_of_sums_show_the_levels_of_one_patient(seed: int) -> None:
    """Scores are whole numbers and one is 7.5: sums modulo one are that patient's alone."""
    rng = np.random.default_rng(seed)
    tables: dict[str, Table] = {}
    for name, n in (("north", 200), ("east", 220), ("south", 180)):
        tables[name] = {"pain": rng.integers(0, 11, n).astype(float)}
        tables[name] |= {f: rng.random(n) < 0.4 for f in FLAGS}
    tables["east"]["pain"][37] = 7.5
    levels = (Variable(f, Kind.DISCRETE, (False, True)) for f in FLAGS)
    schema = Schema((Variable("pain", Kind.CONTINUOUS), *levels))
    found = seen(Attacked(tables, schema, {"pain": (0.0, 10.0)}))
    assert float(found.sums["pain"] % 1) == 0.5
    read = [float(found.products["pain", f"{f}=True"] % 1) == 0.5 for f in FLAGS]
    assert read == [bool(tables["east"][f][37]) for f in FLAGS]


@pytest.mark.long
def test_three_studies_of_other_patients_show_one_who_withdrew() -> None:
    """Every two of the three tables differ by hundreds of persons, and all together by one."""
    one, two = hospitals(), hospitals(10)
    both = {name: joined(one[name], two[name]) for name in SIZES}
    both["east"] = without(both["east"], 137)
    sums = [seen(Attacked(t, SCHEMA, BOUNDS)) for t in (one, two, both)]
    for name in NAMES:
        left = sums[0].sums[name] + sums[1].sums[name] - sums[2].sums[name]
        assert float(left) == pytest.approx(one["east"][name][137])


def test_two_definitions_of_a_variable_show_who_is_between_them() -> None:
    """Bandings of the age whose cuts are one year apart, and one person of that age."""
    tables = hospitals()
    for name, table in tables.items():
        age = table["age"]
        age[age == 60] = 59
        age[137] = 60 if name == "east" else 58
        table["old"], table["older"] = age >= 60, age > 60
    sums = []
    for band in ("old", "older"):
        numbers = (Variable(n, Kind.CONTINUOUS) for n in ("weight", "hiv"))
        schema = Schema((Variable(band, Kind.DISCRETE, (False, True)), *numbers))
        sums.append(seen(Attacked(tables, schema, {n: BOUNDS[n] for n in ("weight", "hiv")})))
    assert sums[0].sums["old=True"] - sums[1].sums["older=True"] == 1
    for name in ("weight", "hiv"):
        value = sums[0].products["old=True", name] - sums[1].products["older=True", name]
        assert float(value) == pytest.approx(tables["east"][name][137])


@pytest.mark.long
def test_three_windows_show_the_person_between_them() -> None:
    needle, width, top = 84.37, 0.02, 110.0
    tables = hospitals()
    for table in tables.values():
        near = np.abs(table["weight"] - needle) < 0.05
        table["weight"][near] += 0.2
    tables["east"]["weight"][137], tables["east"]["hiv"][137] = needle, 1.0
    ramps = []
    for low in (needle - width, needle, needle + width):
        centres, scales = (60.0, (low + top) / 2, 0.5), (60.0, (top - low) / 2, 1.5)
        window = Expansion(Chebyshev(2, 1.0), NAMES, centres, scales)
        world = Attacked(tables, SCHEMA, BOUNDS, requests=("features",), features=window)
        found, half = seen(world, window), (top - low) / 2
        alone = found.sums["weight~1"] + found.n
        ramps.append([float(alone) * half])
        ramps[-1].append(float(found.products["weight~1", "hiv"] + found.sums["hiv"]) * half)
    second = np.array(ramps[0]) - 2 * np.array(ramps[1]) + np.array(ramps[2])
    assert second[0] / width == pytest.approx(1.0, abs=1e-3)
    assert second[1] / second[0] == pytest.approx(1.0, abs=0.05)


def test_tables_that_share_variables_determine_cells_that_nobody_checked() -> None:
    """Nobody has b = 0 and c = 0, so that three tables of pairs determine that of all three."""
    rng = np.random.default_rng(2)
    tables: dict[str, Table] = {}
    for name in SIZES:
        cells = rng.permutation(np.repeat([1, 2, 3], 100))
        tables[name] = {"a": rng.integers(0, 2, 300), "b": cells & 1, "c": cells >> 1}
    east = tables["east"]
    east["a"] = np.where((east["b"] == 1) & (east["c"] == 1), 0, east["a"])
    east["a"][np.flatnonzero((east["b"] == 1) & (east["c"] == 1))[0]] = 1
    for name in ("north", "south"):
        tables[name]["a"] = np.where(tables[name]["b"] & tables[name]["c"], 0, tables[name]["a"])
    schema = Schema.discrete(dict.fromkeys("abc", (0, 1)))
    plan = CountPlan.sets([["a", "b"], ["a", "c"], ["b", "c"]])
    counts = Attacked(tables, schema, {}, requests=("counts",), plan=plan).federation().counts(plan)
    ab, ac = (np.asarray(counts.table(pair)) for pair in (("a", "b"), ("a", "c")))
    # With a = 1: those with b = 0 all have c = 1, and the others with c = 1 have b = 1.
    assert ac[1, 1] - ab[1, 0] == 1


def test_a_level_that_only_one_site_has_shows_sums_of_this_site() -> None:
    """The third ward exists in the east only; no site can see that of its own table."""
    rng = np.random.default_rng(4)
    tables: dict[str, Table] = {}
    for name, n in SIZES.items():
        wards = np.array(["a", "b", "c"])[rng.integers(0, 3 if name == "east" else 2, n)]
        tables[name] = {"ward": wards, "hiv": rng.random(n) < 0.2}
    schema = Schema.discrete({"ward": ("a", "b", "c"), "hiv": (False, True)})
    plan = CountPlan.everything()
    world = Attacked(tables, schema, {}, requests=("counts",), plan=plan)
    read = np.asarray(world.federation().counts(plan).table(("ward", "hiv")))[2]
    own = tables["east"]["hiv"][tables["east"]["ward"] == "c"]
    assert read.tolist() == [(~own).sum(), own.sum()]


def test_products_about_means_and_tables_of_all_rows_show_how_sites_differ() -> None:
    """The difference is the products of the means of sites, which two sites have alone.

    So are the moments of two studies, one about the means of sites and one of all rows. A site that
    colludes subtracts its own part; what is left tells the totals of both other sites, given their
    numbers of rows, up to which of them is which.
    """
    rng = np.random.default_rng(1)
    level, names = {"north": 0.0, "east": 0.6, "south": -0.4}, ("hiv", "smoker", "old", "icu")
    rates = dict(zip(names, (0.1, -0.2, 0.3, 0.15), strict=True))
    tables: dict[str, Table] = {
        site: {k: rng.random(n) < 0.3 + rate * level[site] for k, rate in rates.items()}
        for site, n in SIZES.items()
    }
    plan = CountPlan.up_to(2)
    schema, asked = Schema.discrete(dict.fromkeys(names, (False, True))), ("moments", "counts")
    terms: dict[str, Any] = {"requests": asked, "plan": plan, "within_sites": True}
    federation = Attacked(tables, schema, {}, **terms).federation()
    moments, counts = federation.moments(), federation.counts(plan)
    pairs = np.array(
        [
            [
                np.asarray(counts.table((a, b)))[1, 1] if a != b else counts.table((a,))[1]
                for b in names
            ]
            for a in names
        ]
    )
    means = pairs - moments.shifted(moments.mean()).gram
    totals = {site: np.array([table[k].sum() for k in names]) for site, table in tables.items()}
    parts = {site: np.outer(t, t) / SIZES[site] for site, t in totals.items()}
    np.testing.assert_allclose(means, sum(parts.values()), atol=0.5 * len(SIZES))
    # Without tables: the square of a level is the level.
    sums = sum(SIZES.values()) * moments.mean()
    squares = sums - np.diag(moments.shifted(moments.mean()).gram)
    np.testing.assert_allclose(squares, np.diag(means), atol=1e-6)

    rest, number = pairs.diagonal() - totals["south"], SIZES["north"] + SIZES["east"]
    left = means - parts["south"] - np.outer(rest, rest) / number
    values, vectors = np.linalg.eigh(left)
    apart = vectors[:, -1] * np.sqrt(values[-1] * SIZES["north"] * SIZES["east"] / number)
    share = rest * SIZES["north"] / number
    errors = [np.abs(share + sign * apart - totals["north"]).max() for sign in (1, -1)]
    assert min(errors) < 2.0


# --- tables that are refused ---------------------------------------------------------------------


def test_wards_of_single_hospitals_are_refused() -> None:
    """Each hospital has two of six wards: the tables of both are tables of the hospital."""
    rng = np.random.default_rng(4)
    levels = tuple("abcdef")
    tables: dict[str, Table] = {}
    for k, (name, n) in enumerate(SIZES.items()):
        wards = np.array(levels[2 * k : 2 * k + 2])[rng.integers(0, 2, n)]
        tables[name] = {"ward": wards, "hiv": rng.random(n) < 0.2}
    schema = Schema.discrete({"ward": levels, "hiv": (False, True)})
    plan = CountPlan.everything()
    with pytest.raises(RefusedError, match=r"\['ward'\].* are found at other sites only"):
        Attacked(tables, schema, {}, requests=("counts",), plan=plan)


@pytest.mark.parametrize(("values", "refused"), [(0, True), (12, True), (13, False)])
def test_a_test_that_one_hospital_does_is_refused_by_the_others(values: int, refused: bool) -> None:
    """The numbers, means and variances of the values are those of this hospital: 5% of 250."""
    tables = hospitals()
    for name in ("north", "south"):
        tables[name]["weight"][values if name == "south" else 200 :] = np.nan
    with pytest.raises(RefusedError) if refused else nullcontext() as caught:
        Attacked(tables, SCHEMA, BOUNDS, requests=("expectation",))
    assert not refused or "['weight']" in str(getattr(caught, "value", ""))


@pytest.mark.long
def test_whole_records_are_not_read_from_tables_of_few_variables() -> None:
    """A pair of values that one person has, in all tables of three: 59 records with cells of one.

    No policy lets such cells out.
    """
    rng = np.random.default_rng(5)
    levels = tuple("abcd")
    names = [f"v{i:02d}" for i in range(20)]
    tables = {
        site: {m: rng.choice(levels, size=n, p=[0.55, 0.3, 0.11, 0.04]) for m in names}
        for site, n in (("north", 400), ("east", 420), ("south", 380))
    }
    schema = Schema.discrete(dict.fromkeys(names, levels))
    given: dict[str, Any] = {"requests": ("counts",), "plan": CountPlan.up_to(3)}
    for cell, why in ((1, "need at least 3"), (3, "fewer than 3 persons")):
        with pytest.raises(RefusedError, match=why):
            Attacked(tables, schema, {}, rules={"minimum_cell": cell}, **given)


def test_more_tables_than_can_be_checked_are_refused() -> None:
    rng = np.random.default_rng(1)
    names = [f"v{i}" for i in range(190)]
    tables = {s: {n: rng.random(700) < 0.5 for n in names} for s in SIZES}
    schema = Schema.discrete(dict.fromkeys(names, (False, True)))
    with pytest.raises(RefusedError, match="too many to look for cells"):
        Attacked(tables, schema, {}, requests=("counts",), plan=CountPlan.up_to(3))


def test_levels_of_tables_count_as_columns() -> None:
    """Tables of pairs of many variables determine the rows of few persons."""
    rng = np.random.default_rng(3)
    names = tuple(f"v{i}" for i in range(30))
    schema = Schema.discrete(dict.fromkeys(names, (False, True)))
    tables = {s: {n: rng.random(170) < 0.5 for n in names} for s in SIZES}
    with pytest.raises(RefusedError, match="60 columns"):
        Attacked(tables, schema, {}, requests=("counts",), plan=CountPlan.up_to(2))


@pytest.mark.parametrize("others", [("moments",), ("features",), ("moments", "features")])
def test_a_study_with_missing_values_has_no_other_requests(others: tuple[str, ...]) -> None:
    tables = hospitals()
    for table in tables.values():
        table["age"][:30] = np.nan
    with pytest.raises(RefusedError, match="values may be missing"):
        Attacked(tables, SCHEMA, BOUNDS, requests=("expectation", *others))
