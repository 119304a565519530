"""Checks of distributions: what they find, and what they must not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import isthmus as ist

SEEDS = range(4)


def named(values: Any) -> dict[str, Any]:
    return {f"v{j}": values[:, j] for j in range(values.shape[1])}


def notes(table: dict[str, Any], **options: Any) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return " | ".join(ist.learn(table, **options).notes)


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_heavy_tails_are_measured_after_the_parents(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = np.exp(1.2 * rng.normal(size=(300, 6)))
    assert "Replace 'v0', 'v1', 'v2' and 3 more by their normal scores" in notes(
        named(x), score=ist.GaussianEBIC()
    )
    assert notes(named(x), transform=ist.NormalScores()) == ""
    assert notes(named(np.log(x))) == ""
    # A rare category that shifts a column gives it tails, which the category explains.
    rare = rng.random(1000) < 0.01
    shifted = rng.normal(size=(1000, 3)) + 12.0 * rare[:, None]
    assert "tails" not in notes({"rare": rare, **named(shifted)})


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_a_common_scale_is_noted_instead_of_tails(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(400, 5)) * np.exp(rng.normal(size=(400, 1)))
    found = notes(named(x))
    assert found.startswith("Divide each row by its scale")
    assert "heavy tails" not in found
    a, b, e = rng.normal(size=(3, 400))
    assert "Divide" not in notes({"a": a, "b": b, "c": a * b + 0.3 * e})


@pytest.mark.parametrize("levels", [False, True], ids=["numbers", "mixed"])
def test_one_column_with_many_zeros_is_named_if_it_has_edges(levels: bool) -> None:
    rng = np.random.default_rng(0)
    a, e = rng.normal(size=(2, 3000))
    gain = np.where(rng.random(3000) < 0.9, 0.0, np.exp(8 + rng.normal(size=3000)))
    b = a + 2.0 * (gain > 0) + e
    table: dict[str, Any] = {"a": a, "b": np.where(b > 0, "u", "v") if levels else b, "gain": gain}
    assert notes(table).startswith("Cut 'gain' into levels and compare")
    assert "'gain'" not in notes(table | {"b": a + e})
    counts = {"a": a, "b": rng.poisson(np.exp(a)), "c": a + e}  # nearly half of b are zeros
    assert "Cut" not in notes(counts)


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_a_score_of_lines_is_told_which_edges_are_curved(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, e, f = rng.normal(size=(3, 300))
    lines = ist.GaussianEBIC()
    even = np.linspace(-3, 3, 300)  # without a straight relation to its cosine
    curved = {"x": even, "y": np.cos(2 * even) + 0.2 * e, "z": f}
    assert "curves add to x – y" in notes(curved, score=lines)
    assert "AdditiveEBIC()" not in notes(curved, score=ist.GP())
    assert "AdditiveEBIC()" not in notes(curved)
    effects = {f"y{i}": x + x**2 + rng.normal(size=300) for i in range(3)}
    assert "curves explain y" in notes({"x": x, **effects}, score=lines)
    straight = {"x": x, "y": x + e, "z": f}
    assert notes(straight, score=lines) == ""


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("noise", ["exponential", "laplace", "uniform", "standard_cauchy"])
def test_linear_effects_with_other_noise_are_not_called_curved(noise: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    e = getattr(rng, noise)(size=(500, 4))
    independent = named(e)
    assert "curved" not in notes(independent)


@pytest.mark.long
def test_likert_items_and_counts_are_not_called_curved() -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=(300, 4))
        z[:, 1] += z[:, 0]
        z[:, 2] += z[:, 1]
        likert = named(np.clip(np.round(4 + z), 1, 7))
        kinds = dict.fromkeys(likert, "continuous")
        assert notes(likert, kinds=kinds) == ""
        counts = named(rng.poisson([1.0, 3.0, 9.0, 20.0], size=(300, 4)))
        assert notes(counts, kinds=dict.fromkeys(counts, "continuous")) == ""


@pytest.mark.long
@pytest.mark.parametrize(("n", "items"), [(400, 10), (1000, 20)])
def test_the_limits_of_items_are_no_common_scale(n: int, items: int) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        noise = 0.4 * rng.normal(size=(n, items))
        likert = named(np.clip(np.round(3 + 1.3 * rng.normal(size=(n, 1)) + noise), 1, 5))
        assert "Divide" not in notes(likert, kinds=dict.fromkeys(likert, "continuous"))


@pytest.mark.parametrize("seed", SEEDS)
def test_effects_that_depend_on_a_group(seed: int) -> None:
    rng = np.random.default_rng(seed)
    group, x = rng.choice(["m", "f"], 1000), rng.normal(size=1000)
    noise = 0.5 * rng.normal(size=1000)
    opposite = {"g": group, "x": x, "y": np.where(group == "m", 1.0, -1.0) * x + noise}
    assert notes(opposite).startswith("Learn the groups of 'g' separately")
    assert notes({"g": group, "x": x, "y": (group == "m") + x + noise}) == ""
