"""The rules on data: one function each, which returns why the data may not be released."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from isthmus.joint.agreement.policy import Policy
from isthmus.joint.disclosure.cells import fewest_in_a_cell
from isthmus.joint.disclosure.material import ReleaseCandidates, RowsOfColumns
from isthmus.joint.disclosure.row_hashes import chunks
from isthmus.types import Floats, Integers

RANK = 1e-12
"""Share of the largest singular value below which a direction counts as zero."""


def largest_share(material: ReleaseCandidates) -> float:
    """Return the largest share that one person has in a sum of squares.

    Whoever knows the sums and products of columns knows the sum of squares of every combination of
    them, about every origin. The share of a row in it is largest for one combination, where it is
    the leverage of the row in a regression on all columns. With several rows per person it is the
    largest eigenvalue of their block of the hat matrix. A share of one means that there is a
    combination which is zero for everybody else: the sums contain that person's record.
    """
    rows, basis = material.rows, _Orthonormal(material.columns)
    if not rows:
        return 0.0
    if material.persons is None:
        parts = (basis.part(some) for some in chunks(rows))
        return max(float((part**2).sum(axis=1).max()) for part in parts) + 1 / rows
    # The sum of the leverages of a person's rows is an upper bound of the eigenvalue.
    bounds = np.zeros(int(material.persons.max()) + 1)
    for some in chunks(rows):
        leverages = (basis.part(some) ** 2).sum(axis=1) + 1 / rows
        bounds += np.bincount(material.persons[some], leverages, len(bounds))
    order = np.argsort(material.persons, kind="stable")
    starts = np.searchsorted(material.persons[order], np.arange(len(bounds) + 1))
    largest = 0.0
    for person in np.argsort(-bounds, kind="stable"):
        if bounds[person] <= largest:
            break
        own = np.sort(order[starts[person] : starts[person + 1]])
        block = np.concatenate([basis.part(own), np.full((len(own), 1), rows**-0.5)], axis=1)
        largest = max(largest, float(np.linalg.svd(block, compute_uv=False)[0] ** 2))
    return largest


class _Orthonormal:
    """An orthonormal basis of the centred columns, of which some rows are computed at a time."""

    def __init__(self, columns: RowsOfColumns) -> None:
        self._columns = columns
        rows, number = columns.shape
        total, size = np.zeros(number), np.zeros(number)
        for some in chunks(rows):
            part = columns[some]
            total += part.sum(axis=0)
            size = np.maximum(size, np.abs(part).max(axis=0, initial=0.0))
        self._mean = total / max(rows, 1)
        scale = np.zeros(number)
        for some in chunks(rows):
            scale = np.maximum(scale, np.abs(columns[some] - self._mean).max(axis=0, initial=0.0))
        self._kept = scale > RANK * np.maximum(size, np.finfo(float).tiny)
        self._scale = scale[self._kept]
        triangle: Any = np.zeros((0, len(self._scale)))
        for some in chunks(rows if len(self._scale) else 0):
            stacked = np.concatenate([triangle, self._centred(some)])
            triangle = np.linalg.qr(stacked, mode="r")
        _, singular, directions = np.linalg.svd(triangle)
        exist = singular > RANK * singular.max(initial=0.0)
        self._directions = directions[: len(singular)][exist].T / singular[exist]

    def _centred(self, rows: slice | Integers) -> Floats:
        centred: Floats = (self._columns[rows] - self._mean)[:, self._kept] / self._scale
        return centred

    def part(self, rows: slice | Integers) -> Floats:
        """Return these rows of the basis."""
        found: Floats = self._centred(rows) @ self._directions
        return found


Rule = Callable[[ReleaseCandidates, Policy], Iterator[str]]


def cohort(material: ReleaseCandidates, policy: Policy) -> Iterator[str]:
    """Require a minimum number of persons."""
    if material.count() < policy.minimum_cohort:
        yield f"fewer than {policy.minimum_cohort} persons"


def columns(material: ReleaseCandidates, policy: Policy) -> Iterator[str]:
    """Require enough rows for the number of released columns."""
    number = material.columns.shape[1] + material.more_columns
    if number > policy.columns_per_row * material.rows:
        yield (
            f"{number} columns or cells would be released, which is more than "
            f"{policy.columns_per_row} per row"
        )


def cells(material: ReleaseCandidates, policy: Policy) -> Iterator[str]:
    """Require that nothing released singles out few persons."""
    if policy.minimum_cell == 1:
        return
    fewest = fewest_in_a_cell(material)
    if fewest is not None and fewest < policy.minimum_cell:
        yield f"a cell or a value has fewer than {policy.minimum_cell} persons"


def dominance(material: ReleaseCandidates, policy: Policy) -> Iterator[str]:
    """Require that no released sum owes more than a share to one person."""
    if policy.largest_share == 1.0 or not material.columns.shape[1]:
        return
    # A share that equals the limit is allowed; it is computed with rounding errors.
    if largest_share(material) > policy.largest_share * (1 + 1e-9):
        yield f"one person has more than {policy.largest_share:.0%} of a sum of squares"


def windows(material: ReleaseCandidates, policy: Policy) -> Iterator[str]:
    """Require a minimum number of persons in the window of every basis."""
    for name, (low, high) in material.windows.items():
        values = material.values[name]
        if material.count((values > low) & (values < high)) < policy.minimum_cohort:
            yield f"fewer than {policy.minimum_cohort} persons are in the window of a basis"
            return


RULES: tuple[Rule, ...] = (cohort, columns, cells, dominance, windows)


def broken_rules(material: ReleaseCandidates, policy: Policy) -> list[str]:
    """Return a phrase for each rule on data that the material breaks."""
    return [phrase for rule in RULES for phrase in rule(material, policy)]
