"""Objectives: the functions of a graph that searches optimise."""

from isthmus.objectives.additive import AdditiveLoss, QuadraticAdditiveLoss
from isthmus.objectives.base import (
    ADDITIVE_MODEL,
    EDGE_WEIGHTS,
    FAMILIES,
    LAGGED_MODEL,
    LOCAL_SCORES,
    PARAMETRIC_MODEL,
    PARENT_SETS,
    SECOND_MOMENTS,
    Capabilities,
    Capability,
    Objective,
    Sense,
)
from isthmus.objectives.family_table import FamilyTable
from isthmus.objectives.generalised import Bernoulli, Family, GeneralisedLinearLoss, PoissonFamily
from isthmus.objectives.local import CompiledLocalScore, LocalScore, PythonLocalScore
from isthmus.objectives.parametric import ParametricLoss
from isthmus.objectives.parent_sets import TableBuilder, list_parent_sets
from isthmus.objectives.penalised import PenalisedScore
from isthmus.objectives.score_bound import ScoreBound
from isthmus.objectives.smooth import LikelihoodLoss, MomentsLoss, QuadraticLoss, SmoothLoss
from isthmus.objectives.table import ScoreTable

__all__ = [
    "ADDITIVE_MODEL",
    "EDGE_WEIGHTS",
    "FAMILIES",
    "LAGGED_MODEL",
    "LOCAL_SCORES",
    "PARAMETRIC_MODEL",
    "PARENT_SETS",
    "SECOND_MOMENTS",
    "AdditiveLoss",
    "Bernoulli",
    "Capabilities",
    "Capability",
    "CompiledLocalScore",
    "Family",
    "FamilyTable",
    "GeneralisedLinearLoss",
    "LikelihoodLoss",
    "LocalScore",
    "MomentsLoss",
    "Objective",
    "ParametricLoss",
    "PenalisedScore",
    "PoissonFamily",
    "PythonLocalScore",
    "QuadraticAdditiveLoss",
    "QuadraticLoss",
    "ScoreBound",
    "ScoreTable",
    "Sense",
    "SmoothLoss",
    "TableBuilder",
    "list_parent_sets",
]
