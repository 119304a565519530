"""Log density of a child and its hyperparameters, with closed-form derivatives.

The hyperparameters are unconstrained: the logarithms of the length scales, of the weights of the
kernel, and of σ, in this order. The priors are inverse-gamma: IG(2, 2) on each length scale,
IG(1, 1) on σ (a standard deviation) and on each weight, as densities of the logarithms, that is
with the Jacobian.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, final

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from isthmus.gaussian_processes.design import FLOOR, Design
from isthmus.types import Floats, Work

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
