"""Parents from secret scores, given an order: greedily, or the best of all allowed sets.

Private K2 (Wright and Yang 2004) is greedy. The parents of one variable do not depend on those of
another, so a step is taken for all variables at once: the number of messages does not grow with the
number of variables. It reveals in which order parents were added. `structure_only` scores all sets
in secret, and one comparison per variable opens the winner: the network alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from isthmus.errors import ArgumentError
from isthmus.joint.shares.columns import Columns
from isthmus.joint.shares.secret_scores import CountScore, Family, SecretScores, choose
from isthmus.joint.shares.secret_tables import Members
from isthmus.joint.shares.shares import Words
from isthmus.joint.shares.terms import FoundNetwork

if TYPE_CHECKING:
    from isthmus.joint.shares.engine import SecretSharingRuntime


def private_k2(
    engine: SecretSharingRuntime,
    columns: Columns,
    order: Sequence[str],
    max_parents: int,
    score: CountScore,
) -> tuple[FoundNetwork, list[tuple[str, str | None]]]:
    """Search greedily for the parents of each variable among those before it.

    Revealed is which parent is added when, and nothing else.

    Parameters
    ----------
    columns
        The variables, all discrete.
    order
        Names of all variables; parents come before children.

    Returns
    -------
    dag, steps
        The network, and pairs of a variable and the parent that was added to it, or None where it
        was finished.
    """
    places = checked_order(columns, order, max_parents)
    terms = [columns.described(), list(order), max_parents, score.name, score.ess]
    candidates = {i: places[:k] for k, i in enumerate(places)}
    engine.agree("search", [*terms, candidates])
    scores = SecretScores(engine, columns, score)
    parents: dict[int, tuple[int, ...]] = dict.fromkeys(places, ())
    active = [i for i in places if candidates[i] and max_parents > 0]
    steps: list[tuple[str, str | None]] = []
    for step in range(1, max_parents + 1):
        if not active:
            break
        options = {i: [c for c in candidates[i] if c not in parents[i]] for i in active}
        families: dict[int, list[Family]] = {
            i: [(i, parents[i])] + [(i, tuple(sorted((*parents[i], c)))) for c in options[i]]
            for i in active
        }
        flat = scores.shares([f for i in active for f in families[i]])
        rows = np.split(flat, np.cumsum([len(families[i]) for i in active])[:-1])
        names = ", ".join(columns.names[i] for i in active)
        what = f"step {step}: the parent that is added to each of {names}"
        error = max(scores.error(f) for i in active for f in families[i])
        best = choose(engine, rows, what, error)
        going = []
        for i, k in zip(active, best, strict=True):
            added = options[i][k - 1] if k else None
            steps.append((columns.names[i], None if added is None else columns.names[added]))
            if added is not None:
                parents[i] = tuple(sorted((*parents[i], added)))
                if len(options[i]) > 1:
                    going.append(i)
        active = going
    edges = [(columns.names[p], columns.names[i]) for i in places for p in parents[i]]
    return FoundNetwork(order, edges), steps


def checked_order(columns: Columns, order: Sequence[str], max_parents: int) -> list[int]:
    """Return the positions of the variables in this order, which must name each once."""
    if sorted(order) != sorted(columns.names):
        raise ArgumentError(
            f"The order names {list(order)[:10]}; it must name each of "
            f"{list(columns.names)[:10]} once."
        )
    if max_parents < 0:
        raise ArgumentError(f"max_parents must not be negative, got {max_parents}.")
    if any(c.levels < 1 for c in columns.columns):
        raise ArgumentError("Scores of counts need discrete variables; some have no levels.")
    return [columns.names.index(name) for name in order]


MOST = 200_000
"""Maximum number of families to score."""


def structure_only(
    engine: SecretSharingRuntime,
    columns: Columns,
    order: Sequence[str],
    max_parents: int,
    score: CountScore,
) -> FoundNetwork:
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
    flat = scores.shares([(i, s) for i, choices in sets.items() for s in choices])
    ends = np.cumsum([len(choices) for choices in sets.values()])
    rows = np.split(flat, ends[:-1]) if sets else []
    error = max((scores.error((i, s)) for i, choices in sets.items() for s in choices), default=0.0)
    return best_sets(engine, columns, order, sets, rows, error)


def parent_sets(places: Sequence[int], max_parents: int) -> dict[int, list[Members]]:
    """Return all allowed sets of parents of each variable that has a choice, small ones first."""
    require_few_sets(len(places), max_parents)
    sets: dict[int, list[Members]] = {}
    for k, i in enumerate(places):
        if k == 0 or max_parents < 1:
            continue
        sizes = range(min(max_parents, k) + 1)
        sets[i] = [tuple(sorted(s)) for size in sizes for s in combinations(places[:k], size)]
    return sets


def require_few_sets(variables: int, max_parents: int) -> None:
    """Raise `ArgumentError` if there are more allowed sets of parents than can be scored."""
    total = 0
    for k in range(1, variables if max_parents > 0 else 1):
        total += sum(math.comb(k, size) for size in range(min(max_parents, k) + 1))
        if total > MOST:
            raise ArgumentError(
                f"There are more than {MOST:,} sets of parents. Allow fewer parents, or use "
                "private K2, which is greedy."
            )


def best_sets(
    engine: SecretSharingRuntime,
    columns: Columns,
    order: Sequence[str],
    sets: dict[int, list[Members]],
    scores: Sequence[Words],
    error: float = 0.0,
) -> FoundNetwork:
    """Open which set of parents of each variable has the largest of secret scores."""
    names = ", ".join(columns.names[i] for i in sets)
    best = choose(engine, scores, f"the parents of each of {names}", error)
    chosen = ((i, sets[i][k]) for i, k in zip(sets, best, strict=True))
    return FoundNetwork(order, [(columns.names[p], columns.names[i]) for i, s in chosen for p in s])
