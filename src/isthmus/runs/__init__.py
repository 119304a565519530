"""Long computations that are driven step by step: searches, and samplers."""

from isthmus.runs.base import Progress, Run
from isthmus.runs.driver import drive

__all__ = ["Progress", "Run", "drive"]
