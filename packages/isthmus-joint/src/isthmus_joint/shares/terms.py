"""What the engine knows of a study, and what it finds: plain records.

The engine reads the bytes of the other party. It therefore imports the standard library, NumPy,
`cryptography` and this package, and none of the modules that read studies or hold keys.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Integers
from isthmus.errors import ArgumentError, DataError

MOST_GAUSSIAN_PARENTS = 3
"""Secret determinants are computed for a variable and up to this many parents."""
MOST_ESS = 1e6
"""Largest equivalent sample size: with 10^9, differences of the logarithms of gamma functions have
too few digits."""

OWN = "tables"
"""The part of a run's result that only this party has."""


@final
@dataclass(frozen=True)
class ComputationTerms:
    """What a study says about the computation.

    Attributes
    ----------
    names, held
        The names of the two parties, and the variables of each.
    order
        The order of the variables: a variable can have only earlier ones as parents.
    levels
        Number of levels of each variable; 0 for numbers.
    knower
        Position of the party that alone learns which people are common; ``None`` if both do.
    own_tables
        Whether each party learns the tables of its own variables.
    """

    names: tuple[str, ...]
    held: tuple[tuple[str, ...], ...]
    order: tuple[str, ...]
    levels: Mapping[str, int]
    knower: int | None
    minimum_cohort: int
    max_parents: int
    score: str
    ess: float
    minimum_cell: int
    own_tables: bool

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the terms of the attributes as JSON has them."""
        held = tuple(map(tuple, plain["held"]))
        names, order = tuple(plain["names"]), tuple(plain["order"])
        return cls(**{**plain, "names": names, "held": held, "order": order})


@final
class FoundNetwork:
    """A network that was found in secret.

    Attributes
    ----------
    edges
        Pairs of a parent and a child, sorted by their places among the nodes.
    """

    def __init__(self, nodes: Sequence[str], edges: Iterable[Sequence[str]]) -> None:
        self.nodes = tuple(nodes)
        place = {name: i for i, name in enumerate(self.nodes)}
        pairs = {(a, b) for a, b in edges}
        self.edges = tuple(sorted(pairs, key=lambda pair: (place[pair[0]], place[pair[1]])))

    def parents(self, name: str) -> tuple[str, ...]:
        """Return the parents of a variable."""
        return tuple(a for a, b in self.edges if b == name)


# --- Which columns the two parties have, and the values of one's own ----------------------------

LARGEST = 1 << 20
"""Maximum number of cells of a table."""


@final
@dataclass(frozen=True)
class SharedColumn:
    """A variable, as both parties know it.

    Attributes
    ----------
    levels
        Number of levels; 0 for a numeric variable.
    """

    name: str
    owner: int
    levels: int = 0


@final
class Columns:
    """The variables of both parties, and the values of one's own.

    Parameters
    ----------
    values
        Values of this party's own columns: codes of levels, or numbers.
    knower
        Rank of the party that alone knows which rows are of people in common; ``None`` if all are.
    present
        At that party, whether a row is of a person in common.
    people
        Number of people in common, if not all rows are.
    """

    def __init__(
        self,
        columns: Sequence[SharedColumn],
        values: Mapping[str, NDArray[Any]],
        rank: int,
        rows: int,
        *,
        knower: int | None = None,
        present: NDArray[np.bool_] | None = None,
        people: int | None = None,
    ) -> None:
        self.columns = tuple(columns)
        self.names = tuple(c.name for c in columns)
        self.rank = rank
        self.rows = rows
        self.knower = knower
        self.people = rows if people is None else people
        self.present = np.ones(rows, dtype=bool) if present is None else present
        mine = {c.name for c in columns if c.owner == rank}
        if len(set(self.names)) != len(self.names) or mine != set(values):
            raise ArgumentError(
                f"Values were given for {sorted(values)[:10]}; the columns of this party are "
                f"{sorted(mine)[:10]}. Names must be different from each other."
            )
        if rows < 1:
            raise DataError("The two parties have no people in common; at least one is needed.")
        self.values = {c.name: _checked(c, values[c.name], rows) for c in columns if c.name in mine}

    def described(self) -> list[Any]:
        """Return what both parties must agree on."""
        return [
            self.rows,
            self.people,
            self.knower,
            [[c.name, c.owner, c.levels] for c in self.columns],
        ]

    def owners(self, members: Sequence[int]) -> set[int]:
        """Return the ranks of the parties that must take part in counting these variables.

        A party that does not know who the people in common are cannot count its own columns alone.
        """
        owners = {self.columns[i].owner for i in members}
        return owners | {self.knower} if owners and self.knower is not None else owners

    def shape(self, members: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the table of these variables."""
        shape = tuple(self.columns[i].levels for i in members)
        if math.prod(shape) > LARGEST:
            raise DataError(
                f"The table of {[self.names[i] for i in members]} would have "
                f"{math.prod(shape):,} cells; at most {LARGEST:,} are allowed. Allow fewer "
                "parents, or merge levels."
            )
        return shape

    def configurations(self, members: Sequence[int]) -> Integers:
        """Return the configuration of some of one's own variables in each row."""
        shape = self.shape(members)
        if not shape:
            return np.zeros(self.rows, dtype=np.int64)
        codes = [self.values[self.names[i]].astype(np.int64) for i in members]
        return np.ravel_multi_index(tuple(codes), shape).astype(np.int64)

    def table(self, members: Sequence[int]) -> Integers:
        """Count some of one's own variables."""
        shape = self.shape(members)
        if not shape:
            return np.array(self.people, dtype=np.int64)
        codes = self.configurations(members)[self.present]
        counted = np.bincount(codes, minlength=math.prod(shape))
        return counted.astype(np.int64).reshape(shape)


def _checked(column: SharedColumn, values: NDArray[Any], rows: int) -> NDArray[Any]:
    array = np.asarray(values)
    if array.shape != (rows,):
        raise DataError(
            f"{column.name!r} has the shape {array.shape}; there are {rows} people in common, so "
            f"({rows},) is needed."
        )
    if not np.isfinite(array.astype(np.float64)).all():
        raise DataError(f"{column.name!r} has missing or infinite values. Remove those rows first.")
    if column.levels:
        codes = array.astype(np.int64)
        if (codes != array).any() or codes.min() < 0 or codes.max() >= column.levels:
            raise DataError(
                f"{column.name!r} has codes between {array.min()} and {array.max()}; whole numbers "
                f"between 0 and {column.levels - 1} are needed."
            )
        return codes
    return array.astype(np.float64)
