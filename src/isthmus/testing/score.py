"""Conformance check for local scores."""

from __future__ import annotations

import itertools

import numpy as np

from isthmus.objectives import LocalScore
from isthmus.testing.enumerate import enumerate_dags


def check_score(objective: LocalScore, *, tolerance: float = 1e-8) -> None:
    """Check that a local score satisfies the requirements of its interface.

    All values must be finite and independent of the order of the parents, and extensions must equal
    the local scores of the extended sets. If the score claims to be score-equivalent, all members
    of a Markov equivalence class must have the same total. Use three to five variables: all parent
    sets and graphs are enumerated.

    Raises
    ------
    AssertionError
        If a requirement is not met. The message names the family.
    """
    d = len(objective.nodes)
    for child in range(d):
        others = [v for v in range(d) if v != child]
        for size in range(d):
            for parents in itertools.combinations(others, size):
                _check_family(objective, child, parents, tolerance)
    if objective.equivalent:
        _check_equivalence(objective, tolerance)


def _close(a: float, b: float, tolerance: float) -> bool:
    return abs(a - b) <= tolerance * max(1.0, abs(a), abs(b))


def _check_family(
    objective: LocalScore, child: int, parents: tuple[int, ...], tolerance: float
) -> None:
    family = f"{objective.nodes[child]!r} with the parents {[objective.nodes[p] for p in parents]}"
    value = objective.local(child, parents)
    assert np.isfinite(value), f"{family} scores {value}"
    reordered = objective.local(child, parents[::-1])
    assert _close(value, reordered, tolerance), (
        f"{family} scores {value}, with the parents in another order {reordered}"
    )
    candidates = [v for v in range(len(objective.nodes)) if v != child and v not in parents]
    extensions = objective.extensions(child, parents, candidates)
    assert len(extensions) == len(candidates) + 1, f"{family}: extensions has the wrong length"
    assert _close(float(extensions[0]), value, tolerance), (
        f"{family} scores {value}, but {extensions[0]} as the first entry of extensions"
    )
    for candidate, extended in zip(candidates, extensions[1:], strict=True):
        value = objective.local(child, (*parents, candidate))
        assert _close(float(extended), value, tolerance), (
            f"{family} and {objective.nodes[candidate]!r} scores {value}, "
            f"but {extended} as an extension"
        )


def _check_equivalence(objective: LocalScore, tolerance: float) -> None:
    totals: dict[object, float] = {}
    for dag in enumerate_dags(objective.nodes):
        value = objective.total(dag)
        first = totals.setdefault(dag.cpdag(), value)
        assert _close(first, value, tolerance), (
            f"the score claims to be score-equivalent, but {dag!r} scores {value} "
            f"and another member of its equivalence class {first}"
        )
