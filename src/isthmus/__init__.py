"""Learn Bayesian networks from data that cannot be brought together."""

from isthmus.graphs import CPDAG, DAG, PDAG, Knowledge
from isthmus.learn import learn, score, summarise
from isthmus.metrics import shd
from isthmus.results import Disclosure, Solution, Status
from isthmus.scores import (
    AIC,
    BIC,
    K2,
    AdditiveLeastSquares,
    BDeu,
    BGe,
    DegenerateGaussian,
    GaussianBIC,
    GaussianEBIC,
    LaggedLeastSquares,
    LeastSquares,
    LinearLikelihood,
    Logistic,
    Perceptrons,
    Poisson,
    PriorMean,
)
from isthmus.searches import XGES, Boss, Dynotears, HillClimb, Notears, NotearsAdditive, NotearsMLP
from isthmus.sources import Expanded, Federation, Frame, Lazy, Series
from isthmus.statistics import Chebyshev, Counts, Kind, Moments, Plan

__all__ = [
    "AIC",
    "BIC",
    "CPDAG",
    "DAG",
    "K2",
    "PDAG",
    "XGES",
    "AdditiveLeastSquares",
    "BDeu",
    "BGe",
    "Boss",
    "Chebyshev",
    "Counts",
    "DegenerateGaussian",
    "Disclosure",
    "Dynotears",
    "Expanded",
    "Federation",
    "Frame",
    "GaussianBIC",
    "GaussianEBIC",
    "HillClimb",
    "Kind",
    "Knowledge",
    "LaggedLeastSquares",
    "Lazy",
    "LeastSquares",
    "LinearLikelihood",
    "Logistic",
    "Moments",
    "Notears",
    "NotearsAdditive",
    "NotearsMLP",
    "Perceptrons",
    "Plan",
    "Poisson",
    "PriorMean",
    "Series",
    "Solution",
    "Status",
    "learn",
    "score",
    "shd",
    "summarise",
]
