"""Objectives: the functions of a graph that searches optimise."""

from isthmus.objectives.additive import (
    ADDITIVE_MODEL,
    LAGGED_MODEL,
    AdditiveLoss,
    QuadraticAdditiveLoss,
)
from isthmus.objectives.correlations import INDEPENDENCE_TESTS, IndependenceTest
from isthmus.objectives.local import (
    LOCAL_SCORES,
    Capabilities,
    Capability,
    LocalScore,
    Objective,
    PythonLocalScore,
)
from isthmus.objectives.smooth import (
    EDGE_WEIGHTS,
    INDEPENDENT_NOISE,
    PARAMETRIC_MODEL,
    SECOND_MOMENTS,
    LikelihoodLoss,
    MomentsLoss,
    QuadraticLoss,
    SmoothLoss,
)
from isthmus.objectives.table import PARENT_SETS, ScoreTable, list_parent_sets
from isthmus.watch import Sense

__all__ = [
    "ADDITIVE_MODEL",
    "EDGE_WEIGHTS",
    "INDEPENDENCE_TESTS",
    "INDEPENDENT_NOISE",
    "LAGGED_MODEL",
    "LOCAL_SCORES",
    "PARAMETRIC_MODEL",
    "PARENT_SETS",
    "SECOND_MOMENTS",
    "AdditiveLoss",
    "Capabilities",
    "Capability",
    "IndependenceTest",
    "LikelihoodLoss",
    "LocalScore",
    "MomentsLoss",
    "Objective",
    "PythonLocalScore",
    "QuadraticAdditiveLoss",
    "QuadraticLoss",
    "ScoreTable",
    "Sense",
    "SmoothLoss",
    "list_parent_sets",
]
