# `isthmus.lazy` imports each name when it is first used: most tables need no engine.

from isthmus.sources.base import Source
from isthmus.sources.dispatch import as_source
from isthmus.sources.tables.frame import Frame
from isthmus.sources.tables.interventions import Interventions
from isthmus.sources.tables.kinds import TimeUnit
from isthmus.sources.tables.lazy import Lazy
from isthmus.sources.tables.missing import (
    AvailableCases,
    DropRows,
    ExpectationMaximisation,
    Missing,
    MissingAsLevel,
    StructuralEM,
)
from isthmus.sources.tables.precomputed import Precomputed
from isthmus.sources.tables.series import Series
from isthmus.sources.tables.transforms import (
    FixedBins,
    MDLBins,
    NormalScores,
    QuantileBins,
    Transform,
    transformed,
)
from isthmus.sources.tables.weighted import Weighted
from isthmus.sources.tables.with_features import WithFeatures

__all__ = [
    "AvailableCases",
    "DropRows",
    "ExpectationMaximisation",
    "FixedBins",
    "Frame",
    "Interventions",
    "Lazy",
    "MDLBins",
    "Missing",
    "MissingAsLevel",
    "NormalScores",
    "Precomputed",
    "QuantileBins",
    "Series",
    "Source",
    "StructuralEM",
    "TimeUnit",
    "Transform",
    "Weighted",
    "WithFeatures",
    "as_source",
    "transformed",
]
