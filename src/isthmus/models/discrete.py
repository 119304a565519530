"""Bayesian networks of discrete variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isthmus.errors import DataError, SchemaError
from isthmus.graphs import DAG
from isthmus.graphs.names import listed

Level: TypeAlias = str | int | float | bool
Codes: TypeAlias = "NDArray[np.unsignedinteger[Any]]"

# Published networks give probabilities with few digits; rows of them may be off by this much.
ROW_TOLERANCE = 1e-5


@final
@dataclass(frozen=True, eq=False, repr=False)
class DiscreteNetwork:
    """A DAG with a conditional probability table for each node.

    Parameters
    ----------
    dag
        The structure.
    levels
        For each node the values it can take, in the order of the codes 0, 1, …
    tables
        For each node an array with one axis for each of ``dag.parents(node)``, in that order, and
        a last axis for the node itself, over which it sums to one.

    Raises
    ------
    SchemaError
        If nodes, levels and tables do not fit together.
    DataError
        If a table does not hold probabilities.
    """

    dag: DAG
    levels: Mapping[str, tuple[Level, ...]]
    tables: Mapping[str, NDArray[np.float64]]

    def __post_init__(self) -> None:
        check_keys(self.dag, self.levels, "levels")
        check_keys(self.dag, self.tables, "tables")
        levels = {name: _checked_levels(name, self.levels[name]) for name in self.dag.nodes}
        tables = {}
        for name in self.dag.nodes:
            shape = tuple(len(levels[v]) for v in (*self.dag.parents(name), name))
            tables[name] = _checked_table(name, self.dag.parents(name), self.tables[name], shape)
        object.__setattr__(self, "levels", MappingProxyType(levels))
        object.__setattr__(self, "tables", MappingProxyType(tables))

    def __reduce__(self) -> tuple[Any, ...]:
        return DiscreteNetwork, (self.dag, dict(self.levels), dict(self.tables))

    @property
    def cardinalities(self) -> dict[str, int]:
        """How many levels each node has."""
        return {name: len(own) for name, own in self.levels.items()}

    @property
    def parameters(self) -> int:
        """The number of free parameters."""
        return sum(t.size - t.size // t.shape[-1] for t in self.tables.values())

    def sample(self, n: int, *, seed: int) -> dict[str, Codes]:
        """Draw rows from the joint distribution.

        Parameters
        ----------
        n
            How many rows.
        seed
            The same seed gives the same rows.

        Returns
        -------
        dict
            For each node, in the order of ``dag.nodes``, an array of codes: the smallest unsigned
            integers that hold them.
        """
        rng = np.random.default_rng(seed)
        drawn: dict[str, Codes] = {}
        for name in self.dag.topological_order():
            table = self.tables[name]
            heights = np.cumsum(table.reshape(-1, table.shape[-1]), axis=1)
            # with the last height exactly one, a level of probability zero is never drawn
            heights /= heights[:, -1:]
            row = self._rows(name, drawn, n)
            height = rng.random(n)
            codes = np.zeros(n, dtype=_code_type(table.shape[-1]))
            for level in range(table.shape[-1] - 1):
                codes += height >= heights[:, level][row]
            drawn[name] = codes
        return {name: drawn[name] for name in self.dag.nodes}

    def sample_labels(self, n: int, *, seed: int) -> dict[str, NDArray[Any]]:
        """Draw rows as in `sample`, with levels in place of codes."""
        return {
            name: label_array(self.levels[name])[codes]
            for name, codes in self.sample(n, seed=seed).items()
        }

    def encode(self, rows: Mapping[str, Sequence[Level] | NDArray[Any]]) -> dict[str, Codes]:
        """Turn columns of levels into columns of codes.

        Raises
        ------
        SchemaError
            If a column is missing or holds a value that is not a level.
        """
        check_keys(self.dag, rows, "rows", extra=True)
        coded: dict[str, Codes] = {}
        for name in self.dag.nodes:
            place = {level: code for code, level in enumerate(self.levels[name])}
            values = np.asarray(rows[name]).tolist()
            unknown = [value for value in values if value not in place]
            if unknown:
                raise SchemaError(
                    f"Column {name!r} holds {unknown[0]!r}, which is not one of its levels "
                    f"{self.levels[name]!r}."
                )
            coded[name] = np.array([place[v] for v in values], dtype=_code_type(len(place)))
        return coded

    def log_likelihood(self, codes: Mapping[str, ArrayLike]) -> float:
        """Return the natural logarithm of the probability of some rows, given as codes."""
        check_keys(self.dag, codes, "codes", extra=True)
        columns = {name: np.asarray(codes[name]) for name in self.dag.nodes}
        n = _common_length(columns)
        for name, column in columns.items():
            size = len(self.levels[name])
            if n and (column.dtype.kind not in "iub" or column.min() < 0 or column.max() >= size):
                raise DataError(
                    f"Codes of {name!r} must be whole numbers from 0 to {size - 1}; "
                    "turn levels into codes with encode()."
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
        """Return which row of the flattened table each row of data reads."""
        row = np.zeros(n, dtype=np.intp)
        for parent in self.dag.parents(name):
            row *= len(self.levels[parent])
            row += columns[parent]
        return row

    def reorder(self, nodes: Sequence[str]) -> DiscreteNetwork:
        """Return the same network with its nodes in another order."""
        dag = self.dag.reorder(nodes)
        tables = {}
        for name in nodes:
            old = self.dag.parents(name)
            axes = [old.index(parent) for parent in dag.parents(name)]
            tables[name] = self.tables[name].transpose(*axes, len(axes))
        return DiscreteNetwork(dag, self.levels, tables)

    def close_to(self, other: DiscreteNetwork, tolerance: float = 1e-9) -> bool:
        """Tell whether two networks are the same up to rounding of their tables."""
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
    """Raise unless a mapping has an entry for each node, and (without extra) none besides."""
    missing = [name for name in dag.nodes if name not in given]
    if missing:
        raise SchemaError(f"{what} lacks an entry for {listed(missing)}.")
    if not extra and len(given) != len(dag.nodes):
        known = set(dag.nodes)
        others = listed(name for name in given if name not in known)
        raise SchemaError(f"{what} has entries for {others}, which the graph does not have.")


def label_array(levels: Sequence[Level]) -> NDArray[Any]:
    """Return levels as an array of their own type; of objects when types are mixed."""
    if len({type(level) for level in levels}) == 1:
        return np.array(levels)
    mixed = np.empty(len(levels), dtype=object)
    mixed[:] = list(levels)
    return mixed


def _checked_levels(name: str, levels: Sequence[Level]) -> tuple[Level, ...]:
    if isinstance(levels, str):
        raise SchemaError(f"The levels of {name!r} must be a sequence, not the string {levels!r}.")
    own = tuple(level.item() if isinstance(level, np.generic) else level for level in levels)
    if not own:
        raise SchemaError(f"Node {name!r} has no levels; it needs at least one.")
    if len(set(own)) != len(own):
        raise SchemaError(f"The levels of {name!r} must all differ, got {own!r}.")
    return own


def _checked_table(
    name: str, parents: tuple[str, ...], table: ArrayLike, shape: tuple[int, ...]
) -> NDArray[np.float64]:
    array = np.array(table, dtype=np.float64, order="C")
    if array.shape != shape:
        raise SchemaError(
            f"The table of {name!r} must have shape {shape}, one axis each for "
            f"{listed((*parents, name))} in that order; got {array.shape}."
        )
    if not (array >= 0).all() or not np.isfinite(array).all():
        raise DataError(f"The table of {name!r} holds numbers that are not probabilities.")
    off = float(np.abs(array.sum(axis=-1) - 1).max())
    if off > ROW_TOLERANCE:
        raise DataError(
            f"The table of {name!r} must sum to one over its last axis; it is off by {off:.3g}."
        )
    array.flags.writeable = False
    return array


def _common_length(columns: Mapping[str, NDArray[Any]]) -> int:
    sizes = {column.shape for column in columns.values()}
    if len(sizes) > 1 or any(len(size) != 1 for size in sizes):
        raise DataError(f"Columns must be one-dimensional and equally long, got shapes {sizes}.")
    return sizes.pop()[0] if sizes else 0


def _code_type(size: int) -> np.dtype[np.unsignedinteger[Any]]:
    return np.dtype(np.min_scalar_type(size - 1))
