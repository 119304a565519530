"""Searches by tests over three real processes: drafted studies, and the graphs of pooled rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.processes.hospitals import CONTINUOUS, Hospitals
from tests.verbs.test_hidden_causes import SEARCHES, graph

import isthmus as ist
from isthmus.arrays import Floats
from isthmus_joint import Federation

LEVELS = 'kind = "discrete"\nlevels = [0, 1]'
CURVES = ist.NonlinearLikelihoodRatio()


def rows(kind: str) -> Floats:
    """Rows of a → b ← u → c ← d without u: lines and cuts of them, or curves."""
    rng = np.random.default_rng(8)
    a, u, d, *noise = np.clip(rng.normal(size=(5, 900)), -2.5, 2.5)
    if kind == "curves":
        return np.stack([a, a**2 + u + noise[0], np.abs(d) + u + noise[1], d], axis=1)
    columns = [a, a + u + noise[0], u + d + noise[1], d]
    is_cut = [kind == "levels", True, kind == "levels", True]
    return np.stack([c > 0 if cut else c for c, cut in zip(columns, is_cut, strict=True)], axis=1)


@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")
@pytest.mark.parametrize("kind", ["levels", "mixed", "curves"])
def test_graphs_are_those_of_the_pooled_rows(
    hospitals: Callable[..., Hospitals], kind: str
) -> None:
    table = rows(kind)
    definition = {"levels": [LEVELS] * 4, "mixed": [CONTINUOUS, LEVELS] * 2, "curves": CONTINUOUS}
    draft = ["--score", "NonlinearLikelihoodRatio"] if kind == "curves" else ["--parents", "3"]
    world = hospitals(tables=np.split(table, [300, 520]), definition=definition[kind], draft=draft)
    world.serve(*world.names)
    study = world.study
    federation = Federation(study, world.signatures, world.boss, world.transport())
    pooled: Any = ist.Frame(world.pooled(), schema=study.schema)
    score = None
    if kind == "curves":
        score = CURVES
        assert study.features is not None
        pooled = ist.WithFeatures(pooled, study.features)
    for search in SEARCHES:
        expected = graph(pooled, search, score=score)
        assert graph(federation, search, score=score) == expected
    assert federation.sums == (2 if kind == "curves" else 1)
