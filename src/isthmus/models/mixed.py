"""Bayesian networks of discrete and continuous variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isthmus.errors import DataError, SchemaError
from isthmus.graphs import DAG
from isthmus.graphs.names import listed
from isthmus.models.conditionals import Conditional, ConditionalGaussian
from isthmus.models.discrete import Level, check_keys, common_length, encode_column, label_array


@final
@dataclass(frozen=True, eq=False, repr=False)
class MixedNetwork:
    """A network of discrete and continuous variables.

    Parameters
    ----------
    dag
        The graph.
    conditionals
        The distribution of each node given its parents: `ProbabilityTable`, `ConditionalGaussian`
        or `MultinomialLogit`.

    Raises
    ------
    SchemaError
        If graph and distributions do not match.
    """

    dag: DAG
    conditionals: Mapping[str, Conditional]

    def __post_init__(self) -> None:
        check_keys(self.dag, self.conditionals, "conditionals")
        for name in self.dag.nodes:
            given, expected = self.conditionals[name].parents, self.dag.parents(name)
            if set(given) != set(expected):
                raise SchemaError(
                    f"Node {name!r} has the parents {listed(expected)}, but its distribution has "
                    f"{listed(given)}."
                )
        ordered = {name: self.conditionals[name] for name in self.dag.nodes}
        object.__setattr__(self, "conditionals", MappingProxyType(ordered))

    def __reduce__(self) -> tuple[Any, ...]:
        return MixedNetwork, (self.dag, dict(self.conditionals))

    @property
    def levels(self) -> dict[str, tuple[Level, ...]]:
        """The values of each discrete node."""
        return {name: own.levels for name, own in self.conditionals.items() if own.levels}

    @property
    def parameters(self) -> int:
        """Number of free parameters."""
        return sum(own.parameters for own in self.conditionals.values())

    def sample(self, n: int, *, seed: int = 0) -> dict[str, NDArray[Any]]:
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
            For each node, in the order of ``dag.nodes``, an array of levels or numbers.
        """
        rng = np.random.default_rng(seed)
        columns: dict[str, NDArray[Any]] = {}
        for name in self.dag.topological_order():
            columns[name] = self.conditionals[name].draw(columns, n, rng)
        levels = self.levels
        return {
            name: label_array(levels[name])[columns[name]] if name in levels else columns[name]
            for name in self.dag.nodes
        }

    def log_likelihood(self, data: Mapping[str, ArrayLike]) -> float:
        """Return the log-likelihood of rows, given as columns of levels and numbers."""
        return float(self.log_densities(data).sum())

    def log_densities(self, data: Mapping[str, ArrayLike]) -> NDArray[np.float64]:
        """Return the log-density of each row, given as columns of levels and numbers."""
        columns = self._columns(data)
        total = np.zeros(common_length(columns))
        for name, own in self.conditionals.items():
            total += own.log_density(columns[name], columns)
        return total

    def _columns(self, data: Mapping[str, ArrayLike]) -> dict[str, NDArray[Any]]:
        check_keys(self.dag, data, "data", extra=True)
        levels = self.levels
        columns: dict[str, NDArray[Any]] = {}
        for name in self.dag.nodes:
            if name in levels:
                columns[name] = encode_column(name, levels[name], data[name])
            else:
                columns[name] = _numbers(name, data[name])
        return columns

    def reorder(self, nodes: Sequence[str]) -> MixedNetwork:
        """Return the same network with its nodes in another order."""
        return MixedNetwork(self.dag.reorder(nodes), self.conditionals)

    def __repr__(self) -> str:
        continuous = sum(isinstance(c, ConditionalGaussian) for c in self.conditionals.values())
        return (
            f"MixedNetwork({len(self.dag.nodes)} nodes, {continuous} of them continuous, "
            f"{len(self.dag.edges)} edges, {self.parameters} parameters)"
        )


def _numbers(name: str, values: ArrayLike) -> NDArray[np.float64]:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"Column {name!r} is continuous and needs numbers.") from None
