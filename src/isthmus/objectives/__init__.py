"""The second waist: what a search may know of the data."""

from isthmus.objectives.additive import AdditiveLoss, QuadraticAdditiveLoss
from isthmus.objectives.ceiling import Ceiling
from isthmus.objectives.generalised import Bernoulli, Counting, Family, GeneralisedLinearLoss
from isthmus.objectives.local import CompiledLocalScore, LocalScore, PythonLocalScore
from isthmus.objectives.parametric import ParametricLoss
from isthmus.objectives.parent_sets import TableBuilder, list_parent_sets
from isthmus.objectives.smooth import LikelihoodLoss, MomentsLoss, QuadraticLoss, SmoothLoss
from isthmus.objectives.table import ScoreTable

__all__ = [
    "AdditiveLoss",
    "Bernoulli",
    "Ceiling",
    "CompiledLocalScore",
    "Counting",
    "Family",
    "GeneralisedLinearLoss",
    "LikelihoodLoss",
    "LocalScore",
    "MomentsLoss",
    "ParametricLoss",
    "PythonLocalScore",
    "QuadraticAdditiveLoss",
    "QuadraticLoss",
    "ScoreTable",
    "SmoothLoss",
    "TableBuilder",
    "list_parent_sets",
]
