# `isthmus.lazy` imports each name when it is first used: most tables need no engine.

from isthmus.tables.annotated import AnnotatedTable
from isthmus.tables.base import Source
from isthmus.tables.dispatch import WithFeatures, as_source
from isthmus.tables.frame import Frame, Precomputed
from isthmus.tables.interventions import Interventions
from isthmus.tables.kinds import TimeUnit
from isthmus.tables.lazy import Lazy
from isthmus.tables.missing import (
    AvailableCases,
    DropRows,
    ExpectationMaximisation,
    Missing,
    MissingAsLevel,
    StructuralEM,
)
from isthmus.tables.series import Series
from isthmus.tables.transforms import (
    FixedBins,
    MDLBins,
    NormalScores,
    QuantileBins,
    Transform,
    transformed,
)
from isthmus.tables.weighted import Weighted

__all__ = [
    "AnnotatedTable",
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
