"""Parents from secret scores, given an order: greedily, or the best of all allowed sets.

Private K2 (Wright and Yang 2004) is greedy. The parents of one variable do not depend on those of
another, so a step is taken for all variables at once: the number of messages does not grow with the
number of variables. It reveals in which order parents were added. `structure_only` scores all sets
in secret, and one comparison per variable opens the winner: the network alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, final

import numpy as np

from isthmus.arrays import Floats, Integers
from isthmus.errors import ArgumentError
from isthmus_joint.shares.link import Words
from isthmus_joint.shares.secret_functions import (
    Bits,
    CountScore,
    Family,
    SecretScores,
    bits_of,
    both,
    carried,
    choose,
    opposite,
    times,
)
from isthmus_joint.shares.secret_tables import Members, SecretTables
from isthmus_joint.shares.terms import Columns, FoundNetwork

if TYPE_CHECKING:
    from isthmus_joint.shares.engine import SecretSharingRuntime
    from isthmus_joint.shares.secret_products import SecretProducts


def private_k2(
    engine: SecretSharingRuntime,
    columns: Columns,
    order: Sequence[str],
    max_parents: int,
    score: CountScore,
) -> tuple[FoundNetwork, list[tuple[str, str | None]]]:
    """Search greedily for the parents of each variable among those before it.

    Revealed is which parent is added when, and nothing else.

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
    """Find the best parents of each variable among those before it, and reveal only them."""
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


# --- Tables of a party's own variables -----------------------------------------------------------
#
# Tables of a network's variables: each party gets those of its own variables, and nobody others.
#
# The owner of a variable knows who has which value of its own columns. A table therefore tells it
# something about single people if few of them are in a cell, and also if all people with the same
# values of its own columns have the same values of the other party's. Such tables are withheld.
# That is decided in secret: the owner learns that the table was withheld, and the other party not
# even that.


@final
@dataclass(frozen=True, eq=False)
class OwnTable:
    """Counts of one of a party's own variables and its parents, over the people in common.

    Attributes
    ----------
    parents
        Its parents, of either party.
    counts
        One axis per parent, in the order of `parents`, and a last one for the variable; levels in
        the order of the study. ``None`` if the table was withheld.
    """

    variable: str
    parents: tuple[str, ...]
    counts: Integers | None

    def probabilities(self, pseudocount: float = 1.0) -> Floats | None:
        """Return the probabilities of the variable given its parents; ``None`` if withheld.

        Parameters
        ----------
        pseudocount
            Added to each count. With 0, configurations of the parents that nobody has give NaN.
        """
        if self.counts is None:
            return None
        weights = self.counts + pseudocount
        with np.errstate(invalid="ignore"):
            found: Floats = weights / weights.sum(axis=-1, keepdims=True)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        counts = None if self.counts is None else self.counts.tolist()
        return {"variable": self.variable, "parents": list(self.parents), "counts": counts}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> OwnTable:
        """Read what `to_dict` returned."""
        given = plain["counts"]
        counts = None if given is None else np.array(given, dtype=np.int64)
        return cls(plain["variable"], tuple(plain["parents"]), counts)


def release(engine: SecretSharingRuntime, counts: Words, most: int, smallest: int) -> Words:
    """Hide a table unless it tells nothing about single people.

    Parameters
    ----------
    counts
        Shares of shape (configurations of the receiver's variables, of the other party's).
    smallest
        The smallest number of people in a cell that is not empty.

    Returns
    -------
    ndarray
        Shares of all counts and a one; or of zeros if a cell is too small, or if the people in a
        row that is not empty are all in one cell.
    """
    products, rank, smallest = engine.products, engine.rank, max(smallest, 1)
    width = max(most.bit_length(), smallest.bit_length(), 2)
    bits = bits_of(products, counts.ravel(), width, rank)
    empty = _none(products, bits, rank)
    # Smaller than a number that both know: a carry is missing when its complement is added.
    known = np.array([(2**width - smallest) >> k & 1 for k in range(width)], dtype=np.uint8)
    makes, passes = bits & known, bits ^ known * np.uint8(rank == 0)
    small = opposite(carried(products, makes, passes)[:, -1], rank)
    bad = both(products, small, opposite(empty, rank)[:, None])[:, 0]
    filled = opposite(empty, rank).reshape(counts.shape)
    # One cell of a row is filled if some are, and not two: the carry of the first ones.
    some = carried(products, filled, opposite(filled, rank))
    again = both(products, filled[:, 1:], some[:, :-1, None])[:, :, 0]
    alone = both(products, some[:, -1], _none(products, again, rank)[:, None])[:, 0]
    allowed = _none(products, np.concatenate([bad, alone])[None], rank)
    shown = np.append(counts.ravel(), np.uint64(rank == 0))
    return times(products, np.repeat(allowed, shown.size), shown[:, None])[:, 0]


def _none(products: SecretProducts, bits: Bits, rank: int) -> Bits:
    """Return for each row whether all bits are zero."""
    if not bits.shape[1]:
        return np.full(len(bits), rank == 0, dtype=np.uint8)
    return opposite(carried(products, bits, opposite(bits, rank))[:, -1], rank)


def private_tables(
    engine: SecretSharingRuntime,
    columns: Columns,
    dag: FoundNetwork,
    minimum_cell: int,
    names: Sequence[str] = ("", ""),
) -> dict[str, OwnTable]:
    """Reveal to each party the tables of its own variables and their parents.

    Parameters
    ----------
    minimum_cell
        A table with a cell of 1 to ``minimum_cell - 1`` people is not opened, only that it is
        withheld; and so is a table in which all people with the same values of the receiver's
        variables have the same values of the other party's.

    Returns
    -------
    dict
        For each of this party's variables its table. Tables over its own variables alone are
        counted by the party itself, and never withheld.
    """
    engine.agree("network", [columns.described(), sorted(map(list, dag.edges)), minimum_cell])
    families = {name: family(columns, dag, name) for name in columns.names}
    tables = SecretTables(engine, columns)
    tables.prepare(families.values())
    results: dict[str, OwnTable] = {}
    for name, members in families.items():
        owner = columns.columns[columns.names.index(name)].owner
        if len(columns.owners(members)) == 2:
            what = table_label(name, dag.parents(name), names[owner], minimum_cell)
            found = _released(engine, tables, columns, members, owner, minimum_cell, what)
        else:
            found = columns.table(members) if owner == engine.rank else None
        if owner == engine.rank:
            parents = tuple(dag.parents(name))
            axes = [members.index(columns.names.index(v)) for v in (*parents, name)]
            counts = None if found is None else found.transpose(axes)
            results[name] = OwnTable(name, parents, counts)
    return results


def family(columns: Columns, dag: FoundNetwork, name: str) -> Members:
    """Return the positions of a variable and its parents."""
    return tuple(sorted(columns.names.index(v) for v in (name, *dag.parents(name))))


def table_label(name: str, parents: Sequence[str], owner: str, smallest: int) -> str:
    """Return what an opened table is, in words."""
    return (
        f"the table of {name} and its parents {', '.join(parents)}, to {owner} alone, unless a "
        f"cell has fewer than {smallest} people or people with equal values of {owner} are all in "
        "one cell"
    )


def _released(
    engine: SecretSharingRuntime,
    tables: SecretTables,
    columns: Columns,
    members: Members,
    owner: int,
    smallest: int,
    what: str,
) -> Integers | None:
    """Open a table of both parties' variables to one party, unless it must be withheld."""
    share = tables.share(members)
    axes = sorted(range(len(members)), key=lambda k: columns.columns[members[k]].owner != owner)
    shape = [share.shape[k] for k in axes]
    own = math.prod(columns.shape([m for m in members if columns.columns[m].owner == owner]))
    flat = np.ascontiguousarray(share.transpose(axes).reshape(own, -1))
    shown = release(engine, flat, columns.people, smallest)
    opened = engine.open(shown, what, (owner,), bits=columns.people.bit_length())
    if opened is None or not opened[-1]:
        return None
    counts = np.asarray(opened[:-1], dtype=np.int64).reshape(shape)
    return counts.transpose(np.argsort(axes))
