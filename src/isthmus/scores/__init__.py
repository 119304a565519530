"""Scores: how well a graph fits the data."""

from isthmus.scores.additive import AdditiveEBIC, AdditiveLeastSquares
from isthmus.scores.base import Score
from isthmus.scores.criterion import Criterion
from isthmus.scores.discrete import AIC, BIC, EBIC, K2, BDeu
from isthmus.scores.gaussian import (
    BGe,
    DegenerateGaussian,
    GaussianBIC,
    GaussianEBIC,
    PriorMean,
    PriorScale,
)
from isthmus.scores.gp import GP, ExactGP, GPIntegral
from isthmus.scores.losses import (
    LaggedLeastSquares,
    LeastSquares,
    LinearLikelihood,
    Logistic,
    Perceptrons,
    Poisson,
)
from isthmus.scores.noise_tests import IndependentNoise
from isthmus.scores.tests import ChiSquared, FisherZ, MixedLikelihoodRatio, NonlinearLikelihoodRatio

__all__ = [
    "AIC",
    "BIC",
    "EBIC",
    "GP",
    "K2",
    "AdditiveEBIC",
    "AdditiveLeastSquares",
    "BDeu",
    "BGe",
    "ChiSquared",
    "Criterion",
    "DegenerateGaussian",
    "ExactGP",
    "FisherZ",
    "GPIntegral",
    "GaussianBIC",
    "GaussianEBIC",
    "IndependentNoise",
    "LaggedLeastSquares",
    "LeastSquares",
    "LinearLikelihood",
    "Logistic",
    "MixedLikelihoodRatio",
    "NonlinearLikelihoodRatio",
    "Perceptrons",
    "Poisson",
    "PriorMean",
    "PriorScale",
    "Score",
]
