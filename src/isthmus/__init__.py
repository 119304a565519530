"""Learn Bayesian networks from data that cannot be brought together."""

from isthmus.graphs import CPDAG, DAG, PDAG, Knowledge
from isthmus.learn import learn, score, summarise
from isthmus.metrics import shd
from isthmus.results import Disclosure, Solution, Status
from isthmus.scores import (
    AIC,
    BIC,
    K2,
    BDeu,
    BGe,
    DegenerateGaussian,
    GaussianBIC,
    GaussianEBIC,
    LeastSquares,
    PriorMean,
)
from isthmus.searches import Boss, HillClimb
from isthmus.sources import Frame
from isthmus.statistics import Counts, Kind, Moments, Plan

__all__ = [
    "AIC",
    "BIC",
    "CPDAG",
    "DAG",
    "K2",
    "PDAG",
    "BDeu",
    "BGe",
    "Boss",
    "Counts",
    "DegenerateGaussian",
    "Disclosure",
    "Frame",
    "GaussianBIC",
    "GaussianEBIC",
    "HillClimb",
    "Kind",
    "Knowledge",
    "LeastSquares",
    "Moments",
    "Plan",
    "PriorMean",
    "Solution",
    "Status",
    "learn",
    "score",
    "shd",
    "summarise",
]
