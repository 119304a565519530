"""Results: solutions, how they were found, and which data were released for them."""

from isthmus.results.details import (
    ChainDetails,
    ExactDetails,
    ModelDetails,
    OrderDetails,
    RBNetsDetails,
    SamplerDetails,
    SearchDetails,
    WeightDetails,
)
from isthmus.results.disclosure import Disclosure, Release
from isthmus.results.dynamic import DynamicEdge, DynamicNetwork
from isthmus.results.solution import Evidence, Refit, Solution
from isthmus.results.status import Ending, Status

__all__ = [
    "ChainDetails",
    "Disclosure",
    "DynamicEdge",
    "DynamicNetwork",
    "Ending",
    "Evidence",
    "ExactDetails",
    "ModelDetails",
    "OrderDetails",
    "RBNetsDetails",
    "Refit",
    "Release",
    "SamplerDetails",
    "SearchDetails",
    "Solution",
    "Status",
    "WeightDetails",
]
