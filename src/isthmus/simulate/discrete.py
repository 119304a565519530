"""Discrete data: from a given network, and random networks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from isthmus.errors import DataError
from isthmus.graphs import DAG
from isthmus.models import DiscreteNetwork
from isthmus.simulate.result import Simulation
from isthmus.simulate.streams import Purpose, stream

LARGEST_TABLE = 50_000_000


def discrete(network: DiscreteNetwork, n: int, *, seed: int) -> Simulation:
    """Draw n rows from a discrete network, as labels.

    Parameters
    ----------
    network
        Such as ``isthmus.io.read_bif(path)`` or `discrete_network`.
    n
        Number of rows.
    seed
        Same seed, same data.

    Notes
    -----
    Labels, not codes, are given, so that a level that happens not to be drawn changes nothing in
    the meaning of the others.
    """
    data = network.sample_labels(n, seed=seed)
    return Simulation(network.dag, {name: data[name] for name in network.dag.nodes})


def discrete_network(
    dag: DAG,
    *,
    cardinalities: int | tuple[int, int] | Mapping[str, int] = 2,
    concentration: float = 1.0,
    seed: int,
) -> DiscreteNetwork:
    """Draw a discrete network: each row of each table is Dirichlet.

    Parameters
    ----------
    dag
        The graph.
    cardinalities
        Number of levels of every node; or a smallest and a largest number, drawn uniformly; or
        one number for each node. At least 2.
    concentration
        Of the symmetric Dirichlet law: small values give near-deterministic tables, large ones
        near-uniform tables, in which edges can hardly be seen.
    seed
        Same seed, same network.
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
                f"{rows * sizes[name]:,} cells. Take fewer levels or a sparser graph."
            )
        rng = stream(seed, Purpose.TABLES, j)
        drawn = rng.dirichlet(np.full(sizes[name], float(concentration)), size=rows)
        tables[name] = drawn.reshape(*shape, sizes[name])
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
            raise DataError(f"The smallest cardinality {low} is above the largest {high}.")
        rng = stream(seed, Purpose.CARDINALITIES)
        drawn = rng.integers(low, high, size=len(dag.nodes), endpoint=True)
        sizes = dict(zip(dag.nodes, drawn.tolist(), strict=True))
    small = [name for name, size in sizes.items() if size < 2]
    if small:
        raise DataError(f"A discrete variable has at least 2 levels; fewer were asked for {small}.")
    return sizes
