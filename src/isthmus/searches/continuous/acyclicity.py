"""A smooth measure of how far a weighted graph is from acyclic, with its gradient.

It takes a square matrix of weights ``[from, to]`` and is zero exactly where the graph of the
non-zero weights has no cycle, and positive elsewhere: a sum over the closed walks of the graph with
the weights squared, in which a walk of length k counts 1 / k!. It therefore loses long cycles to
rounding: one of 20 edges of weight 0.9 counts 1e-20. `central_path.log_determinant`, in which the
walk counts 1 / k, does not, but is finite only where the spectral radius is small enough.
"""

from __future__ import annotations

import numpy as np

from isthmus.types import Floats


def exponential(weights: Floats) -> tuple[float, Floats]:
    """Return ``tr exp(W ∘ W) - d`` and its gradient (Zheng et al. 2018, arXiv 1803.01422)."""
    from scipy.linalg import expm

    power: Floats = expm(weights * weights)
    gradient: Floats = power.T * (2.0 * weights)
    return float(np.trace(power)) - len(weights), gradient
