# The public names. `isthmus.lazy` imports each when it is first used.

from isthmus import datasets as datasets
from isthmus import errors as errors
from isthmus import fitting as fitting
from isthmus import graphs as graphs
from isthmus import io as io
from isthmus import metrics as metrics
from isthmus import networks as networks
from isthmus import objectives as objectives
from isthmus import plots as plots
from isthmus import published as published
from isthmus import report as report
from isthmus import results as results
from isthmus import samplers as samplers
from isthmus import scores as scores
from isthmus import searches as searches
from isthmus import simulate as simulate
from isthmus import statistics as statistics
from isthmus import tables as tables
from isthmus import testing as testing
from isthmus.graphs import CPDAG, DAG, PAG, PDAG, Knowledge
from isthmus.metrics import shd
from isthmus.results import (
    Disclosure,
    Ensemble,
    PAGSolution,
    Posterior,
    Solution,
    Status,
    edge,
    in_markov_blanket,
    path,
)
from isthmus.samplers import ExactPosterior, OrderMCMC, PartitionMCMC, StructureMCMC
from isthmus.scores import (
    AIC,
    BIC,
    EBIC,
    GP,
    K2,
    AdditiveEBIC,
    AdditiveLeastSquares,
    BDeu,
    BGe,
    ChiSquared,
    DegenerateGaussian,
    ExactGP,
    FisherZ,
    GaussianBIC,
    GaussianEBIC,
    GPIntegral,
    IndependentNoise,
    LaggedLeastSquares,
    LeastSquares,
    LinearLikelihood,
    Logistic,
    MixedLikelihoodRatio,
    NonlinearLikelihoodRatio,
    Perceptrons,
    Poisson,
    PriorMean,
    PriorScale,
)
from isthmus.searches import (
    ASOBS,
    FCI,
    ILP,
    OBS,
    PC,
    XGES,
    AStar,
    Boss,
    BossFCI,
    Dynotears,
    HillClimb,
    KnownOrder,
    LiNGAM,
    Notears,
    NotearsAdditive,
    NotearsMLP,
    RBNets,
    ScreenedBoss,
    SubsetDP,
)
from isthmus.statistics import (
    Basis,
    Chebyshev,
    CountPlan,
    Counts,
    Expansion,
    Kind,
    Moments,
    Products,
    Schema,
)
from isthmus.tables import (
    AnnotatedTable,
    AvailableCases,
    DropRows,
    ExpectationMaximisation,
    FixedBins,
    Frame,
    Interventions,
    Lazy,
    MDLBins,
    MissingAsLevel,
    NormalScores,
    QuantileBins,
    Series,
    StructuralEM,
    TimeUnit,
    Weighted,
    WithFeatures,
)
from isthmus.verbs.bootstrap import bootstrap
from isthmus.verbs.changes import changes
from isthmus.verbs.effect import effect
from isthmus.verbs.evaluate import cross_validate, log_likelihood
from isthmus.verbs.find_targets import find_targets
from isthmus.verbs.fit import fit
from isthmus.verbs.forecast import forecast, to_frame
from isthmus.verbs.impute import impute
from isthmus.verbs.learn import learn, solve
from isthmus.verbs.sample import reweight, sample
from isthmus.verbs.score import parent_sets, score, summarise
from isthmus.verbs.validate import validate
from isthmus_joint import ADMM, DifferentialPrivacy, Federation, PrivateK2, StructureOnly, TwoParty

__all__ = [
    "ADMM",
    "AIC",
    "ASOBS",
    "BIC",
    "CPDAG",
    "DAG",
    "EBIC",
    "FCI",
    "GP",
    "ILP",
    "K2",
    "OBS",
    "PAG",
    "PC",
    "PDAG",
    "XGES",
    "AStar",
    "AdditiveEBIC",
    "AdditiveLeastSquares",
    "AnnotatedTable",
    "AvailableCases",
    "BDeu",
    "BGe",
    "Basis",
    "Boss",
    "BossFCI",
    "Chebyshev",
    "ChiSquared",
    "CountPlan",
    "Counts",
    "DegenerateGaussian",
    "DifferentialPrivacy",
    "Disclosure",
    "DropRows",
    "Dynotears",
    "Ensemble",
    "ExactGP",
    "ExactPosterior",
    "Expansion",
    "ExpectationMaximisation",
    "Federation",
    "FisherZ",
    "FixedBins",
    "Frame",
    "GPIntegral",
    "GaussianBIC",
    "GaussianEBIC",
    "HillClimb",
    "IndependentNoise",
    "Interventions",
    "Kind",
    "Knowledge",
    "KnownOrder",
    "LaggedLeastSquares",
    "Lazy",
    "LeastSquares",
    "LiNGAM",
    "LinearLikelihood",
    "Logistic",
    "MDLBins",
    "MissingAsLevel",
    "MixedLikelihoodRatio",
    "Moments",
    "NonlinearLikelihoodRatio",
    "NormalScores",
    "Notears",
    "NotearsAdditive",
    "NotearsMLP",
    "OrderMCMC",
    "PAGSolution",
    "PartitionMCMC",
    "Perceptrons",
    "Poisson",
    "Posterior",
    "PriorMean",
    "PriorScale",
    "PrivateK2",
    "Products",
    "QuantileBins",
    "RBNets",
    "Schema",
    "ScreenedBoss",
    "Series",
    "Solution",
    "Status",
    "StructuralEM",
    "StructureMCMC",
    "StructureOnly",
    "SubsetDP",
    "TimeUnit",
    "TwoParty",
    "Weighted",
    "WithFeatures",
    "bootstrap",
    "changes",
    "cross_validate",
    "datasets",
    "edge",
    "effect",
    "find_targets",
    "fit",
    "forecast",
    "impute",
    "in_markov_blanket",
    "learn",
    "log_likelihood",
    "parent_sets",
    "path",
    "reweight",
    "sample",
    "score",
    "shd",
    "solve",
    "summarise",
    "to_frame",
    "validate",
]

__version__: str
