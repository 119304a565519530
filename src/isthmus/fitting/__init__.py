"""Estimate the parameters of a network with a given graph from statistics."""

from isthmus.fitting.gp import fit_gp
from isthmus.fitting.incomplete_mixed import fit_incomplete
from isthmus.fitting.linear_effects import LinearEffects
from isthmus.fitting.networks import fit_gaussian, fit_mixed, fit_tables, refine
from isthmus.fitting.total_effect import adjusted_effect

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
