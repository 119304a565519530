"""Fit linear Gaussian networks from moments."""

from __future__ import annotations

import numpy as np

from isthmus.errors import MismatchError
from isthmus.graphs import DAG
from isthmus.models import GaussianNetwork
from isthmus.statistics import Kind, Moments


def fit_gaussian(moments: Moments, dag: DAG) -> GaussianNetwork:
    """Estimate intercepts, coefficients and residual variances of ``dag`` by maximum likelihood.

    If parents are collinear, the coefficients are the solution of minimum norm.
    """
    discrete = [v.name for v in moments.schema.variables if v.kind is Kind.DISCRETE]
    if discrete:
        raise MismatchError(
            f"A linear Gaussian network has continuous variables only; {discrete[:5]} are "
            "discrete. Leave them out, or fit a network of discrete variables from counts."
        )
    moments = moments.without_features()
    index = {name: moments.schema.index(name) for name in dag.nodes}
    covariance, mean = moments.covariance(), moments.mean()
    intercepts, coefficients, variances = {}, {}, {}
    for node in dag.nodes:
        child = index[node]
        parents = [index[p] for p in dag.parents(node)]
        gram = covariance[np.ix_(parents, parents)]
        cross = covariance[parents, child]
        weights = np.linalg.lstsq(gram, cross, rcond=None)[0] if parents else np.empty(0)
        explained = 2.0 * weights @ cross - weights @ gram @ weights
        intercepts[node] = float(mean[child] - weights @ mean[parents])
        coefficients[node] = {p: float(w) for p, w in zip(dag.parents(node), weights, strict=True)}
        variances[node] = float(max(covariance[child, child] - explained, 0.0))
    return GaussianNetwork(dag, intercepts, coefficients, variances)
