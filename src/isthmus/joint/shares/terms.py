"""What the engine knows of a study, and what it finds: plain records.

The engine reads the bytes of the other party. It therefore imports the standard library, NumPy,
`cryptography` and this package, and none of the modules that read studies or hold keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

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
    nodes
        Names of the variables.
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
