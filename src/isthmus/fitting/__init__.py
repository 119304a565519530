"""Estimate the parameters of a network with a given graph from statistics."""

from isthmus.fitting.effects import LinearEffects, adjusted_effect
from isthmus.fitting.incomplete import fit_incomplete
from isthmus.fitting.networks import fit_gaussian, fit_gp, fit_mixed, fit_tables, refine

__all__ = [
    "LinearEffects",
    "adjusted_effect",
    "fit_gaussian",
    "fit_gp",
    "fit_incomplete",
    "fit_mixed",
    "fit_tables",
    "refine",
]
