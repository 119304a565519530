"""Fit linear Gaussian networks from moments."""

from __future__ import annotations

import numpy as np

from isthmus.errors import MismatchError
from isthmus.graphs import DAG
from isthmus.models import GaussianNetwork
from isthmus.models.least_squares import regress
from isthmus.statistics import Kind, Moments, Regimes
from isthmus.types import Floats


def fit_gaussian(moments: Moments | Regimes, dag: DAG) -> GaussianNetwork:
    """Estimate intercepts, coefficients and residual variances of ``dag`` by maximum likelihood.

    Sums of squares are divided by the number of rows, not by degrees of freedom, so that equivalent
    graphs have the same distribution: answers to interventions rely on it.

    If parents are collinear, the coefficients are the solution of minimum norm, in units of the
    standard deviations; a constant parent has the coefficient zero. Of several regimes, each node
    is fitted on the rows in which it was not a target.
    """
    discrete = [v.name for v in moments.schema.variables if v.kind is Kind.DISCRETE]
    if discrete:
        raise MismatchError(
            f"A linear Gaussian network has continuous variables only; {discrete[:5]} are "
            "discrete. Leave them out, or fit a network of discrete variables from counts."
        )
    parts = [part.without_features() for part in _parts(moments)]
    estimates = [(_covariance(part), part.mean()) for part in parts]
    intercepts, coefficients, variances = {}, {}, {}
    for node in dag.nodes:
        child = moments.schema.index(node)
        covariance, mean = estimates[moments.part_of[child] if isinstance(moments, Regimes) else 0]
        parents = list(moments.schema.indices(dag.parents(node)))
        fitted = regress(covariance[np.ix_([*parents, child], [*parents, child])])
        weights = fitted.coefficients
        intercepts[node] = float(mean[child] - weights @ mean[parents])
        coefficients[node] = {p: float(w) for p, w in zip(dag.parents(node), weights, strict=True)}
        variances[node] = float(fitted.variance)
    return GaussianNetwork(dag, intercepts, coefficients, variances)


def _covariance(moments: Moments) -> Floats:
    """Return the covariance, in which constants are exactly constant: rounding has no effects."""
    covariance = moments.covariance()
    constant = list(moments.schema.indices(moments.constants()))
    covariance[constant, :] = covariance[:, constant] = 0.0
    return covariance


def _parts(moments: Moments | Regimes) -> list[Moments]:
    given = moments.parts if isinstance(moments, Regimes) else (moments,)
    parts = [part for part in given if isinstance(part, Moments)]
    if len(parts) != len(given):
        raise MismatchError("Coefficients are fitted from moments, and these are counts.")
    return parts
