"""Moments against exact arithmetic, and everything they refuse."""

from __future__ import annotations

import pickle
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from isthmus.errors import DataError, FormatError, MissingValuesError, SchemaError
from isthmus.statistics import Chebyshev, Counts, Features, Kind, Moments, Schema, Variable
from isthmus.statistics.counts import align_levels
from isthmus.statistics.rows import MomentsBuilder

RNG = np.random.default_rng


def exact_scatter(x: np.ndarray) -> np.ndarray:
    """Centred Gram matrix in rational arithmetic, rounded once at the end."""
    rows = [[Fraction(float(v)) for v in row] for row in x]
    n, d = x.shape
    mean = [sum(row[j] for row in rows) / n for j in range(d)]
    return np.array(
        [
            [float(sum((r[i] - mean[i]) * (r[j] - mean[j]) for r in rows)) for j in range(d)]
            for i in range(d)
        ]
    )


def mixed_schema() -> Schema:
    return Schema(
        (
            Variable("x", Kind.CONTINUOUS),
            Variable("c", Kind.DISCRETE, ("a", "b", "d")),
            Variable("y", Kind.CONTINUOUS, time_unit="day"),
            Variable("b", Kind.DISCRETE, (False, True)),
        )
    )


@pytest.mark.parametrize(("mean", "spread"), [(1e6, 1e-2), (-3e8, 1e-1), (0.0, 1.0), (1e-9, 1e-3)])
def test_scatter_equals_exact_arithmetic(mean: float, spread: float) -> None:
    rng = RNG(1)
    x = mean + spread * (rng.normal(size=(500, 4)) @ rng.normal(size=(4, 4)))
    found = Moments.from_array(Schema.continuous("abcd"), x).scatter()
    true = exact_scatter(x)
    scale = np.sqrt(np.outer(true.diagonal(), true.diagonal()))
    assert np.abs(found - true).max() <= 1e-13 * scale.max()
    assert np.all(np.abs(found - true) <= 1e-12 * scale)


def test_an_unshifted_sum_would_have_failed() -> None:
    """The case above can fail: plain sums of squares lose all digits there."""
    rng = RNG(1)
    x = 1e6 + 1e-2 * rng.normal(size=(500, 2))
    naive = x.T @ x - np.outer(x.sum(0), x.sum(0)) / len(x)
    true = exact_scatter(x)
    assert np.abs(naive - true).max() > 1e-3 * true.max()


def test_merge_of_far_sites_equals_exact_arithmetic() -> None:
    rng = RNG(2)
    parts = [
        m + 1e-2 * rng.normal(size=(k, 3)) for m, k in [(1e6, 50), (1e6 + 3, 1), (1e6 - 7, 200)]
    ]
    schema = Schema.continuous("abc")
    a, b, c = (Moments.from_array(schema, p) for p in parts)
    true = exact_scatter(np.concatenate(parts))
    for merged in ((a + b) + c, a + (b + c), (c + a) + b):
        np.testing.assert_allclose(merged.scatter(), true, rtol=1e-12)
        assert merged.n == 251


def test_drifting_stream_keeps_its_digits() -> None:
    """The shift comes from the first rows; later rows may lie elsewhere."""
    rng = RNG(3)
    x = np.linspace(0, 1e3, 40_000)[:, None] + rng.normal(size=(40_000, 2))
    builder = MomentsBuilder(Schema.continuous("ab"))
    for part in np.array_split(x, 7):
        builder.update([part[:, 0], part[:, 1]])
    np.testing.assert_allclose(builder.finish().covariance(), np.cov(x.T, bias=True), rtol=1e-12)


def test_one_hot_blocks() -> None:
    schema = mixed_schema()
    assert schema.column_names == ("x", "c=b", "c=d", "y", "b=True")
    assert schema.blocks == ((0, 1), (1, 3), (3, 4), (4, 5))
    rng = RNG(4)
    codes = rng.integers(0, [3, 2], size=(1000, 2))
    cont = rng.normal(size=(1000, 2)) + 5
    z = np.column_stack(
        [cont[:, 0], codes[:, 0] == 1, codes[:, 0] == 2, cont[:, 1], codes[:, 1] == 1]
    ).astype(float)
    m = Moments.from_array(
        schema, np.column_stack([cont[:, 0], codes[:, 0], cont[:, 1], codes[:, 1]])
    )
    np.testing.assert_allclose(m.mean(), z.mean(0), rtol=1e-12)
    np.testing.assert_allclose(m.covariance(ddof=1), np.cov(z.T), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(m.correlation(), np.corrcoef(z.T), rtol=1e-10, atol=1e-12)


def test_weights_repeat_rows() -> None:
    rng = RNG(5)
    x, w = rng.normal(size=(30, 3)) + 100, rng.integers(0, 5, size=30)
    schema = Schema.continuous("abc")
    weighted = Moments.from_array(schema, x, weights=w)
    repeated = Moments.from_array(schema, np.repeat(x, w, axis=0))
    assert weighted.n == repeated.n
    np.testing.assert_allclose(weighted.scatter(), repeated.scatter(), rtol=1e-12)
    np.testing.assert_allclose(weighted.mean(), repeated.mean(), rtol=1e-14)


@pytest.mark.parametrize(("n", "d"), [(1, 1), (1, 5), (3, 7), (2, 2)])
def test_few_rows(n: int, d: int) -> None:
    x = RNG(6).normal(size=(n, d))
    m = Moments.from_array(Schema.continuous(f"v{i}" for i in range(d)), x)
    assert m.n == n
    np.testing.assert_allclose(m.mean(), x.mean(0), rtol=1e-14)
    np.testing.assert_allclose(m.covariance(), np.atleast_2d(np.cov(x.T, bias=True)), atol=1e-14)
    assert np.isfinite(m.correlation()).all()
    with pytest.raises(DataError, match="needs more than"):
        m.covariance(ddof=n)


def test_integers_do_not_overflow() -> None:
    x = np.full((1000, 1), 250, dtype=np.uint8)
    x[0] = 0
    m = Moments.from_array(Schema.continuous(["a"]), x)
    assert m.mean()[0] == pytest.approx(249.75, rel=1e-14)
    assert m.scatter()[0, 0] == pytest.approx(62437.5, rel=1e-12)


def test_missing_and_infinite_are_named_with_counts() -> None:
    x = RNG(7).normal(size=(40_000, 3))
    x[[3, 30_000], 1] = np.nan
    with pytest.raises(MissingValuesError, match=r"'bé' \(2\).*DropRows"):
        Moments.from_array(Schema.continuous(["a", "bé", "c"]), x)
    x[:, 1] = 0
    x[5, 2] = -np.inf
    with pytest.raises(DataError, match=r"infinite.*'c' \(1\)"):
        Moments.from_array(Schema.continuous(["a", "b", "c"]), x)
    x[5, 2] = 1e200
    with pytest.raises(DataError, match="overflow"):
        Moments.from_array(Schema.continuous(["a", "b", "c"]), x)
    with pytest.raises(DataError, match="no rows"):
        Moments.from_array(Schema.continuous(["a"]), np.empty((0, 1)))


def test_shapes_and_codes_are_checked() -> None:
    with pytest.raises(SchemaError, match="one column for each variable"):
        Moments.from_array(Schema.continuous("ab"), np.zeros((3, 3)))
    with pytest.raises(SchemaError, match="codes from 0 to 2"):
        Moments.from_array(Schema.discrete({"a": "xy"}), np.array([[0], [2]]))


def test_select_reorders_blocks() -> None:
    schema = mixed_schema()
    rng = RNG(8)
    x = np.column_stack(
        [rng.normal(size=50), rng.integers(0, 3, 50), rng.normal(size=50), rng.integers(0, 2, 50)]
    )
    m = Moments.from_array(schema, x)
    part = m.select(["b", "c"])
    assert part.columns == ("b=True", "c=b", "c=d")
    direct = Moments.from_array(schema.subset(["b", "c"]), x[:, [3, 1]])
    np.testing.assert_allclose(part.scatter(), direct.scatter(), rtol=1e-12, atol=1e-12)
    with pytest.raises(SchemaError, match="no variable 'z'"):
        m.select(["z"])
    with pytest.raises(SchemaError, match="twice"):
        m.select(["x", "x"])


def test_adding_refuses_what_does_not_belong() -> None:
    a = Moments.from_array(Schema.continuous("ab"), np.ones((2, 2)))
    with pytest.raises(SchemaError, match="cannot be added"):
        a + Moments.from_array(Schema.continuous("ba"), np.ones((2, 2)))
    with pytest.raises(SchemaError, match="regime"):
        a + Moments.from_array(Schema.continuous("ab"), np.ones((2, 2)), regime="drug")


def test_aligned_levels_add_up() -> None:
    rng = RNG(9)
    pieces = [(["b", "d"], 40), (["a", "b"], 30)]
    cont = [rng.normal(size=k) for _, k in pieces]
    codes = [rng.integers(0, 2, k) for _, k in pieces]
    parts = [
        Moments.from_array(
            Schema((Variable("x", Kind.CONTINUOUS), Variable("c", Kind.DISCRETE, tuple(levels)))),
            np.column_stack([x, c]),
        )
        for (levels, _), x, c in zip(pieces, cont, codes, strict=True)
    ]
    with pytest.raises(SchemaError, match="align_levels"):
        parts[0] + parts[1]
    a, b = align_levels(*parts)
    assert a.schema["c"].levels == ("a", "b", "d")
    joined = np.concatenate([codes[0] + 1, codes[1]])
    joined[:40][codes[0] == 1] = 2
    whole = Moments.from_array(a.schema, np.column_stack([np.concatenate(cont), joined]))
    np.testing.assert_allclose((a + b).scatter(), whole.scatter(), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose((a + b).mean(), whole.mean(), rtol=1e-12, atol=1e-12)


def test_constants_and_duplicates_are_named() -> None:
    rng = RNG(10)
    x, k = rng.normal(size=5000), rng.integers(0, 3, 5000)
    schema = Schema(
        (
            *(Variable(n, Kind.CONTINUOUS) for n in ("x", "still", "feet", "near")),
            *(Variable(n, Kind.DISCRETE, (0, 1, 2)) for n in ("k", "relabelled", "other")),
            Variable("only", Kind.DISCRETE, ("one",)),
            Variable("unseen", Kind.DISCRETE, ("one", "two")),
        )
    )
    values = np.column_stack(
        [
            x,
            np.full(5000, 0.1),
            3.28 * x + 7,
            x + 1e-3 * rng.normal(size=5000),
            k,
            (k + 1) % 3,
            rng.permutation(k),
            np.zeros(5000),
            np.zeros(5000),
        ]
    )
    m = Moments.from_array(schema, values)
    assert m.constants() == ("still", "only", "unseen")
    assert m.duplicates() == (("x", "feet"), ("k", "relabelled"))


def test_two_rows_have_no_duplicates() -> None:
    m = Moments.from_array(Schema.continuous("ab"), np.array([[0.0, 1.0], [1.0, 5.0]]))
    assert m.duplicates() == ()


def test_everything_is_read_only() -> None:
    given = np.ones((2, 2))
    m = Moments(Schema.continuous("ab"), 2, np.zeros(2), np.zeros(2), given)
    given[0, 0] = 7
    assert m.gram[0, 0] == 1
    for values in (m.gram, m.sums, m.shift, m.scatter()):
        with pytest.raises(ValueError, match="read-only"):
            values[...] = 1
    with pytest.raises(AttributeError):
        m.n = 3  # type: ignore[misc]


def test_save_and_load(tmp_path: Path) -> None:
    schema = Schema(
        (
            Variable("größe", Kind.CONTINUOUS, time_unit="día"),
            Variable("类", Kind.DISCRETE, ("ä", 1, 2.5, False)),
        )
    )
    m = Moments.from_array(schema, np.array([[1e6 + 0.1, 3], [1e6, 0], [3.0, 1]]), regime="κ")
    path = tmp_path / "moments.anything"
    m.save(path)
    again = Moments.load(path)
    assert again == m
    assert [type(v) for v in again.schema["类"].levels] == [str, int, float, bool]
    assert hash(again) == hash(m)
    assert again != m.shifted(m.shift + 1)


def test_load_refuses_other_files(tmp_path: Path) -> None:
    path = tmp_path / "f.npz"
    Counts.from_codes(Schema.discrete({"a": "xy"}), [[0, 1]]).save(path)
    with pytest.raises(FormatError, match=r"isthmus-counts/1.*isthmus-moments/2"):
        Moments.load(path)
    for content in (b"", b"hello", pickle.dumps({"a": 1})):
        path.write_bytes(content)
        with pytest.raises(FormatError, match="file of statistics"):
            Moments.load(path)
    with path.open("wb") as file:
        np.savez(file, header=np.array([{"format": "isthmus-moments/2"}], dtype=object))
    with pytest.raises(FormatError):
        Moments.load(path)
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(FormatError, match="single array"):
        Moments.load(path)
    with path.open("wb") as file:
        np.savez(file, a=np.zeros(3))
    with pytest.raises(FormatError, match="no readable header"):
        Moments.load(path)
    header = np.frombuffer(b'{"format": "isthmus-moments/2", "n": 3}', dtype=np.uint8)
    with path.open("wb") as file:
        np.savez(file, header=header)
    with pytest.raises(FormatError, match="damaged"):
        Moments.load(path)
    with pytest.raises(FileNotFoundError):
        Moments.load(tmp_path / "absent")


@pytest.mark.parametrize("scale", [1e-90, 1e-30, 1.0, 1e60, 1e80])
def test_duplicates_do_not_depend_on_the_unit(scale: float) -> None:
    x = np.random.default_rng(0).normal(size=(100, 4)) * scale
    x[:, 3] = 2 * x[:, 1] + scale
    moments = Moments.from_array(Schema.continuous(list("abcd")), x)
    assert moments.duplicates() == (("b", "d"),)


@pytest.mark.timing
def test_duplicates_of_many_levels_are_found_quickly() -> None:
    rng = np.random.default_rng(1)
    n, levels = 400, 40
    schema = Schema.discrete({f"v{i}": tuple(range(levels)) for i in range(30)})
    first = np.repeat(np.arange(levels), n // levels)
    x = np.stack([rng.permutation(first) for _ in range(30)], axis=1)
    x[:, 7] = rng.permutation(levels)[x[:, 3]]
    moments = Moments.from_array(schema, x)
    begin = time.process_time()
    assert moments.duplicates() == (("v3", "v7"),)
    assert time.process_time() - begin < 1.0


def test_two_values_one_ulp_apart_are_not_constant() -> None:
    rng = np.random.default_rng(0)
    for value in (1.0, 0.1, -3e5, 1e-120):
        two = np.where(rng.random(50) < 0.5, value, np.nextafter(value, np.inf))
        one = np.full(50, value)
        moments = Moments.from_array(Schema.continuous(["one", "two"]), np.column_stack([one, two]))
        assert moments.constants() == ("one",)
        assert (moments + moments).constants() == ("one",)
    tiny = 1e-300 * rng.random((50, 1))
    with pytest.raises(DataError, match=r"'tiny'.*squares are zero"):
        Moments.from_array(Schema.continuous(["tiny"]), tiny)


def test_a_constant_is_one_whatever_the_shift() -> None:
    column = np.full((1000, 1), 0.1)
    gram, sums = column.T @ column, column.sum(axis=0)
    moments = Moments(Schema.continuous(["c"]), 1000, np.zeros(1), sums, gram)
    assert moments.constants() == ("c",)
    assert moments.shifted([7.3]).constants() == ("c",)


def test_moments_do_not_depend_on_the_size_of_the_batches() -> None:
    rng = np.random.default_rng(0)
    schema = Schema(
        (
            Variable("x", Kind.CONTINUOUS),
            Variable("c", Kind.DISCRETE, ("a", "b", "d")),
            Variable("y", Kind.CONTINUOUS, features=Features(Chebyshev(3), 0.0, 1.0)),
        )
    )
    columns = [rng.normal(1e3, 1.0, 50_000), rng.integers(0, 3, 50_000), rng.normal(size=50_000)]
    whole = Moments.from_columns(schema, columns)
    for size in (7_000, 16_384, 49_999):
        builder = MomentsBuilder(schema)
        for start in range(0, 50_000, size):
            builder.update([c[start : start + size] for c in columns])
        assert builder.finish() == whole


def test_weighted_and_unweighted_rows_can_be_mixed() -> None:
    rng = np.random.default_rng(0)
    schema = Schema.continuous(["x", "y"])
    x = rng.normal(size=(30, 2))
    builder = MomentsBuilder(schema)
    builder.update(list(x[:10].T))
    builder.update(list(x[10:].T), np.full(20, 3))
    expected = Moments.from_array(schema, np.concatenate([x[:10], *[x[10:]] * 3]))
    found = builder.finish()
    assert found.n == 70
    np.testing.assert_allclose(found.covariance(), expected.covariance(), rtol=1e-12)


@pytest.mark.parametrize("top", [2e153, 1.5e308])
def test_squares_near_the_largest_number_are_refused_without_another_word(top: float) -> None:
    signs = np.where(np.arange(60) % 2, 1.0, -1.0)
    rows = np.stack([np.arange(60.0), top * signs], axis=1)
    with pytest.raises(DataError, match="values of 'b' are so large"):  # warnings are errors
        Moments.from_array(Schema.continuous(["a", "b"]), rows)
