"""Attacks by subtraction: two releases that differ by one person, or by one hospital."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from tests.attacks.malicious import Attacked

from isthmus.errors import AbortedError
from isthmus.joint import (
    AskMoments,
    AskTotals,
    EnvelopeKind,
    FileLedger,
    MemoryLedger,
    Refusal,
    SumRequest,
)
from isthmus.joint.disclosure.differencing import EarlierReleases
from isthmus.joint.disclosure.trace import Trace
from isthmus.joint.federation.snapshot import Snapshot
from isthmus.statistics import Kind, Schema, Variable

NAMES = ("age", "weight", "pressure")
BOUNDS = {"age": (0, 120), "weight": (0, 300), "pressure": (0, 300)}
SCHEMA = Schema.continuous(NAMES)


def patients(n: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "age": rng.integers(20, 95, n).astype(float),
        "weight": rng.normal(80, 15, n).round(1),
        "pressure": rng.normal(140, 15, n).round(0),
    }


def hospitals(**more: int) -> dict[str, Any]:
    sizes = {"north": 400, "east": 700, "south": 250} | more
    return {name: patients(n, i) for i, (name, n) in enumerate(sizes.items())}


def without(table: Mapping[str, Any], rows: Any) -> dict[str, Any]:
    return {name: np.delete(column, rows) for name, column in table.items()}


def with_rows(table: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    return {name: np.concatenate([column, more[name]]) for name, column in table.items()}


def refuses(world: Attacked, site: str, why: str = "other_data") -> None:
    """No sum is formed, and this site knows why."""
    with pytest.raises(AbortedError):
        world.federation(world.round + 10).moments()
    assert world.why(site)[-1] == why


# --- persons -----------------------------------------------------------------------------------


def test_a_patient_who_withdraws_is_not_shown_by_a_new_study() -> None:
    tables = hospitals()
    first = Attacked(tables, SCHEMA, BOUNDS)
    first.federation().moments()
    tables["east"] = without(tables["east"], 137)
    refuses(Attacked(tables, SCHEMA, BOUNDS, earlier=first, purpose="again"), "east")


@pytest.mark.parametrize("changed", [1, 49, 50, 51])
@pytest.mark.parametrize("how", ["withdrawn", "added", "corrected"])
def test_a_new_study_needs_a_cohort_of_changes(changed: int, how: str) -> None:
    """The documented way: the site waits until the changes hide each other."""
    tables = hospitals()
    first = Attacked(tables, SCHEMA, BOUNDS)
    first.federation().moments()
    if how == "withdrawn":
        tables["east"] = without(tables["east"], slice(changed))
    elif how == "added":
        tables["east"] = with_rows(tables["east"], patients(changed, 77))
    else:
        tables["east"] = {n: c.copy() for n, c in tables["east"].items()}
        tables["east"]["weight"][:changed] += 0.5
    second = Attacked(tables, SCHEMA, BOUNDS, earlier=first, purpose="again")
    if changed < 50:
        refuses(second, "east")
    else:
        assert second.federation().moments().n > 0


def test_the_time_of_a_refusal_does_not_tell_of_a_withdrawal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whichever rule refuses, the site checks its data as often, and computes no statistic."""
    tables = hospitals()
    first = Attacked(tables, SCHEMA, BOUNDS)
    first.federation().moments()
    tables["east"] = without(tables["east"], 137)
    world = Attacked(tables, SCHEMA, BOUNDS, earlier=first, purpose="again")
    steps: list[str] = []
    for owner, name in (
        (Snapshot, "is_unchanged"),
        (EarlierReleases, "data_violations"),
        (Trace, "persons_apart"),
        (AskMoments, "contribute"),
    ):
        inner = getattr(owner, name)

        def noted(*given: Any, inner: Any = inner, name: str = name) -> Any:
            steps.append(name)
            return inner(*given)

        monkeypatch.setattr(owner, name, noted)
    # Not a request, not allowed, of another size, and what is only refused because of the patient.
    asked = AskMoments(NAMES)
    questions: list[SumRequest[Any] | bytes]
    questions = [b"{", AskTotals(NAMES), asked.to_bytes(), asked]
    seen = []
    for question in questions:
        assert world.answer("east", world.frame(question)) == (EnvelopeKind.REFUSE, Refusal.REFUSED)
        seen.append(tuple(steps))
        steps.clear()
    assert set(seen) == {("is_unchanged", "data_violations")}
    assert world.why("east") == ["bad_request", "policy", "bad_request", "other_data"]


def test_a_withdrawal_hides_among_new_patients() -> None:
    tables = hospitals()
    first = Attacked(tables, SCHEMA, BOUNDS)
    first.federation().moments()
    tables["east"] = with_rows(without(tables["east"], 137), patients(50, 78))
    second = Attacked(tables, SCHEMA, BOUNDS, earlier=first, purpose="again")
    assert second.federation().moments().n == 1350 - 1 + 50


def test_fewer_variables_or_another_order_of_rows_hide_no_withdrawal() -> None:
    tables = hospitals()
    first = Attacked(tables, SCHEMA, BOUNDS)
    first.federation().moments()
    order = np.random.default_rng(1).permutation(699)
    tables["east"] = {n: c[order] for n, c in without(tables["east"], 137).items()}
    part = Schema.continuous(["pressure", "age"])
    bounds = {n: BOUNDS[n] for n in part.names}
    refuses(Attacked(tables, part, bounds, earlier=first, purpose="again"), "east")


def test_the_same_data_in_another_order_are_the_same_data() -> None:
    tables = hospitals()
    first = Attacked(tables, SCHEMA, BOUNDS)
    first.federation().moments()
    order = np.random.default_rng(1).permutation(700)
    tables["east"] = {n: c[order] for n, c in tables["east"].items()}
    second = Attacked(tables, SCHEMA, BOUNDS, earlier=first, purpose="again")
    assert second.federation().moments().n == 1350


def test_a_patient_with_many_rows_is_one_patient() -> None:
    """Sixty rows are gone, and they were all of one person."""
    from isthmus.joint import Persons

    rules = {"persons": Persons("column:patient")}
    tables = hospitals()
    for table in tables.values():
        n = len(table["age"])
        table["patient"] = np.arange(n) % 100
    tables["east"]["patient"][:60] = 1000
    first = Attacked(tables, SCHEMA, BOUNDS, rules=rules)
    first.federation().moments()
    tables["east"] = without(tables["east"], slice(60))
    tables["east"]["patient"] += 5000  # identifiers were given anew
    second = Attacked(tables, SCHEMA, BOUNDS, earlier=first, rules=rules, purpose="again")
    refuses(second, "east")


def test_an_earlier_release_is_known_after_a_restart(tmp_path: Any) -> None:
    tables = hospitals()
    first = Attacked(tables, SCHEMA, BOUNDS)
    first.ledgers = {n: FileLedger(tmp_path / f"{n}.jsonl") for n in tables}
    first.join()
    first.federation().moments()
    tables["east"] = without(tables["east"], 137)
    first.ledgers = {n: FileLedger(tmp_path / f"{n}.jsonl") for n in tables}
    refuses(Attacked(tables, SCHEMA, BOUNDS, earlier=first, purpose="again"), "east")
    # Nor does the loss of what was kept help.
    for kept in (tmp_path / "east.jsonl.kept").iterdir():
        kept.unlink()
    first.ledgers = {n: FileLedger(tmp_path / f"{n}.jsonl") for n in tables}
    refuses(Attacked(tables, SCHEMA, BOUNDS, earlier=first, purpose="once more"), "east")


# --- the table changes while the study runs ----------------------------------------------------


def test_a_patient_admitted_during_the_study_is_in_no_sum() -> None:
    duckdb = pytest.importorskip("duckdb")
    tables = hospitals()
    visits, live = tables["east"], duckdb.connect()
    live.execute("create table visits(age double, weight double, pressure double)")
    rows = list(zip(*(visits[n].tolist() for n in NAMES), strict=True))
    live.executemany("insert into visits values (?, ?, ?)", rows)
    tables["east"] = live.table("visits")
    world = Attacked(tables, SCHEMA, BOUNDS)
    before = world.federation().moments()
    live.execute("insert into visits values (37, 121.4, 180)")
    after = world.federation(2).moments(("weight", "age"))
    assert after.n == before.n
    assert after == before.select(("weight", "age"))
    world.join()  # after a restart the table is another one
    refuses(world, "east")


def test_a_value_changed_in_place_changes_no_answer() -> None:
    tables = hospitals()
    world = Attacked(tables, SCHEMA, BOUNDS)
    before = world.federation().moments()
    tables["east"]["weight"][3] = 250.0
    assert world.federation(2).moments() == before


def test_two_swapped_values_are_other_data() -> None:
    """A correction that keeps all means, variances and counts of single columns."""
    rng = np.random.default_rng(2)
    n = 300
    table = {
        "ill": rng.random(n) < 0.5,
        "ward": rng.random(n) < 0.5,
        "age": rng.integers(20, 90, n).astype(float),
    }
    flags = [Variable(x, Kind.DISCRETE, (False, True)) for x in ("ill", "ward")]
    schema = Schema((*flags, Variable("age", Kind.CONTINUOUS)))
    tables = {k: {c: v.copy() for c, v in table.items()} for k in ("x", "y", "z")}
    world = Attacked(tables, schema, {"age": (0, 120)})
    world.federation().moments()
    i, j = int(np.flatnonzero(table["ill"])[0]), int(np.flatnonzero(~table["ill"])[0])
    tables["y"]["ill"][[i, j]] = tables["y"]["ill"][[j, i]]
    world.join()
    refuses(world, "y")


# --- organisations -----------------------------------------------------------------------------


def test_two_studies_whose_rosters_differ_by_one_hospital_do_not_show_it() -> None:
    tables = hospitals(west=300)
    first = Attacked(tables, SCHEMA, BOUNDS)
    first.federation().moments()
    del tables["west"]
    refuses(Attacked(tables, SCHEMA, BOUNDS, earlier=first), "north", "membership")


@pytest.mark.parametrize("apart", [1, 2, 3, 4])
def test_results_may_differ_by_three_organisations(apart: int) -> None:
    tables = hospitals(west=300, lake=300, hill=300, dale=300)
    first = Attacked(tables, SCHEMA, BOUNDS)
    first.federation().moments()
    for name in ("west", "lake", "hill", "dale")[:apart]:
        del tables[name]
    second = Attacked(tables, SCHEMA, BOUNDS, earlier=first)
    if apart < 3:
        refuses(second, "north", "membership")
    else:
        assert second.federation().moments().n == 1350 + 300 * (4 - apart)


def test_two_sites_of_one_organisation_are_one_organisation() -> None:
    tables = hospitals(a=300, b=300, c=300)
    group = dict.fromkeys("abc", "Group")
    first = Attacked(tables, SCHEMA, BOUNDS, members=group)
    first.federation().moments()
    for name in "abc":
        del tables[name]
    second = Attacked(tables, SCHEMA, BOUNDS, earlier=first)
    refuses(second, "north", "membership")


def test_studies_without_common_variables_are_not_compared() -> None:
    tables = hospitals(west=300)
    first = Attacked(tables, Schema.continuous(["age"]), {"age": (0, 120)})
    first.federation().moments()
    del tables["west"]
    others = Schema.continuous(["weight"])
    second = Attacked(tables, others, {"weight": (0, 300)}, earlier=first)
    assert second.federation().moments().n == 1350


def test_a_dry_run_says_that_the_data_are_nearly_those_of_an_earlier_release() -> None:
    tables = hospitals()
    first = Attacked(tables, SCHEMA, BOUNDS)
    first.federation().moments()
    tables["east"] = without(tables["east"], 137)
    second = Attacked(tables, SCHEMA, BOUNDS, earlier=first, purpose="again")
    run = second.controllers["east"].dry_run(AskMoments(NAMES))
    assert "earlier release" in str(run)
    assert isinstance(second.ledgers["east"], MemoryLedger)


# --- groups of persons -------------------------------------------------------------------------


def with_flags(tables: Mapping[str, Any], name: str, flagged: int) -> dict[str, Any]:
    """The first patients of every hospital have the flag; in the east this many do."""
    flags = {}
    for site, table in tables.items():
        n = len(table["age"])
        flags[site] = table | {name: (np.arange(n) < (flagged if site == "east" else 60)) * 1.0}
    return flags


@pytest.mark.parametrize("more", [0, 1, 4, 5])
def test_two_studies_of_nearly_the_same_patients_do_not_show_the_others(more: int) -> None:
    """Products with two flags differ by the record of the patient who has only one of them."""
    first = None
    for name, flagged in (("diabetes", 60), ("insulin", 60 + more)):
        tables, schema = with_flags(hospitals(), name, flagged), Schema.continuous([*NAMES, name])
        world = Attacked(tables, schema, BOUNDS | {name: (0, 1)}, earlier=first)
        if name == "insulin" and 0 < more < 5:
            refuses(world, "east")
        else:
            assert world.federation().moments().n == 1350
        first = world


@pytest.mark.parametrize("flagged", [0, 1, 4, 5])
def test_a_new_patient_with_a_rare_flag_is_not_shown_by_a_second_study(flagged: int) -> None:
    """Sixty patients are new, which is a cohort; products with the flag are of one of them."""
    tables = hospitals()
    schema, bounds = Schema.continuous([*NAMES, "flag"]), BOUNDS | {"flag": (0, 1)}
    before = with_flags(tables, "flag", 60)
    first = Attacked(before, schema, bounds)
    first.federation().moments()
    new = patients(60, 91) | {"flag": (np.arange(60) < flagged) * 1.0}
    later = before | {"east": with_rows(before["east"], new)}
    second = Attacked(later, schema, bounds, earlier=first, purpose="again")
    if 0 < flagged < 5:
        refuses(second, "east")
    else:
        assert second.federation(20).moments().n == 1350 + 60
