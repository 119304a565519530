"""The rules on data: one function each, which returns why the data may not be released."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.joint.agreement.policy import Policy
from isthmus.joint.cohorts.candidates import ReleaseCandidates, RowsOfColumns
from isthmus.joint.cohorts.row_hashes import chunks
from isthmus.types import Floats, Integers


def fewest_in_a_cell(candidates: ReleaseCandidates) -> int | None:
    """Return the smallest number of persons that something released singles out.

    Five kinds of groups are counted, whatever the declared kinds of the variables are:

    - the persons in a cell of a table;
    - the persons with a value, where the released sums determine how many have it: ``f`` functions
      of a variable and their products determine the numbers of up to ``2 f + 1`` different values;
    - the persons with a pair of such values of two variables, because products are released;
    - the persons who differ from the most common value of a variable, because the sums about that
      value are theirs alone;
    - the same within a level of another variable, or among those who differ from the most common
      value of another variable, because products are released.

    Values that were blurred count as one value if they can be the same.
    """
    fewest = [_smallest(candidates.tables)]
    few: list[tuple[Integers, int]] = []
    groups: list[NDArray[np.bool_]] = []
    codings: list[tuple[Integers, NDArray[np.bool_]]] = []
    for name, values in candidates.values.items():
        codes, levels, narrow = _distinct(values, candidates.resolutions.get(name, 0.0))
        if levels < 2:
            continue
        is_few = name in candidates.by_level or (
            levels <= 2 * candidates.functions + 1 and bool(narrow.all())
        )
        persons = candidates.tally(codes.astype(np.int64), levels)
        if is_few:
            fewest.append(_smallest([persons]))
            few.append((codes, levels))
            groups += [codes == k for k in range(levels)]
        if name in candidates.by_level:
            continue
        codings.append((codes, narrow))
        common = int(persons.argmax())
        if narrow[common]:
            fewest.append(candidates.count(codes != common))
            groups += [codes != common] if 2 * persons[common] > candidates.count() else []
    for name, (low, high) in candidates.windows.items():
        inside = (candidates.values[name] > low) & (candidates.values[name] < high)
        codings.append((inside.astype(np.int64), np.ones(2, dtype=np.bool_)))
        groups += [inside, ~inside]
    if candidates.columns.shape[1]:
        fewest.append(_smallest_pair(candidates, few))
    fewest += [_fewest_beside(candidates, own, *coding) for own in groups for coding in codings]
    return min((n for n in fewest if n), default=None)


def _fewest_beside(
    candidates: ReleaseCandidates,
    group: NDArray[np.bool_],
    codes: Integers,
    narrow: NDArray[np.bool_],
) -> int:
    """Return how many persons of a group lack the value that most of its rows have, if any does."""
    rows = np.bincount(codes[group], minlength=len(narrow))
    common = int(rows.argmax())
    if not narrow[common] or 2 * rows[common] <= rows.sum():
        return 0
    return candidates.count(group & (codes != common))


def _distinct(values: Floats, resolution: float) -> tuple[Integers, int, NDArray[np.bool_]]:
    """Return the group of values to which each belongs, and how many groups there are.

    The values of a group follow one another in steps smaller than the resolution. The last array
    says which groups are so narrow that all their values can be one value that was blurred.
    """
    distinct, codes = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True)
    groups = np.arange(len(distinct))
    if resolution:
        groups = np.cumsum(np.diff(distinct, prepend=distinct[:1]) >= resolution)
    levels = int(groups.max(initial=-1)) + 1
    starts = np.searchsorted(groups, np.arange(levels))
    ends = np.append(starts, len(distinct))[1:] - 1
    narrow = distinct[ends] - distinct[starts] <= resolution
    # In as few bytes as possible: there may be many rows.
    return groups[codes.reshape(-1)].astype(np.min_scalar_type(levels)), levels, narrow


def _smallest(tables: Iterable[Integers]) -> int | None:
    return min((int(t[t > 0].min()) for t in tables if (t > 0).any()), default=None)


def _smallest_pair(candidates: ReleaseCandidates, few: list[tuple[Integers, int]]) -> int | None:
    """Return the smallest number of persons with a pair of values of two variables."""
    if len(few) < 2:
        return None
    if candidates.persons is None:
        return _smallest([_pairs_of_rows(few)])
    wide = [(codes.astype(np.int64), levels) for codes, levels in few]
    tables = (candidates.tally(a * k + b, j * k) for (a, j), (b, k) in combinations(wide, 2))
    return _smallest(tables)


def _pairs_of_rows(few: list[tuple[Integers, int]]) -> Integers:
    """Return how many rows have each pair of values, over all variables at once."""
    starts = np.cumsum([0, *(levels for _, levels in few)])
    cells = np.zeros((starts[-1], starts[-1]))
    for rows in chunks(len(few[0][0])):
        part = np.zeros((rows.stop - rows.start, starts[-1]), dtype=np.float32)
        for (codes, _), start in zip(few, starts, strict=False):
            part[np.arange(len(part)), start + codes[rows]] = 1.0
        cells += part.T @ part
    return np.rint(cells).astype(np.int64)


RANK = 1e-12
"""Share of the largest singular value below which a direction counts as zero."""

MOST_TABLES = 2**20
"""Number of tables that are looked at for small cells; a million tables take minutes."""


def largest_share(candidates: ReleaseCandidates) -> float:
    """Return the largest share that one person has in a sum of squares.

    Whoever knows the sums and products of columns knows the sum of squares of every combination of
    them, about every origin. The share of a row in it is largest for one combination, where it is
    the leverage of the row in a regression on all columns. With several rows per person it is the
    largest eigenvalue of their block of the hat matrix. A share of one means that there is a
    combination which is zero for everybody else: the sums contain that person's record.
    """
    rows, basis = candidates.rows, _Orthonormal(candidates.columns)
    if not rows:
        return 0.0
    if candidates.persons is None:
        parts = (basis.part(some) for some in chunks(rows))
        return max(float((part**2).sum(axis=1).max()) for part in parts) + 1 / rows
    # The sum of the leverages of a person's rows is an upper bound of the eigenvalue.
    bounds = np.zeros(int(candidates.persons.max()) + 1)
    for some in chunks(rows):
        leverages = (basis.part(some) ** 2).sum(axis=1) + 1 / rows
        bounds += np.bincount(candidates.persons[some], leverages, len(bounds))
    order = np.argsort(candidates.persons, kind="stable")
    starts = np.searchsorted(candidates.persons[order], np.arange(len(bounds) + 1))
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


def cohort(candidates: ReleaseCandidates, policy: Policy) -> Iterator[str]:
    """Require a minimum number of persons."""
    if candidates.count() < policy.minimum_cohort:
        yield f"fewer than {policy.minimum_cohort} persons"


def columns(candidates: ReleaseCandidates, policy: Policy) -> Iterator[str]:
    """Require enough rows for the number of released columns."""
    number = candidates.columns.shape[1] + candidates.more_columns
    if number > policy.columns_per_row * candidates.rows:
        yield (
            f"{number} columns or cells would be released, which is more than "
            f"{policy.columns_per_row} per row"
        )


def cells(candidates: ReleaseCandidates, policy: Policy) -> Iterator[str]:
    """Require that nothing released singles out few persons."""
    if policy.minimum_cell == 1:
        return
    if candidates.number_of_tables > MOST_TABLES:
        yield (
            f"{candidates.number_of_tables:,} tables may be asked for, which are too many to look "
            f"for cells of fewer than {policy.minimum_cell} persons; at most {MOST_TABLES:,} are "
            "checked, unless the policy allows all cells"
        )
        return
    fewest = fewest_in_a_cell(candidates)
    if fewest is not None and fewest < policy.minimum_cell:
        yield f"a cell or a value has fewer than {policy.minimum_cell} persons"


def dominance(candidates: ReleaseCandidates, policy: Policy) -> Iterator[str]:
    """Require that no released sum owes more than a share to one person."""
    if policy.largest_share == 1.0 or not candidates.columns.shape[1]:
        return
    # A share that equals the limit is allowed; it is computed with rounding errors.
    if largest_share(candidates) > policy.largest_share * (1 + 1e-9):
        yield f"one person has more than {policy.largest_share:.0%} of a sum of squares"


def windows(candidates: ReleaseCandidates, policy: Policy) -> Iterator[str]:
    """Require a minimum number of persons in the window of every basis, and on either side.

    The first function of a basis differs from the variable itself for those outside only.
    """
    least, cell = policy.minimum_cohort, policy.minimum_cell
    inside, beside = [], []
    for name, (low, high) in candidates.windows.items():
        values = candidates.values[name]
        inside.append(candidates.count((values > low) & (values < high)))
        beside += [candidates.count(values <= low), candidates.count(values >= high)]
    if any(number < least for number in inside):
        yield f"fewer than {least} persons are in the window of a basis"
    if any(0 < number < cell for number in beside):
        yield f"fewer than {cell} persons are on one side of the window of a basis"


NEARLY = 0.05
"""Share of rows with other values below which a variable is nearly constant. Products with it then
tell the means of the site up to so much of the rows of others."""


def constants(candidates: ReleaseCandidates, policy: Policy) -> Iterator[str]:
    """Require that no variable has one value at this site: it would name the site in a sum.

    Sums over the rows with that value are sums of the site. If products of all rows are released,
    the same holds for a variable that nearly has one value.
    """
    del policy
    least = NEARLY if candidates.pooled else 0.0
    found = [name for name, share in candidates.others.items() if share <= least]
    if found and candidates.rows:
        nearly = ", or nearly so" if least else ""
        yield (
            f"{found[:5]} are constant at this site{nearly}, so that sums over their rows are sums "
            "of this site; leave them out of the study, or merge their levels so that they vary "
            "within every site"
        )


RULES: tuple[Rule, ...] = (cohort, columns, cells, dominance, windows, constants)


def broken_rules(candidates: ReleaseCandidates, policy: Policy) -> list[str]:
    """Return a phrase for each rule on data that the candidates breaks."""
    return [phrase for rule in RULES for phrase in rule(candidates, policy)]
