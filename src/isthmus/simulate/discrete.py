"""Simulate discrete data and random discrete networks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from isthmus.errors import ArgumentError, DataError
from isthmus.graphs import DAG
from isthmus.models import DiscreteNetwork
from isthmus.simulate.result import Purpose, Simulation, stream

LARGEST_TABLE = 50_000_000
"""Maximum number of cells of a simulated table."""


def discrete(network: DiscreteNetwork, n: int, *, seed: int = 0) -> Simulation:
    """Draw rows from a discrete network.

    Parameters
    ----------
    network
        The network, for example from ``isthmus.io.read_bif(path)`` or `discrete_network`.
    n
        Number of rows.
    seed
        Random seed. The same seed gives the same data.

    Notes
    -----
    The data are labels instead of codes, so that they do not depend on levels that do not occur.
    """
    if isinstance(network, DAG):
        raise ArgumentError(
            "discrete needs a network with its tables, and a DAG was given. Draw tables for it: "
            "simulate.discrete(simulate.discrete_network(dag), n)."
        )
    data = network.sample(n, seed=seed)
    return Simulation(network.dag, {name: data[name] for name in network.dag.nodes})


def discrete_network(
    dag: DAG,
    *,
    cardinalities: int | tuple[int, int] | Mapping[str, int] = 2,
    concentration: float = 1.0,
    seed: int = 0,
) -> DiscreteNetwork:
    """Draw a discrete network with tables from Dirichlet distributions.

    Parameters
    ----------
    dag
        The graph.
    cardinalities
        Number of levels, at least 2: one number for all nodes, or a minimum and a maximum to draw
        from uniformly, or one number per node.
    concentration
        Parameter of the symmetric Dirichlet distribution. Small values give nearly deterministic
        tables, large values nearly uniform ones, in which edges are hard to detect.
    seed
        Random seed. The same seed gives the same network.
    """
    if not concentration > 0:
        raise DataError(f"concentration must be positive; {concentration} was given.")
    sizes = _cardinalities(dag, cardinalities, seed)
    tables = {}
    for j, name in enumerate(dag.nodes):
        shape = [sizes[parent] for parent in dag.parents(name)]
        rows = int(np.prod(shape, dtype=np.int64))
        if rows * sizes[name] > LARGEST_TABLE:
            raise DataError(
                f"The table of {name!r} with its {len(shape)} parents would have "
                f"{rows * sizes[name]:,} cells. Use fewer levels or a sparser graph."
            )
        rng = stream(seed, Purpose.TABLES, j)
        table = rng.dirichlet(np.full(sizes[name], float(concentration)), size=rows)
        tables[name] = table.reshape(*shape, sizes[name])
    levels = {name: tuple(f"s{k}" for k in range(sizes[name])) for name in dag.nodes}
    return DiscreteNetwork(dag=dag, levels=levels, tables=tables)


def _cardinalities(
    dag: DAG, given: int | tuple[int, int] | Mapping[str, int], seed: int
) -> dict[str, int]:
    if isinstance(given, Mapping):
        missing = [name for name in dag.nodes if name not in given]
        if missing:
            raise DataError(f"No cardinality is given for {missing}.")
        sizes = {name: int(given[name]) for name in dag.nodes}
    else:
        low, high = given if isinstance(given, tuple) else (given, given)
        if low > high:
            raise DataError(f"The minimum cardinality {low} is above the maximum {high}.")
        rng = stream(seed, Purpose.CARDINALITIES)
        drawn = rng.integers(low, high, size=len(dag.nodes), endpoint=True)
        sizes = dict(zip(dag.nodes, drawn.tolist(), strict=True))
    small = [name for name, size in sizes.items() if size < 2]
    if small:
        raise DataError(f"A discrete variable needs at least 2 levels; {small} have fewer.")
    return sizes
