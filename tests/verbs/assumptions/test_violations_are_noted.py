"""Tables that violate an assumption of `learn` give a note that says so, and what to do."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from tests.notes import noted

import isthmus as ist
from isthmus.errors import NotesWarning

N = 1000


def named(values: Any) -> dict[str, Any]:
    return {f"v{j}": values[:, j] for j in range(values.shape[1])}


def changed(x: Any, name: str, rng: np.random.Generator) -> Any:
    if name == "corrupt row":
        x[0] = 1e4
    elif name == "shifted rows":
        x[:3] += 30
    elif name == "trends":
        x = x[:, :4] + 0.01 * np.arange(N)[:, None] * np.arange(1, 5)
    elif name == "volatility":
        x *= np.exp(1.5 * rng.normal(size=(N, 1)))
    return x


def violated(name: str, rng: np.random.Generator) -> dict[str, Any]:
    x = rng.normal(size=(N, 6))
    if name == "patients":
        x = np.repeat(x[:200, :3], 5, axis=0) + 0.1 * x[:, 3:]
        return {"patient": np.repeat(np.arange(200), 5), **named(x)}
    if name == "levels":
        return {"a": rng.choice(["yes", "yes ", "Yes", "no"], N), "b": rng.choice(["u", "v"], N)}
    levels = np.array(["a", "b", "c"])
    replaced = {
        "copies": np.repeat(x[:50], 20, axis=0),
        "discrete copies": np.repeat(levels[rng.integers(0, 3, size=(60, 8))], 20, axis=0),
        "random walks": x.cumsum(axis=0),
        "Cauchy": rng.standard_cauchy((N, 20)),
        "lognormal": np.exp(rng.normal(size=(300, 20))),
    }
    return named(replaced[name] if name in replaced else changed(x, name, rng))


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("corrupt row", r"Check row 0 \(counted from 0\): it makes up 100% of the variance"),
        ("shifted rows", "Check rows 0, 1, 2 "),
        ("copies", "remove the copies.* every row occurs 20 times"),
        ("discrete copies", "remove the copies"),
        ("random walks", r"use Series\(table\), or the differences"),
        ("trends", r"use Series\(table\), or the differences"),
        ("volatility", "Divide each row by its scale"),
        ("Cauchy", "by their normal scores"),
        ("lognormal", "by their normal scores"),
        ("patients", "Average the rows of each 'patient'"),
        ("levels", "Merge levels that differ only in spaces"),
    ],
)
# of a lognormal column, one row can lie apart
@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")
def test_a_violation_is_noted_once(name: str, words: str) -> None:
    # The default tries normal scores by itself, and then tails are no matter.
    score = ist.GaussianEBIC() if "normal scores" in words else None
    for seed in range(3):
        with noted(words):
            solution = ist.learn(violated(name, np.random.default_rng(seed)), score=score)
        about = solution.notes if score is None else [n for n in solution.notes if words in n]
        assert len(about) == 1


def test_a_table_without_violations_has_no_notes() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(5):
            assert ist.learn(violated("none", np.random.default_rng(seed))).notes == ()


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "words"),
    [("copies", "remove the copies"), ("random walks", r"use Series\(table\)")],
)
def test_posteriors_and_bootstraps_note_the_same_violations(name: str, words: str) -> None:
    table = violated(name, np.random.default_rng(0))
    with pytest.warns(NotesWarning) as warned:
        posterior = ist.sample(table, draws=20)
    assert sum(words.split("\\")[0] in note for note in posterior.notes) == 1
    assert [w.filename for w in warned] == [__file__]
    with pytest.warns(NotesWarning) as warned:
        ensemble = ist.bootstrap(table, replicates=10, jobs=1)
    assert sum(words.split("\\")[0] in note for note in ensemble.notes) == 1
    assert [w.filename for w in warned] == [__file__]  # once, and not for each replicate
