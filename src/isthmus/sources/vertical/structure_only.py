"""The best parents of each variable among all allowed sets, and nothing else revealed.

Greedy search reveals in which order parents were added. Here all sets are scored in secret and one
comparison per variable opens the winner: the network alone. Parameters can follow, if both parties
want that: each party gets the tables of its own variables, unless a cell is too small.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus.errors import ArgumentError
from isthmus.graphs import DAG
from isthmus.sources.vertical.columns import Columns
from isthmus.sources.vertical.private_k2 import Allowed, checked_order, earlier
from isthmus.sources.vertical.secret_choice import choose
from isthmus.sources.vertical.secret_scores import CountScore, SecretScores
from isthmus.sources.vertical.secret_tables import Members, SecretTables
from isthmus.sources.vertical.shares import Secret
from isthmus.types import Integers

if TYPE_CHECKING:
    from isthmus.sources.vertical.engine import Engine

MOST = 200_000
"""Most families that are scored."""


def structure_only(
    engine: Engine,
    columns: Columns,
    order: Sequence[str],
    max_parents: int,
    score: CountScore,
    allowed: Allowed | None = None,
) -> DAG:
    """Find the best parents of each variable among those before it, and reveal only them.

    Parameters
    ----------
    engine
        The engine.
    columns
        The variables, all discrete.
    order
        Names of all variables; parents come before children.
    max_parents
        Most parents of a variable.
    score
        Which score.
    allowed
        Whether one variable may be a parent of another; all may if not given.
    """
    places = checked_order(columns, order, max_parents)
    sets = parent_sets(columns, places, max_parents, allowed)
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


def parent_sets(
    columns: Columns, places: Sequence[int], max_parents: int, allowed: Allowed | None
) -> dict[int, list[Members]]:
    """Return all allowed sets of parents of each variable that has a choice, small ones first."""
    sets: dict[int, list[Members]] = {}
    total = 0
    for i, before in earlier(columns, places, allowed).items():
        if not before or max_parents < 1:
            continue
        sizes = range(min(max_parents, len(before)) + 1)
        sets[i] = [tuple(sorted(s)) for size in sizes for s in combinations(before, size)]
        total += len(sets[i])
        if total > MOST:
            raise ArgumentError(
                f"There are more than {MOST:,} sets of parents. Allow fewer parents, or use "
                "private K2, which is greedy."
            )
    return sets


def release(counts: Any, smallest: Any) -> Any:
    """Hide a table unless all its cells are empty or large enough (a program of JAX)."""
    import jax.numpy as jnp

    small = (counts < smallest[0]) & (counts > 0)
    allowed = jnp.where(jnp.sum(small.astype(jnp.int64)) > 0, 0, 1)
    return jnp.concatenate([counts * allowed, allowed[None]])


def private_tables(
    engine: Engine, columns: Columns, dag: DAG, minimum_cell: int
) -> dict[str, Integers | None]:
    """Give each party the tables of its own variables and their parents.

    Parameters
    ----------
    engine
        The engine.
    columns
        The variables.
    dag
        The network, the same at both parties.
    minimum_cell
        A table with a cell of 1 to ``minimum_cell - 1`` people is not opened, only that it has one.

    Returns
    -------
    dict
        For each of this party's variables the counts, with one axis per parent in the order of
        `dag.parents` and a last one for the variable; None where the table was withheld.
    """
    engine.agree("network", [columns.described(), sorted(map(list, dag.edges)), minimum_cell])
    position = {name: i for i, name in enumerate(columns.names)}
    families = {name: tuple(dag.parents(name)) for name in dag.nodes}
    members = {
        name: tuple(sorted(position[v] for v in (name, *parents)))
        for name, parents in families.items()
    }
    tables = SecretTables(engine, columns)
    tables.prepare(members.values())
    results: dict[str, Integers | None] = {}
    for name, parents in families.items():
        owner = columns.columns[position[name]].owner
        if len(columns.owners(members[name])) == 2:
            found = _released(engine, tables, members[name], name, owner, minimum_cell)
        else:
            found = _own(columns, members[name], minimum_cell)
        if owner == engine.rank:
            axes = [members[name].index(position[v]) for v in (*parents, name)]
            shape = columns.shape(members[name])
            results[name] = None if found is None else found.reshape(shape).transpose(axes)
    return results


def _released(
    engine: Engine, tables: SecretTables, members: Members, name: str, owner: int, smallest: int
) -> Integers | None:
    counts = Secret(tables.share(members).ravel(), 64).widened()
    (shown,) = engine.run(release, counts, np.array([smallest]), bits=128)
    what = f"the table of {name} and its parents, if no cell has fewer than {smallest} people"
    opened = engine.open(shown, what, to=(owner,))
    return None if opened is None or not opened[-1] else np.asarray(opened[:-1], dtype=np.int64)


def _own(columns: Columns, members: Members, smallest: int) -> Integers | None:
    """Return a table of one party, by the same rule."""
    if columns.owners(members) != {columns.rank}:
        return None
    counts = columns.table(members)
    return None if ((counts > 0) & (counts < smallest)).any() else counts
