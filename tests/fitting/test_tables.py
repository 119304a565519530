"""Sparse rows of probability tables are shrunk towards main effects, and full ones are not."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from isthmus.fitting.discrete import shrunk_table
from isthmus.statistics.fitting import probabilities


def truth(interactions: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return probabilities of three levels given parents with 16, 5 and 2 levels."""
    effects = [rng.normal(0, 1, shape) for shape in ((16, 1, 1, 3), (1, 5, 1, 3), (1, 1, 2, 3))]
    logits = sum(effects) + interactions * rng.normal(0, 1, (16, 5, 2, 3))
    shares = np.exp(logits)
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True))


def drawn(chances: NDArray[np.float64], n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return counts of rows whose parents are unevenly frequent."""
    cells = rng.dirichlet(np.full(chances[..., 0].size, 0.3)).reshape(chances.shape[:-1])
    return rng.multinomial(n, (cells[..., None] * chances).ravel()).reshape(chances.shape)


def loss(found: NDArray[np.float64], chances: NDArray[np.float64]) -> float:
    return float(-(chances * np.log(found)).sum(axis=-1).mean())


@pytest.mark.parametrize("interactions", [0.0, 0.3, 1.0, 3.0])
def test_new_rows_are_predicted_better_whether_or_not_there_are_interactions(
    interactions: float,
) -> None:
    """Than by one row of prior, or by the shares of all rows, for 1,000 rows in 160 cells."""
    losses = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        chances = truth(interactions, rng)
        counts = drawn(chances, 1000, rng)
        alone = probabilities(counts.sum(axis=(0, 1, 2)), 1.0)
        candidates = shrunk_table(counts, 1.0), probabilities(counts, 1.0), alone
        losses.append([loss(found, chances) for found in candidates])
    ours, plain, alone = np.mean(losses, axis=0)
    assert ours < plain - 0.01
    assert ours < alone + (0.01 if interactions == 3.0 else 0.0)


def test_tables_with_many_rows_have_the_shares_of_their_rows() -> None:
    """The exclusive or has no main effects, and needs none."""
    counts = np.array([[[4000, 1000], [1000, 4000]], [[1000, 4000], [4000, 1000]]])
    np.testing.assert_allclose(shrunk_table(counts, 1.0), probabilities(counts, 0.0), atol=1e-3)
    rng = np.random.default_rng(0)
    chances = truth(1.0, rng)
    many = np.round(chances * 100_000).astype(np.int64)
    np.testing.assert_allclose(shrunk_table(many, 1.0), chances, atol=1e-3)


def test_a_combination_without_rows_has_what_its_levels_have_elsewhere() -> None:
    chances = truth(0.0, np.random.default_rng(3))
    counts = np.round(chances * 1000).astype(np.int64)
    counts[3, 2, 1] = 0
    np.testing.assert_allclose(shrunk_table(counts, 1.0)[3, 2, 1], chances[3, 2, 1], atol=0.02)
    one = np.array([[50, 50], [10, 90], [0, 0]])
    assert shrunk_table(one, 1.0)[2] == pytest.approx([0.3, 0.7], abs=0.01)


def test_without_a_prior_or_without_parents_nothing_is_shrunk() -> None:
    counts = np.array([[3, 1], [0, 2]])
    np.testing.assert_array_equal(shrunk_table(counts, 0.0), probabilities(counts, 0.0))
    np.testing.assert_array_equal(shrunk_table(counts[0], 2.0), probabilities(counts[0], 2.0))
    single = np.array([[[3, 1]], [[0, 2]]])  # a parent with one level
    np.testing.assert_allclose(shrunk_table(single, 1.0)[:, 0], shrunk_table(single[:, 0], 1.0))


def test_no_probability_is_zero() -> None:
    counts = np.zeros((2, 3, 4), np.int64)
    counts[0, 0, 0] = 5
    found = shrunk_table(counts, 1.0)
    assert (found > 0).all()
    np.testing.assert_allclose(found.sum(axis=-1), 1.0)
