"""Log density of a child and its hyperparameters, with closed-form derivatives.

The hyperparameters are unconstrained: the logarithms of the length scales, of the weights of the
kernel, and of σ, in this order. The priors are inverse-gamma: IG(2, 2) on each length scale,
IG(1, 1) on σ (a standard deviation) and on each weight, as densities of the logarithms, that is
with the Jacobian.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from isthmus.arrays import Floats, Work, completed

# --- The design of one regression ----------------------------------------------------------------
#
# The data of one regression of a Gaussian-process network, in the form that its density needs.
#
# The model of a standardised child y given p standardised parents is
#
#     y = μ + f(x) + ε,   f ~ GP(0, k),   μ ~ N(0, 1),   ε ~ N(0, σ²),
#
# with the additive kernel k = Σ_j k_j, where k_j is squared-exponential with unit amplitude and
# the length scale θ_j, or with the kernel τ₁ Σ_j k_j + τ₂ Σ_{i<j} k_i k_j, which adds all
# products of two (Giudice, Kuipers and Moffa 2023). Integrating over μ and f gives a normal
# density with the covariance σ²I + 11ᵀ + K. Only the distances between inputs enter K, so a
# design holds them.
#
# Both sources of data give the same form. From rows, the inputs are the rows. From moments, the
# kernel is interpolated at Chebyshev nodes, and all rows are rotated into the space that the
# basis functions span: r coordinates replace n rows, and what is orthogonal to that space is
# white noise.

FLOOR = 1e-10
"""Variance that is added to σ², so that a column and its copy have a finite density.

It is the square of a hundred-thousandth of the standard deviation of the child."""
_RANK = 1e-13
"""Directions with a smaller share of the largest eigenvalue of the Gram matrix are left out."""


@final
@dataclass(frozen=True, eq=False)
class Design:
    """One regression: r coordinates of the child, and the kernel of each parent.

    Attributes
    ----------
    target
        The child, shape (r,).
    constant
        The constant column in the same coordinates.
    squares
        For each parent, the squared distances between its inputs, shape (m, m).
    maps
        For each parent, the map of shape (r, m) from its inputs to the coordinates; None for the
        identity.
    rest, rest_squares
        Number of coordinates that hold nothing but noise, and the sum of squares of the child
        over them.
    interactions
        Whether the kernel has products of two parents.
    """

    target: Floats
    constant: Floats
    squares: tuple[Floats, ...]
    maps: tuple[Floats | None, ...]
    rest: float = 0.0
    rest_squares: float = 0.0
    interactions: bool = False

    @property
    def parents(self) -> int:
        """Number of parents."""
        return len(self.squares)

    @property
    def weights(self) -> int:
        """Number of weights of the kernel: τ₁ and τ₂."""
        return min(self.parents, 2) if self.interactions else 0

    @property
    def size(self) -> int:
        """Number of hyperparameters: length scales, weights of the kernel, and σ."""
        return self.parents + self.weights + 1

    @cached_property
    def outer(self) -> Floats:
        """Covariance of the coordinates that is due to μ."""
        return np.outer(self.constant, self.constant)


def design_from_rows(target: Floats, inputs: Floats, *, interactions: bool = False) -> Design:
    """Use every row.

    Parameters
    ----------
    target
        The standardised child, shape (n,).
    inputs
        The standardised parents, shape (n, p).
    interactions
        Whether the kernel has products of two parents.
    """
    n, p = inputs.shape
    if p == 0:  # without a kernel only the mean and the squares matter
        mean = float(target.sum()) / np.sqrt(n)
        rest = max(float(target @ target) - mean**2, 0.0)
        return Design(np.array([mean]), np.array([np.sqrt(n)]), (), (), n - 1.0, rest)
    squares = tuple((x[:, None] - x[None, :]) ** 2 for x in inputs.T)
    return Design(
        np.asarray(target, np.float64),
        np.ones(n),
        squares,
        (None,) * p,
        interactions=interactions,
    )


def design_from_moments(
    gram: Floats, products: Floats, squares: float, n: int, terms: tuple[int, ...], radius: float
) -> Design:
    """Use the moments of Chebyshev polynomials of the parents; the kernel is additive.

    Parameters
    ----------
    gram
        Products of the columns: the constant, then for each parent the polynomials of degree 1 to
        its number of terms.
    products
        Products of these columns with the standardised child.
    squares
        Sum of squares of the child.
    n
        Number of rows.
    terms
        Number of polynomials of each parent.
    radius
        Half the length of the interval of the polynomials, in standard deviations.
    """
    values, vectors = np.linalg.eigh(gram)
    kept = values > _RANK * values[-1]
    roots = np.sqrt(values[kept])
    vectors = vectors[:, kept]
    target = (vectors.T @ products) / roots
    coordinates = vectors * roots  # row i: column i of the basis in the new coordinates
    distances, maps, first = [], [], 1
    for m in terms:
        nodes, to_coefficients = chebyshev_nodes(m + 1)
        block = np.concatenate([coordinates[:1], coordinates[first : first + m]])
        distances.append((radius * (nodes[:, None] - nodes[None, :])) ** 2)
        maps.append(np.ascontiguousarray(block.T @ to_coefficients))
        first += m
    return Design(
        target,
        coordinates[0].copy(),
        tuple(distances),
        tuple(maps),
        rest=float(n - len(target)),
        rest_squares=max(squares - float(target @ target), 0.0),
    )


def chebyshev_nodes(m: int) -> tuple[Floats, Floats]:
    """Return m nodes in [-1, 1], and the map from values there to Chebyshev coefficients."""
    angles = (np.arange(m) + 0.5) * (np.pi / m)
    to_coefficients = np.cos(np.outer(np.arange(m), angles)) * (2.0 / m)
    to_coefficients[0] *= 0.5
    return np.cos(angles), to_coefficients


# --- Log density of a child and its hyperparameters, with closed-form derivatives ---------------

_NOISE_STEPS, _NOISE_STEP, _NOISE_GAIN = 5, 1.2, 1.0
"""Newton steps in log σ: how many at most, how long at most, and the gain that is worth one."""
LOG_2PI = float(np.log(2.0 * np.pi))


class Derivatives(NamedTuple):
    """Value, gradient and Hessian of a function."""

    value: float
    gradient: Floats
    hessian: Floats


class _Kernel(NamedTuple):
    """Values of a kernel, with derivatives in the logarithm of its length scale."""

    value: Floats
    first: Floats
    second: Floats


@final
class Density:
    """Log joint density of a child and its hyperparameters.

    Parameters
    ----------
    design
        The regression.
    """

    def __init__(self, design: Design) -> None:
        self.design = design
        self.size = design.size

    def value(self, point: Floats) -> float:
        """Return the log density; minus infinity where it underflows."""
        d = self.design
        prior = log_prior(d, point)
        if not np.isfinite(prior):
            return -np.inf
        with np.errstate(over="ignore", under="ignore"):
            covariance = d.outer + self._kernel(point)
        noise = float(np.exp(2.0 * point[-1])) + FLOOR
        _add_to_diagonal(covariance, noise)
        factor, failed = dpotrf(covariance, lower=1, overwrite_a=1, clean=0)
        if failed:
            return -np.inf
        solution, _ = dpotrs(factor, d.target, lower=1)
        halves = float(np.log(factor.diagonal()).sum())
        return prior - halves + _likelihood(d, float(d.target @ solution), noise)

    def with_best_noise(self, point: Floats) -> Work[tuple[float, Floats]]:
        """Maximise the density over σ alone, roughly; return the value and the point.

        This is much cheaper than the derivatives in all parameters, and what tells whether a
        length scale is worth a climb: the density at a good length scale is low if σ is not small.
        """
        d, best = self.design, (-np.inf, point)
        with np.errstate(over="ignore", under="ignore"):
            kernel = d.outer + self._kernel(point)
        point = point.copy()
        for _ in range(_NOISE_STEPS):
            signal = float(np.exp(2.0 * point[-1]))
            noise = signal + FLOOR
            covariance = kernel.copy()
            _add_to_diagonal(covariance, noise)
            factor, failed = dpotrf(covariance, lower=1, overwrite_a=1, clean=0)
            if failed:
                break
            halves = float(np.log(factor.diagonal()).sum())
            inverse, _ = dpotri(factor, lower=1, overwrite_c=1)
            inverse = np.tril(inverse) + np.tril(inverse, -1).T
            weights = inverse @ d.target
            value = _likelihood(d, float(d.target @ weights), noise) - halves
            value += log_prior(d, point)
            yield
            if value > best[0]:
                best = value, point.copy()
            slope = weights @ weights - inverse.trace() - d.rest / noise + d.rest_squares / noise**2
            bend = np.vdot(inverse, inverse) - 2.0 * weights @ inverse @ weights
            bend += d.rest / noise**2 - 2.0 * d.rest_squares / noise**3
            back = float(np.exp(-point[-1]))
            first = slope * signal + back - 1.0
            second = 2.0 * bend * signal**2 + 2.0 * slope * signal - back
            step = first / max(abs(second), 1e-3)
            if 0.5 * abs(first * step) < _NOISE_GAIN:
                break
            point[-1] += np.clip(step, -_NOISE_STEP, _NOISE_STEP)
        return best

    def _kernel(self, point: Floats) -> Floats:
        d = self.design
        scales = np.exp(-2.0 * point[: d.parents])
        parts = [
            np.exp(-0.5 * scale * square) for scale, square in zip(scales, d.squares, strict=True)
        ]
        if not d.interactions:
            total = np.zeros_like(d.outer)
            for part, mapping in zip(parts, d.maps, strict=True):
                total += part if mapping is None else mapping @ part @ mapping.T
            return total
        if not parts:
            return np.zeros_like(d.outer)
        sums = sum(parts[1:], start=parts[0])
        total = np.exp(point[d.parents]) * sums
        if d.weights == 2:
            pairs = 0.5 * (sums**2 - sum(part**2 for part in parts))
            total += np.exp(point[d.parents + 1]) * pairs
        return np.asarray(total)

    def derivatives(self, point: Floats) -> Derivatives:
        """Return the log density with its gradient and Hessian."""
        d = self.design
        covariance, firsts, seconds = self._matrices(point)
        signal = float(np.exp(2.0 * point[-1]))
        noise = signal + FLOOR
        _add_to_diagonal(covariance, noise)
        factor, failed = dpotrf(covariance, lower=1, overwrite_a=1, clean=0)
        if failed:
            empty = np.zeros(self.size)
            return Derivatives(-np.inf, empty, -np.eye(self.size))
        halves = float(np.log(factor.diagonal()).sum())
        inverse, _ = dpotri(factor, lower=1, overwrite_c=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        weights = inverse @ d.target
        value = _likelihood(d, float(d.target @ weights), noise) - halves
        gradient, hessian = _derive(inverse, weights, firsts, seconds, 2.0 * signal)
        _derive_rest(d, noise, signal, gradient, hessian)
        prior = prior_derivatives(d, point)
        hessian[np.diag_indices(self.size)] += prior.hessian
        return Derivatives(value + prior.value, gradient + prior.gradient, hessian)

    def _matrices(
        self, point: Floats
    ) -> tuple[Floats, list[Floats], list[tuple[int, int, Floats]]]:
        """Covariance without noise, and its derivatives in all parameters but σ."""
        d = self.design
        parts = list(self._parts(point))
        if d.interactions and parts:
            return _interacting(d, point, parts)
        covariance = d.outer.copy()
        for part in parts:
            covariance += part.value
        return (
            covariance,
            [part.first for part in parts],
            [(j, j, part.second) for j, part in enumerate(parts)],
        )

    def _parts(self, point: Floats) -> Iterator[_Kernel]:
        d = self.design
        for t, square, mapping in zip(point[: d.parents], d.squares, d.maps, strict=True):
            ratio = np.exp(-2.0 * t) * square
            value = np.exp(-0.5 * ratio)
            first = value * ratio
            second = first * (ratio - 2.0)
            if mapping is None:
                yield _Kernel(value, first, second)
            else:
                yield _Kernel(*(mapping @ k @ mapping.T for k in (value, first, second)))


def _interacting(
    d: Design, point: Floats, parts: list[_Kernel]
) -> tuple[Floats, list[Floats], list[tuple[int, int, Floats]]]:
    p = d.parents
    one = float(np.exp(point[p]))
    two = float(np.exp(point[p + 1])) if d.weights == 2 else 0.0
    sums = one * sum((k.value for k in parts[1:]), start=parts[0].value)
    others = [sums / one - k.value for k in parts]
    firsts = [k.first * (one + two * other) for k, other in zip(parts, others, strict=True)]
    seconds = [
        (j, j, k.second * (one + two * other))
        for j, (k, other) in enumerate(zip(parts, others, strict=True))
    ]
    seconds += [
        (i, j, two * parts[i].first * parts[j].first) for i in range(p) for j in range(i + 1, p)
    ]
    covariance = d.outer + sums
    seconds.append((p, p, sums))
    seconds += [(j, p, one * k.first) for j, k in enumerate(parts)]
    firsts.append(sums)
    if d.weights == 2:
        pairs = np.zeros_like(sums)
        for k, other in zip(parts, others, strict=True):
            pairs += 0.5 * two * k.value * other
        covariance += pairs
        firsts.append(pairs)
        seconds.append((p + 1, p + 1, pairs))
        seconds += [
            (j, p + 1, two * k.first * o)
            for j, (k, o) in enumerate(zip(parts, others, strict=True))
        ]
    return covariance, firsts, seconds


def _derive(
    inverse: Floats,
    weights: Floats,
    firsts: list[Floats],
    seconds: list[tuple[int, int, Floats]],
    noise_slope: float,
) -> tuple[Floats, Floats]:
    """Gradient and Hessian of the log density of the coordinates that the kernel reaches."""
    k = len(firsts) + 1
    gradient, hessian = np.empty(k), np.zeros((k, k))
    images = np.empty((k, len(weights)))
    products = [inverse @ first for first in firsts]
    products.append(noise_slope * inverse)
    for i, first in enumerate(firsts):
        images[i] = first @ weights
        gradient[i] = 0.5 * (weights @ images[i] - np.trace(products[i]))
    images[-1] = noise_slope * weights
    gradient[-1] = 0.5 * (weights @ images[-1] - np.trace(products[-1]))
    for i in range(k):
        for j in range(i, k):
            hessian[i, j] = hessian[j, i] = 0.5 * np.vdot(products[i], products[j].T)
    hessian -= images @ inverse @ images.T
    for i, j, second in seconds:
        bend = 0.5 * float(weights @ second @ weights - np.vdot(inverse, second))
        hessian[i, j] += bend
        if i != j:
            hessian[j, i] += bend
    # The second derivative of σ² in log σ is twice its first.
    hessian[-1, -1] += 2.0 * gradient[-1]
    return gradient, hessian


def _derive_rest(d: Design, noise: float, signal: float, gradient: Floats, hessian: Floats) -> None:
    """Add the derivatives of the coordinates that hold nothing but noise."""
    slope = -0.5 * (d.rest / noise - d.rest_squares / noise**2)
    bend = 0.5 * d.rest / noise**2 - d.rest_squares / noise**3
    gradient[-1] += slope * 2.0 * signal
    hessian[-1, -1] += bend * (2.0 * signal) ** 2 + slope * 4.0 * signal


def _likelihood(d: Design, quadratic: float, noise: float) -> float:
    """Return the log density without the determinant of the coordinates that the kernel reaches."""
    n = len(d.target) + d.rest
    return -0.5 * (n * LOG_2PI + quadratic + d.rest * float(np.log(noise)) + d.rest_squares / noise)


def _add_to_diagonal(matrix: Floats, value: float) -> None:
    matrix.flat[:: len(matrix) + 1] += value


def log_prior(d: Design, point: Floats) -> float:
    """Return the log prior density of the unconstrained hyperparameters."""
    with np.errstate(over="ignore"):
        inverses = np.exp(-point)
    t, p = point, d.parents
    scales = p * 2.0 * np.log(2.0) - 2.0 * t[:p].sum() - 2.0 * inverses[:p].sum()
    return float(scales - t[p:].sum() - inverses[p:].sum())


def prior_derivatives(d: Design, point: Floats) -> Derivatives:
    """Return the log prior density, its gradient and the diagonal of its Hessian."""
    shape = np.ones(len(point))
    shape[: d.parents] = 2.0
    inverses = np.exp(-point)
    return Derivatives(log_prior(d, point), shape * (inverses - 1.0), -shape * inverses)


# --- Laplace approximation of a marginal likelihood, at the best of several modes ---------------

_SCALES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)
"""Length scales that are looked at, first for all parents alike, then for one at a time at the best
mode so far. The prior leaves no mass below; see ``tests/scores/test_gp_modes.py``."""
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
