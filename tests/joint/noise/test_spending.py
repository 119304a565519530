"""What was spent on noisy answers, over all studies, and the limits that a policy sets."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.joint.consortium import Consortium, policy

from isthmus.errors import RefusedError, StudyError
from isthmus_joint import DifferentialPrivacy, Policy, Study
from isthmus_joint.noise.accounting import Spending, epsilon_of

RHO = DifferentialPrivacy(1.0).rho


def test_costs_add_up_per_study_and_repetitions_are_free() -> None:
    entries: list[dict[str, Any]] = [
        {"study": "a", "rho": 0.5, "answer": "x"},
        {"study": "a", "rho": 0.5, "answer": "x"},
        {"study": "a", "rho": 0.25, "answer": "y"},
        {"study": "b", "rho": 1.0, "answer": "x"},
        {"study": "c", "event": "sent"},
    ]
    spending = Spending.of(entries)
    assert spending.costs == {"a": 0.75, "b": 1.0}
    assert spending.total == 1.75
    assert (spending.without("a"), spending.without("c")) == (1.0, 1.75)


def test_spending_is_described_in_plain_words() -> None:
    nothing = Spending().describe(1e-6, 0.0)
    assert nothing == (
        "Differential privacy, per person and at δ = 1e-06: no answer with noise has left. The "
        "policy allows no more such answers: maximum_epsilon is 0."
    )
    one = Spending({"a" * 64: RHO}).describe(1e-6, 3.0)
    assert "ε = 1 in the study aaaaaaaaaaaaaaaa…. The policy allows ε = 3 in total" in one
    two = Spending({"a" * 64: RHO, "b" * 64: RHO}).describe(1e-6)
    total = epsilon_of(2 * RHO, 1e-6)
    assert f"ε = {total:.3g} in all 2 studies together." in two
    assert total < 2.0  # less than the plain sum


@pytest.mark.parametrize("step", [-1, 0, 1])
def test_epsilon_per_study(tmp_path: Path, step: int) -> None:
    study = Consortium(tmp_path, privacy=DifferentialPrivacy(2.0)).study
    rules = replace(policy(tmp_path), maximum_epsilon=10.0)
    rules = replace(rules, epsilon_per_study=2.0 * (1 + 1e-6 * step))
    if step < 0:
        with pytest.raises(RefusedError, match=r"ε = 2 at δ = 1e-06 per study"):
            rules.require(study)
    else:
        rules.require(study)


@pytest.mark.parametrize("step", [-1, 0, 1])
def test_what_earlier_studies_spent_counts_when_a_study_is_signed(
    tmp_path: Path, step: int
) -> None:
    study = Consortium(tmp_path, privacy=DifferentialPrivacy(1.0)).study
    limit = epsilon_of(2 * RHO, 1e-6) * (1 + 1e-6 * step)
    rules = replace(policy(tmp_path), maximum_epsilon=limit)
    rules.require(study)
    spent = Spending({"earlier": RHO, study.identity.hex(): RHO})  # its own answers count once
    if step < 0:
        with pytest.raises(RefusedError, match=r"ε = 1 .*ε ="):
            rules.require(study, spent)
    else:
        rules.require(study, spent)


def test_the_policy_file_keeps_the_limit_per_study(tmp_path: Path) -> None:
    rules = replace(policy(tmp_path), maximum_epsilon=3.0, epsilon_per_study=1.0)
    text = rules.to_toml()
    assert "epsilon_per_study = 1.0" in text
    assert Policy.parse(text.encode()) == rules
    assert "epsilon_per_study" not in replace(rules, epsilon_per_study=math.inf).to_toml()


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon_per_study": 0.0},
        {"epsilon_per_study": -1.0},
        {"epsilon_per_study": math.nan},
        {"maximum_epsilon": math.nan},
        {"maximum_epsilon": math.inf},
        {"maximum_delta": 0.0},
        {"maximum_delta": 1.0},
        {"maximum_delta": math.nan},
    ],
)
def test_impossible_limits_are_refused(tmp_path: Path, wrong: dict[str, float]) -> None:
    name = next(iter(wrong))
    with pytest.raises(StudyError, match=name):
        replace(policy(tmp_path), **wrong)  # type: ignore[arg-type]
    given = {"maximum_epsilon": 3.0, "maximum_delta": 1e-6} | wrong
    text = policy(tmp_path).to_toml() + "".join(f"{k} = {v!r}\n" for k, v in given.items())
    with pytest.raises(StudyError, match=name):
        Policy.parse(text.encode())


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 9.9e-7, 1001.0, 1e9, math.inf, math.nan])
def test_budgets_out_of_range_are_refused_with_the_range(tmp_path: Path, epsilon: float) -> None:
    with pytest.raises(StudyError, match="must be between 1e-06 and 1000"):
        DifferentialPrivacy(epsilon)
    text = Consortium(tmp_path, privacy=DifferentialPrivacy(2.0)).study.text.decode()
    assert "epsilon = 2.0" in text
    with pytest.raises(StudyError, match="must be between 1e-06 and 1000"):
        Study.parse(text.replace("epsilon = 2.0", f"epsilon = {epsilon!r}").encode())


def test_a_number_of_hundreds_of_digits_is_not_a_budget(tmp_path: Path) -> None:
    text = Consortium(tmp_path, privacy=DifferentialPrivacy(2.0)).study.text.decode()
    for old in ("epsilon = 2.0", "rows_per_person = 1", "honest = 2"):
        wrong = f"{old.split(' = ')[0]} = {'9' * 400}"
        assert old in text
        with pytest.raises(StudyError, match=old.split(" = ", maxsplit=1)[0]):
            Study.parse(text.replace(old, wrong).encode())


@pytest.mark.parametrize("delta", [0.0, -1e-6, 1.1e-3, 1.0, 2.0, math.inf, math.nan])
def test_impossible_deltas_are_refused(delta: float) -> None:
    with pytest.raises(StudyError, match="delta is"):
        DifferentialPrivacy(1.0, delta)


@pytest.mark.parametrize("epsilon", [1e-6, 1e3])
@pytest.mark.parametrize("delta", [1e-12, 1e-3])
def test_opendp_confirms_budgets_at_the_ends_of_the_range(epsilon: float, delta: float) -> None:
    pytest.importorskip("opendp")
    from isthmus_joint.noise.answers import confirmed_epsilon

    privacy = DifferentialPrivacy(epsilon, delta)
    assert confirmed_epsilon(privacy.rho, delta) <= epsilon * (1 + 1e-9)
