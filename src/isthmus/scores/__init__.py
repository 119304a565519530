"""Scores: how well a graph fits the data."""

from isthmus.scores.additive_least_squares import AdditiveLeastSquares
from isthmus.scores.base import Score
from isthmus.scores.bdeu import BDeu
from isthmus.scores.bge import BGe, PriorMean, PriorScale
from isthmus.scores.criteria import AIC, BIC, EBIC
from isthmus.scores.degenerate_gaussian import DegenerateGaussian
from isthmus.scores.gaussian_bic import GaussianBIC
from isthmus.scores.gaussian_ebic import GaussianEBIC
from isthmus.scores.gp import GP, ExactGP, GPIntegral
from isthmus.scores.k2 import K2
from isthmus.scores.lagged_least_squares import LaggedLeastSquares
from isthmus.scores.least_squares import LeastSquares
from isthmus.scores.linear_likelihood import LinearLikelihood
from isthmus.scores.logistic import Logistic
from isthmus.scores.perceptrons import Perceptrons
from isthmus.scores.poisson import Poisson

__all__ = [
    "AIC",
    "BIC",
    "EBIC",
    "GP",
    "K2",
    "AdditiveLeastSquares",
    "BDeu",
    "BGe",
    "DegenerateGaussian",
    "ExactGP",
    "GPIntegral",
    "GaussianBIC",
    "GaussianEBIC",
    "LaggedLeastSquares",
    "LeastSquares",
    "LinearLikelihood",
    "Logistic",
    "Perceptrons",
    "Poisson",
    "PriorMean",
    "PriorScale",
    "Score",
]
