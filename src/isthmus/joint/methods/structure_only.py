"""The best parents of each variable among all allowed sets, and nothing else revealed.

Greedy search reveals in which order parents were added. Here all sets are scored in secret and one
comparison per variable opens the winner: the network alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from isthmus.errors import ArgumentError
from isthmus.graphs import DAG
from isthmus.joint.methods.private_k2 import checked_order
from isthmus.joint.shares.columns import Columns
from isthmus.joint.shares.secret_scores import CountScore, SecretScores, choose
from isthmus.joint.shares.secret_tables import Members

if TYPE_CHECKING:
    from isthmus.joint.shares.engine import SecretSharingRuntime

MOST = 200_000
"""Maximum number of families to score."""


def structure_only(
    engine: SecretSharingRuntime,
    columns: Columns,
    order: Sequence[str],
    max_parents: int,
    score: CountScore,
) -> DAG:
    """Find the best parents of each variable among those before it, and reveal only them.

    Parameters
    ----------
    columns
        The variables, all discrete.
    order
        Names of all variables; parents come before children.
    """
    places = checked_order(columns, order, max_parents)
    sets = parent_sets(places, max_parents)
    terms = [columns.described(), list(order), max_parents, score.name, score.ess]
    engine.agree("search", [*terms, {str(i): s for i, s in sets.items()}])
    scores = SecretScores(engine, columns, score)
    flat = iter(scores.shares([(i, s) for i, choices in sets.items() for s in choices]))
    rows = [[next(flat) for _ in choices] for choices in sets.values()]
    names = ", ".join(columns.names[i] for i in sets)
    best = choose(engine, rows, f"the parents of each of {names}")
    chosen = zip(sets, (sets[i][k] for i, k in zip(sets, best, strict=True)), strict=True)
    edges = [(columns.names[p], columns.names[i]) for i, parents in chosen for p in parents]
    return DAG(order, edges)


def parent_sets(places: Sequence[int], max_parents: int) -> dict[int, list[Members]]:
    """Return all allowed sets of parents of each variable that has a choice, small ones first."""
    sets: dict[int, list[Members]] = {}
    total = 0
    for k, i in enumerate(places):
        if k == 0 or max_parents < 1:
            continue
        sizes = range(min(max_parents, k) + 1)
        sets[i] = [tuple(sorted(s)) for size in sizes for s in combinations(places[:k], size)]
        total += len(sets[i])
        if total > MOST:
            raise ArgumentError(
                f"There are more than {MOST:,} sets of parents. Allow fewer parents, or use "
                "private K2, which is greedy."
            )
    return sets
