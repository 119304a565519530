"""Rare levels that coincide by chance give no edges, and real effects of rare levels do."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

import isthmus as ist

Table = dict[str, Any]
ROWS = 500


def _names(codes: Any, prefix: str) -> Any:
    return np.array([f"{prefix}{code}" for code in codes], dtype=object)


def _singletons() -> Table:
    """Independent columns; two levels that occur once share a row with an outlier."""
    rng = np.random.default_rng(0)
    table: Table = {
        "x": rng.normal(size=ROWS),
        "a": _names(rng.integers(0, 3, ROWS), "a"),
        "b": _names(rng.integers(0, 3, ROWS), "b"),
    }
    # "a" sorts before the other levels and has no column, "z" sorts after them and has one.
    table["x"][7], table["a"][7], table["b"][7] = 12.0, "a", "z"
    return table


def _zipf(seed: int, levels: int) -> Table:
    rng = np.random.default_rng(seed)
    shares = 1.0 / np.arange(1, levels + 1) ** 1.5
    shares /= shares.sum()
    table: Table = {"x": rng.normal(size=ROWS)}
    for i in range(4):
        table[f"c{i}"] = _names(rng.choice(levels, ROWS, p=shares), "level ")
    return table


def _flags(seed: int, share: float) -> Table:
    rng = np.random.default_rng(seed)
    return {**{f"b{i}": rng.random(ROWS) < share for i in range(20)}, "x": rng.normal(size=ROWS)}


def test_levels_that_occur_once_in_the_same_row() -> None:
    solution = ist.learn(_singletons())
    assert solution.dag.edges == ()
    assert not any("exact linear relation" in note for note in solution.notes)
    posterior = ist.sample(_singletons(), draws=20, seed=1)
    assert posterior.edge_probabilities().max() < 0.05


@pytest.mark.parametrize("levels", [10, 50])
def test_categories_with_many_rare_levels(levels: int) -> None:
    tables = [_zipf(seed, levels) for seed in range(4)]
    assert [len(ist.learn(table).dag.edges) for table in tables] == [0] * 4


@pytest.mark.parametrize("share", [0.01, 0.02, 0.05])
def test_rare_flags_beside_a_number(share: float) -> None:
    edges = [len(ist.learn(_flags(seed, share)).dag.edges) for seed in range(4)]
    assert sum(edges) / 4 <= 0.1 * 21


def test_moments_give_the_same_graphs() -> None:
    table = _flags(0, 0.02)
    assert ist.learn(ist.summarise(table)).dag == ist.learn(table).dag


@pytest.mark.parametrize("shift", [3.0, -3.0])
def test_strong_effects_of_a_rare_level_are_found(shift: float) -> None:
    rng = np.random.default_rng(1)
    flag = rng.random(2000) < 0.02
    table = {"flag": flag, **{f"z{i}": rng.normal(size=2000) for i in range(5)}}
    table["x"] = rng.normal(size=2000) + shift * flag
    assert ist.learn(table).dag.skeleton().edges == (("flag", "x"),)


def test_rare_levels_that_go_together_are_found() -> None:
    rng = np.random.default_rng(2)
    flag = rng.random(2000) < 0.01
    other = np.where(rng.random(2000) < 0.9, flag, rng.random(2000) < 0.01)
    table = {"flag": flag, "other": other, "x": rng.normal(size=2000)}
    assert ist.learn(table).dag.skeleton().edges == (("flag", "other"),)


def test_which_level_has_no_column_does_not_matter() -> None:
    rng = np.random.default_rng(3)
    codes = np.minimum(rng.geometric(0.5, 300), 7)
    x = rng.normal(size=300) + (codes == 5)
    scores = []
    for names in ("abcdefgh", "hgfedcba"):
        table = {"c": np.array([names[code] for code in codes]), "x": x}
        dag = ist.DAG(["c", "x"], [("c", "x")])
        scores.append(ist.score(table, dag, ist.DegenerateGaussian()))
    assert scores[0] == pytest.approx(scores[1], rel=1e-9)


def test_names_of_equally_common_levels_do_not_matter() -> None:
    rng = np.random.default_rng(1)
    codes = np.repeat([0, 1, 2], [20, 20, 2])
    x = rng.standard_normal(42) + 0.8 * (codes == 0)
    dag = ist.DAG(["c", "x"], [("c", "x")])
    tables = [{"c": np.array(list(names))[codes], "x": x} for names in permutations("abc")]
    scores = [ist.score(table, dag, ist.DegenerateGaussian()) for table in tables]
    assert scores == pytest.approx([scores[0]] * 6, rel=1e-9)
    assert len({ist.learn(table).dag.skeleton() for table in tables}) == 1


def test_names_do_not_matter_if_all_levels_are_rare() -> None:
    rng = np.random.default_rng(2)
    codes = rng.permutation(np.repeat(range(12), 3))
    x = rng.standard_normal(36) + (codes == 4)
    dag = ist.DAG(["c", "x"], [("c", "x")])
    scores = [
        ist.score({"c": _names(given, "c"), "x": x}, dag, ist.DegenerateGaussian())
        for given in (codes, 11 - codes)
    ]
    assert scores[0] == pytest.approx(scores[1], rel=1e-9)
