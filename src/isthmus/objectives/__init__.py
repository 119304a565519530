"""The second waist: what a search may know of the data."""

from isthmus.objectives.local import CompiledLocalScore, LocalScore, PythonLocalScore
from isthmus.objectives.smooth import QuadraticLoss, SmoothLoss

__all__ = [
    "CompiledLocalScore",
    "LocalScore",
    "PythonLocalScore",
    "QuadraticLoss",
    "SmoothLoss",
]
