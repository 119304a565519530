"""Plans: the tables that a search may request, fixed in advance because each discloses data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, final

from isthmus.errors import FormatError, SchemaError

if TYPE_CHECKING:
    from isthmus.graphs import DAG


@final
@dataclass(frozen=True)
class CountPlan:
    """The sets of variables whose tables, and their margins, may be requested.

    Create a plan with `everything`, `up_to`, `sets` or `families`.

    Attributes
    ----------
    limit
        Every set of at most this many variables, or ``None``.
    groups
        These sets and all their subsets, or ``None``. If both are ``None``, every set is planned.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> plan = ist.CountPlan.sets([["smoke", "lung"], ["smoke", "bronc"]])
    >>> counts = ist.summarise(data, plan=plan)
    >>> counts.n
    1000
    """

    limit: int | None = None
    groups: tuple[frozenset[str], ...] | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and self.groups is not None:
            raise SchemaError("A plan has a size or sets, not both.")
        if self.limit is not None and self.limit < 1:
            raise SchemaError(f"A plan was made up to size {self.limit}; it must be at least 1.")

    @classmethod
    def everything(cls) -> CountPlan:
        """Plan the joint table, and so every set."""
        return cls()

    @classmethod
    def up_to(cls, size: int) -> CountPlan:
        """Plan every set of at most `size` variables."""
        return cls(limit=size)

    @classmethod
    def sets(cls, groups: Iterable[Iterable[str]]) -> CountPlan:
        """Plan these sets and their subsets."""
        sets = {frozenset(g) for g in groups}
        sets.discard(frozenset())
        if not sets:
            raise SchemaError("A plan of sets needs at least one non-empty set; none was given.")
        return cls(groups=tuple(sorted(_maximal(sets), key=sorted)))

    @classmethod
    def families(cls, dag: DAG) -> CountPlan:
        """Plan each node with its parents."""
        return cls.sets((node, *dag.parents(node)) for node in dag.nodes)

    @property
    def is_everything(self) -> bool:
        """Whether the joint table is planned."""
        return self.limit is None and self.groups is None

    @cached_property
    def _homes(self) -> dict[str, frozenset[int]]:
        """For each variable, the groups that contain it."""
        groups_of: dict[str, set[int]] = {}
        for i, group in enumerate(self.groups or ()):
            for name in group:
                groups_of.setdefault(name, set()).add(i)
        return {name: frozenset(ids) for name, ids in groups_of.items()}

    def covers(self, variables: Iterable[str]) -> bool:
        """Return whether the table of these variables is planned."""
        asked = frozenset(variables)
        if self.is_everything or not asked:
            return True
        if self.limit is not None:
            return len(asked) <= self.limit
        return self.home(asked) is not None

    def home(self, variables: Iterable[str]) -> frozenset[str] | None:
        """Return the smallest planned set that contains these variables, for a plan of sets."""
        groups = self.groups or ()
        asked = list(variables)
        if not asked:
            return groups[0] if groups else None
        none: frozenset[int] = frozenset()
        homes = sorted((self._homes.get(n, none) for n in asked), key=len)
        shared = homes[0].intersection(*homes[1:])
        return min((groups[i] for i in shared), key=lambda g: (len(g), sorted(g)), default=None)

    def maximal(self, names: Sequence[str]) -> Iterator[tuple[int, ...]]:
        """Return the largest planned sets, as ascending positions in `names`."""
        if self.is_everything:
            yield tuple(range(len(names)))
        elif self.limit is not None:
            yield from combinations(range(len(names)), min(self.limit, len(names)))
        else:
            position = {n: i for i, n in enumerate(names)}
            for group in self.groups or ():
                unknown = sorted(group - position.keys())
                if unknown:
                    raise SchemaError(f"The plan names {unknown}, which the data do not have.")
                yield tuple(sorted(position[n] for n in group))

    def size(self, names: Sequence[str]) -> int:
        """Return the number of sets of `maximal`."""
        if self.is_everything:
            return 1
        if self.limit is not None:
            return math.comb(len(names), min(self.limit, len(names)))
        return len(self.groups or ())

    def restrict(self, names: Iterable[str]) -> CountPlan:
        """Restrict the plan to these variables."""
        if self.groups is None:
            return self
        kept = frozenset(names)
        left = [g & kept for g in self.groups if g & kept]
        # If no variable is in a group, no table is planned, which Plan.sets does not accept.
        return CountPlan.sets(left) if left else CountPlan(groups=())

    def advice(self, names: Sequence[str]) -> str:
        """Return what to do if a table of these variables is needed, for error messages."""
        if self.limit is None:
            return f"Plan CountPlan.sets([..., {names!r}]) or CountPlan.everything()."
        return advice_on_limit(self.limit, len(names))

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data for JSON."""
        if self.limit is not None:
            return {"up_to": self.limit}
        if self.groups is not None:
            return {"sets": [sorted(g) for g in self.groups]}
        return {"everything": True}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CountPlan:
        """Read what `to_dict` wrote."""
        if data.get("everything") is True:
            return cls.everything()
        if type(data.get("up_to")) is int:  # and not True, which equals 1
            return cls.up_to(data["up_to"])
        if isinstance(data.get("sets"), list):
            return cls.sets(data["sets"]) if data["sets"] else cls(groups=())
        raise FormatError(f"This is not a plan: {dict(data)!r}.")

    def __str__(self) -> str:
        if self.limit is not None:
            return f"every set of at most {self.limit} variables"
        if self.groups is not None:
            return f"{len(self.groups)} sets of variables"
        return "every set of variables"


def _maximal(groups: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """Drop sets that are contained in another; candidates share the rarest member."""
    kept: list[frozenset[str]] = []
    homes: dict[str, list[int]] = {}
    for group in sorted(groups, key=len, reverse=True):
        rarest = min((homes.get(n, []) for n in group), key=len)
        if not any(group <= kept[i] for i in rarest):
            for name in group:
                homes.setdefault(name, []).append(len(kept))
            kept.append(group)
    return kept


def advice_on_limit(limit: int, needed: int) -> str:
    """Return what to do if tables have `limit` variables and more are needed."""
    return (
        f"Plan CountPlan.up_to({needed}), or limit the search: max_parents={limit - 1}; for a "
        f"search by tests max_conditioning={max(limit - 2, 0)}, and for BossFCI also "
        f"dag_search=Boss(max_parents={limit - 1})."
    )
