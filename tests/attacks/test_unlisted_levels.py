"""One person has a value that the study does not list, and a refusal would tell.

With noise, rows that lack a value or have another level are left out, and every site answers. One
such person changes the answer by no more than any other person does.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.joint.consortium import SCHEMA
from tests.joint.noise.private_group import consortium

from isthmus.arrays import Floats
from isthmus.statistics import CountPlan
from isthmus_joint import AskCounts
from isthmus_joint.noise.answers import NoisyAnswers, noisy_release, usable
from isthmus_joint.noise.statistics import NoisyMoments
from isthmus_joint.noise.whitening import LAST, SURVEY

WIDTH = 1 + SCHEMA.width
STRANGE = {
    "unlisted level": (2, 3.0),
    "negative code": (2, -1.0),
    "missing level": (3, np.nan),
    "missing number": (0, np.nan),
    "infinite number": (1, np.inf),
}


def rows(n: int = 40) -> Floats:
    rng = np.random.default_rng(8)
    numbers = [rng.uniform(0, 100, n), rng.uniform(0, 5, n)]
    return np.column_stack([*numbers, rng.integers(0, 3, n), rng.integers(0, 2, n)])


@pytest.mark.long
@pytest.mark.parametrize("what", STRANGE)
@pytest.mark.parametrize("kind", ["survey", "products", "counts"])
@pytest.mark.parametrize("column", [False, True], ids=["rows", "persons"])
def test_a_row_that_does_not_fit_changes_nothing(
    tmp_path: Path, what: str, kind: str, *, column: bool
) -> None:
    group = consortium(tmp_path)
    site = NoisyAnswers(group.study, group.controller("north")._writer)
    releases: dict[str, Any] = {
        "survey": NoisyMoments(group.study, SURVEY),
        "products": NoisyMoments(group.study, LAST, np.eye(WIDTH)),
        "counts": noisy_release(AskCounts(CountPlan.sets([["ward", "ill"]]), round=1), group.study),
    }
    release = releases[kind]
    values = rows()
    place, value = STRANGE[what]
    values[7, place] = value
    persons = np.arange(len(values)) if column else None
    kept = np.arange(len(values)) != 7
    strange: Any = SimpleNamespace(values=values, persons=persons)
    without: Any = SimpleNamespace(
        values=values[kept], persons=None if persons is None else persons[kept]
    )
    assert np.array_equal(usable(SCHEMA, values), kept)
    answers = [release.integers(site.rows(own)) for own in (strange, without)]
    assert np.array_equal(*answers)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:The noise", "ignore::isthmus.errors.NotesWarning")
@pytest.mark.parametrize(
    ("name", "value"),
    [("ward", "X"), ("ward", None), ("ill", None), ("age", np.nan), ("dose", np.inf)],
)
def test_a_site_with_such_a_person_answers_like_any_other(
    tmp_path: Path, name: str, value: object
) -> None:
    pytest.importorskip("opendp")
    group = consortium(tmp_path, requests=["moments"])
    kind = float if isinstance(value, float) else object
    group.data["east"][name] = group.data["east"][name].astype(kind)
    group.data["east"][name][3] = value
    group.federation().moments()
    assert not group.why("east")
    assert group.events("east") == group.events("north")
