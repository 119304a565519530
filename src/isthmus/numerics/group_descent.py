"""Group lasso with a quadratic loss by block coordinate descent, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isthmus.numerics.jit import kernel

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@kernel
def descend(
    features: Floats,
    cross: Floats,
    starts: Integers,
    steeps: Floats,
    penalties: Floats,
    causes: Integers,
    c: Floats,
    tolerance: float,
    limit: int,
) -> int:
    """Minimise ``c S c / 2 - b c + Σ penalty |c of a group|`` over the groups ``causes``.

    Parameters
    ----------
    features, cross
        S and b.
    starts
        Where each group starts, and the end of the last.
    steeps
        Largest eigenvalue of each group's block of S.
    penalties
        Of each group.
    causes
        Groups that may move; the others keep their coefficients.
    c
        Coefficients, changed in place.
    tolerance
        Largest change of a gradient in the last sweep.
    limit
        Number of sweeps.

    Returns
    -------
    int
        Number of sweeps done.
    """
    p = len(c)
    g = np.empty(p)
    delta = np.empty(p)
    for i in range(p):
        g[i] = -cross[i]
    for j in range(p):
        if c[j] != 0.0:
            for i in range(p):
                g[i] += features[j, i] * c[j]
    everything = True
    for sweep in range(limit):
        worst = 0.0
        for a in range(len(causes)):
            k = causes[a]
            start, stop = starts[k], starts[k + 1]
            if start == stop or steeps[k] <= 0.0:
                continue
            if not everything:
                idle = True
                for i in range(start, stop):
                    if c[i] != 0.0:
                        idle = False
                if idle:
                    continue
            norm = 0.0
            for i in range(start, stop):
                delta[i] = c[i] - g[i] / steeps[k]
                norm += delta[i] * delta[i]
            norm = np.sqrt(norm)
            shrink = 0.0
            if norm * steeps[k] > penalties[k]:
                shrink = 1.0 - penalties[k] / (steeps[k] * norm)
            for i in range(start, stop):
                delta[i] = delta[i] * shrink - c[i]
                worst = max(worst, steeps[k] * abs(delta[i]))
            for j in range(start, stop):
                if delta[j] != 0.0:
                    c[j] += delta[j]
                    step = delta[j]
                    for i in range(p):
                        g[i] += features[j, i] * step
        if worst <= tolerance:
            if everything:
                return sweep + 1
            everything = True
        else:
            # Groups at zero are looked at again once the others have settled.
            everything = False
    return limit
