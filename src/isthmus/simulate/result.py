"""What all simulators share: random streams, and the simulated data with their graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError
from isthmus.graphs import DAG


class Purpose(IntEnum):
    """Purpose of a random generator. The numbers must never change: results depend on them."""

    GRAPH = 1
    LABELS = 2
    WEIGHTS = 3
    VARIANCES = 4
    NOISE = 5
    MECHANISM = 6
    TABLES = 7
    LAGGED_GRAPH = 8
    LAGGED_WEIGHTS = 9
    CARDINALITIES = 10
    SORTING = 11


def stream(seed: int, purpose: Purpose, *path: int) -> np.random.Generator:
    """Return the random generator for one purpose.

    The same seed can be used for the graph, the weights and the noise: generators of different
    purposes are independent.

    Parameters
    ----------
    seed
        Random seed, a non-negative integer.
    purpose
        Purpose of the random numbers.
    path
        Additional keys, such as the index of a node.
    """
    is_integer = isinstance(seed, (int, np.integer)) and not isinstance(seed, bool)
    if not is_integer or seed < 0:
        raise DataError(f"seed must be a non-negative integer, not {seed!r}.")
    return np.random.default_rng([int(seed), int(purpose), *path])


Edge = tuple[str, str]
NO_WEIGHTS: Mapping[Edge, float] = MappingProxyType({})


@final
@dataclass(frozen=True, eq=False)
class Simulation:
    """Simulated data and the graph that generated them.

    Attributes
    ----------
    dag
        The true graph.
    data
        One read-only array per node, by name, in the order of ``dag.nodes``. Convert it with
        ``pandas.DataFrame(simulation.data)``, for example.
    weights
        For linear models the weight of each edge, in the units of ``data``; empty otherwise.
    """

    dag: DAG
    data: Mapping[str, NDArray[Any]]
    weights: Mapping[Edge, float] = field(default_factory=lambda: NO_WEIGHTS)

    def __post_init__(self) -> None:
        if tuple(self.data) != self.dag.nodes:
            raise DataError("Simulated data must have one column per node, in the same order.")
        for column in self.data.values():
            column.flags.writeable = False
        object.__setattr__(self, "data", dict(self.data))
        object.__setattr__(self, "weights", MappingProxyType(dict(self.weights)))

    def __reduce__(self) -> tuple[Any, ...]:
        return Simulation, (self.dag, self.data, dict(self.weights))

    @property
    def n(self) -> int:
        """Number of rows."""
        return next((len(column) for column in self.data.values()), 0)

    def array(self) -> NDArray[Any]:
        """Return the data as an array with one column per node, in the order of ``dag.nodes``."""
        if not self.data:
            return np.empty((0, 0))
        return np.column_stack(list(self.data.values()))

    def standardised(self) -> Simulation:
        """Return the data with every column scaled to mean 0 and variance 1, and rescaled weights.

        Variances then carry no information about the order, but the explained fraction of the
        variance still does. Use ``internally_standardised`` of the simulators to avoid both.
        """
        sds: dict[str, float] = {}
        data: dict[str, NDArray[Any]] = {}
        for name, column in self.data.items():
            if not np.issubdtype(column.dtype, np.floating):
                raise DataError(f"Only numeric columns can be standardised; {name!r} is discrete.")
            sds[name] = float(column.std())
            if sds[name] == 0.0:
                raise DataError(f"Column {name!r} is constant and cannot be standardised.")
            data[name] = (column - column.mean()) / sds[name]
        weights = {(a, b): w * sds[a] / sds[b] for (a, b), w in self.weights.items()}
        return Simulation(self.dag, data, weights)

    def __repr__(self) -> str:
        nodes, edges = len(self.dag.nodes), len(self.dag.edges)
        return f"Simulation(n={self.n}, nodes={nodes}, edges={edges})"
