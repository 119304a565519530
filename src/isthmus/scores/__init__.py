"""Scores: how well a graph fits the data."""

from isthmus.scores.additive_ebic import AdditiveEBIC
from isthmus.scores.additive_least_squares import AdditiveLeastSquares
from isthmus.scores.base import Score
from isthmus.scores.bge import BGe, PriorMean, PriorScale
from isthmus.scores.criteria import AIC, BIC, EBIC
from isthmus.scores.criterion import Criterion
from isthmus.scores.degenerate_gaussian import DegenerateGaussian
from isthmus.scores.dirichlet import K2, BDeu
from isthmus.scores.gaussian_criteria import GaussianBIC, GaussianEBIC
from isthmus.scores.generalised_linear import Logistic, Poisson
from isthmus.scores.gp import GP, ExactGP, GPIntegral
from isthmus.scores.independence.chi_squared import ChiSquared
from isthmus.scores.independence.fisher_z import FisherZ
from isthmus.scores.independence.independent_noise import IndependentNoise
from isthmus.scores.independence.mixed_likelihood_ratio import MixedLikelihoodRatio
from isthmus.scores.independence.nonlinear_likelihood_ratio import NonlinearLikelihoodRatio
from isthmus.scores.linear_losses import LaggedLeastSquares, LeastSquares, LinearLikelihood
from isthmus.scores.perceptrons import Perceptrons

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
