"""Structure-only search, private tables and moments against plaintext, in two processes."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from tests.joint.shares import reference, tasks
from tests.joint.shares.pair import Pair
from tests.joint.shares.tasks import halves
from tests.joint.shares.test_secret_scores import network

import isthmus as ist
from isthmus.errors import AbortedError
from isthmus_joint.shares import secret_moments
from isthmus_joint.shares.engine import SecretSharingRuntime
from isthmus_joint.shares.link import Words


@pytest.mark.long
def test_structure_only_finds_the_best_sets_and_opens_one_position_each(pair: Pair) -> None:
    levels, owners = [2, 3, 2, 3, 2], [0, 1, 1, 0, 1]
    data = network(6, 800, levels)
    order = [2, 0, 1, 4, 3]
    expected = reference.best_sets(data, levels, order, 2, "k2")
    answers = pair(
        tasks.best,
        owners, levels, 800, [f"x{i}" for i in order], 2, "k2",
        own=halves(data, owners),
    )  # fmt: skip
    for edges, transcript in answers:
        assert set(edges) == {(f"x{p}", f"x{i}") for i, ps in expected.items() for p in ps}
        ((_, to, value),) = transcript
        assert to == (0, 1)
        assert value.shape == (4,)


def test_nothing_is_opened_if_no_variable_may_have_parents(pair: Pair) -> None:
    data = network(6, 20, [2, 2])
    arguments = [0, 1], [2, 2], 20, ["x0", "x1"], 0, "k2"
    for edges, transcript in pair(tasks.best, *arguments, own=halves(data, [0, 1])):
        assert not edges
        assert not transcript


@pytest.mark.long
def test_structure_over_people_whom_one_party_knows(pair: Pair) -> None:
    """The other party gives all its rows; those of other people do not change the network."""
    levels, owners = [2, 3, 2, 2], [0, 1, 1, 0]
    data = network(12, 500, levels)
    order = [2, 0, 1, 3]
    expected = [reference.best_sets(data, levels, order, 2, score) for score in ("k2", "bic")]
    rng = np.random.default_rng(3)
    present = np.zeros(900, dtype=bool)
    present[rng.permutation(900)[:500]] = True
    rows = rng.integers(0, levels, size=(900, 4))  # of people whom only one party has
    rows[present] = data
    both = halves(rows, owners)
    own = ((*both[0], np.ones(900, dtype=bool)), (*both[1], present))
    answers = pair(tasks.masked, owners, levels, [f"x{i}" for i in order], 1, 500, own=own)
    for found, opened in answers:
        for edges, sets in zip(found, expected, strict=True):
            assert set(edges) == {(f"x{p}", f"x{i}") for i, ps in sets.items() for p in ps}
        assert opened == [3, 3]


@pytest.mark.long
def test_tables_go_to_the_owner_of_the_variable_unless_a_cell_is_small(pair: Pair) -> None:
    levels, owners = [2, 2, 2, 3, 2], [0, 1, 0, 1, 1]
    rng = np.random.default_rng(7)
    data = rng.integers(0, levels, size=(300, 5))
    # All 20 people with this level of x4 have the same level of x0: its owner knows who they are.
    data[:, 4] = np.where(np.cumsum(data[:, 0]) <= 20, data[:, 0], 0)
    data[:, 3] = np.where(np.arange(300) < 2, 2, data[:, 1])  # two people have a rare level
    edges = [("x0", "x1"), ("x1", "x2"), ("x0", "x3"), ("x0", "x4")]
    first, second = pair(tasks.tables, owners, levels, 300, edges, 5, own=halves(data, owners))
    assert set(first[0]) == {"x0", "x2"}
    assert set(second[0]) == {"x1", "x3", "x4"}
    np.testing.assert_array_equal(first[0]["x0"], np.bincount(data[:, 0]))
    np.testing.assert_array_equal(
        second[0]["x1"], np.histogram2d(data[:, 0], data[:, 1], bins=2)[0].astype(int)
    )
    assert second[0]["x3"] is None
    assert second[0]["x4"] is None
    np.testing.assert_array_equal(
        first[0]["x2"], np.histogram2d(data[:, 1], data[:, 2], bins=2)[0].astype(int)
    )
    for rank, (_, transcript) in enumerate((first, second)):
        for to, value in transcript:
            assert len(to) == 1
            assert (value is not None) == (rank in to)
    for withheld in (second[1][-1][1], second[1][-2][1]):
        assert not withheld.any()  # nothing about the table, only that it is withheld


@pytest.mark.parametrize("step", [-1, 0, 1])
def test_the_smallest_cell_of_a_table(pair: Pair, step: int) -> None:
    cells = np.array([[40, 5 + step], [30, 25]])
    data = np.array([(a, b) for a in (0, 1) for b in (0, 1) for _ in range(cells[a, b])])
    found = pair(
        tasks.tables, [0, 1], [2, 2], len(data), [("x0", "x1")], 5, own=halves(data, [0, 1])
    )
    opened = found[1][0]["x1"]
    assert (opened is not None) == (step >= 0)
    if step >= 0:
        np.testing.assert_array_equal(opened, cells)


def linear(rows: int, d: int, seed: int) -> tuple[np.ndarray, set[tuple[int, int]]]:
    rng = np.random.default_rng(seed)
    data = rng.normal(size=(rows, d))
    edges = set()
    for j in range(1, d):
        for i in rng.permutation(j)[:2]:
            data[:, j] += rng.choice([-1, 1]) * rng.uniform(0.4, 1.0) * data[:, i]
            edges.add((int(i), j))
    return data * rng.uniform(0.1, 50, d) + rng.normal(size=d) * 100, edges


def test_opened_moments_are_those_of_the_joined_table(pair: Pair) -> None:
    data, _ = linear(500, 5, 8)
    owners = [0, 1, 1, 0, 1]
    first, second = pair(tasks.moments, owners, 500, own=halves(data, owners))
    assert first == second
    frame = {f"x{i}": data[:, i] for i in range(5)}
    expected = ist.Frame(frame).moments().scatter()
    units = np.sqrt(expected.diagonal())
    np.testing.assert_allclose(
        first.scatter() / np.outer(units, units), expected / np.outer(units, units), atol=1e-7
    )
    np.testing.assert_allclose(first.mean(), data.mean(0), rtol=1e-14)
    np.linalg.cholesky(first.scatter())


@pytest.mark.parametrize("number", [np.nan, np.inf, -1e101])
def test_numbers_that_an_unchanged_program_does_not_publish(pair: Pair, number: float) -> None:
    """They are the other party's doing, and not a matter of one's own data."""

    def publish(engine: SecretSharingRuntime) -> Any:
        try:
            return engine.publish(np.array([1.0, number]), "means", 1, (2,)).tolist()
        except AbortedError as error:
            return error.reason

    first, second = pair(publish)
    assert first == "broken message"
    np.testing.assert_equal(second, [1.0, number])


@pytest.mark.long
def test_logarithms_of_determinants(pair: Pair) -> None:
    """At every place of an interval: an error of one bit in its scale was once magnified."""
    values = np.concatenate([np.linspace(0.01, 1.0, 240), 2.0 ** -np.linspace(7, 17, 16)])
    whole = np.rint(values * 2.0**40).astype(np.uint64)
    mask = np.random.default_rng(3).integers(0, 2**64, 256, dtype=np.uint64)
    first, second = pair(tasks.opened_logarithms, own=((whole - mask,), (mask,)))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first, np.log(values), rtol=0, atol=1e-7)


@pytest.mark.long
def test_gaussian_structure_from_secret_moments(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a few sets of variables at a time: each takes much memory."""
    sizes, true = [], secret_moments.determinants

    def recorded(engine: SecretSharingRuntime, correlations: Words) -> Words:
        sizes.append(len(correlations))
        return true(engine, correlations)

    monkeypatch.setattr(secret_moments, "AT_ONCE", 9)
    monkeypatch.setattr(secret_moments, "determinants", recorded)
    data, _ = linear(2000, 5, 9)
    owners, limit = [0, 1, 1, 0, 1], 2
    order = [0, 1, 2, 3, 4]
    expected = set()
    for k, i in enumerate(order):
        scores = {}
        for size in range(min(k, limit) + 1):
            for s in combinations(order[:k], size):
                design = np.column_stack([np.ones(2000), data[:, list(s)]])
                residual = data[:, i] - design @ np.linalg.lstsq(design, data[:, i], rcond=None)[0]
                scores[s] = -1000 * np.log(residual @ residual / 2000) - 0.5 * np.log(2000) * size
        ranked = sorted(scores.values())
        assert len(ranked) < 2 or ranked[-1] - ranked[-2] > 0.05
        expected |= {(f"x{p}", f"x{i}") for p in max(scores, key=lambda s: scores[s])}
    answers = pair(
        tasks.gaussian, owners, 2000, [f"x{i}" for i in order], limit, own=halves(data, owners)
    )
    for edges, shapes in answers:
        assert set(edges) == expected
        assert shapes == [(4,)]
    assert max(sizes) == 9
