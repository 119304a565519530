"""Check a score of your own against what every local score promises."""

from __future__ import annotations

import itertools

import numpy as np

from isthmus.objectives import LocalScore
from isthmus.testing.enumerate import enumerate_dags


def check_score(objective: LocalScore, *, tolerance: float = 1e-8) -> None:
    """Check a bound score; meant for three to five variables.

    All values are finite; extensions are the local scores of the extended sets; the order
    of parents does not matter; the compiled handle gives what Python gives; and if the score
    claims to be score-equivalent, all members of a Markov equivalence class have the same total.

    Raises
    ------
    AssertionError
        With the family that breaks a promise.
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
    turned = objective.local(child, parents[::-1])
    assert _close(value, turned, tolerance), (
        f"{family} scores {value}, with the parents in another order {turned}"
    )
    open_ = [v for v in range(len(objective.nodes)) if v != child and v not in parents]
    together = objective.extensions(child, parents, open_)
    assert len(together) == len(open_) + 1, f"{family}: extensions has the wrong length"
    assert _close(float(together[0]), value, tolerance), (
        f"{family} scores {value}, as the base of extensions {together[0]}"
    )
    for candidate, extended in zip(open_, together[1:], strict=True):
        alone = objective.local(child, (*parents, candidate))
        assert _close(float(extended), alone, tolerance), (
            f"{family} and {objective.nodes[candidate]!r} scores {alone}, "
            f"as an extension {extended}"
        )


def _check_equivalence(objective: LocalScore, tolerance: float) -> None:
    totals: dict[object, float] = {}
    for dag in enumerate_dags(objective.nodes):
        value = objective.total(dag)
        first = totals.setdefault(dag.cpdag(), value)
        assert _close(first, value, tolerance), (
            f"the score claims to be equivalent, but {dag!r} scores {value} "
            f"and another member of its class {first}"
        )
