"""Expectations of incomplete rows against the sum over all completions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import isthmus as ist
from isthmus.arrays import Floats
from isthmus.errors import DataError
from isthmus.networks.completion import Completion

NODES = 6


def problem(seed: int) -> tuple[ist.DAG, list[int], list[Floats], np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, NODES).tolist()
    names = [f"v{i}" for i in rng.permutation(NODES)]
    pairs = [p for p in itertools.combinations(names, 2) if rng.random() < 0.5]
    dag = ist.DAG(sorted(names), pairs)
    tables = []
    for v, parents in enumerate(dag.parent_indices()):
        table = rng.random([sizes[p] for p in (*parents, v)]) + 0.01
        tables.append(table / table.sum(axis=-1, keepdims=True))
    codes = np.stack([rng.integers(0, size, 20) for size in sizes])
    codes = np.where(rng.random(codes.shape) < 0.4, np.array(sizes)[:, None], codes)
    rows, weights = np.unique(codes.astype(np.uint16), axis=1, return_counts=True)
    return dag, sizes, tables, rows, 2 * weights


@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_expectations_are_sums_over_all_completions(seed: int) -> None:
    dag, sizes, tables, rows, weights = problem(seed)
    families = [(*parents, v) for v, parents in enumerate(dag.parent_indices())]
    log_likelihood, counts = 0.0, [np.zeros(table.shape) for table in tables]
    for row, weight in zip(rows.T.tolist(), weights.tolist(), strict=True):
        levels = [range(k) if x == k else [x] for x, k in zip(row, sizes, strict=True)]
        every = list(itertools.product(*levels))
        cells = [[tuple(x[u] for u in family) for family in families] for x in every]
        chances = np.array(
            [np.prod([t[cell] for t, cell in zip(tables, own, strict=True)]) for own in cells]
        )
        log_likelihood += weight * np.log(chances.sum())
        for own, chance in zip(cells, chances / chances.sum(), strict=True):
            for table, cell in zip(counts, own, strict=True):
                table[cell] += weight * chance
    completion = Completion(dag, sizes, rows, weights)
    draws = 300
    batches = [completion.batch(i, tables, draws, seed) for i in range(len(completion))]
    assert sum(b.log_likelihood for b in batches) == pytest.approx(log_likelihood, abs=1e-9)
    drawn = np.concatenate([b.draws for b in batches], axis=1)
    assert drawn.shape[1] == draws * weights.sum()
    for v, (family, wanted) in enumerate(zip(families, counts, strict=True)):
        expected = sum(b.counts[v] for b in batches)
        np.testing.assert_allclose(expected, wanted.ravel(), atol=1e-9)
        seen = np.zeros(wanted.shape)
        np.add.at(seen, tuple(drawn[u] for u in family), 1.0 / draws)
        # The standard deviation is below sqrt(40 / 4 / 300) = 0.2.
        np.testing.assert_allclose(seen, wanted, atol=1.2)


def test_too_many_dependent_missing_values_are_refused() -> None:
    names = [f"v{i}" for i in range(24)]
    dag = ist.DAG(names, [(a, "v23") for a in names[:-1]])
    rows = np.full((24, 1), 2, dtype=np.uint16)
    with pytest.raises(DataError, match="too many ways"):
        Completion(dag, [2] * 24, rows, np.ones(1, dtype=np.int64))
