"""The second waist: what a search may know of the data."""

from isthmus.objectives.local import CompiledLocalScore, LocalScore, PythonLocalScore
from isthmus.objectives.parent_sets import TableBuilder, list_parent_sets
from isthmus.objectives.smooth import QuadraticLoss, SmoothLoss
from isthmus.objectives.table import ScoreTable

__all__ = [
    "CompiledLocalScore",
    "LocalScore",
    "PythonLocalScore",
    "QuadraticLoss",
    "ScoreTable",
    "SmoothLoss",
    "TableBuilder",
    "list_parent_sets",
]
