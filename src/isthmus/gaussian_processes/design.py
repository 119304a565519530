"""The data of one regression of a Gaussian-process network, in the form that its density needs.

The model of a standardised child y given p standardised parents is

    y = μ + f(x) + ε,   f ~ GP(0, k),   μ ~ N(0, 1),   ε ~ N(0, σ²),

with the additive kernel k = Σ_j k_j, where k_j is squared-exponential with unit amplitude and the
length scale θ_j, or with the kernel τ₁ Σ_j k_j + τ₂ Σ_{i<j} k_i k_j, which adds all products of
two (Giudice, Kuipers and Moffa 2023). Integrating over μ and f gives a normal density with the
covariance σ²I + 11ᵀ + K. Only the distances between inputs enter K, so a design holds them.

Both sources of data give the same form. From rows, the inputs are the rows. From moments, the
kernel is interpolated at Chebyshev nodes, and all rows are rotated into the space that the basis
functions span: r coordinates replace n rows, and what is orthogonal to that space is white noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from isthmus.types import Floats

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
