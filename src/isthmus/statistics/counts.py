"""Counts: contingency tables over planned sets of variables, exact and marginalisable."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isthmus.errors import DataError, FormatError, SchemaError, UnplannedError
from isthmus.statistics import files
from isthmus.statistics.blocks import (
    LARGEST,
    Block,
    Positions,
    count_sets,
    merged,
    nonzero_rows,
    planned_sets,
    same,
    tally,
)
from isthmus.statistics.checks import refuse_empty
from isthmus.statistics.coded import CodedRows, Integers, as_codes
from isthmus.statistics.duplicates import groups
from isthmus.statistics.plan import Plan
from isthmus.statistics.schema import Kind, Schema

FORMAT = "isthmus-counts/1"


@final
@dataclass(frozen=True, eq=False)
class Counts:
    """How often each combination of levels was seen, for the planned sets of variables.

    Make one with `from_codes` or `from_tables`, or let a source make it.

    Parameters
    ----------
    schema
        The variables, all discrete.
    n
        Number of rows.
    plan
        Which sets of variables can be asked for.
    held
        The tables of the largest planned sets, by ascending positions of their variables: dense,
        or rows of codes with weights where a dense one would be mostly empty.
    regime
        Label of the conditions under which the rows were seen; different ones do not add up.
    """

    schema: Schema
    n: int
    plan: Plan
    held: Mapping[Positions, Block]
    regime: str | None = None

    def __post_init__(self) -> None:
        self.schema.require(Kind.DISCRETE, "Counts")
        refuse_empty(self.n)
        held: dict[Positions, Block] = {}
        for positions, block in self.held.items():
            held[positions] = self._checked(positions, block)
        object.__setattr__(self, "held", MappingProxyType(held))

    def _checked(self, positions: Positions, block: Block) -> Block:
        sizes = self.schema.cardinalities[list(positions)]
        if isinstance(block, CodedRows):
            high = block.codes.max(axis=1, initial=0) if len(positions) else np.zeros(0)
            fits = block.codes.shape[0] == len(positions) and bool((high < sizes).all())
            total = block.n
        else:
            block = np.ascontiguousarray(block, dtype=np.int64)
            fits, total = block.shape == tuple(sizes), int(block.sum())
            fits = fits and bool(block.min(initial=0) >= 0)
            block.flags.writeable = False
        names = [self.schema.names[i] for i in positions]
        if not fits:
            raise SchemaError(f"The table of {names} does not fit the levels of the schema.")
        if total != self.n:
            raise DataError(f"The table of {names} holds {total} rows; there are {self.n}.")
        return block

    @classmethod
    def from_codes(
        cls,
        schema: Schema,
        codes: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        plan: Plan | None = None,
        regime: str | None = None,
    ) -> Counts:
        """Count rows of codes.

        Parameters
        ----------
        schema
            The variables, all discrete.
        codes
            Shape (d, m): one row for each variable, of positions in its levels.
        weights
            How often each row was seen; once if not given.
        plan
            Which sets to keep; everything if not given.
        regime
            Label of the conditions.
        """
        sizes = schema.cardinalities
        given = np.asarray(codes)
        if given.ndim != 2 or given.shape[0] != len(schema):
            raise SchemaError(
                f"Codes have the shape {given.shape}; ({len(schema)}, rows) is needed: "
                "one row for each variable."
            )
        if given.size and (given.min() < 0 or (given.max(axis=1) >= sizes).any()):
            raise SchemaError("Some codes are not positions in the levels of their variable.")
        rows = CodedRows(
            as_codes(given.copy(), sizes),  # the caller may go on writing to theirs
            None if weights is None else np.asarray(weights, dtype=np.int64),
        )
        return cls.from_rows(schema, rows, plan=plan, regime=regime)

    @classmethod
    def from_rows(
        cls,
        schema: Schema,
        rows: CodedRows,
        *,
        plan: Plan | None = None,
        regime: str | None = None,
    ) -> Counts:
        """Count coded rows of all variables of the schema."""
        plan = Plan.everything() if plan is None else plan
        refuse_empty(rows.n)
        if plan.is_everything:
            everything = tuple(range(len(schema)))
            return cls(schema, rows.n, plan, {everything: rows}, regime)
        held = count_sets(rows, planned_sets(schema, plan), schema.cardinalities)
        return cls(schema, rows.n, plan, held, regime)

    @classmethod
    def from_tables(
        cls,
        schema: Schema,
        tables: Mapping[tuple[str, ...], ArrayLike],
        *,
        regime: str | None = None,
    ) -> Counts:
        """Take ready tables, by the names of their axes in order."""
        plan = Plan.sets(tables)
        held: dict[Positions, Block] = {}
        for names, table in tables.items():
            positions = schema.indices(names)
            order = np.argsort(positions)
            held[tuple(sorted(positions))] = np.transpose(np.asarray(table), order)
        wanted = set(plan.maximal(schema.names))
        held = {k: v for k, v in held.items() if k in wanted}
        first = next(iter(held.values()), None)
        n = 0 if first is None else int(np.asarray(first).sum())
        return cls(schema, n, plan, held, regime)

    @property
    def joint(self) -> CodedRows | None:
        """The rows of the joint table, when the plan is everything."""
        if not self.plan.is_everything:
            return None
        block = self.held[tuple(range(len(self.schema)))]
        return block if isinstance(block, CodedRows) else nonzero_rows(block)

    @property
    def size(self) -> int:
        """How many numbers are held."""
        return sum(block.size for block in self.held.values())

    def table(self, variables: Sequence[str]) -> Integers:
        """Number of rows for each combination of levels, with axes in the order asked.

        Raises
        ------
        UnplannedError
            The plan does not cover these variables.
        """
        asked = self.schema.indices(variables)
        shape = tuple(int(self.schema.cardinalities[i]) for i in asked)
        if math.prod(shape) > LARGEST:
            raise DataError(
                f"The table of {list(variables)} would have {math.prod(shape):,} cells; "
                f"at most {LARGEST:,} are allowed. Ask for fewer variables."
            )
        home = self._home(asked)
        block = self.held[home]
        if isinstance(block, CodedRows):
            within = tuple(home.index(i) for i in asked)
            return tally(block, self.schema.cardinalities[list(home)], within)
        ascending = sorted(asked)
        others = tuple(k for k, i in enumerate(home) if i not in asked)
        small = block.sum(axis=others) if others else block
        found = np.transpose(small, [ascending.index(i) for i in asked])
        return np.array(found, dtype=np.int64, order="C")

    def _home(self, asked: Positions) -> Positions:
        """The held set that answers for these variables."""
        names = [self.schema.names[i] for i in asked]
        if self.plan.covers(names):
            if self.plan.groups is not None:
                home = self.plan.home(names)
                if home is not None:
                    return tuple(sorted(self.schema.index(n) for n in home))
            elif self.plan.is_everything:
                return tuple(range(len(self.schema)))
            elif self.plan.limit is not None:
                missing = min(self.plan.limit, len(self.schema)) - len(asked)
                fill = (i for i in range(len(self.schema)) if i not in asked)
                return tuple(sorted((*asked, *(next(fill) for _ in range(missing)))))
        raise UnplannedError(
            f"The table of {names} was not planned: the plan has {self.plan}. "
            f"Ask the source for counts({self.plan.needed(names)}) or counts(Plan.everything())."
        )

    def marginal(self, names: Iterable[str]) -> Counts:
        """Counts of some variables, in the order asked, with what is left of the plan."""
        kept = self.schema.indices(names)
        schema = self.schema.subset(self.schema.names[i] for i in kept)
        plan = self.plan.restrict(schema.names)
        held: dict[Positions, Block] = {}
        for new in plan.maximal(schema.names):
            old = tuple(kept[i] for i in new)
            block = self.held[self._home(old)]
            if isinstance(block, CodedRows):
                home = self._home(old)
                held[new] = block.take(tuple(home.index(i) for i in old))
            else:
                held[new] = self.table([self.schema.names[i] for i in old])
        return Counts(schema, self.n, plan, held, self.regime)

    def __add__(self, other: Counts) -> Counts:
        """Counts of both sets of rows together."""
        if not isinstance(other, Counts):
            return NotImplemented
        if self.schema != other.schema:
            raise SchemaError(
                "Counts of different schemas do not add up: " + self._difference(other)
            )
        if self.plan != other.plan:
            raise SchemaError(
                f"Counts of different plans do not add up: {self.plan}, and {other.plan}. "
                "Ask both sources with the same plan."
            )
        if self.regime != other.regime:
            raise SchemaError(
                f"Counts of regime {self.regime!r} and {other.regime!r} do not add up: "
                "keep them apart, or give both the same regime if the conditions were the same."
            )
        sizes = self.schema.cardinalities
        held = {s: merged(block, other.held[s], sizes[list(s)]) for s, block in self.held.items()}
        return Counts(self.schema, self.n + other.n, self.plan, held, self.regime)

    def _difference(self, other: Counts) -> str:
        if self.schema.names != other.schema.names:
            return (
                f"names {list(self.schema.names)[:10]} and {list(other.schema.names)[:10]}. "
                "Take marginal(names) with the same names in the same order first."
            )
        pairs = zip(self.schema.variables, other.schema.variables, strict=True)
        name, a, b = next((u.name, u.levels, v.levels) for u, v in pairs if u != v)
        return (
            f"{name!r} has the levels {a!r} and {b!r}. Align them first with align_levels, "
            "or give both sources the same schema."
        )

    def with_schema(self, schema: Schema) -> Counts:
        """Recode to a schema whose variables may have more levels, in another order."""
        maps = [
            _level_map(a.name, a.levels, b.levels)
            for a, b in zip(self.schema.variables, schema.variables, strict=True)
        ]
        held: dict[Positions, Block] = {}
        for positions, block in self.held.items():
            sizes = schema.cardinalities[list(positions)]
            if isinstance(block, CodedRows):
                rows = zip(positions, block.codes, strict=True)
                codes = np.array([maps[i][row] for i, row in rows])
                held[positions] = CodedRows(as_codes(codes, sizes), block.weights)
            else:
                table = np.zeros(sizes, dtype=np.int64)
                table[np.ix_(*(maps[i] for i in positions))] = block
                held[positions] = table
        return Counts(schema, self.n, self.plan, held, self.regime)

    def constants(self) -> tuple[str, ...]:
        """Names of the variables that have the same level in all rows."""
        return tuple(n for n, table in self._singles.items() if table.max() == self.n)

    @cached_property
    def _singles(self) -> dict[str, Integers]:
        """Tables of single variables, as far as they are planned."""
        return {n: self.table([n]) for n in self.schema.names if self.plan.covers([n])}

    def duplicates(self) -> tuple[tuple[str, ...], ...]:
        """Groups of variables that are the same up to the names of their levels.

        Only planned pairs are looked at. Constants are left out.
        """
        still = set(self.constants())
        alike: dict[tuple[int, ...], list[str]] = {}
        for name, seen in self._singles.items():
            if name not in still:
                # Duplicates have the same numbers in their levels: most pairs need no table.
                alike.setdefault(tuple(sorted(seen[seen > 0].tolist())), []).append(name)
        pairs = [
            (self.schema.index(a), self.schema.index(b))
            for names in alike.values()
            for k, a in enumerate(names)
            for b in names[k + 1 :]
            if self.plan.covers([a, b]) and _bijective(self.table([a, b]))
        ]
        return groups(pairs, self.schema.names)

    def save(self, path: files.Path) -> None:
        """Write to a file (see the reference on the file format)."""
        blocks: list[dict[str, Any]] = []
        arrays: dict[str, NDArray[Any]] = {}
        for k, (positions, block) in enumerate(self.held.items()):
            entry: dict[str, Any] = {"variables": list(positions), "form": "table"}
            if isinstance(block, CodedRows):
                entry["form"] = "rows"
                arrays[f"codes{k}"] = block.codes
                if block.weights is not None:
                    arrays[f"weights{k}"] = block.weights
            else:
                arrays[f"table{k}"] = block
            blocks.append(entry)
        header = {
            "format": FORMAT,
            "schema": self.schema.to_dict(),
            "plan": self.plan.to_dict(),
            "n": self.n,
            "regime": self.regime,
            "blocks": blocks,
        }
        files.write(path, header, arrays, compress=True)

    @classmethod
    def load(cls, path: files.Path) -> Counts:
        """Read what `save` wrote; `FormatError` for anything else."""
        header, arrays = files.read(path, FORMAT)
        try:
            held: dict[Positions, Block] = {}
            for k, entry in enumerate(header["blocks"]):
                positions = tuple(int(i) for i in entry["variables"])
                if entry["form"] == "rows":
                    held[positions] = CodedRows(arrays[f"codes{k}"], arrays.get(f"weights{k}"))
                else:
                    held[positions] = arrays[f"table{k}"]
            schema, plan = Schema.from_dict(header["schema"]), Plan.from_dict(header["plan"])
            if set(held) != set(plan.maximal(schema.names)):
                raise SchemaError("the tables are not those of the plan")
            return cls(schema, int(header["n"]), plan, held, header["regime"])
        except (KeyError, TypeError, IndexError, DataError) as error:
            raise FormatError(f"{path} is damaged: {error}.") from error

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        mine = (self.schema, self.n, self.plan, self.regime)
        if mine != (other.schema, other.n, other.plan, other.regime):
            return False
        sizes = self.schema.cardinalities
        return all(same(self.held[s], other.held[s], sizes[list(s)]) for s in self.held)

    def __hash__(self) -> int:
        return hash((self.schema, self.n, self.plan, self.regime))

    def __repr__(self) -> str:
        regime = "" if self.regime is None else f", regime={self.regime!r}"
        return f"Counts(n={self.n}, variables={len(self.schema)}, plan={str(self.plan)!r}{regime})"


def _level_map(name: str, old: tuple[Any, ...], new: tuple[Any, ...]) -> NDArray[np.intp]:
    position = {level: i for i, level in enumerate(new)}
    lost = [level for level in old if level not in position]
    if lost:
        raise SchemaError(f"The new levels of {name!r} lack {lost!r}, which the counts have.")
    return np.array([position[level] for level in old], dtype=np.intp)


def _bijective(table: Integers) -> bool:
    seen = table > 0
    return bool((seen.sum(axis=0) <= 1).all() and (seen.sum(axis=1) <= 1).all())
