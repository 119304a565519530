"""Compiled kernels of the exact posterior over graphs: probabilities, and independent draws."""

from __future__ import annotations

from isthmus.kernels import _native

ExactPosterior = _native.ExactPosterior
ExactSampler = _native.ExactSampler

MAX_NODES = 25
"""Maximum number of nodes."""

__all__ = ["MAX_NODES", "ExactPosterior", "ExactSampler"]
