"""The other rules of the table in the documentation, at their thresholds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.attacks.malicious import Attacked

from isthmus.statistics import Schema
from isthmus_joint import AskMoments
from isthmus_joint.methods.admm import AskConsensus
from isthmus_joint.methods.admm_models import LARGEST, SMALLEST, ADMMOptions
from isthmus_joint.secure_sum.envelopes import EnvelopeKind

STEPS = (-1, 0, 1)
SIZES = {"north": 60, "east": 70, "south": 80}
ROOT = Path(__file__).parents[3]


def world(*, largest: float = 90.0, **changes: Any) -> Attacked:
    rng = np.random.default_rng(0)
    tables = {n: {"age": rng.uniform(20, 90, k)} for n, k in SIZES.items()}
    tables["east"]["age"][0] = largest
    requests = ("moments", "consensus")
    schema = Schema.continuous(["age"])
    return Attacked(tables, schema, {"age": (0.0, 100.0)}, requests=requests, **changes)


@pytest.mark.parametrize("step", STEPS)
def test_steps_of_admm_within_limits(step: int) -> None:
    study = world(rounds=7).study
    request = AskConsensus(("age",), 7 + step)
    assert (not request.violations(study)) == (step <= 0)


@pytest.mark.parametrize("step", STEPS)
def test_penalties_of_admm_between_their_limits(step: int) -> None:
    study, beside = world().study, 1 + step * 1e-12
    for rho, allowed in ((SMALLEST * beside, step >= 0), (LARGEST * beside, step <= 0)):
        request = AskConsensus(("age",), 0, ADMMOptions(rho2=rho))
        assert (not request.violations(study)) == allowed


@pytest.mark.parametrize("step", STEPS)
def test_rounds_of_a_study(step: int) -> None:
    """After so many refused questions, the next one is answered if a round is left."""
    site = world(rounds=3)
    for i in range(2 + step):
        probe = AskConsensus(("age",), 9 + i)
        assert site.answer("east", site.frame(probe))[0] is EnvelopeKind.REFUSE
    answer = site.answer("east", site.frame(AskMoments(("age",))))
    assert (answer[0] is EnvelopeKind.ADVERT) == (step <= 0)


# --- the table -----------------------------------------------------------------------------------

ELSEWHERE = {"exact_studies", "only_with", "–"}
"""Keys of rules that have no threshold: they hold or they do not."""


def table() -> list[list[str]]:
    text = (ROOT / "docs" / "reference" / "extracts.md").read_text()
    rows = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in row] for row in rows if len(row) == 5]
    return [row for row in cells if row[0] not in ("rule", "---")]


def texts_of_tests() -> dict[str, str]:
    """The text of each test, with its decorators, by name."""
    found = {}
    for path in [*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "packages").rglob("test_*.py")]:
        for part in re.split(r"\n\n\n", path.read_text()):
            match = re.search(r"^def (test_\w+)\(", part, re.MULTILINE)
            if match:
                found[match[1]] = part
    return found


def test_each_test_that_the_page_names_exists() -> None:
    known = texts_of_tests().keys()
    for page in ("reference/extracts.md", "explanation/threat-model.md"):
        named = re.findall(r"`(test_\w+)`", (ROOT / "docs" / page).read_text())
        assert len(named) > 10
        assert not set(named) - known


def test_each_rule_in_the_table_has_tests_at_its_threshold() -> None:
    rows, known = table(), texts_of_tests()
    assert len(rows) >= 14
    for rule, key, _, reason, names in rows:
        assert reason, rule
        named = re.findall(r"`(test_\w+)`", names)
        assert named, rule
        assert not [n for n in named if n not in known], rule
        if key.strip("`") not in ELSEWHERE:
            assert any("parametrize" in known[n] for n in named), rule
