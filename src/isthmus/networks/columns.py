"""Columns of levels and codes, and checks that the models of discrete variables share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from datetime import date, timedelta
from difflib import get_close_matches
from math import isfinite, prod
from operator import index
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isthmus.arrays import Floats
from isthmus.errors import ArgumentError, DataError, SchemaError, counted, warn
from isthmus.graphs import DAG
from isthmus.graphs.names import listed
from isthmus.options import is_integer

Level: TypeAlias = str | int | float | bool
"""A value of a discrete variable."""

Unseen: TypeAlias = Literal["missing", "error"]
"""What to do about a level in new rows that a network does not have."""

Codes: TypeAlias = "NDArray[np.unsignedinteger[Any]]"

# Published networks have probabilities with few digits, so the sum of a row may differ from one.
ROW_TOLERANCE = 1e-5


def check_keys(dag: DAG, given: Mapping[str, Any], what: str, *, extra: bool = False) -> None:
    """Raise unless a mapping has an entry for each node and, without ``extra``, no other entry."""
    missing = [name for name in dag.nodes if name not in given]
    if missing:
        raise SchemaError(f"{what} lacks an entry for {listed(missing)}.")
    if not extra and len(given) != len(dag.nodes):
        nodes = set(dag.nodes)
        others = listed(name for name in given if name not in nodes)
        raise SchemaError(f"{what} has entries for {others}, which the graph does not have.")


def check_size(n: int) -> int:
    """Return a number of rows to draw; raise unless it is an integer of at least 0."""
    try:
        size = index(n)
    except TypeError:
        size = -1
    if size < 0:
        raise ArgumentError(f"The number of rows must be an integer of at least 0; got {n!r}.")
    return size


def refuse_strangers(dag: DAG, data: Mapping[str, Any], target: str) -> None:
    """Raise if the data to predict from have columns, and none of them is another node."""
    others = [name for name in dag.nodes if name != target]
    names = list(data)
    if others and names and not any(name in data for name in others):
        raise SchemaError(
            f"To predict {target!r}, columns of other variables are needed; the data have "
            f"{listed(map(str, names[:5]))}. Give some of {listed(others)}."
        )


def is_absent(value: object) -> bool:
    """Whether a cell has no value: None, NaN, NaT or pandas.NA (which cannot be compared)."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def encode_columns(
    levels: Mapping[str, Sequence[Level]],
    data: Mapping[str, Any],
    unseen: Unseen = "error",
    *,
    complete: bool = False,
) -> dict[str, NDArray[np.intp]]:
    """Convert columns of levels to codes, and unknown cells to the number of levels.

    Parameters
    ----------
    unseen
        Whether a value that is not one of the levels counts as unknown, with a warning, or is an
        error.
    complete
        Whether a cell without a value is an error, too.
    """
    check_unseen(unseen)
    coded, examples, rows = {}, [], set()
    for name, own in levels.items():
        column = data[name]
        cells = column if isinstance(column, list) else np.asarray(column).tolist()
        code_of = {level: code for code, level in enumerate(own)}
        coded[name] = np.array([code_of.get(cell, len(own)) for cell in cells], np.intp)
        unknown = np.flatnonzero(coded[name] == len(own)).tolist()
        strange = [row for row in unknown if complete or not is_absent(cells[row])]
        if strange and unseen == "error":
            raise SchemaError(
                f"Column {name!r} contains {cells[strange[0]]!r}, which is not one of its levels "
                f"{tuple(own)[:10]!r}{'' if len(own) <= 10 else ' and others'}."
            )
        if strange:
            examples.append(f"{cells[strange[0]]!r} in {name!r}")
            rows.update(strange)
    if rows:
        more = f" and {counted(len(examples) - 3, 'more column')}" if len(examples) > 3 else ""
        warn(
            f"{counted(len(rows), 'row')} of {len(cells):,} {'has' if len(rows) == 1 else 'have'} "
            f"levels that the network has not seen ({', '.join(examples[:3])}{more}). These cells "
            "count as unknown; unseen='error' refuses them."
        )
    return coded


def check_unseen(unseen: str) -> None:
    """Raise unless it says what to do about levels that a network does not have."""
    if unseen not in ("missing", "error"):
        raise ArgumentError(f"unseen is {unseen!r}; it can be 'missing' or 'error'.")


def refuse_dates(name: str, values: NDArray[Any]) -> list[Any]:
    """Raise if a column of a network of numbers has dates; return the cells that are no numbers."""
    cells = [] if values.dtype.kind in "fiub" else values.ravel().tolist()
    if values.dtype.kind in "mM" or any(isinstance(cell, (date, timedelta)) for cell in cells):
        raise SchemaError(
            f"Column {name!r} has dates or durations, and the network needs numbers. Convert them "
            "to the unit that was learned, dates from 1970 on. For days: (dates - "
            "numpy.datetime64('1970-01-01')) / numpy.timedelta64(1, 'D'); a year has 365.2425 days."
        )
    return cells


def number_column(name: str, column: object) -> NDArray[np.float64]:
    """Return a column of numbers, with NaN where there is none; text and dates are refused."""
    values = np.asarray(column)
    cells = refuse_dates(name, values)
    text = next((cell for cell in cells if isinstance(cell, str)), None)
    if text is not None:
        raise SchemaError(
            f"Column {name!r} has the text {text!r}, and the network needs numbers. Convert the "
            "column to numbers first, for instance with pandas.to_numeric."
        )
    if any(is_absent(cell) for cell in cells):
        plain = [np.nan if is_absent(cell) else cell for cell in cells]
        values = np.array(plain, dtype=object).reshape(values.shape)
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(f"Column {name!r} is continuous and needs numbers.") from None


def label_array(levels: Sequence[Level]) -> NDArray[Any]:
    """Return levels as an array; an array of objects if their types differ."""
    if len({type(level) for level in levels}) == 1:
        return np.array(levels)
    mixed = np.empty(len(levels), dtype=object)
    mixed[:] = list(levels)
    return mixed


def check_levels(name: str, levels: Sequence[Level]) -> tuple[Level, ...]:
    """Return levels as plain Python values; raise if there are none, or twice the same."""
    if isinstance(levels, str):
        raise SchemaError(f"The levels of {name!r} must be a sequence, not the string {levels!r}.")
    checked = tuple(level.item() if isinstance(level, np.generic) else level for level in levels)
    if not checked:
        raise SchemaError(f"Node {name!r} has no levels; it needs at least one.")
    if len(set(checked)) != len(checked):
        raise SchemaError(f"The levels of {name!r} must be unique, got {checked!r}.")
    return checked


def check_probabilities(name: str, array: NDArray[np.float64]) -> None:
    """Raise unless an array contains probabilities that sum to one over its last axis."""
    if not (array >= 0).all() or not np.isfinite(array).all():
        raise DataError(f"The table of {name} contains numbers that are not probabilities.")
    difference = float(np.abs(array.sum(axis=-1) - 1).max())
    if difference > ROW_TOLERANCE:
        raise DataError(
            f"The table of {name} must sum to one over its last axis; a sum differs from one by "
            f"{difference:.3g}."
        )


def number_of_rows(data: Mapping[str, ArrayLike], given: Sequence[str]) -> int:
    """Return the number of rows of the given columns; of all columns if none is given."""
    names = given or list(data)
    return common_length({v: np.asarray(data[v]) for v in names}) if names else 1


def common_length(columns: Mapping[Any, NDArray[Any]]) -> int:
    """Return the number of rows; raise if columns differ in it."""
    sizes = {column.shape for column in columns.values()}
    if len(sizes) > 1 or any(len(size) != 1 for size in sizes):
        raise DataError(f"Columns must be one-dimensional and of equal length, got shapes {sizes}.")
    return sizes.pop()[0] if sizes else 0


def code_type(size: int) -> np.dtype[np.unsignedinteger[Any]]:
    """Return the smallest type for the codes of this many levels."""
    return np.dtype(np.min_scalar_type(size - 1))


# --- What is asked of a network: targets, evidence and interventions, checked -------------------

_LARGEST = 10_000_000
"""Maximum number of cells of a joint distribution."""


def checked_question(
    dag: DAG,
    targets: str | Iterable[str],
    evidence: Mapping[str, Any] | None,
    do: Mapping[str, Any] | None,
) -> tuple[tuple[str, ...], dict[str, Any], dict[str, Any]]:
    """Return targets, evidence and interventions; raise if they do not fit together."""
    asked = (targets,) if isinstance(targets, str) else tuple(targets)
    seen, forced = _mapping(evidence, "evidence"), _mapping(do, "do")
    if not asked:
        raise ArgumentError("Name at least one target: query('a'), or query(['a', 'b']).")
    for name in (*asked, *seen, *forced):
        dag.index(name)  # raises for a name that is not a node
    if len(set(asked)) != len(asked):
        raise ArgumentError(f"Each target can be named once; got {list(asked)}.")
    groups = ((asked, "targets"), (seen, "evidence"), (forced, "do"))
    for i, (first, one) in enumerate(groups):
        for second, other in groups[i + 1 :]:
            both = sorted(set(first) & set(second))
            if first is asked and second is seen:
                # An uncertain observation leaves something to ask for.
                both = [name for name in both if not is_uncertain(seen[name])]
            if both:
                raise ArgumentError(f"{both} are in {one} and in {other}; each can be in one only.")
    return asked, seen, forced


Evidence: TypeAlias = Mapping[
    str, Level | tuple[float, float] | slice | Mapping[Any, float] | Set[Any] | list[Any]
]
"""Values, some levels, likelihoods of levels, a value and its standard error, or a range."""

LIKELIHOODS = (Mapping, Set, list)
"""Types of evidence on a discrete node that is not one level."""


def is_uncertain(value: object) -> bool:
    """Return whether evidence is anything but one level or one number."""
    return isinstance(value, (*LIKELIHOODS, tuple, slice))


def unknown_level(name: str, value: object, levels: Sequence[Level]) -> SchemaError:
    """Return the error for a value that is none of the levels of a node."""
    by_lower = {str(level).strip().lower(): level for level in levels}
    close = get_close_matches(str(value).strip().lower(), by_lower, 1)
    hint = f" Did you mean {by_lower[close[0]]!r}?" if close else ""
    return SchemaError(f"{value!r} is not one of the levels of {name!r}: {tuple(levels)!r}.{hint}")


def likelihood_of(
    name: str, levels: Sequence[Level], given: Mapping[Any, float] | Collection[Any]
) -> Floats:
    """Return the likelihood of each level of a node that is observed with uncertainty.

    Of a set or list of levels, it is one of them, and nobody knows which.
    """
    if not isinstance(given, Mapping):
        for level in given:
            if level not in levels:
                raise unknown_level(name, level, levels)
        given = {level: float(level in given) for level in levels}
    if set(given) != set(levels):
        raise SchemaError(
            f"The uncertain evidence on {name!r} must have a likelihood for each of its levels "
            f"{tuple(levels)!r}; got {dict(given)!r}."
        )
    likelihood = np.array([finite(given[level], f"A likelihood of {name!r}") for level in levels])
    if (likelihood < 0).any() or not likelihood.any():
        raise DataError(
            f"The likelihoods of {name!r} must be at least 0, and one of them above 0; got "
            f"{dict(given)!r}."
        )
    found: Floats = likelihood / likelihood.max()
    return found


def measured(name: str, given: object) -> tuple[float, float]:
    """Return an observed value and the standard deviation of its error, which may be zero."""
    if isinstance(given, Mapping):
        raise ArgumentError(
            f"{name!r} is continuous and has no levels. Give the measured value, or a pair of it "
            f"and the standard deviation of its error, such as (1.5, 0.2); got {given!r}."
        )
    if not isinstance(given, tuple):
        return finite(given, f"The value of {name!r}"), 0.0
    if len(given) != 2:
        raise ArgumentError(
            f"Uncertain evidence on {name!r} is a pair of the measured value and the standard "
            f"deviation of its error, such as (1.5, 0.2); got {given!r}."
        )
    value = finite(given[0], f"The value of {name!r}")
    error = finite(given[1], f"The error of {name!r}")
    if error < 0:
        raise DataError(f"The standard deviation of the error of {name!r} is negative: {error}.")
    return value, error


def impossible(more: str = "") -> DataError:
    """Return the error for evidence that contradicts the network."""
    return DataError(f"The evidence has probability zero in this network{more}.")


def check_joint_size(sizes: Sequence[int]) -> None:
    """Raise if the joint distribution of targets with these numbers of levels is too large."""
    cells = prod(sizes)
    if cells > _LARGEST:
        raise DataError(
            f"The joint distribution of {len(sizes)} targets would have {cells:,} cells; at "
            f"most {_LARGEST:,} are allowed. Ask for fewer targets at a time."
        )


def shares(logs: Floats) -> Floats:
    """Return weights of shape (rows, values), given by their logarithms, as shares of their sum.

    Raises
    ------
    DataError
        If all weights of a row are zero: the evidence in it is impossible.
    """
    highest = logs.max(axis=1, keepdims=True)
    impossible = np.flatnonzero(np.isneginf(highest[:, 0]))
    if len(impossible):
        raise DataError(
            "The evidence has probability zero in this network in "
            f"{counted(len(impossible), 'row')} of {len(logs):,}, first in row {impossible[0]}. "
            "Leave these rows out, or fit the network with a pseudo_count above 0."
        )
    weights = np.exp(logs - highest)
    found: Floats = weights / weights.sum(axis=1, keepdims=True)
    return found


def check_simulations(simulations: int) -> None:
    """Raise unless a number of simulated rows is an integer of at least 1."""
    if not is_integer(simulations) or simulations < 1:
        raise ArgumentError(f"simulations is {simulations!r}; it must be an integer of at least 1.")


def finite(value: Any, what: str) -> float:
    """Return a number as a float; raise if it is none, or not finite."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise DataError(f"{what} is {value!r}; it must be a number.") from None
    if not isfinite(number):
        raise DataError(f"{what} is {number}; it must be a finite number.")
    return number


def _mapping(given: Mapping[str, Any] | None, word: str) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ArgumentError(
            f"{word} must map names to values, such as {word}={{'a': 'yes'}}; a "
            f"{type(given).__name__} was given."
        )
    return dict(given)
