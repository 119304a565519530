"""Counts: contingency tables over planned sets of variables, exact and marginalisable."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isthmus.arrays import Integers
from isthmus.errors import DataError, FormatError, SchemaError, UnplannedError
from isthmus.statistics import archive
from isthmus.statistics.base import (
    LARGEST,
    Block,
    CountPlan,
    Gatherable,
    Positions,
    Resampler,
    Statistic,
    Summary,
    count_sets,
    merged,
    nonzero_rows,
    planned_sets,
    refuse_empty,
    same,
    tally,
)
from isthmus.statistics.coded import (
    CodedRows,
    as_codes,
    as_counts,
    equal_columns,
    group_pairs,
    one_to_one,
)
from isthmus.statistics.moments import Moments
from isthmus.statistics.on_demand import TablesOnDemand
from isthmus.statistics.schema import Kind, Schema, union_levels

if TYPE_CHECKING:
    from isthmus.graphs import DAG
    from isthmus.networks import DiscreteNetwork

FORMAT = "isthmus-counts/1"


@final
@dataclass(frozen=True, eq=False)
class Counts(Statistic):
    """Contingency tables over the planned sets of variables, which can be added and saved.

    Create them with `from_codes` or `from_tables`, or compute them with `summarise`.

    Parameters
    ----------
    schema
        The variables, all discrete.
    n
        Number of rows.
    plan
        The sets of variables whose tables are available.
    tables
        The tables of the largest planned sets, by ascending positions of their variables: dense
        arrays, or coded rows with weights where a dense array would be mostly empty.
    regime
        Label of the conditions under which the rows were observed. Counts of different regimes
        cannot be added.
    on_demand
        Further tables that the source counts when a search asks for them, if there are any. They
        are left out of pickles and files.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> counts = ist.summarise(data, plan=ist.CountPlan.everything())
    >>> counts.n
    1000
    >>> ist.learn(counts).dag == ist.learn(data).dag
    True
    """

    schema: Schema
    n: int
    plan: CountPlan
    tables: Mapping[Positions, Block]
    regime: str | None = None
    on_demand: TablesOnDemand | None = None
    described: ClassVar[str] = "counts"

    def __post_init__(self) -> None:
        self.schema.require(Kind.DISCRETE, "Counts need")
        refuse_empty(self.n)
        tables = {s: self._checked(s, block) for s, block in self.tables.items()}
        object.__setattr__(self, "tables", MappingProxyType(tables))

    def _checked(self, positions: Positions, block: Block) -> Block:
        names = [self.schema.names[i] for i in positions]
        sizes = self.schema.cardinalities[list(positions)]
        if isinstance(block, CodedRows):
            fits = block.codes.shape[0] == len(positions) and bool(
                (block.codes.max(axis=1, initial=0) < sizes).all()
            )
            total = block.n
        else:
            block = as_counts(block, f"The table of {names}")
            fits, total = block.shape == tuple(sizes), int(block.sum())
            block.flags.writeable = False
        if not fits:
            raise SchemaError(f"The table of {names} does not fit the levels of the schema.")
        if total != self.n:
            raise DataError(f"The table of {names} counts {total} rows, but n is {self.n}.")
        return block

    def __reduce__(self) -> tuple[Any, ...]:
        # Read-only mappings cannot be pickled.
        return Counts, (self.schema, self.n, self.plan, dict(self.tables), self.regime)

    @classmethod
    def from_codes(
        cls,
        schema: Schema,
        codes: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        plan: CountPlan | None = None,
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
            None if weights is None else as_counts(weights, "The array of weights"),
        )
        return cls.from_rows(schema, rows, plan=plan, regime=regime)

    @classmethod
    def from_rows(
        cls,
        schema: Schema,
        rows: CodedRows,
        *,
        plan: CountPlan | None = None,
        regime: str | None = None,
    ) -> Counts:
        """Count coded rows of all variables of the schema."""
        plan = CountPlan.everything() if plan is None else plan
        refuse_empty(rows.n)
        if plan.is_everything:
            everything = tuple(range(len(schema)))
            return cls(schema, rows.n, plan, {everything: rows}, regime)
        tables = count_sets(rows, planned_sets(schema, plan), schema.cardinalities)
        return cls(schema, rows.n, plan, tables, regime)

    @classmethod
    def from_tables(
        cls,
        schema: Schema,
        tables: Mapping[tuple[str, ...], ArrayLike],
        *,
        regime: str | None = None,
    ) -> Counts:
        """Create counts from contingency tables, keyed by the names of their axes in order."""
        plan = CountPlan.sets(tables)
        blocks: dict[Positions, Block] = {}
        for names, table in tables.items():
            positions = schema.indices(names)
            axes = np.argsort(positions)
            counts = as_counts(table, f"The table of {list(names)}")
            blocks[tuple(sorted(positions))] = np.transpose(counts, axes)
        maximal = set(plan.maximal(schema.names))
        blocks = {s: block for s, block in blocks.items() if s in maximal}
        first = next(iter(blocks.values()), None)
        n = 0 if first is None else int(np.asarray(first).sum())
        return cls(schema, n, plan, blocks, regime)

    @property
    def joint(self) -> CodedRows | None:
        """The rows of the joint table if the plan is everything, otherwise None."""
        if not self.plan.is_everything:
            return None
        block = self.tables[tuple(range(len(self.schema)))]
        return block if isinstance(block, CodedRows) else nonzero_rows(block)

    @property
    def size(self) -> int:
        """Number of values in the tables."""
        return sum(block.size for block in self.tables.values())

    def table(self, variables: Sequence[str]) -> Integers:
        """Number of rows for each combination of levels, with axes in the order asked.

        Raises
        ------
        UnplannedError
            If the plan does not cover these variables.
        """
        asked = self.schema.indices(variables)
        shape = tuple(int(self.schema.cardinalities[i]) for i in asked)
        if math.prod(shape) > LARGEST:
            raise DataError(
                f"The table of {list(variables)} would have {math.prod(shape):,} cells; "
                f"at most {LARGEST:,} are allowed. Ask for fewer variables."
            )
        if self.on_demand is not None and not self.plan.covers(variables):
            table = self.on_demand.table(asked)
            if table is not None:
                return table
        home = self._home(asked)
        block = self.tables[home]
        if isinstance(block, CodedRows):
            within = tuple(home.index(i) for i in asked)
            return tally(block, self.schema.cardinalities[list(home)], within)
        ascending = sorted(asked)
        others = tuple(k for k, i in enumerate(home) if i not in asked)
        small = block.sum(axis=others) if others else block
        table = np.transpose(small, [ascending.index(i) for i in asked])
        return np.array(table, dtype=np.int64, order="C")

    def _home(self, asked: Positions) -> Positions:
        """The planned set whose table contains these variables."""
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
            f"{self.plan.advice(names)}"
        )

    def marginal(self, names: Iterable[str]) -> Counts:
        """Return counts of some variables, in the requested order, with the reduced plan."""
        kept = self.schema.indices(names)
        schema = self.schema.subset(self.schema.names[i] for i in kept)
        plan = self.plan.restrict(schema.names)
        tables: dict[Positions, Block] = {}
        for new in plan.maximal(schema.names):
            old = tuple(kept[i] for i in new)
            block = self.tables[self._home(old)]
            if isinstance(block, CodedRows):
                home = self._home(old)
                tables[new] = block.take(tuple(home.index(i) for i in old))
            else:
                tables[new] = self.table([self.schema.names[i] for i in old])
        return Counts(schema, self.n, plan, tables, self.regime)

    def covering(self, plan: CountPlan) -> Counts:
        """Return counts that cover a plan: these, or fewer if they can be reduced to it.

        Raises
        ------
        UnplannedError
            If they do not cover it.
        """
        if plan == self.plan:
            return self
        if self.joint is not None:
            return Counts.from_rows(self.schema, self.joint, plan=plan, regime=self.regime)
        names = self.schema.names
        if self.on_demand is not None and plan.groups is not None:
            return Counts.from_tables(
                self.schema, {(own := tuple(sorted(g))): self.table(own) for g in plan.groups}
            )
        if not all(self.plan.covers([names[i] for i in s]) for s in plan.maximal(names)):
            raise UnplannedError(
                f"The counts at hand hold {self.plan}; {plan} was asked for. "
                "Ask the source of the data with that plan."
            )
        return self

    def __add__(self, other: Counts) -> Counts:
        """Return the counts of both sets of rows together."""
        if not isinstance(other, Counts):
            return NotImplemented
        if self.schema != other.schema:
            raise SchemaError(
                "Counts of different schemas cannot be added: " + self._difference(other)
            )
        if self.plan != other.plan:
            raise SchemaError(
                f"Counts of different plans cannot be added: {self.plan}, and {other.plan}. "
                "Ask both sources with the same plan."
            )
        if self.regime != other.regime:
            raise SchemaError(
                f"Counts of regime {self.regime!r} and {other.regime!r} cannot be added: "
                "keep them apart, or give both the same regime if the conditions were the same."
            )
        sizes = self.schema.cardinalities
        tables = {
            s: merged(block, other.tables[s], sizes[list(s)]) for s, block in self.tables.items()
        }
        return Counts(self.schema, self.n + other.n, self.plan, tables, self.regime)

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
        """Recode to a schema with the same variables in any order, and at least the same levels.

        Variables are matched by name. Their levels may be in another order, and there may be more.

        Raises
        ------
        SchemaError
            If the schema has other names, continuous variables, or lacks a level.
        """
        if set(schema.names) != set(self.schema.names):
            raise SchemaError(
                f"The new schema has the variables {list(schema.names)[:10]} and the counts have "
                f"{list(self.schema.names)[:10]}. Both need the same names; marginal(names) "
                "leaves variables out."
            )
        schema.require(Kind.DISCRETE, "Counts need")
        if schema.names != self.schema.names:
            return self.marginal(schema.names).with_schema(schema)
        maps = [
            _level_map(a.name, a.levels, b.levels)
            for a, b in zip(self.schema.variables, schema.variables, strict=True)
        ]
        tables: dict[Positions, Block] = {}
        for positions, block in self.tables.items():
            sizes = schema.cardinalities[list(positions)]
            if isinstance(block, CodedRows):
                rows = zip(positions, block.codes, strict=True)
                codes = np.array([maps[i][row] for i, row in rows])
                tables[positions] = CodedRows(as_codes(codes, sizes), block.weights)
            else:
                table = np.zeros(sizes, dtype=np.int64)
                table[np.ix_(*(maps[i] for i in positions))] = block
                tables[positions] = table
        return Counts(schema, self.n, self.plan, tables, self.regime)

    def constants(self) -> tuple[str, ...]:
        """Names of the variables that have the same level in all rows."""
        return tuple(n for n, table in self._singles.items() if table.max() == self.n)

    @cached_property
    def _singles(self) -> dict[str, Integers]:
        """Return the tables of single variables that are planned."""
        return {n: self.table([n]) for n in self.schema.names if self.plan.covers([n])}

    @classmethod
    def gather(cls, source: Gatherable, dag: DAG | None = None) -> Counts:
        counts: Counts = source.counts(
            CountPlan.everything() if dag is None else CountPlan.families(dag)
        )
        return counts

    def cells(self) -> Sequence[Integers]:
        blocks = self.tables.values()
        return [b.filled() if isinstance(b, CodedRows) else b for b in blocks]

    def without_rows(self) -> Counts:
        return self

    def fit(self, dag: DAG, pseudo_count: float) -> DiscreteNetwork:
        """Estimate conditional probability tables."""
        from isthmus.statistics.fitting import fit_families

        return fit_families(self, dag, pseudo_count)

    def for_file(self, dag: DAG) -> Counts:
        """Return the families of the graph, which are all that a loaded solution needs."""
        return self.covering(CountPlan.families(dag))

    def resampler(self, source: Gatherable) -> Resampler:
        """Return what draws rows of the joint table, without asking the source."""
        return Summary.resampler(self, source) if self.joint is None else Resampler(self.redrawn)

    def redrawn(self, rng: np.random.Generator) -> Counts:
        """Return the counts of as many rows, drawn with replacement from the joint table."""
        rows, n = self.joint, self.n
        assert rows is not None
        if rows.weights is None:
            # Repeated rows without weights: the compiled core counts them several times faster.
            drawn = CodedRows(np.take(rows.codes, np.sort(rng.integers(n, size=n)), axis=1))
        else:
            drawn = CodedRows(rows.codes, rng.multinomial(n, rows.weights / n)).nonzero()
        return Counts.from_rows(self.schema, drawn, regime=self.regime)

    def duplicates(self) -> tuple[tuple[str, ...], ...]:
        """Groups of variables that are the same up to the names of their levels.

        Only pairs within the plan are compared, and constants are left out. Time and memory are
        linear in the size of the counts, however many levels the variables have.
        """
        constant = set(self.constants())
        candidates: dict[bytes, list[str]] = {}
        for name, frequencies in self._singles.items():
            if name not in constant:
                # Duplicates have the same frequencies: most pairs are never compared.
                key = np.sort(frequencies[frequencies > 0]).tobytes()
                candidates.setdefault(key, []).append(name)
        alike = [group for group in candidates.values() if len(group) > 1]
        if self.plan.is_everything:
            names = sorted((name for group in alike for name in group), key=self.schema.index)
            positions = self.schema.indices(names)
            assert self.joint is not None
            sizes = self.schema.cardinalities[list(positions)]
            groups = equal_columns(self.joint.take(positions), sizes) if names else []
            return tuple(tuple(names[i] for i in group) for group in groups if len(group) > 1)
        pairs = [
            (self.schema.index(a), self.schema.index(b))
            for group in alike
            for k, a in enumerate(group)
            for b in group[k + 1 :]
            if self.plan.covers([a, b]) and self._one_to_one(a, b)
        ]
        return group_pairs(pairs, self.schema.names)

    def _one_to_one(self, a: str, b: str) -> bool:
        """Return whether each level of one variable occurs with only one level of the other."""
        pair = self.schema.indices([a, b])
        home = self._home(pair)
        block = self.tables[home]
        if isinstance(block, CodedRows):
            rows = block.take(tuple(home.index(i) for i in pair))
            return len(equal_columns(rows, self.schema.cardinalities[list(pair)])) == 1
        return one_to_one(self.table([a, b]))

    def save(self, path: archive.FilePath) -> None:
        """Write to a file (see the reference on the file format)."""
        entries: list[dict[str, Any]] = []
        arrays: dict[str, NDArray[Any]] = {}
        for k, (positions, block) in enumerate(self.tables.items()):
            entry: dict[str, Any] = {"variables": list(positions), "form": "table"}
            if isinstance(block, CodedRows):
                entry["form"] = "rows"
                arrays[f"codes{k}"] = block.codes
                if block.weights is not None:
                    arrays[f"weights{k}"] = block.weights
            else:
                arrays[f"table{k}"] = block
            entries.append(entry)
        header = {
            "format": FORMAT,
            "schema": self.schema.to_dict(),
            "plan": self.plan.to_dict(),
            "n": self.n,
            "regime": self.regime,
            "blocks": entries,
        }
        archive.write(path, header, arrays, compress=True)

    @classmethod
    def load(cls, path: archive.FilePath) -> Counts:
        """Read a file that `save` wrote.

        Raises
        ------
        FormatError
            If the file is damaged or holds something else.
        """
        header, arrays = archive.read(path, FORMAT)
        with archive.damage_reported(path):
            tables: dict[Positions, Block] = {}
            used = set()
            for k, entry in enumerate(header["blocks"]):
                positions = tuple(int(i) for i in entry["variables"])
                if entry["form"] == "rows":
                    names = {f"codes{k}", f"weights{k}"} & arrays.keys()
                    tables[positions] = CodedRows(arrays[f"codes{k}"], arrays.get(f"weights{k}"))
                elif entry["form"] == "table":
                    names = {f"table{k}"}
                    tables[positions] = arrays[f"table{k}"]
                else:
                    raise FormatError(f"a table has the unknown form {entry['form']!r}")
                used |= names
            archive.require_arrays(arrays, used)
            schema, plan = Schema.from_dict(header["schema"]), CountPlan.from_dict(header["plan"])
            if set(tables) != set(plan.maximal(schema.names)):
                raise FormatError("the tables are not those of the plan")
            n = archive.whole_number(header["n"], "n")
            regime = archive.optional_text(header["regime"], "regime")
            return cls(schema, n, plan, tables, regime)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        mine = (self.schema, self.n, self.plan, self.regime)
        if mine != (other.schema, other.n, other.plan, other.regime):
            return False
        sizes = self.schema.cardinalities
        return all(same(self.tables[s], other.tables[s], sizes[list(s)]) for s in self.tables)

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


# --- Alignment of the levels of two statistics, so that they can be added -----------------------

AnyStatistic = TypeVar("AnyStatistic", Moments, Counts)


def align_levels(first: AnyStatistic, second: AnyStatistic) -> tuple[AnyStatistic, AnyStatistic]:
    """Recode two statistics to the union of their levels, sorted where they differ.

    Levels are the same when they are equal: 1, 1.0 and True are one level. Text and numbers are
    never equal, so where one has 0 and the other ``"0"`` nothing tells whether they mean the same;
    that is refused.

    Raises
    ------
    SchemaError
        If names or kinds differ, or levels differ only in being text or not.
    """
    schema = union_levels(first.schema, second.schema)
    return first.with_schema(schema), second.with_schema(schema)
