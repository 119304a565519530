"""Random graphs, simulated data, and measures of sortability."""

from isthmus.simulate.baselines import SortBy, sort_and_regress
from isthmus.simulate.discrete import discrete, discrete_network
from isthmus.simulate.linear import LinearModel, linear, linear_model
from isthmus.simulate.noise import (
    EqualVariances,
    Exponential,
    Gaussian,
    Gumbel,
    Noise,
    UnequalVariances,
    Uniform,
    UniformWeights,
    Variances,
)
from isthmus.simulate.nonlinear import MLP, FourierAdditive, Mechanism, nonlinear
from isthmus.simulate.random_graphs import Hubs, erdos_renyi, scale_free
from isthmus.simulate.result import Simulation
from isthmus.simulate.series import (
    AutoregressiveModel,
    LaggedEdge,
    SeriesSimulation,
    autoregressive,
    autoregressive_model,
    lagged_graph,
)
from isthmus.simulate.sortability import order_alignment, r2_sortability, varsortability

__all__ = [
    "MLP",
    "AutoregressiveModel",
    "EqualVariances",
    "Exponential",
    "FourierAdditive",
    "Gaussian",
    "Gumbel",
    "Hubs",
    "LaggedEdge",
    "LinearModel",
    "Mechanism",
    "Noise",
    "SeriesSimulation",
    "Simulation",
    "SortBy",
    "UnequalVariances",
    "Uniform",
    "UniformWeights",
    "Variances",
    "autoregressive",
    "autoregressive_model",
    "discrete",
    "discrete_network",
    "erdos_renyi",
    "lagged_graph",
    "linear",
    "linear_model",
    "nonlinear",
    "order_alignment",
    "r2_sortability",
    "scale_free",
    "sort_and_regress",
    "varsortability",
]
