"""Laplace approximation of a marginal likelihood, at the best of several modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from isthmus.gaussian_processes.density import LOG_2PI, Density, Derivatives
from isthmus.types import Floats, Work, completed

_SCALES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)
"""Length scales that are looked at, first for all parents alike, then for one at a time at the best
mode so far. The prior leaves no mass below; see ``tests/repro/test_w16_gp_missed_mode.py``."""
_NOISE = 0.4
"""Where the noise starts at each of them."""
_MOST_CLIMBS = 3
"""Number of climbs from length scales that are the same for all parents."""
_STEP = 0.4
"""Trials are farther than this from the mode, in the logarithm of the length scale."""
_WITHIN = 3.0
"""A trial that is more than this many nats below the best mode is not followed."""
_APART = 0.15
"""Modes that are closer than this in all parameters are the same."""
_NEAR = 0.5
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
    return completed(mode_work(density))


def mode_work(density: Density) -> Work[list[Mode]]:
    """Find modes, in pieces of one evaluation of the density; the highest comes first."""
    modes: list[Mode] = []
    for start in (yield from _screened(density)):
        _insert(modes, (yield from climb(density, start, modes)))
    if density.design.parents:
        yield from _cross(density, modes)
    for i, mode in enumerate(modes):
        modes[i] = _polished(density, mode)
        yield
    modes.sort(key=lambda m: -m.value)
    return modes


def _screened(density: Density) -> Work[list[Floats]]:
    """Return the points to climb from: the hills along one length scale for all parents."""
    start = np.zeros(density.size)
    start[-1] = np.log(_NOISE)
    p = density.design.parents
    if p == 0:
        return [start]
    values, points = [-np.inf], [start]
    for scale in reversed(_SCALES):
        start = points[-1].copy()  # the best noise of the neighbour is a good first guess
        start[:p] = np.log(scale)
        value, point = yield from density.with_best_noise(start)
        values.append(value)
        points.append(point)
    values.append(-np.inf)
    hills = [
        i for i in range(1, len(points)) if values[i] > values[i - 1] and values[i] >= values[i + 1]
    ]
    hills.sort(key=lambda i: -values[i])
    return [points[i] for i in hills[:_MOST_CLIMBS]] or [start]


def _cross(density: Density, modes: list[Mode]) -> Work[None]:
    """Change one length scale of the best mode at a time, until no change leads to a better one."""
    while True:
        best = modes[0]
        for j in range(density.design.parents):
            for side in _sides(best.point[j]):
                trial = yield from _second_hill(density, best, j, side)
                if trial is not None:
                    _insert(modes, (yield from climb(density, trial, modes)))
        if modes[0].value < best.value + 1e-3:
            return


def _sides(here: float) -> tuple[list[float], list[float]]:
    """Length scales to try on both sides of one, the nearest first, as logarithms."""
    trials = np.log(_SCALES)
    return (
        [t for t in trials[::-1].tolist() if t < here - _STEP],
        [t for t in trials.tolist() if t > here + _STEP],
    )


def _second_hill(density: Density, best: Mode, j: int, scales: list[float]) -> Work[Floats | None]:
    """Return the highest point behind a valley on the way from a mode, if it is high enough."""
    nearer, highest, found, trial = best.value, best.value - _WITHIN, None, best.point.copy()
    for scale in scales:
        trial[j] = scale
        value, trial = yield from density.with_best_noise(trial)
        if value > max(nearer, highest):
            highest, found = value, trial.copy()
        nearer = value
    return found


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


def climb(density: Density, start: Floats, known: Sequence[Mode] = ()) -> Work[Mode | None]:
    """Maximise by Newton steps, with the signs of the curvature made negative.

    Returns None as soon as the way leads to a known mode.
    """
    point, here = start, density.derivatives(start)
    yield
    for _ in range(_STEPS):
        step, gain = _newton(here)
        if gain < 1e-9:
            break
        if gain < _NEAR and any(_leads_to(point + step, here.value, mode) for mode in known):
            return None
        size = np.abs(step).max()
        if size > _LONGEST:
            step *= _LONGEST / size
        moved = yield from _search(density, point, here, step)
        if moved is None:
            break
        point, here = moved
    return Mode(here.value, point, _curvature(here))


def _polished(density: Density, mode: Mode) -> Mode:
    """Take one more Newton step.

    The value at a mode has no slope, but its curvature has: without this step, the last bits of
    the data, such as the order of summation, would show in the eighth digit of an integral.
    """
    here = density.derivatives(mode.point)
    step, gain = _newton(here)
    if gain > _NEAR:  # the climb ended on a flat slope
        return mode
    point = np.clip(mode.point + step, _LOWEST, _HIGHEST)
    there = density.derivatives(point)
    if there.value < here.value - 1e-8:
        return mode
    return Mode(there.value, point, _curvature(there))


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
) -> Work[tuple[Floats, Derivatives] | None]:
    slope = float(here.gradient @ step)
    for halving in range(12):
        share = 0.5**halving
        trial = np.clip(point + share * step, _LOWEST, _HIGHEST)
        there = density.derivatives(trial)
        yield
        if there.value > here.value + 1e-4 * share * slope:
            return trial, there
    return None


def _curvature(here: Derivatives) -> Floats:
    """Return the negative Hessian, with flat directions given the curvature of the prior's tail."""
    values, vectors = np.linalg.eigh(-here.hessian)
    curvature: Floats = (vectors * np.maximum(values, 1e-2)) @ vectors.T
    return curvature
