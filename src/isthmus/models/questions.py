"""What is asked of a network: targets, evidence and interventions, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from isthmus.errors import ArgumentError
from isthmus.graphs import DAG


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


def _mapping(given: Mapping[str, Any] | None, word: str) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ArgumentError(
            f"{word} must map names to values, such as {word}={{'a': 'yes'}}; a "
            f"{type(given).__name__} was given."
        )
    return dict(given)
