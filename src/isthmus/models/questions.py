"""What is asked of a network: targets, evidence and interventions, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite, prod
from typing import Any

import numpy as np

from isthmus.errors import ArgumentError, DataError
from isthmus.graphs import DAG
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
            if both:
                raise ArgumentError(f"{both} are in {one} and in {other}; each can be in one only.")
    return asked, seen, forced


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


def finite(value: float, what: str) -> float:
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
