"""Attacks on the noise of differential privacy: other questions, other studies, other ledgers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.joint.consortium import NAMES, SCHEMA, Consortium
from tests.joint.noise.private_group import PRIVACY, consortium, renewed

from isthmus.errors import AbortedError, LedgerError
from isthmus.statistics import Kind, Schema, Variable
from isthmus_joint import (
    AskMoments,
    DifferentialPrivacy,
    FileLedger,
    Identity,
    Member,
    SecureSums,
    Study,
)
from isthmus_joint.agreement.policy import UNLIMITED
from isthmus_joint.noise.accounting import Spending, epsilon_of
from isthmus_joint.noise.statistics import NoisyMoments
from isthmus_joint.noise.whitening import LARGEST_ENTRY, LAST, SHARES, SURVEY
from isthmus_joint.records.ledger_writer import Sent
from isthmus_joint.secure_sum import protocol

pytest.importorskip("opendp")
pytestmark = pytest.mark.filterwarnings("ignore:The noise", "ignore::isthmus.errors.NotesWarning")


@pytest.mark.long
def test_the_same_columns_in_another_order_are_not_another_question(tmp_path: Path) -> None:
    group = consortium(tmp_path)
    federation = group.federation()
    first = federation.moments()
    with pytest.raises(AbortedError):
        federation.ask(AskMoments(SCHEMA.names[::-1], SURVEY))
    assert group.why("north") == ["policy"]
    assert federation.moments(SCHEMA.names[::-1]) == first.select(SCHEMA.names[::-1])
    assert len(Spending.of(group.ledgers["north"].entries()).costs) == 1


@pytest.mark.long
@pytest.mark.parametrize(
    "changes",
    [
        {},  # only the title differs
        {"schema": SCHEMA.subset(SCHEMA.names[::-1])},
        {"schema": Schema((*SCHEMA.variables, Variable("others", Kind.CONTINUOUS)))},
    ],
    ids=["renamed", "permuted", "with an unused column"],
)
def test_the_same_question_in_another_study_is_paid_for_again(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    """Two answers could be averaged: together they cost what their noise does not hide."""
    privacy = DifferentialPrivacy(1.0)
    group = consortium(tmp_path, 1.0, requests=["moments"], privacy=privacy)
    group.federation().moments()
    bounds = dict(group.study.bounds) | ({"others": (0.0, 1.0)} if "schema" in changes else {})
    names = changes.get("schema", SCHEMA).names
    bounds = {n: b for n, b in bounds.items() if n in names}
    terms = {"requests": ["moments"], "privacy": privacy, "bounds": bounds}
    second = renewed(group, **(terms | changes))
    for name in NAMES:
        second.data[name]["others"] = np.zeros(60)
        second.policies[name] = replace(second.policies[name], maximum_epsilon=1.0)
    with pytest.raises(AbortedError):
        second.federation().moments()
    assert second.why("north") == ["policy"]
    for name in NAMES:
        second.policies[name] = replace(second.policies[name], maximum_epsilon=1.5)
    second.federation(first_round=50).moments()
    spent = Spending.of(group.ledgers["north"].entries())
    assert list(spent.costs.values()) == pytest.approx([privacy.rho] * 2)
    assert 1.0 < epsilon_of(spent.total, 1e-6) <= 1.5


def lenient(group: Consortium) -> Consortium:
    """A policy whose only limit is the budget: noise takes the place of all rules on data."""
    for name, policy in group.policies.items():
        group.policies[name] = replace(
            policy, minimum_cohort=1, minimum_cell=1, largest_share=1.0, columns_per_row=UNLIMITED
        )
    return group


@pytest.mark.long
def test_a_budget_is_not_brought_back_by_deleting_the_ledger(tmp_path: Path) -> None:
    group = lenient(consortium(tmp_path, requests=["moments"]))
    group.federation().moments()
    (tmp_path / "north.jsonl").unlink()
    group.ledgers = {n: FileLedger(tmp_path / f"{n}.jsonl") for n in NAMES}
    with pytest.raises(AbortedError):
        group.federation(first_round=20).moments()
    assert group.why("north")[-1] == "witness"
    assert "sent" not in group.events("north")


def test_a_budget_that_was_edited_shows_at_once(tmp_path: Path) -> None:
    group = consortium(tmp_path, requests=["moments"])
    group.federation().moments()
    path = tmp_path / "north.jsonl"
    text, rho = path.read_text(), f'"rho":{PRIVACY.rho * SHARES[-1]!r}'
    assert text.count(rho) == 1
    path.write_text(text.replace(rho, '"rho":0.0'))
    with pytest.raises(LedgerError, match="was changed: line"):
        FileLedger(path)


@pytest.mark.parametrize("sites", [3, 4, 7])
def test_a_site_that_adds_no_noise_is_covered(tmp_path: Path, sites: int) -> None:
    """By default the noise of all others suffices if one organisation adds none."""
    members = [Member(f"s{i}", f"o{i}", Identity.generate().public) for i in range(sites)]
    study = Study.draft(
        "Noise",
        purpose="tests",
        author=Identity.generate().public,
        coordinator=Identity.generate().public,
        members=members,
        schema=SCHEMA,
        bounds={"age": (0, 120), "dose": (0, 10)},
        protocol=SecureSums(),
        requests=["moments"],
        privacy=DifferentialPrivacy(1.0),
    )
    release = NoisyMoments(study, LAST)
    threshold = study.protocol.threshold  # type: ignore[attr-defined]
    assert release.cost(threshold - 1) <= release.rho
    assert release.cost(threshold - 2) > release.rho  # two cheaters are too many: said when signing
    assert f"as long as {threshold - 1} of the sites" in release.privacy.describe()


@pytest.mark.parametrize("limit", ["rows", "bounds"])
def test_limits_of_the_author_do_not_tell_whether_a_person_is_in_the_table(
    tmp_path: Path, limit: str
) -> None:
    """A site that refuses sixty rows and not fifty-nine tells what the noise hides.

    So does one that refuses a value in the middle of bounds whose half width is rounded to zero.
    """
    if limit == "rows":
        group = consortium(tmp_path, requests=["moments"], protocol=SecureSums(rows=59))
    else:
        privacy = DifferentialPrivacy(2.0, 1e-6, {"age": (0.0, 100.0)})
        group = consortium(tmp_path, requests=["moments"], privacy=privacy)
        bounds = dict(group.study.bounds)
        name = next(n for n in bounds if n != "age")
        group = renewed(group, requests=["moments"], bounds=bounds | {name: (0.0, 5e-324)})
        for site in NAMES:
            group.data[site][name][0] = 0.0
    group.federation().moments()
    assert not group.why("north")


WIDTH = 1 + SCHEMA.width


def asked(number: int, scale: float = 1.0, entries: int = WIDTH**2) -> AskMoments:
    """A round with a map of the attacker's choice."""
    diagonal = np.diag(np.full(WIDTH, scale)).reshape(-1)
    return AskMoments(SCHEMA.names, number, tuple(diagonal[:entries].tolist()))


def test_a_round_is_answered_for_one_map_only(tmp_path: Path) -> None:
    """Two maps in one round would be two answers for the price of one."""
    group = consortium(tmp_path, requests=["moments"])
    federation = group.federation()
    federation._sum(asked(1))
    for other in (2.0, 1.0 + 2**-52):
        with pytest.raises(AbortedError):
            federation._sum(asked(1, other))
    assert group.why("north") == ["policy"] * 2
    federation._sum(asked(1))  # the same answer again
    federation._sum(asked(2, 2.0))
    spent = Spending.of(group.ledgers["north"].entries()).total
    assert spent == pytest.approx(PRIVACY.rho * (SHARES[1] + SHARES[2]))


def test_two_maps_that_are_asked_at_the_same_time_get_one_answer(tmp_path: Path) -> None:
    """Both rounds are opened before a number leaves: the second one is refused then."""
    controller = consortium(tmp_path, requests=["moments"]).controller("north")
    noisy = controller._noisy
    assert noisy is not None
    first, second = asked(1), asked(1, 2.0)
    for request in (first, second):
        assert not controller._noise_violations(request)
        noisy.numbers(request, controller._extract)
    sent = Sent(3, 3, "secure sum", controller._extract.identity, noise=noisy.record(first))
    controller._writer.record(protocol.SENT, 1, sent=sent)
    assert controller._noise_violations(second)
    assert not controller._noise_violations(first)


@pytest.mark.long
@pytest.mark.parametrize(
    "request_",
    [
        asked(LAST + 1),
        asked(SURVEY),
        asked(1, entries=WIDTH),
        asked(1, entries=0),
        asked(1, 2 * LARGEST_ENTRY),
        asked(1, float("inf")),
    ],
    ids=["beyond the last", "survey with a map", "short", "none", "large", "infinite"],
)
def test_maps_that_do_not_fit_are_refused(tmp_path: Path, request_: AskMoments) -> None:
    group = consortium(tmp_path, requests=["moments"])
    with pytest.raises((AbortedError, ValueError)):
        group.federation()._sum(request_)
    assert "sent" not in group.events("north")


def test_no_map_shows_one_person(tmp_path: Path) -> None:
    """A map that magnifies one person's direction: the answer changes by no more than the ball."""
    study = consortium(tmp_path, requests=["moments"]).study
    needle = np.zeros((WIDTH, WIDTH))
    needle[0, :2] = LARGEST_ENTRY * np.array([-0.5, 1.0])  # zero but for one age
    release = NoisyMoments(study, LAST, needle)
    rows = np.array([[75.0, 1.0, 0.0, 0.0]] * 50 + [[91.0, 1.0, 0.0, 0.0]])
    change = release.integers(rows) - release.integers(rows[:-1])
    assert np.linalg.norm(change / release.spread) <= release.sensitivity
    assert release.cost(release.privacy.honest) <= release.rho
