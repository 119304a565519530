"""Fit linear Gaussian networks from moments."""

from __future__ import annotations

import numpy as np

from isthmus.errors import MismatchError
from isthmus.graphs import DAG
from isthmus.models import GaussianNetwork
from isthmus.statistics import Kind, Moments, Regimes


def fit_gaussian(moments: Moments | Regimes, dag: DAG) -> GaussianNetwork:
    """Estimate intercepts, coefficients and residual variances of ``dag`` by maximum likelihood.

    If parents are collinear, the coefficients are the solution of minimum norm. Of several regimes,
    each node is fitted on the rows in which it was not a target.
    """
    discrete = [v.name for v in moments.schema.variables if v.kind is Kind.DISCRETE]
    if discrete:
        raise MismatchError(
            f"A linear Gaussian network has continuous variables only; {discrete[:5]} are "
            "discrete. Leave them out, or fit a network of discrete variables from counts."
        )
    parts = [part.without_features() for part in _parts(moments)]
    estimates = [(part.covariance(), part.mean()) for part in parts]
    intercepts, coefficients, variances = {}, {}, {}
    for node in dag.nodes:
        child = moments.schema.index(node)
        covariance, mean = estimates[moments.part_of[child] if isinstance(moments, Regimes) else 0]
        parents = list(moments.schema.indices(dag.parents(node)))
        gram = covariance[np.ix_(parents, parents)]
        cross = covariance[parents, child]
        weights = np.linalg.lstsq(gram, cross, rcond=None)[0] if parents else np.empty(0)
        explained = 2.0 * weights @ cross - weights @ gram @ weights
        intercepts[node] = float(mean[child] - weights @ mean[parents])
        coefficients[node] = {p: float(w) for p, w in zip(dag.parents(node), weights, strict=True)}
        variances[node] = float(max(covariance[child, child] - explained, 0.0))
    return GaussianNetwork(dag, intercepts, coefficients, variances)


def _parts(moments: Moments | Regimes) -> list[Moments]:
    given = moments.parts if isinstance(moments, Regimes) else (moments,)
    parts = [part for part in given if isinstance(part, Moments)]
    if len(parts) != len(given):
        raise MismatchError("Coefficients are fitted from moments, and these are counts.")
    return parts
