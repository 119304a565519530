"""Laplace approximation of a marginal likelihood, at the best of several modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from isthmus.gaussian_processes.density import LOG_2PI, Density, Derivatives
from isthmus.types import Floats

_STARTS = (0.35, 1.2, 4.0)
"""Length scales from which the optimisation starts, for all parents alike."""
_TRIALS = (0.25, 0.6, 1.5, 4.0, 9.0)
"""Length scales that are tried for one parent at a time, at the best mode so far."""
_WITHIN = 3.0
"""A trial that is more than this many nats below the best mode is not followed."""
_APART = 0.15
"""Modes that are closer than this in all parameters are the same."""
_NEAR = 0.05
"""A Newton step that promises less than this many nats is close to its mode."""
_STEPS = 60
_LONGEST = 1.5
_LOWEST, _HIGHEST = -11.5, 7.0
"""Bounds of all parameters: the priors leave no mass beyond."""


class Mode(NamedTuple):
    """A local maximum of the log density, with the negative Hessian there."""

    value: float
    point: Floats
    curvature: Floats

    @property
    def log_integral(self) -> float:
        """Laplace approximation of the integral around the mode."""
        _, log_determinant = np.linalg.slogdet(self.curvature)
        return self.value + 0.5 * (len(self.point) * LOG_2PI - float(log_determinant))


def find_modes(density: Density) -> list[Mode]:
    """Return the modes that were found, the highest first."""
    d = density.design
    modes: list[Mode] = []
    for scale in _STARTS if d.parents else (1.0,):
        start = np.zeros(density.size)
        start[: d.parents] = np.log(scale)
        start[-1] = np.log(0.6)
        _insert(modes, climb(density, start, modes))
    if d.parents:
        _cross(density, modes)
    return modes


def _cross(density: Density, modes: list[Mode]) -> None:
    """Change one length scale of the best mode at a time, until no change leads to a better one."""
    while True:
        best = modes[0]
        for j in range(density.design.parents):
            trials = []
            for scale in _TRIALS:
                trial = best.point.copy()
                trial[j] = np.log(scale)
                if abs(trial[j] - best.point[j]) > 0.4:
                    trials.append((density.value(trial), scale, trial))
            below = [t for t in trials if t[2][j] < best.point[j]]
            above = [t for t in trials if t[2][j] > best.point[j]]
            for side in (below, above):
                value, _, trial = max(side, default=(-np.inf, 0.0, best.point))
                if value > best.value - _WITHIN:
                    _insert(modes, climb(density, trial, modes))
        if modes[0].value < best.value + 1e-3:
            return


def _insert(modes: list[Mode], mode: Mode | None) -> None:
    """Add a mode unless it is known, and keep the highest first."""
    if mode is None:
        return
    for i, other in enumerate(modes):
        if np.abs(other.point - mode.point).max() < _APART:
            if mode.value > other.value:
                modes[i] = mode
            break
    else:
        modes.append(mode)
    modes.sort(key=lambda m: -m.value)


def climb(density: Density, start: Floats, known: Sequence[Mode] = ()) -> Mode | None:
    """Maximise by Newton steps, with the signs of the curvature made negative.

    Returns None as soon as the way leads to a known mode.
    """
    point, here = start, density.derivatives(start)
    for _ in range(_STEPS):
        step, gain = _newton(here)
        if gain < 1e-9:
            break
        if gain < _NEAR and any(_leads_to(point + step, here.value, mode) for mode in known):
            return None
        size = np.abs(step).max()
        if size > _LONGEST:
            step *= _LONGEST / size
        moved = _search(density, point, here, step)
        if moved is None:
            break
        point, here = moved
    return Mode(here.value, point, _curvature(here))


def _leads_to(next_point: Floats, value: float, mode: Mode) -> bool:
    return value < mode.value and bool(np.abs(next_point - mode.point).max() < _APART)


def _newton(here: Derivatives) -> tuple[Floats, float]:
    """Return an ascent direction, and the gain that the quadratic model promises."""
    values, vectors = np.linalg.eigh(-here.hessian)
    sizes = np.maximum(np.abs(values), 1e-3)
    along = vectors.T @ here.gradient
    return vectors @ (along / sizes), 0.5 * float((along**2 / sizes).sum())


def _search(
    density: Density, point: Floats, here: Derivatives, step: Floats
) -> tuple[Floats, Derivatives] | None:
    slope = float(here.gradient @ step)
    for halving in range(12):
        share = 0.5**halving
        trial = np.clip(point + share * step, _LOWEST, _HIGHEST)
        there = density.derivatives(trial)
        if there.value > here.value + 1e-4 * share * slope:
            return trial, there
    return None


def _curvature(here: Derivatives) -> Floats:
    """Return the negative Hessian, with flat directions given the curvature of the prior's tail."""
    values, vectors = np.linalg.eigh(-here.hessian)
    curvature: Floats = (vectors * np.maximum(values, 1e-2)) @ vectors.T
    return curvature
