"""Bayesian networks of discrete variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isthmus.errors import DataError, MismatchError, SchemaError
from isthmus.graphs import DAG
from isthmus.graphs.names import listed

Level: TypeAlias = str | int | float | bool
Codes: TypeAlias = "NDArray[np.unsignedinteger[Any]]"

# Published networks have probabilities with few digits, so the sum of a row may differ from one.
ROW_TOLERANCE = 1e-5


@final
@dataclass(frozen=True, eq=False, repr=False)
class DiscreteNetwork:
    """A Bayesian network of discrete variables: a DAG with a probability table for each node.

    Parameters
    ----------
    dag
        The graph.
    levels
        The values of each node, in the order of the codes 0, 1, …
    tables
        For each node an array with one axis per parent, in the order of ``dag.parents(node)``, and
        a last axis for the node itself, over which it sums to one.
    counts
        For each node the number of rows in each cell of its table, if the network was fitted to
        data; see `unseen`.

    Raises
    ------
    SchemaError
        If nodes, levels and tables do not match.
    DataError
        If a table does not contain probabilities.
    """

    dag: DAG
    levels: Mapping[str, tuple[Level, ...]]
    tables: Mapping[str, NDArray[np.float64]]
    counts: Mapping[str, NDArray[np.int64]] | None = None

    def __post_init__(self) -> None:
        check_keys(self.dag, self.levels, "levels")
        check_keys(self.dag, self.tables, "tables")
        levels = {name: check_levels(name, self.levels[name]) for name in self.dag.nodes}
        tables = {}
        for name in self.dag.nodes:
            shape = tuple(len(levels[v]) for v in (*self.dag.parents(name), name))
            tables[name] = _checked_table(name, self.dag.parents(name), self.tables[name], shape)
        object.__setattr__(self, "levels", MappingProxyType(levels))
        object.__setattr__(self, "tables", MappingProxyType(tables))
        if self.counts is not None:
            check_keys(self.dag, self.counts, "counts")
            counts = {v: _checked_counts(v, self.counts[v], tables[v].shape) for v in tables}
            object.__setattr__(self, "counts", MappingProxyType(counts))

    def __reduce__(self) -> tuple[Any, ...]:
        counts = None if self.counts is None else dict(self.counts)
        return DiscreteNetwork, (self.dag, dict(self.levels), dict(self.tables), counts)

    @property
    def cardinalities(self) -> dict[str, int]:
        """Number of levels of each node."""
        return {name: len(levels) for name, levels in self.levels.items()}

    @property
    def parameters(self) -> int:
        """Number of free parameters."""
        return sum(t.size - t.size // t.shape[-1] for t in self.tables.values())

    def unseen(self, node: str) -> tuple[tuple[Level, ...], ...]:
        """Return the levels of the parents that no row has together.

        The probabilities of the node are then a guess: they come from the prior alone.

        Parameters
        ----------
        node
            The node whose table is inspected. Each entry has one level per parent, in the order
            of ``dag.parents(node)``.
        """
        if self.counts is None:
            raise MismatchError("This network was not fitted to data, so it has no counts.")
        parents = self.dag.parents(node)
        never = np.argwhere(self.counts[node].sum(axis=-1) == 0)
        levels = [self.levels[p] for p in parents]
        return tuple(tuple(own[i] for own, i in zip(levels, row, strict=True)) for row in never)

    def sample(self, n: int, *, seed: int = 0) -> dict[str, Codes]:
        """Draw rows from the joint distribution.

        Parameters
        ----------
        n
            Number of rows.
        seed
            Random seed. The same seed gives the same rows.

        Returns
        -------
        dict
            For each node, in the order of ``dag.nodes``, an array of codes, in the smallest
            unsigned integer type that can represent them.
        """
        rng = np.random.default_rng(seed)
        columns: dict[str, Codes] = {}
        for name in self.dag.topological_order():
            table = self.tables[name]
            cumulative = np.cumsum(table.reshape(-1, table.shape[-1]), axis=1)
            # With a last entry of exactly one, a level of probability zero is never drawn.
            cumulative /= cumulative[:, -1:]
            row = self._rows(name, columns, n)
            uniform = rng.random(n)
            codes = np.zeros(n, dtype=code_type(table.shape[-1]))
            for level in range(table.shape[-1] - 1):
                codes += uniform >= cumulative[:, level][row]
            columns[name] = codes
        return {name: columns[name] for name in self.dag.nodes}

    def sample_labels(self, n: int, *, seed: int = 0) -> dict[str, NDArray[Any]]:
        """Draw rows as `sample` does, as levels instead of codes."""
        return {
            name: label_array(self.levels[name])[codes]
            for name, codes in self.sample(n, seed=seed).items()
        }

    def encode(self, rows: Mapping[str, Sequence[Level] | NDArray[Any]]) -> dict[str, Codes]:
        """Convert columns of levels to columns of codes.

        Raises
        ------
        SchemaError
            If a column is missing or contains a value that is not a level.
        """
        check_keys(self.dag, rows, "rows", extra=True)
        return {v: encode_column(v, self.levels[v], rows[v]) for v in self.dag.nodes}

    def log_likelihood(self, codes: Mapping[str, ArrayLike]) -> float:
        """Return the log-likelihood of rows, given as columns of codes."""
        check_keys(self.dag, codes, "codes", extra=True)
        columns = {name: np.asarray(codes[name]) for name in self.dag.nodes}
        n = common_length(columns)
        for name, column in columns.items():
            size = len(self.levels[name])
            if n and (column.dtype.kind not in "iub" or column.min() < 0 or column.max() >= size):
                raise DataError(
                    f"Codes of {name!r} must be integers from 0 to {size - 1}; "
                    "convert levels to codes with encode()."
                )
        total = 0.0
        for name in self.dag.nodes:
            table = self.tables[name]
            row = self._rows(name, columns, n)
            with np.errstate(divide="ignore"):
                logs = np.log(table.reshape(-1, table.shape[-1]))
            total += float(logs[row, columns[name].astype(np.intp)].sum())
        return total

    def _rows(self, name: str, columns: Mapping[str, NDArray[Any]], n: int) -> NDArray[np.intp]:
        """Return for each row of data the corresponding row of the flattened table."""
        row = np.zeros(n, dtype=np.intp)
        for parent in self.dag.parents(name):
            row *= len(self.levels[parent])
            row += columns[parent]
        return row

    def reorder(self, nodes: Sequence[str]) -> DiscreteNetwork:
        """Return the same network with its nodes in another order."""
        dag = self.dag.reorder(nodes)
        tables, counts = {}, {}
        for name in nodes:
            old = self.dag.parents(name)
            axes = [old.index(parent) for parent in dag.parents(name)]
            tables[name] = self.tables[name].transpose(*axes, len(axes))
            if self.counts is not None:
                counts[name] = self.counts[name].transpose(*axes, len(axes))
        return DiscreteNetwork(dag, self.levels, tables, counts or None)

    def close_to(self, other: DiscreteNetwork, tolerance: float = 1e-9) -> bool:
        """Return whether two networks are equal up to a tolerance in their tables."""
        if self.dag != other.dag or dict(self.levels) != dict(other.levels):
            return False
        same = other.reorder(self.dag.nodes)
        return all(
            bool(np.abs(table - same.tables[name]).max() <= tolerance)
            for name, table in self.tables.items()
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DiscreteNetwork):
            return NotImplemented
        return self.close_to(other, tolerance=0.0)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"DiscreteNetwork({len(self.dag.nodes)} nodes, {len(self.dag.edges)} edges, "
            f"{self.parameters} parameters)"
        )


def check_keys(dag: DAG, given: Mapping[str, Any], what: str, *, extra: bool = False) -> None:
    """Raise unless a mapping has an entry for each node and, without ``extra``, no other entry."""
    missing = [name for name in dag.nodes if name not in given]
    if missing:
        raise SchemaError(f"{what} lacks an entry for {listed(missing)}.")
    if not extra and len(given) != len(dag.nodes):
        nodes = set(dag.nodes)
        others = listed(name for name in given if name not in nodes)
        raise SchemaError(f"{what} has entries for {others}, which the graph does not have.")


def encode_column(name: str, levels: Sequence[Level], values: ArrayLike) -> Codes:
    """Convert levels to codes."""
    code_of = {level: code for code, level in enumerate(levels)}
    plain = np.asarray(values).tolist()
    unknown = [value for value in plain if value not in code_of]
    if unknown:
        raise SchemaError(
            f"Column {name!r} contains {unknown[0]!r}, which is not one of its levels {levels!r}."
        )
    return np.array([code_of[v] for v in plain], dtype=code_type(len(code_of)))


def label_array(levels: Sequence[Level]) -> NDArray[Any]:
    """Return levels as an array; an array of objects if their types differ."""
    if len({type(level) for level in levels}) == 1:
        return np.array(levels)
    mixed = np.empty(len(levels), dtype=object)
    mixed[:] = list(levels)
    return mixed


def check_levels(name: str, levels: Sequence[Level]) -> tuple[Level, ...]:
    """Return levels as plain Python values; raise if there are none, or twice the same."""
    if isinstance(levels, str):
        raise SchemaError(f"The levels of {name!r} must be a sequence, not the string {levels!r}.")
    checked = tuple(level.item() if isinstance(level, np.generic) else level for level in levels)
    if not checked:
        raise SchemaError(f"Node {name!r} has no levels; it needs at least one.")
    if len(set(checked)) != len(checked):
        raise SchemaError(f"The levels of {name!r} must be unique, got {checked!r}.")
    return checked


def check_probabilities(name: str, array: NDArray[np.float64]) -> None:
    """Raise unless an array contains probabilities that sum to one over its last axis."""
    if not (array >= 0).all() or not np.isfinite(array).all():
        raise DataError(f"The table of {name} contains numbers that are not probabilities.")
    difference = float(np.abs(array.sum(axis=-1) - 1).max())
    if difference > ROW_TOLERANCE:
        raise DataError(
            f"The table of {name} must sum to one over its last axis; a sum differs from one by "
            f"{difference:.3g}."
        )


def _checked_table(
    name: str, parents: tuple[str, ...], table: ArrayLike, shape: tuple[int, ...]
) -> NDArray[np.float64]:
    array = np.array(table, dtype=np.float64, order="C")
    if array.shape != shape:
        raise SchemaError(
            f"The table of {name!r} must have shape {shape}, with one axis each for "
            f"{listed((*parents, name))} in that order; got {array.shape}."
        )
    check_probabilities(repr(name), array)
    array.flags.writeable = False
    return array


def _checked_counts(name: str, counts: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.int64]:
    given = np.asarray(counts)
    if given.shape != shape or given.dtype.kind not in "iu" or (given.size and given.min() < 0):
        raise DataError(f"The counts of {name!r} must be whole numbers in the shape {shape}.")
    array = given.astype(np.int64)
    array.flags.writeable = False
    return array


def common_length(columns: Mapping[str, NDArray[Any]]) -> int:
    """Return the number of rows; raise if columns differ in it."""
    sizes = {column.shape for column in columns.values()}
    if len(sizes) > 1 or any(len(size) != 1 for size in sizes):
        raise DataError(f"Columns must be one-dimensional and of equal length, got shapes {sizes}.")
    return sizes.pop()[0] if sizes else 0


def code_type(size: int) -> np.dtype[np.unsignedinteger[Any]]:
    """Return the smallest type for the codes of this many levels."""
    return np.dtype(np.min_scalar_type(size - 1))
