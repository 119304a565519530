# `isthmus.lazy` imports each name when it is first used, so that a first `learn` is quick.

from isthmus.graphs.identification import Identification
from isthmus.results.chains import ChainAgreement, EdgeDiagnostics, WeightDiagnostics
from isthmus.results.changes import Changes, MechanismChange
from isthmus.results.details import (
    BossDetails,
    ChainDetails,
    CrossValidation,
    ExactDetails,
    ExactPosteriorDetails,
    IndependenceDetails,
    ModelDetails,
    NoiseDetails,
    OrderDetails,
    RBNetsDetails,
    SamplerDetails,
    ScreeningDetails,
    SearchDetails,
    StructuralEMDetails,
    WeightDetails,
)
from isthmus.results.directions import Directions
from isthmus.results.dynamic import DynamicEdge, DynamicNetwork, Forecast
from isthmus.results.effects import EffectComparison, EffectEstimate, PossibleEffect, ZeroEffect
from isthmus.results.ensemble import Ensemble
from isthmus.results.features import Feature, NodeMatrix, edge, in_markov_blanket, path
from isthmus.results.pag_solution import PAGSolution
from isthmus.results.posterior import EffectModel, Posterior
from isthmus.results.reading import (
    ColumnReading,
    Disclosure,
    Provenance,
    ReadAs,
    Reading,
    Refit,
    Release,
)
from isthmus.results.solution import Solution, StatisticsKept
from isthmus.results.targets import FoundTargets, TargetTest
from isthmus.results.validation import EdgeSupport, ImpliedIndependence, Shuffled, Validation
from isthmus.watch import Ending, Status

__all__ = [
    "BossDetails",
    "ChainAgreement",
    "ChainDetails",
    "Changes",
    "ColumnReading",
    "CrossValidation",
    "Directions",
    "Disclosure",
    "DynamicEdge",
    "DynamicNetwork",
    "EdgeDiagnostics",
    "EdgeSupport",
    "EffectComparison",
    "EffectEstimate",
    "EffectModel",
    "Ending",
    "Ensemble",
    "ExactDetails",
    "ExactPosteriorDetails",
    "Feature",
    "Forecast",
    "FoundTargets",
    "Identification",
    "ImpliedIndependence",
    "IndependenceDetails",
    "MechanismChange",
    "ModelDetails",
    "NodeMatrix",
    "NoiseDetails",
    "OrderDetails",
    "PAGSolution",
    "PossibleEffect",
    "Posterior",
    "Provenance",
    "RBNetsDetails",
    "ReadAs",
    "Reading",
    "Refit",
    "Release",
    "SamplerDetails",
    "ScreeningDetails",
    "SearchDetails",
    "Shuffled",
    "Solution",
    "StatisticsKept",
    "Status",
    "StructuralEMDetails",
    "TargetTest",
    "Validation",
    "WeightDetails",
    "WeightDiagnostics",
    "ZeroEffect",
    "edge",
    "in_markov_blanket",
    "path",
]
