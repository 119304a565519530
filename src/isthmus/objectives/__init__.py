"""Objectives: the functions of a graph that searches optimise."""

from isthmus.objectives.additive import (
    ADDITIVE_MODEL,
    LAGGED_MODEL,
    AdditiveLoss,
    QuadraticAdditiveLoss,
)
from isthmus.objectives.base import Capabilities, Capability, Objective, Sense
from isthmus.objectives.correlations import (
    CORRELATIONS,
    ColumnCorrelations,
    Correlations,
    CorrelationScore,
    LinearGraph,
    MatrixCorrelations,
    Pairs,
)
from isthmus.objectives.curved import CURVES, CurvedScore
from isthmus.objectives.generalised import Bernoulli, Family, GeneralisedLinearLoss, PoissonFamily
from isthmus.objectives.independence import INDEPENDENCE_TESTS, IndependenceTest
from isthmus.objectives.local import (
    LOCAL_SCORES,
    UNFINISHED,
    FamilyCost,
    LocalScore,
    PenalisedScore,
    PythonLocalScore,
)
from isthmus.objectives.noise import INDEPENDENT_NOISE, NoiseFit, NoiseTest
from isthmus.objectives.parametric import PARAMETRIC_MODEL, ParametricLoss
from isthmus.objectives.parent_sets import TableBuilder, list_parent_sets
from isthmus.objectives.score_bound import BoundWork, ScoreBound
from isthmus.objectives.smooth import (
    EDGE_WEIGHTS,
    SECOND_MOMENTS,
    LikelihoodLoss,
    MomentsLoss,
    QuadraticLoss,
    SmoothLoss,
)
from isthmus.objectives.table import PARENT_SETS, ScoreTable

__all__ = [
    "ADDITIVE_MODEL",
    "CORRELATIONS",
    "CURVES",
    "EDGE_WEIGHTS",
    "INDEPENDENCE_TESTS",
    "INDEPENDENT_NOISE",
    "LAGGED_MODEL",
    "LOCAL_SCORES",
    "PARAMETRIC_MODEL",
    "PARENT_SETS",
    "SECOND_MOMENTS",
    "UNFINISHED",
    "AdditiveLoss",
    "Bernoulli",
    "BoundWork",
    "Capabilities",
    "Capability",
    "ColumnCorrelations",
    "CorrelationScore",
    "Correlations",
    "CurvedScore",
    "Family",
    "FamilyCost",
    "GeneralisedLinearLoss",
    "IndependenceTest",
    "LikelihoodLoss",
    "LinearGraph",
    "LocalScore",
    "MatrixCorrelations",
    "MomentsLoss",
    "NoiseFit",
    "NoiseTest",
    "Objective",
    "Pairs",
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
