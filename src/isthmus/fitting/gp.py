"""Gaussian-process networks from moments of basis functions."""

from __future__ import annotations

import numpy as np

from isthmus.graphs import DAG
from isthmus.models import Effect, GPNetwork
from isthmus.statistics import Moments
from isthmus.statistics.regressions import regressions_from_moments


def fit_gp(moments: Moments, dag: DAG, *, curve_draws: int = 100, seed: int = 0) -> GPNetwork:
    """Fit the curves of a Gaussian-process network.

    Parameters
    ----------
    moments
        Moments of variables with Chebyshev polynomials, for example those of
        ``WithFeatures(table, Chebyshev(48, 5.0))``.
    dag
        The graph; its nodes are variables of the moments.
    curve_draws
        Number of draws of the hyperparameters over which the curves are averaged; 0 for the
        curves at their posterior mode.
    seed
        Random seed. The same seed gives the same network.
    """
    from isthmus.gaussian_processes.design import chebyshev_nodes
    from isthmus.gaussian_processes.effects import posterior_effects

    schema = moments.schema
    regressions = regressions_from_moments(moments, "A Gaussian-process network")
    values = moments.without_features()
    spreads = np.sqrt(values.covariance().diagonal())
    means, noises, effects = {}, {}, {}
    for child in dag.nodes:
        c = schema.index(child)
        parents = dag.parents(child)
        positions = [schema.index(p) for p in parents]
        fit = regressions.fit(c, positions)
        found = posterior_effects(fit, curve_draws, np.random.default_rng([seed, c]))
        means[child] = float(values.mean()[c])
        noises[child] = found.noise * float(spreads[c])
        for j, (parent, p) in enumerate(zip(parents, positions, strict=True)):
            terms = fit.terms[j]
            to_coefficients = chebyshev_nodes(terms + 1)[1]
            features = schema.variables[p].features
            assert features is not None
            first = 1 + p * regressions.terms
            average = regressions.gram[0, first : first + terms] / moments.n
            covariance = to_coefficients @ found.covariances[j] @ to_coefficients.T
            effects[parent, child] = Effect(
                features.centre,
                features.scale,
                regressions.radius,
                to_coefficients @ found.means[j] * spreads[c],
                covariance * spreads[c] ** 2,
                np.concatenate([[1.0], average]),
                float(found.length_scales[j]) * features.scale,
            )
    return GPNetwork(dag, means, noises, effects)
