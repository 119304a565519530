"""Simulate linear structural equation models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats
from isthmus.errors import ArgumentError, DataError, GraphError
from isthmus.graphs import DAG
from isthmus.networks import DiscreteNetwork
from isthmus.options import (
    is_integer,
    require_boolean,
    require_instance,
    require_integer,
    require_number,
)

# --- Distributions of noise, noise variances and edge weights -----------------------------------


class Noise(ABC):
    """A noise distribution with mean zero and variance one; `Variances` set the scale."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw ``n`` independent values with mean 0 and variance 1."""


@final
@dataclass(frozen=True)
class Gaussian(Noise):
    """Normal noise."""

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        return rng.standard_normal(n)


@final
@dataclass(frozen=True)
class Exponential(Noise):
    """Exponential noise, centred; it is skewed to the right."""

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        return rng.standard_exponential(n) - 1.0


@final
@dataclass(frozen=True)
class Gumbel(Noise):
    """Gumbel noise, centred and scaled to variance one.

    A standard Gumbel variable has variance π²/6. For this variance, as in benchmarks with "scale
    1", give ``variances=EqualVariances(math.pi**2 / 6)``.
    """

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        draws: Floats = (rng.gumbel(size=n) - np.euler_gamma) * (np.sqrt(6.0) / np.pi)
        return draws


@final
@dataclass(frozen=True)
class Uniform(Noise):
    """Uniform noise, centred."""

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        return rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), n)


class Variances(ABC):
    """A distribution of the noise variances of the nodes."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, d: int) -> Floats:
        """Draw one positive variance per node."""


@final
@dataclass(frozen=True)
class EqualVariances(Variances):
    """The same variance for every node, which makes the order identifiable from the covariance."""

    value: float = 1.0

    def __post_init__(self) -> None:
        require_number(self, "value", above=0)

    def draw(self, rng: np.random.Generator, d: int) -> Floats:
        return np.full(d, float(self.value))


@final
@dataclass(frozen=True)
class UnequalVariances(Variances):
    """Variances drawn uniformly between two bounds, independently for each node."""

    low: float = 0.5
    high: float = 2.0

    def __post_init__(self) -> None:
        require_number(self, "low", above=0)
        require_number(self, "high", above=0)
        if self.low > self.high:
            raise ArgumentError(f"Expected 0 < low <= high; got low={self.low}, high={self.high}.")

    def draw(self, rng: np.random.Generator, d: int) -> Floats:
        return rng.uniform(self.low, self.high, d)


@final
@dataclass(frozen=True)
class UniformWeights:
    """Edge weights with absolute value uniform in [``low``, ``high``] and a random sign."""

    low: float = 0.5
    high: float = 2.0

    def __post_init__(self) -> None:
        require_number(self, "low", least=0)
        require_number(self, "high", least=0)
        if self.low > self.high:
            raise ArgumentError(f"Expected 0 <= low <= high; got low={self.low}, high={self.high}.")

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Draw ``count`` weights."""
        sizes = rng.uniform(self.low, self.high, count)
        return np.where(rng.random(count) < 0.5, -sizes, sizes)


# --- What all simulators share: random streams, and the simulated data with their graph ---------


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
    if not is_integer(seed) or seed < 0:
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


# --- Simulate linear structural equation models -------------------------------------------------


@final
@dataclass(frozen=True, eq=False)
class LinearModel:
    """A linear structural equation model ``x_j = Σ_i w_ij x_i + e_j`` with means of zero.

    Attributes
    ----------
    dag
        The graph.
    weights
        Weight of each edge.
    variances
        Noise variance of each node.
    noise
        Distribution of the noise.
    """

    dag: DAG
    weights: Mapping[Edge, float]
    variances: Mapping[str, float]
    noise: Noise = Gaussian()

    def __post_init__(self) -> None:
        if set(self.weights) != set(self.dag.edges):
            raise GraphError("weights must have exactly one entry per edge of the graph.")
        if set(self.variances) != set(self.dag.nodes):
            raise GraphError("variances must have exactly one entry per node of the graph.")
        if not all(v > 0 for v in self.variances.values()):
            raise DataError("Noise variances must be positive.")
        object.__setattr__(self, "weights", MappingProxyType(dict(self.weights)))
        object.__setattr__(self, "variances", MappingProxyType(dict(self.variances)))

    def __reduce__(self) -> tuple[Any, ...]:
        return LinearModel, (self.dag, dict(self.weights), dict(self.variances), self.noise)

    def weight_matrix(self) -> Floats:
        """Return the weights as a matrix ``[from, to]``."""
        matrix = np.zeros((len(self.dag.nodes), len(self.dag.nodes)))
        for (tail, head), weight in self.weights.items():
            matrix[self.dag.index(tail), self.dag.index(head)] = weight
        return matrix

    def covariance(self) -> Floats:
        """Return the covariance matrix of the variables, (I - W)^-T diag(v) (I - W)^-1."""
        paths = np.linalg.inv(np.eye(len(self.dag.nodes)) - self.weight_matrix())
        noise = np.array([self.variances[name] for name in self.dag.nodes])
        covariance: Floats = (paths.T * noise) @ paths
        return covariance

    def internally_standardised(self) -> LinearModel:
        """Return the internally standardised model, in which every variable has variance one.

        This is the linear case of the iSCM of Ormaniec et al. (arXiv 2406.11601) with population
        variances. In topological order, each variable is computed from standardised parents and
        then divided by its standard deviation. The result is again a linear model.
        """
        nodes = self.dag.nodes
        # In topological order, so that the leading block has the correlations computed so far.
        correlation = np.eye(len(nodes))
        place: dict[int, int] = {}
        weights: dict[Edge, float] = {}
        variances: dict[str, float] = {}
        for t, (name, parents, w) in enumerate(_equations(self.dag, self.weights)):
            above = [place[p] for p in parents]
            total = float(w @ correlation[np.ix_(above, above)] @ w) + self.variances[name]
            scaled = w / np.sqrt(total)
            if above:
                correlation[t, :t] = scaled @ correlation[above, :t]
                correlation[:t, t] = correlation[t, :t]
            weights.update(
                {(nodes[p], name): float(v) for p, v in zip(parents, scaled, strict=True)}
            )
            variances[name] = self.variances[name] / total
            place[self.dag.index(name)] = t
        return LinearModel(self.dag, weights, variances, self.noise)

    def sample(self, n: int, *, seed: int = 0) -> Simulation:
        """Draw ``n`` independent rows."""
        if n < 0:
            raise DataError(f"n must be 0 or more; {n} was given.")
        nodes = self.dag.nodes
        rng = stream(seed, Purpose.NOISE)
        columns = np.empty((len(nodes), n))
        for j, name in enumerate(nodes):
            columns[j] = np.sqrt(self.variances[name]) * self.noise.draw(rng, n)
        for name, parents, w in _equations(self.dag, self.weights):
            if parents:
                columns[self.dag.index(name)] += w @ columns[parents]
        return Simulation(self.dag, dict(zip(nodes, columns, strict=True)), self.weights)


def linear_model(
    dag: DAG,
    *,
    noise: Noise = Gaussian(),
    weights: UniformWeights | Mapping[Edge, float] = UniformWeights(),
    variances: Variances | Mapping[str, float] = EqualVariances(),
    internally_standardised: bool = False,
    seed: int = 0,
) -> LinearModel:
    """Draw the weights and variances of a linear model; see `linear` for the parameters."""
    if isinstance(weights, UniformWeights):
        drawn = weights.draw(stream(seed, Purpose.WEIGHTS), len(dag.edges))
        weights = dict(zip(dag.edges, drawn.tolist(), strict=True))
    if isinstance(variances, Variances):
        values = variances.draw(stream(seed, Purpose.VARIANCES), len(dag.nodes))
        variances = dict(zip(dag.nodes, values.tolist(), strict=True))
    model = LinearModel(dag, weights, variances, noise)
    return model.internally_standardised() if internally_standardised else model


def linear(
    dag: DAG,
    n: int,
    *,
    noise: Noise = Gaussian(),
    weights: UniformWeights | Mapping[Edge, float] = UniformWeights(),
    variances: Variances | Mapping[str, float] = EqualVariances(),
    internally_standardised: bool = False,
    seed: int = 0,
) -> Simulation:
    """Simulate data from a linear structural equation model.

    Parameters
    ----------
    dag
        The graph.
    n
        Number of rows.
    noise
        Distribution of the noise: `Gaussian`, `Exponential`, `Gumbel` or `Uniform`, with mean zero.
    weights
        Distribution of the edge weights (by default ±[0.5, 2]), or the weight of each edge.
    variances
        Distribution of the noise variances, `EqualVariances` (by default one) or
        `UnequalVariances`, or the variance of each node.
    internally_standardised
        Scale each variable to variance one as it is simulated, so that neither the variance nor
        the explained fraction of it increases along the order (arXiv 2406.11601).
    seed
        Random seed. The same seed gives the same data. Weights do not depend on ``n``.

    Examples
    --------
    >>> from isthmus import simulate
    >>> dag = simulate.erdos_renyi(5, 6, seed=1)
    >>> simulate.linear(dag, 100, noise=simulate.Gumbel(), seed=1)
    Simulation(n=100, nodes=5, edges=6)
    """
    model = linear_model(
        dag,
        noise=noise,
        weights=weights,
        variances=variances,
        internally_standardised=internally_standardised,
        seed=seed,
    )
    return model.sample(n, seed=seed)


def _equations(dag: DAG, weights: Mapping[Edge, float]) -> list[tuple[str, list[int], Floats]]:
    """Return (node, indices of its parents, their weights) in topological order."""
    parents = dag.parent_indices()
    equations = []
    for name in dag.topological_order():
        above = list(parents[dag.index(name)])
        w = np.array([weights[dag.nodes[p], name] for p in above], dtype=np.float64)
        equations.append((name, above, w))
    return equations


# --- Simulate nonlinear structural equation models with additive noise --------------------------


class Mechanism(ABC):
    """A distribution of random functions from the parents of a node to its mean."""

    @abstractmethod
    def apply(self, rng: np.random.Generator, parents: Floats) -> Floats:
        """Draw one function and evaluate it.

        Parameters
        ----------
        rng
            Random generator, used for the function only, independently of the rows.
        parents
            One row per parent, at least one.
        """


@final
@dataclass(frozen=True)
class MLP(Mechanism):
    """One hidden layer of sigmoids over all parents, as in the NOTEARS-MLP experiments."""

    hidden: int = 100
    weights: UniformWeights = UniformWeights()

    def __post_init__(self) -> None:
        require_integer(self, "hidden", least=1)
        require_instance(self, "weights", UniformWeights, "UniformWeights()")

    def apply(self, rng: np.random.Generator, parents: Floats) -> Floats:
        p = len(parents)
        first = self.weights.draw(rng, p * self.hidden).reshape(self.hidden, p)
        second = self.weights.draw(rng, self.hidden)
        # The tanh form of the sigmoid does not overflow.
        mean: Floats = second @ (0.5 * (1.0 + np.tanh(0.5 * (first @ parents))))
        return mean


@final
@dataclass(frozen=True)
class FourierAdditive(Mechanism):
    """A sum of one random function per parent: a linear term and a few sines and cosines.

    f(x) = β {w₀ x + Σ_k [v_k sin(kx) + w_k cos(kx)]}, where v and w have Dirichlet distributions
    with concentrations proportional to exp(-k/decay), as in the Gaussian process network
    experiments (arXiv 2306.11380).

    Attributes
    ----------
    terms
        Number of frequencies.
    decay
        0 gives linear functions, small values nearly linear ones, large values strongly nonlinear
        ones.
    weights
        Distribution of β.
    shared
        Whether the parents of a node share v and w, as in the code of those experiments. In the
        paper each parent has its own.
    """

    terms: int = 6
    decay: float = 1.0
    weights: UniformWeights = UniformWeights()
    shared: bool = False

    def __post_init__(self) -> None:
        require_integer(self, "terms", least=1)
        require_number(self, "decay", least=0)
        require_instance(self, "weights", UniformWeights, "UniformWeights()")
        require_boolean(self, "shared")

    def apply(self, rng: np.random.Generator, parents: Floats) -> Floats:
        betas = self.weights.draw(rng, len(parents))
        mean = np.zeros(parents.shape[1])
        cosines, sines = self._coefficients(rng)
        for beta, x in zip(betas, parents, strict=True):
            shape = cosines[0] * x
            for k in range(1, self.terms + 1):
                shape += sines[k] * np.sin(k * x) + cosines[k] * np.cos(k * x)
            mean += beta * shape
            if not self.shared:
                cosines, sines = self._coefficients(rng)
        return mean

    def _coefficients(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        if self.decay == 0.0:
            linear = np.zeros(self.terms + 1)
            linear[0] = 1.0
            return linear, np.zeros(self.terms + 1)
        sizes = np.exp(-np.arange(self.terms + 1) / self.decay)
        # A concentration must be positive even if the exponential underflows.
        concentration = np.maximum(sizes / sizes.sum(), 1e-12)
        return rng.dirichlet(concentration), rng.dirichlet(concentration)


def nonlinear(
    dag: DAG,
    n: int,
    *,
    mechanism: Mechanism = MLP(),
    noise: Noise = Gaussian(),
    variances: Variances | Mapping[str, float] = EqualVariances(),
    internally_standardised: bool = False,
    seed: int = 0,
) -> Simulation:
    """Simulate data from a nonlinear model ``x_j = f_j(parents) + e_j``.

    Parameters
    ----------
    dag
        The graph.
    n
        Number of rows, at least 2 if internally standardised.
    mechanism
        Distribution of the functions: `MLP` or `FourierAdditive`.
    noise
        Distribution of the noise, with mean zero.
    variances
        Distribution of the noise variances, or the variance of each node.
    internally_standardised
        Standardise each variable by its sample mean and standard deviation before it enters the
        equations of its children (arXiv 2406.11601).
    seed
        Random seed. The same seed gives the same data. Functions do not depend on ``n``.
    """
    if n < (2 if internally_standardised else 0):
        least = 2 if internally_standardised else 0
        raise DataError(f"n must be {least} or more; {n} was given.")
    nodes = dag.nodes
    if isinstance(variances, Variances):
        values = variances.draw(stream(seed, Purpose.VARIANCES), len(nodes))
        variances = dict(zip(nodes, values.tolist(), strict=True))
    rng = stream(seed, Purpose.NOISE)
    columns = np.empty((len(nodes), n))
    for j, name in enumerate(nodes):
        columns[j] = np.sqrt(variances[name]) * noise.draw(rng, n)
    above = dag.parent_indices()
    for name in dag.topological_order():
        j = dag.index(name)
        if above[j]:
            draw = stream(seed, Purpose.MECHANISM, j)
            columns[j] += mechanism.apply(draw, columns[list(above[j])])
        if internally_standardised:
            columns[j] = (columns[j] - columns[j].mean()) / columns[j].std()
    return Simulation(dag, dict(zip(nodes, columns, strict=True)))


# --- Simulate discrete data and random discrete networks ----------------------------------------

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
