"""Attacks on cohorts that a review found: each gave a person's record, or lost persons for ever."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.attacks.malicious import Attacked

from isthmus.errors import AbortedError, FormatError, RefusedError, SchemaError
from isthmus.graphs.lags import Lag
from isthmus.joint import FileLedger, SecureSums
from isthmus.joint.agreement.persons import Persons
from isthmus.joint.cohorts.store import CohortRecord
from isthmus.sources.tables.persons import person_hashes, person_words
from isthmus.statistics import CountPlan, Kind, Schema, Variable

SITES = ("north", "east", "south", "west")
BOUNDS = {"age": (0.0, 128.0), "weight": (0.0, 256.0)}
SCHEMA = Schema(
    (
        Variable("age", Kind.CONTINUOUS),
        Variable("weight", Kind.CONTINUOUS),
        Variable("sex", Kind.DISCRETE, ("f", "m")),
    )
)
BY_COLUMN = {"persons": Persons("column:id")}


def table(seed: int, n: int = 400) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "age": rng.normal(55, 12, n).round(),
        "weight": rng.normal(80, 12, n).round(1),
        "sex": np.array(["f", "m"], dtype=object)[np.arange(n) % 2],
        "id": np.arange(1000, 1000 + n),
        "number": np.arange(5000, 5000 + n),
    }


class _World(Attacked):
    """Sites whose ledgers are files, because cohorts look there for what was sent."""

    def join(self) -> None:
        for name in self.tables:
            self.store(name)
            self.ledgers[name] = FileLedger(self._folder.path / name / "ledger.jsonl")
        super().join()


def world(tables: Mapping[str, Any] | None = None, **changes: Any) -> _World:
    given = {s: table(i) for i, s in enumerate(SITES[:3])} if tables is None else tables
    return _World(dict(given), SCHEMA, BOUNDS, **({"rules": BY_COLUMN} | changes))


def test_a_second_withdrawal_without_a_study_in_between_is_a_group() -> None:
    first = world()
    first.federation().moments()
    store, policy = first.store("north"), first.policy()
    name = store.records()[0].name
    _, name, cohort = store.retire(name, policy, without=["1399"])
    assert cohort is not None
    assert cohort.persons is not None
    before = cohort.number_of_persons
    words = person_hashes(map(str, range(1000, 1400)), store._key())
    stays = next(i for i, w in zip(range(1000, 1400), words, strict=True) if w in cohort.persons)
    _, _, last = store.retire(name, policy, without=[str(stays)])
    assert last is not None
    assert before - last.number_of_persons >= policy.minimum_cohort


@pytest.mark.parametrize(
    "written",
    [
        np.arange(1000.0, 1400.0),
        np.array([f" {i:08d}" for i in range(1000, 1400)], dtype=object),
        np.array([f"{i}.0" for i in range(1000, 1400)], dtype=object),
    ],
    ids=["floats", "zeros and blanks", "texts of floats"],
)
def test_persons_are_recognised_however_an_export_writes_them(written: Any) -> None:
    first = world()
    first.federation().moments()
    again = table(9) | {"id": written}
    with pytest.raises(RefusedError, match="400 persons"):
        first.store("north").freeze(first.study, again, first.policy())


def test_identifiers_that_are_not_exact_are_refused() -> None:
    for values in ([1.5, 2.0], [2.0**60, 1.0]):
        with pytest.raises(SchemaError, match="as text"):
            person_words({"id": np.array(values)}, "id")


def test_a_policy_with_another_column_does_not_open_a_cohort() -> None:
    first = world()
    first.federation().moments()
    policy = replace(first.policy(), persons=Persons("column:number"))
    with pytest.raises(RefusedError, match="in another way"):
        first.store("north").open(first.study, policy)


@pytest.mark.parametrize("others", [("moments",), ("features",), ("moments", "features")])
def test_a_study_with_missing_values_has_no_other_requests(others: tuple[str, ...]) -> None:
    rows = table(1)
    rows["age"][7] = np.nan
    schema, bounds = Schema.continuous(("age", "weight")), BOUNDS
    tables = dict.fromkeys(SITES[:3], rows)
    with pytest.raises(RefusedError, match="values may be missing"):
        _World(tables, schema, bounds, requests=("expectation", *others), rules=BY_COLUMN)


def test_a_site_that_was_silent_once_is_not_lost() -> None:
    """It agrees to no set of sites that the others will not join, so it never reveals anything."""
    tables = {s: table(i) for i, s in enumerate(SITES)}
    first = world(tables)
    first.federation(lost=[("west", 0)]).moments()
    second = world(tables, earlier=first, purpose="with all four")
    with pytest.raises(AbortedError, match="bound to the sites"):
        second.federation().moments()
    events = [e["event"] for e in second.ledgers["west"].entries()]
    assert "unmasked" not in events


def test_levels_of_tables_count_as_columns() -> None:
    """Tables of pairs and triples of many variables determine the rows of few persons."""
    rng = np.random.default_rng(3)
    names = tuple(f"v{i}" for i in range(30))
    schema = Schema.discrete(dict.fromkeys(names, (False, True)))
    plan = CountPlan.up_to(2)
    for rows, allowed in ((170, False), (800, True)):
        tables = {s: {n: rng.random(rows) < 0.5 for n in names} for s in SITES[:3]}
        with nullcontext() if allowed else pytest.raises(RefusedError, match="60 columns"):
            Attacked(tables, schema, {}, requests=("counts",), plan=plan)


def test_a_study_file_that_was_exchanged_is_noticed() -> None:
    first = world()
    store = first.store("north")
    (file,) = (first._folder.path / "north" / "cohorts").glob("*/study-*.toml")
    assert first.study.identity.hex() in file.name
    file.write_bytes(world(purpose="another study").study.text)
    with pytest.raises(FormatError, match="studies of the cohort"):
        store.cohort_of(first.study)


def test_lags_have_the_definition_of_their_variable() -> None:
    """Other bounds of a lag would be another banding of the same values."""
    lagged = Variable("x@1", Kind.CONTINUOUS, lag=Lag("x", 1))
    schema = Schema((Variable("x", Kind.CONTINUOUS), lagged))
    rng = np.random.default_rng(4)
    tables = {s: {"x": rng.normal(size=200), "x@1": rng.normal(size=200)} for s in SITES[:3]}
    for high, allowed in ((8.0, True), (2.0, False)):
        bounds = {"x": (-8.0, 8.0), "x@1": (-8.0, high)}
        rules = {"persons": Persons("none")}
        with nullcontext() if allowed else pytest.raises(RefusedError, match="the lags"):
            Attacked(tables, schema, bounds, rules=rules)


def test_the_number_of_rows_is_compared_before_anybody_asks() -> None:
    """A refusal of a request would tell whether a site has one person more."""
    for rows, allowed in ((400, True), (399, False)):
        with nullcontext() if allowed else pytest.raises(RefusedError, match="more rows"):
            asked = world(protocol=SecureSums(rows=rows))
            asked.federation().moments()


def test_a_withdrawal_that_is_killed_leaves_one_cohort(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two successors of one cohort would both lack the person, and different others."""
    first = world()
    first.federation().moments()
    store, policy = first.store("north"), first.policy()
    (before,) = store.records()
    write = CohortRecord.write
    with monkeypatch.context() as patched:
        patched.setattr(CohortRecord, "write", lambda r, f: _killed() if r.retired else write(r, f))
        with pytest.raises(KeyboardInterrupt):
            store.retire(before.name, policy, without=["1399"])
    (last,) = (r for r in store.records() if not r.retired)
    assert last.persons <= before.persons - policy.minimum_cohort
    with pytest.raises(FormatError, match="There is no cohort"):
        store.retire(before.name, policy, without=["1399"])
    folder = first._folder.path / "north" / "cohorts" / before.name
    assert {file.name for file in folder.iterdir()} == {"cohort.toml", "persons.npy"}


def _killed() -> None:
    raise KeyboardInterrupt


def test_successors_have_the_sites_of_the_first_result() -> None:
    """If all sites replaced their cohorts, a sum without one of them would be that site's."""
    tables = {s: table(i) for i, s in enumerate(SITES)}
    first = world(tables)
    first.federation().moments()
    for site in SITES:
        store = first.store(site)
        store.retire(store.records()[0].name, first.policy(), without=["1399"])
    second = world(tables, earlier=first, purpose="after withdrawals")
    with pytest.raises(AbortedError, match="refused"):
        second.federation(lost=[("west", 0)]).moments()
    assert second.federation(first_round=10).moments().n < 4 * 400
