"""Counts against plain Python counting, plans, merging, files."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest

from isthmus.errors import DataError, FormatError, SchemaError, UnplannedError
from isthmus.statistics import CountPlan, Counts, Kind, Moments, Schema, Variable
from isthmus.statistics import base as blocks_module
from isthmus.statistics.coded import CodedRows
from isthmus.statistics.counts import align_levels

NAMES = ("a", "b", "ç", "d")
SCHEMA = Schema.discrete({"a": "xy", "b": (0, 1, 2), "ç": (False, True), "d": (1.5, 2.5, 3.5, 4.5)})


def codes(n: int = 200, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, SCHEMA.cardinalities[:, None], size=(4, n))


def slow_table(x: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    at = [NAMES.index(n) for n in names]
    found = np.zeros([SCHEMA.cardinalities[i] for i in at], dtype=np.int64)
    for cell, k in Counter(tuple(row) for row in x[at].T).items():
        found[cell] += k
    return found


PLANS = [
    CountPlan.everything(),
    CountPlan.up_to(3),
    CountPlan.up_to(9),
    CountPlan.sets([["d", "a", "b"], ["ç", "d"], ["a"]]),
]


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_every_planned_table_in_every_order(plan: CountPlan) -> None:
    x = codes()
    counts = Counts.from_codes(SCHEMA, x, plan=plan)
    asked = 0
    for size in range(5):
        for group in combinations(NAMES, size):
            for names in permutations(group):
                if plan.covers(names):
                    table = counts.table(names)
                    np.testing.assert_array_equal(table, slow_table(x, names))
                    assert table.dtype == np.int64
                    assert table.flags.c_contiguous
                    asked += 1
                else:
                    with pytest.raises(UnplannedError, match="CountPlan"):
                        counts.table(names)
    assert asked > 10


def test_message_names_the_plan_that_would_do() -> None:
    counts = Counts.from_codes(SCHEMA, codes(), plan=CountPlan.up_to(2))
    with pytest.raises(UnplannedError, match=r"Plan\.up_to\(3\)"):
        counts.table(["a", "b", "d"])
    counts = Counts.from_codes(SCHEMA, codes(), plan=CountPlan.sets([["a", "b"]]))
    with pytest.raises(UnplannedError, match=r"Plan\.sets.*'ç'"):
        counts.table(["ç"])


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_adding_and_marginals(plan: CountPlan) -> None:
    x, y = codes(30, 1), codes(1, 2)
    a, b = (Counts.from_codes(SCHEMA, v, plan=plan) for v in (x, y))
    whole = Counts.from_codes(SCHEMA, np.concatenate([x, y], axis=1), plan=plan)
    assert a + b == whole == b + a
    assert hash(a + b) == hash(whole)
    assert a != whole
    part = whole.marginal(["d", "a"])
    assert part.schema.names == ("d", "a")
    np.testing.assert_array_equal(part.table(["d", "a"]), whole.table(["d", "a"]))
    assert part.marginal(["d"]) == whole.marginal(["d"])


def test_weighted_rows_are_the_same_counts() -> None:
    x = codes(500)
    plain = Counts.from_codes(SCHEMA, x)
    assert plain.joint is not None
    packed = plain.joint.distinct(SCHEMA.cardinalities)
    assert packed.weights is not None
    assert packed.codes.shape[1] == len({tuple(c) for c in x.T})
    assert Counts.from_rows(SCHEMA, packed) == plain
    assert Counts.from_codes(SCHEMA, packed.codes, packed.weights) + plain == plain + plain


def test_rows_too_many_for_a_key_are_sorted_whole() -> None:
    d = 70
    schema = Schema.discrete({f"v{i}": (0, 1) for i in range(d)})
    x = np.random.default_rng(3).integers(0, 2, size=(d, 50))
    twice = np.concatenate([x, x[:, ::-1]], axis=1)
    counts = Counts.from_codes(schema, twice)
    assert counts.joint is not None
    packed = counts.joint.distinct(schema.cardinalities)
    assert packed.weights is not None
    assert packed.weights.tolist() == [2] * 50
    assert Counts.from_rows(schema, packed) == counts


def test_sets_with_large_tables_are_kept_as_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks_module, "DENSE", 8)
    x = codes()
    plan = CountPlan.sets([["a", "b", "d"], ["a", "ç"]])
    counts = Counts.from_codes(SCHEMA, x, plan=plan)
    forms = {k: isinstance(v, CodedRows) for k, v in counts.tables.items()}
    assert forms == {(0, 1, 3): True, (0, 2): False}
    np.testing.assert_array_equal(counts.table(["d", "b"]), slow_table(x, ("d", "b")))
    np.testing.assert_array_equal(counts.marginal(["d", "b"]).table(["b"]), slow_table(x, ("b",)))
    assert counts + counts == Counts.from_codes(SCHEMA, np.tile(x, 2), plan=plan)


@pytest.mark.parametrize("plan", PLANS[1:], ids=str)
def test_tables_of_weighted_rows_are_those_of_repeated_rows(plan: CountPlan) -> None:
    x = codes(300)
    weights = np.random.default_rng(1).integers(0, 9, 300)
    counts = Counts.from_codes(SCHEMA, x, weights, plan=plan)
    assert counts == Counts.from_codes(SCHEMA, np.repeat(x, weights, axis=1), plan=plan)


def test_tables_can_be_given() -> None:
    x = codes()
    counts = Counts.from_codes(SCHEMA, x)
    given = Counts.from_tables(
        SCHEMA, {("d", "a"): counts.table(["d", "a"]), ("b",): counts.table(["b"])}
    )
    assert given == Counts.from_codes(SCHEMA, x, plan=CountPlan.sets([["a", "d"], ["b"]]))
    with pytest.raises(DataError, match="counts 199 rows"):
        Counts.from_tables(
            SCHEMA, {("b",): counts.table(["b"]), ("a",): slow_table(x[:, 1:], ("a",))}
        )


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SchemaError, match=r"need discrete variables.*'x'"):
        Counts.from_codes(Schema((Variable("x", Kind.CONTINUOUS),)), [[0]])
    with pytest.raises(DataError, match="no rows"):
        Counts.from_codes(SCHEMA, np.zeros((4, 0), dtype=int))
    with pytest.raises(SchemaError, match="not positions"):
        Counts.from_codes(SCHEMA, np.full((4, 1), 2))
    with pytest.raises(SchemaError, match="one row for each variable"):
        Counts.from_codes(SCHEMA, codes().T)
    a = Counts.from_codes(SCHEMA, codes())
    with pytest.raises(SchemaError, match="regime"):
        a + Counts.from_codes(SCHEMA, codes(), regime="drug")
    with pytest.raises(SchemaError, match="different plans"):
        a + Counts.from_codes(SCHEMA, codes(), plan=CountPlan.up_to(2))
    with pytest.raises(SchemaError, match="names"):
        a + a.marginal(["a"])
    with pytest.raises(SchemaError, match="twice"):
        a.table(["a", "a"])
    many = Schema.discrete({f"v{i}": range(4) for i in range(40)})
    big = Counts.from_codes(many, np.zeros((40, 3), dtype=int))
    with pytest.raises(DataError, match="cells"):
        big.table(many.names[:20])
    with pytest.raises(DataError, match="Plan smaller"):
        Counts.from_codes(many, np.zeros((40, 3), dtype=int), plan=CountPlan.up_to(20))


def test_one_variable_one_row_one_level() -> None:
    schema = Schema.discrete({"only": ("a",)})
    counts = Counts.from_codes(schema, [[0]])
    assert counts.table(["only"]).tolist() == [1]
    assert counts.table([]).tolist() == 1
    assert counts.constants() == ("only",)
    assert counts.duplicates() == ()


def test_many_levels_take_sixteen_bits() -> None:
    schema = Schema.discrete({"a": range(300), "b": (0, 1)})
    counts = Counts.from_codes(schema, [[299, 0], [1, 0]])
    assert counts.joint is not None
    assert counts.joint.codes.dtype == np.uint16
    assert counts.table(["a"])[299] == 1
    with pytest.raises(SchemaError, match="identifier"):
        Schema.discrete({"id": range(70_000)})


def test_align_levels_then_add() -> None:
    a = Counts.from_codes(Schema.discrete({"v": ("b", "d"), "w": (0, 1)}), [[0, 1], [0, 1]])
    b = Counts.from_codes(Schema.discrete({"v": ("a", "b"), "w": (0, 1)}), [[0, 1, 1], [0, 1, 1]])
    with pytest.raises(SchemaError, match="align_levels"):
        a + b
    left, right = align_levels(a, b)
    assert (left + right).schema["v"].levels == ("a", "b", "d")
    assert (left + right).table(["v"]).tolist() == [1, 3, 1]
    tables = [Counts.from_tables(c.schema, {("v", "w"): c.table(["v", "w"])}) for c in (a, b)]
    x, y = align_levels(*tables)
    np.testing.assert_array_equal((x + y).table(["v", "w"]), (left + right).table(["v", "w"]))
    with pytest.raises(SchemaError, match="lack"):
        a.with_schema(b.schema)


def test_constants_and_duplicates_are_named() -> None:
    rng = np.random.default_rng(5)
    k = rng.integers(0, 3, 500)
    schema = Schema.discrete(dict.fromkeys(("k", "same", "still", "turned", "other"), (0, 1, 2)))
    x = np.array([k, k, np.ones(500, dtype=int), (k + 2) % 3, rng.permutation(k)])
    for plan in (CountPlan.everything(), CountPlan.up_to(2)):
        counts = Counts.from_codes(schema, x, plan=plan)
        assert counts.constants() == ("still",)
        assert counts.duplicates() == (("k", "same", "turned"),)
    assert Counts.from_codes(schema, x, plan=CountPlan.up_to(1)).duplicates() == ()


def test_read_only() -> None:
    x = codes().astype(np.uint8)
    counts = Counts.from_codes(SCHEMA, x)
    assert counts.joint is not None
    with pytest.raises(ValueError, match="read-only"):
        counts.joint.codes[0, 0] = 1
    before = counts.table(["a"])
    x[...] = 0
    np.testing.assert_array_equal(counts.table(["a"]), before)
    with pytest.raises(TypeError):
        counts.tables[(0,)] = 1  # type: ignore[index]


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_save_and_load(plan: CountPlan, tmp_path: Path) -> None:
    counts = Counts.from_codes(SCHEMA, codes(), plan=plan, regime="a")
    path = tmp_path / "counts"
    counts.save(path)
    again = Counts.load(path)
    assert again == counts
    assert again.plan == plan
    with pytest.raises(FormatError, match="isthmus-counts/1"):
        Moments.load(path)


def test_load_refuses_tables_of_another_plan(tmp_path: Path) -> None:
    counts = Counts.from_codes(SCHEMA, codes(), plan=CountPlan.up_to(2))
    path = tmp_path / "counts"
    counts.save(path)
    with np.load(path) as file:
        arrays = dict(file)
    text = arrays["header"].tobytes().decode().replace('"up_to": 2', '"up_to": 3')
    arrays["header"] = np.frombuffer(text.encode(), dtype=np.uint8)
    with path.open("wb") as out:
        np.savez(out, **arrays)
    with pytest.raises(FormatError, match="damaged"):
        Counts.load(path)


def test_counts_match_a_schema_by_names_and_reorder() -> None:
    x = codes()
    for plan in PLANS:
        counts = Counts.from_codes(SCHEMA, x, plan=plan)
        other = Schema.discrete(
            {"ç": (True, False), "d": (0.5, 4.5, 3.5, 2.5, 1.5), "a": "yx", "b": (0, 1, 2)}
        )
        again = counts.with_schema(other)
        assert again.schema == other
        np.testing.assert_array_equal(again.table(["a"]), counts.table(["a"])[::-1])
        np.testing.assert_array_equal(
            again.table(["d", "ç"])[:0:-1, ::-1], counts.table(["d", "ç"])
        ) if plan.covers(["d", "ç"]) else None
        assert again.with_schema(SCHEMA.with_levels({"d": (1.5, 2.5, 3.5, 4.5, 0.5)})).table(
            ["d"]
        ).tolist() == [*counts.table(["d"]), 0]


def test_counts_refuse_a_schema_with_other_names() -> None:
    counts = Counts.from_codes(Schema.discrete({"a": (0, 1), "b": (0, 1)}), [[0, 0, 1], [1, 1, 1]])
    swapped = counts.with_schema(Schema.discrete({"b": (0, 1), "a": (0, 1)}))
    assert swapped.table(["a"]).tolist() == counts.table(["a"]).tolist() == [2, 1]
    for names in ({"a": (0, 1)}, {"a": (0, 1), "c": (0, 1)}, {"a": (0, 1), "b": (0, 1), "c": "x"}):
        with pytest.raises(SchemaError, match="same names"):
            counts.with_schema(Schema.discrete(names))
    with pytest.raises(SchemaError, match="discrete"):
        counts.with_schema(Schema.continuous(["a", "b"]))
    with pytest.raises(SchemaError, match="lack"):
        counts.with_schema(Schema.discrete({"a": (0, 2), "b": (0, 1)}))


def test_fractional_counts_are_refused() -> None:
    schema = Schema.discrete({"a": "xy"})
    assert Counts.from_tables(schema, {("a",): [1.0, 2.0]}).n == 3
    for wrong in ([1.5, 1.5], [-1, 4], [np.nan, 1.0], [1j, 2.0], ["1", "2"]):
        with pytest.raises(SchemaError, match="whole numbers"):
            Counts.from_tables(schema, {("a",): np.array(wrong)})
    with pytest.raises(SchemaError, match="whole numbers"):
        Counts.from_codes(schema, [[0, 1]], [0.5, 1.5])


def test_duplicates_of_identifiers_need_little_memory() -> None:
    n = 20_000
    rng = np.random.default_rng(0)
    schema = Schema.discrete({name: tuple(range(n)) for name in ("a", "b", "c")})
    first = np.arange(n)
    x = np.stack([first, n - 1 - first, rng.permutation(n)])
    x[2, 0] = x[2, 1]
    plans = [CountPlan.everything(), CountPlan.up_to(2), CountPlan.sets([["a", "b", "c"]])]
    for plan in plans:
        counts = Counts.from_codes(schema, x, plan=plan)
        tracemalloc.start()
        assert counts.duplicates() == (("a", "b"),)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 30e6


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_duplicates_are_those_of_a_slow_comparison(plan: CountPlan) -> None:
    rng = np.random.default_rng(3)
    schema = Schema.discrete(dict.fromkeys("abçd", (0, 1, 2)))
    for _ in range(30):
        x = rng.integers(0, 3, size=(4, 5))
        weights = rng.integers(0, 2, 5)
        if rng.random() < 0.5:
            x[2] = rng.permutation(3)[x[0]]
        if not weights.any():
            continue
        counts = Counts.from_codes(schema, x, weights, plan=plan)
        rows = x[:, weights > 0]
        expected = {
            frozenset((a, b))
            for a, b in combinations("abçd", 2)
            if plan.covers([a, b])
            and len(set(rows["abçd".index(a)])) > 1
            and len(set(zip(*rows[["abçd".index(a), "abçd".index(b)]], strict=True)))
            == len(set(rows["abçd".index(a)]))
            == len(set(rows["abçd".index(b)]))
        }
        found = {
            frozenset(pair) for group in counts.duplicates() for pair in combinations(group, 2)
        }
        assert found >= expected
        assert found == expected or plan.groups is not None
