"""What is asked of a network: targets, evidence and interventions, checked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from difflib import get_close_matches
from math import isfinite, prod
from typing import Any, TypeAlias

import numpy as np

from isthmus.errors import ArgumentError, DataError, SchemaError
from isthmus.graphs import DAG
from isthmus.models.columns import Level
from isthmus.plurals import counted
from isthmus.types import Floats

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
    str, Level | tuple[float, float] | Mapping[Any, float] | Set[Any] | list[Any]
]
"""Values, some levels, likelihoods of levels, or a value and its standard error."""

LIKELIHOODS = (Mapping, Set, list)
"""Types of evidence on a discrete node that is not one level."""


def is_uncertain(value: object) -> bool:
    """Return whether evidence is a likelihood per level, some levels, or a value with its error."""
    return isinstance(value, (*LIKELIHOODS, tuple))


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
    number = isinstance(simulations, int | np.integer) and not isinstance(simulations, bool)
    if not number or simulations < 1:
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
