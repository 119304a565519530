"""Secret tables, functions, scores and K2 against plaintext."""

from __future__ import annotations

from itertools import combinations
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.joint.shares import reference, tasks
from tests.joint.shares.links import at_both
from tests.joint.shares.pair import Pair
from tests.joint.shares.tasks import halves

from isthmus.errors import AbortedError, DataError
from isthmus_joint.shares import secret_functions
from isthmus_joint.shares.engine import SecretSharingRuntime
from isthmus_joint.shares.link import FRACTION, Words, encoded
from isthmus_joint.shares.secret_functions import (
    MOST_COUNTS,
    PRECISION,
    TOLERANCE,
    CountFunction,
    CountScore,
    LogGamma,
    SecretScores,
    TimesLog,
    cell_error,
    choose,
    count_coefficients,
    count_intervals,
)
from isthmus_joint.shares.terms import Columns, SharedColumn


def network(seed: int, rows: int, levels: list[int]) -> NDArray[np.int64]:
    """Rows in which each variable depends on some before it."""
    rng = np.random.default_rng(seed)
    data = np.zeros((rows, len(levels)), dtype=np.int64)
    for i, r in enumerate(levels):
        parents = rng.permutation(i)[: rng.integers(0, 3)]
        code = sum((data[:, p] * 7 ** int(k) for k, p in enumerate(parents)), np.zeros(rows, int))
        weights = rng.dirichlet(np.full(r, 0.6), size=7**2 * 7)[code % (7**2 * 7)]
        data[:, i] = (weights.cumsum(1) < rng.random((rows, 1))).sum(1).clip(0, r - 1)
    return data


def test_tables_are_exact_and_shares_are_not_the_tables(pair: Pair) -> None:
    levels, owners = [2, 3, 4, 2, 5, 1], [0, 1, 0, 1, 1, 0]
    data = network(1, 301, levels)
    wanted = [
        m for k in (2, 3) for m in combinations(range(6), k) if len({owners[i] for i in m}) == 2
    ]
    answers = pair(tasks.opened_tables, owners, levels, 301, wanted, own=halves(data, owners))
    for k, members in enumerate(wanted):
        expected = np.zeros([levels[i] for i in members], dtype=np.int64)
        for row in data[:, members]:
            expected[tuple(row)] += 1
        for shares, opened in answers:
            np.testing.assert_array_equal(opened[k], expected)
            # A variable with a single level tells nothing: the other party's table is its own.
            if len({owners[i] for i in members if levels[i] > 1}) == 2:
                assert (np.abs(shares[k].view(np.int64)) > 2**20).all()


@pytest.mark.long
def test_functions_of_counts_are_within_tolerance(pair: Pair) -> None:
    from scipy.special import gammaln, xlogy

    n = 100_000
    rng = np.random.default_rng(2)
    counts = np.exp(rng.random(160) * np.log(n)).astype(np.int64)
    counts[:12], counts[12:24], counts[24:28] = 0, np.arange(12), n
    functions: list[Any] = [LogGamma(1.0), TimesLog(), LogGamma(1e-3), LogGamma(50.0)] * 40
    mask = rng.integers(0, 2**64, 160, dtype=np.uint64)
    own = ((counts.astype(np.uint64) - mask,), (mask,))
    first, second = pair(tasks.opened_functions, functions, n, own=own)
    expected = np.array(
        [
            xlogy(c, c) if isinstance(f, TimesLog) else gammaln(c + f.a) - gammaln(f.a)
            for f, c in zip(functions, counts, strict=True)
        ]
    )
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first, expected, rtol=0, atol=1.1 * TOLERANCE)
    # Small counts have no error but that of fractions with 30 bits.
    assert np.abs(first - expected)[counts <= 8].max() < 4e-9
    assert np.abs(first[counts == 0]).max() <= 2.0**-FRACTION


def value_of(function: CountFunction, count: int, n: int) -> float:
    """Return what both parties compute together, with integers of unlimited size."""
    intervals, total = count_intervals(n), 0
    if count:
        k = count.bit_length() - 1
        after = (count << intervals.width >> k) - (1 << intervals.width)  # without the first bit
        quarter, rest = divmod(after, 1 << intervals.width - 2)
        variable = rest >> intervals.width - 2 - intervals.length
        table = count_coefficients(function, n)[intervals.pairs.index((k, quarter))]
        *lower, last = (signed(low | high << 64) for low, high in table.tolist())
        for d, coefficient in reversed(list(enumerate(lower))):
            last *= variable
            last = (last >> intervals.length if d else last) + (
                coefficient if d else coefficient << intervals.length
            )
        total = last
    return (total >> PRECISION + intervals.length - FRACTION) / 2.0**FRACTION


def signed(number: int) -> int:
    return number - (number >> 127 << 128)


@pytest.mark.long
@pytest.mark.parametrize("n", [1, 2, 9, 100, 1000, 65_537, 10**6, 10**7, MOST_COUNTS])
def test_the_error_of_a_cell_bounds_that_of_fixed_point_numbers(n: int) -> None:
    """z13: the arithmetic of both parties, also at the ends of intervals."""
    intervals, rng = count_intervals(n), np.random.default_rng(0)
    starts = [int(intervals.start(*pair)) for pair in intervals.pairs]
    counts = {c + i for c in starts for i in (-1, 0) if c + i <= n} | {n}
    counts |= set(range(min(n, 100) + 1)) | set(rng.integers(0, n + 1, 200).tolist())
    for function in (LogGamma(1.0), LogGamma(3.0), LogGamma(1e-4), LogGamma(2000.0), TimesLog()):
        for count in counts:
            expected = float(function(np.array([float(count)]))[0])
            # The last digits of the function itself, which is up to 2e9, are wrong as well.
            bound = cell_error(n) + 1e-15 * abs(expected)
            assert abs(value_of(function, count, n) - expected) <= bound
            assert count or value_of(function, count, n) == 0.0


def test_more_people_than_the_error_is_known_for() -> None:
    with pytest.raises(DataError, match="at most 100,000,000 people"):
        cell_error(MOST_COUNTS + 1)


@pytest.mark.long
@pytest.mark.parametrize("score", [("k2", 1.0), ("bdeu", 5.0), ("bic", 1.0)])
def test_scores_of_families(pair: Pair, score: tuple[str, float]) -> None:
    # Variable 3 has a level that never occurs, and variable 5 only one level.
    levels, owners = [2, 3, 4, 4, 2, 1], [0, 1, 0, 1, 1, 0]
    data = network(3, 200, [2, 3, 4, 3, 2, 1])
    families = [
        (i, p)
        for i in range(6)
        for p in [(), ((i + 1) % 6,), tuple(sorted(((i + 2) % 6, (i + 3) % 6)))]
    ]
    families.append((0, (1, 2, 3)))
    first, second = pair(
        tasks.opened_scores, owners, levels, 200, score, families, own=halves(data, owners)
    )
    np.testing.assert_array_equal(first[0], second[0])
    for value, bound, (child, parents) in zip(*first, families, strict=True):
        expected = reference.family_score(data, levels, child, parents, *score)
        assert abs(value - expected) <= bound + 1e-8
        assert bound < 1e-3


def test_cells_that_must_be_empty_hardly_add_to_the_error() -> None:
    """Of 2^20 cells at most 50 have somebody: one large family must not make all others a tie."""
    described = [SharedColumn("x0", 0, 1 << 10), SharedColumn("x1", 1, 1 << 10)]
    columns = Columns(described, {"x0": np.zeros(50, np.int64)}, 0, 50)
    scores = SecretScores(cast("SecretSharingRuntime", None), columns, CountScore())
    assert 50 * TOLERANCE < scores.error((0, (1,))) < 60 * TOLERANCE + 2.0**-10


@pytest.mark.long
def test_ties_go_to_the_earlier_candidate(pair: Pair) -> None:
    """z08, z10: both parties have the same column, so that it is an exact tie for every child."""
    rng, levels, owners = np.random.default_rng(1), [4] * 10, [0, 1] * 5
    base = rng.integers(0, 4, 5000)
    children = [np.where(rng.random(5000) < 0.5, base, rng.integers(0, 4, 5000)) for _ in range(8)]
    data = np.stack([base, base, *children], axis=1)
    names = [f"x{i}" for i in range(10)]
    first, second = pair(tasks.k2, owners, levels, 5000, names, 1, "k2", own=halves(data, owners))
    assert first[:2] == second[:2]
    assert sorted(first[0]) == [("x0", f"x{i}") for i in range(1, 10)]


@pytest.mark.long
@pytest.mark.parametrize(("score", "limit"), [("k2", 2), ("bic", 3)])
def test_private_k2_is_k2(pair: Pair, score: str, limit: int) -> None:
    levels, owners = [2, 3, 2, 4, 3, 2], [0, 1, 1, 0, 1, 0]
    data = network(5, 2000, levels)
    order = [2, 0, 1, 5, 3, 4]
    names = [f"x{i}" for i in order]
    expected, decisions = reference.greedy(data, levels, order, limit, score)
    assert min(margin for _, _, margin in decisions) > 1e-3
    first, second = pair(
        tasks.k2, owners, levels, 2000, names, limit, score, own=halves(data, owners)
    )
    assert first[:2] == second[:2]
    edges = {(f"x{p}", f"x{i}") for i, ps in expected.items() for p in ps}
    assert set(first[0]) == edges
    steps = sorted((child, parent or "") for child, parent in first[1])
    assert steps == sorted((f"x{i}", "" if p is None else f"x{p}") for i, p, _ in decisions)
    # Nothing but positions of candidates was opened, once per step.
    assert all(to == (0, 1) and value.shape[0] <= 6 for _, to, value in first[2])
    assert len(first[2]) <= limit


def chosen(link: Any, change: int = 0) -> Any:
    """Choose among three scores of one variable; the first party may change its share."""
    engine = SecretSharingRuntime(link)
    opening = engine.open

    def changed(secret: Words, *more: Any, **options: Any) -> Any:
        return opening(secret + np.uint64(change if link.rank == 0 else 0), *more, **options)

    engine.open = changed  # type: ignore[method-assign]
    own = encoded([1.0, 3.0, 2.0]) if link.rank == 0 else np.zeros(3, np.uint64)
    return choose(engine, [own], "the parent", 1e-6)


@pytest.mark.long
def test_no_more_bits_leave_than_a_position_has() -> None:
    """Three candidates have two bits, whatever a share of a word has."""
    (first, second), links = at_both(chosen)
    assert first == second == [1]
    for link in links:
        assert int.from_bytes(link.seen[-1], "little") < 4


@pytest.mark.long
def test_a_position_that_does_not_exist_ends_the_run() -> None:
    (first, second), _ = at_both(lambda link: chosen(link, 2))
    assert isinstance(first, AbortedError)
    assert isinstance(second, AbortedError)
    assert at_both(lambda link: chosen(link, 4))[0] == [[1], [1]]


# --- the largest score ---------------------------------------------------------------------------


def score_shares(scores: list[list[float]]) -> list[tuple[list[Words]]]:
    rng = np.random.default_rng(8)
    masks = [rng.integers(0, 2**64, len(own), dtype=np.uint64) for own in scores]
    return [([encoded(own) - m for own, m in zip(scores, masks, strict=True)],), (masks,)]


def test_the_largest_score_of_lists_of_different_lengths(pair: Pair) -> None:
    rng = np.random.default_rng(9)
    scores = [rng.normal(size=k).tolist() for k in (*range(1, 10), 33)]
    scores += [[-7e9], [-4e9, -4.1e9, 4e9], [1.0, 1.0], [0.0, 1e-7, 2e-7]]
    expected = [int(np.argmax(own)) for own in scores[:-1]] + [0]
    for found in pair(lambda engine, own: choose(engine, own, "", 0.0), own=score_shares(scores)):
        assert found == expected


@pytest.mark.long
def test_a_party_that_changes_comparisons_chooses_among_the_candidates(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it does, there are as many possible decisions as candidates, and no others."""
    rng, true = np.random.default_rng(10), secret_functions.negatives

    def changed(products: Any, shares: Words, rank: int) -> Any:
        bits = true(products, shares, rank)
        return bits ^ rng.integers(0, 2, bits.shape).astype(np.uint8) if rank else bits

    monkeypatch.setattr(secret_functions, "negatives", changed)
    scores = [[0.0] * k for k in (1, 2, 3, 5, 9)]
    found = [
        pair(lambda engine, own: choose(engine, own, "", 0.0), own=score_shares(scores))[0]
        for _ in range(8)
    ]
    for k, positions in zip((1, 2, 3, 5, 9), zip(*found, strict=True), strict=True):
        assert set(positions) <= set(range(k))
        assert len(set(positions)) > 1 or k == 1
