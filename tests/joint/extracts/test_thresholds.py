"""Each rule on data just below its threshold, at it, and just above it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.attacks.malicious import drafted_policy
from tests.joint.extracts.test_freezing import study_of

from isthmus_joint import DifferentialPrivacy, Persons, Policy
from isthmus_joint.extracts.checks import (
    ReleaseCandidates,
    broken_rules,
    fewest_in_a_cell,
    largest_share,
)

LENIENT = Policy(
    minimum_cohort=1,
    minimum_cell=1,
    minimum_organisations=3,
    variables=("*",),
    protocols=("secure sums",),
    requests=("moments",),
    rounds_per_study=1,
    rounds_per_year=1,
    queries_per_year=1,
    stop_file=Path("STOP"),
    exact_studies=("*",),
    columns_per_row=1e300,
    largest_share=1.0,
)
STEPS = (-1, 0, 1)


def material(columns: NDArray[Any], **more: Any) -> ReleaseCandidates:
    values = {f"x{i}": column for i, column in enumerate(columns.T)}
    return ReleaseCandidates(values, columns.astype(float), **more)


def noise(rows: int, columns: int = 2) -> NDArray[np.float64]:
    return np.random.default_rng(0).normal(size=(rows, columns))


def is_allowed(found: ReleaseCandidates, **rules: Any) -> bool:
    return not broken_rules(found, replace(LENIENT, **rules))


@pytest.mark.parametrize("step", STEPS)
def test_minimum_cohort_counts_rows(step: int) -> None:
    assert is_allowed(material(noise(50 + step)), minimum_cohort=50) == (step >= 0)


@pytest.mark.parametrize("step", STEPS)
def test_minimum_cohort_counts_persons(step: int) -> None:
    people = np.arange(300) % (50 + step)
    assert is_allowed(material(noise(300), persons=people), minimum_cohort=50) == (step >= 0)


@pytest.mark.parametrize("step", STEPS)
def test_columns_per_row(step: int) -> None:
    assert is_allowed(material(noise(100, 33 + step)), columns_per_row=0.33) == (step <= 0)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("coding", ["flag", "two values", "three values", "zeros and others"])
def test_minimum_cell_by_distinct_values(step: int, coding: str) -> None:
    few, rng = 5 + step, np.random.default_rng(1)
    column = np.zeros(200)
    column[:few] = {
        "flag": np.ones(few),
        "two values": np.full(few, 37.5),
        "three values": np.ones(few),
        "zeros and others": rng.normal(size=few),
    }[coding]
    if coding == "three values":
        column[100:] = 2.0
    columns = np.stack([column, rng.normal(size=200)], axis=1)
    assert is_allowed(material(columns), minimum_cell=5) == (step >= 0)


@pytest.mark.parametrize("step", STEPS)
def test_minimum_cell_counts_persons(step: int) -> None:
    """Ten rows have the flag, of few persons."""
    flag = np.arange(200) < 10
    people = np.where(flag, np.arange(200) % (5 + step), np.arange(200))
    columns = np.stack([flag, noise(200)[:, 0]], axis=1)
    assert is_allowed(material(columns, persons=people), minimum_cell=5) == (step >= 0)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("known", [True, False])
def test_minimum_cell_in_pairs_of_values(step: int, known: bool) -> None:
    """Both flags are common, and both at once are rare."""
    rows = np.arange(200)
    one, other = rows < 60, (rows >= 60 - 5 - step) & (rows < 120)
    columns = np.stack([one, other], axis=1)
    people = rows if known else None
    assert is_allowed(material(columns, persons=people), minimum_cell=5) == (step >= 0)


@pytest.mark.parametrize("step", STEPS)
def test_minimum_cell_in_tables(step: int) -> None:
    tables = [np.array([[30, 0], [5 + step, 20]])]
    found = ReleaseCandidates({}, np.zeros((60, 0)), tables=tables)
    assert is_allowed(found, minimum_cell=5) == (step >= 0)


@pytest.mark.parametrize("step", STEPS)
def test_values_are_cells_where_basis_functions_separate_them(step: int) -> None:
    """Five values with two functions are separated; with the variable alone they are not."""
    column = np.repeat(np.arange(5.0), [60, 60, 60, 60, 5 + step])
    columns = np.stack([column, noise(len(column))[:, 0]], axis=1)
    assert is_allowed(material(columns, functions=1), minimum_cell=5)
    assert is_allowed(material(columns, functions=2), minimum_cell=5) == (step >= 0)


@pytest.mark.parametrize("step", STEPS)
def test_largest_share(step: int) -> None:
    """A flag of four persons of a hundred: the share of each is exactly a quarter."""
    columns = (np.arange(100) < 4).astype(float)[:, None]
    share = 0.25 - step * 1e-6
    assert largest_share(material(columns)) == pytest.approx(0.25, abs=1e-12)
    assert is_allowed(material(columns), largest_share=share) == (step <= 0)


@pytest.mark.parametrize("step", STEPS)
def test_minimum_cell_where_most_values_are_missing(step: int) -> None:
    columns = noise(200)
    columns[5 + step :, 0] = np.nan
    whole = np.where(np.isnan(columns), 0.0, columns)
    found = ReleaseCandidates({f"x{i}": c for i, c in enumerate(columns.T)}, whole)
    # One of the five has the most common value; the four others differ from it.
    assert fewest_in_a_cell(found) == 4 + step
    assert is_allowed(found, minimum_cell=4) == (step >= 0)


@pytest.mark.parametrize("persons", ["rows", "none"])
@pytest.mark.parametrize("cell", [2, 3])
def test_exact_sums_of_persons_have_no_cells_below_three(persons: str, cell: int) -> None:
    """No policy and no advice lets them out; machines and regions are not persons."""
    study = study_of()
    policy = drafted_policy(study, minimum_cell=cell, persons=Persons(persons))
    broken = policy.violations(study)
    assert any("need at least 3" in b for b in broken) == (persons == "rows" and cell == 2)
    noisy = study_of(privacy=DifferentialPrivacy(1.0))
    assert not drafted_policy(noisy, minimum_cell=1, maximum_epsilon=1.0).violations(noisy)


# --- laws --------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.integers(3, 12), st.integers(1, 4), st.booleans())
def test_the_share_is_the_largest_over_all_combinations(
    seed: int,
    rows: int,
    columns: int,
    several: bool,
) -> None:
    """By brute force: no combination of columns owes more to one person."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, columns)) ** 3
    people = np.arange(rows) // 2 if several else None
    found = largest_share(material(x, persons=people))
    whole = np.concatenate([x, np.ones((rows, 1))], axis=1)
    owners = np.arange(rows) if people is None else people
    q = np.linalg.svd(whole, full_matrices=False)[0][:, : np.linalg.matrix_rank(whole)]
    hat = q @ q.T
    blocks = [hat[np.ix_(owners == o, owners == o)] for o in np.unique(owners)]
    assert found == pytest.approx(max(np.linalg.norm(b, 2) for b in blocks), abs=1e-9)
    for _ in range(5):
        squares = (whole @ rng.normal(size=columns + 1)) ** 2
        shares = np.bincount(owners, squares) / squares.sum()
        assert shares.max() <= found + 1e-9


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=2, max_size=30), st.integers(1, 5))
def test_the_fewest_are_counted_as_by_hand(column: list[float], people: int) -> None:
    owners = np.arange(len(column)) % people
    found = fewest_in_a_cell(material(np.array(column)[:, None], persons=owners))
    groups = [{o for o, v in zip(owners, column, strict=True) if v == x} for x in set(column)]
    if len(groups) == 1:
        assert found is None
        return
    common = max(set(column), key=lambda x: (len(groups[list(set(column)).index(x)]), -x))
    others = {o for o, v in zip(owners, column, strict=True) if v != common}
    assert found == min(*map(len, groups), len(others))


@pytest.mark.parametrize("rows", [1, 2])
def test_tiny_and_constant_tables(rows: int) -> None:
    found = material(np.full((rows, 2), 1e9))
    assert fewest_in_a_cell(found) is None
    assert largest_share(found) == pytest.approx(1 / rows)


def test_a_share_in_a_direction_that_hardly_exists_is_found() -> None:
    """Two columns that differ by a billionth, for one person only."""
    x = noise(300)
    x[:, 1] = x[:, 0]
    x[7, 1] += 1e-9
    assert largest_share(material(x)) > 0.99
