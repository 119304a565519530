"""Estimate the parameters of a network with a given graph from statistics."""

from isthmus.fitting.gp import fit_gp
from isthmus.fitting.incomplete_mixed import fit_incomplete
from isthmus.fitting.linear_effects import LinearEffects
from isthmus.fitting.networks import add_curves, fit_gaussian, fit_mixed, fit_tables
from isthmus.fitting.total_effect import adjusted_effect

__all__ = [
    "LinearEffects",
    "add_curves",
    "adjusted_effect",
    "fit_gaussian",
    "fit_gp",
    "fit_incomplete",
    "fit_mixed",
    "fit_tables",
]
