"""Estimate the parameters of networks from statistics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats
from isthmus.errors import DataError, MismatchError
from isthmus.fitting.curved_logit import curve_levels
from isthmus.fitting.curves import curve_numbers, fit_numbers
from isthmus.fitting.families import ParentRows, fit_levels, fit_regression, robust
from isthmus.graphs import DAG
from isthmus.networks import (
    Conditional,
    ConditionalGaussian,
    DiscreteNetwork,
    Effect,
    GaussianNetwork,
    GPNetwork,
    MixedNetwork,
    MultinomialLogit,
)
from isthmus.networks.conditionals import CurvedGaussian, NormalConditional
from isthmus.networks.support import Support
from isthmus.options import check_pseudo_count
from isthmus.statistics import Counts, Kind, Moments, Rows
from isthmus.statistics.incomplete import ExpectedCounts, IncompleteCounts
from isthmus.statistics.regimes import Regimes
from isthmus.statistics.relations import regressions_from_moments

_LARGEST = 10_000_000
"""Maximum number of parameters of one node."""


def fit_tables(
    counts: Counts | ExpectedCounts | IncompleteCounts | Regimes,
    dag: DAG,
    *,
    pseudo_count: float = 1.0,
) -> DiscreteNetwork:
    """Estimate the conditional probability tables of ``dag``.

    Parameters
    ----------
    counts
        Counts that cover every family of the graph. Of incomplete rows, those are counted that are
        complete for the family; of several regimes, those in which the child was not a target.
        From expected counts, probabilities are estimated by the expectations.
    dag
        The graph; its nodes are variables of ``counts``.
    pseudo_count
        Pseudo-count per table, divided equally among its cells. The estimate is the posterior mean
        under the prior of ``BDeu(ess=pseudo_count)``. With 0 it is the maximum likelihood estimate,
        and parent configurations that do not occur get the uniform distribution.
    """
    check_pseudo_count(pseudo_count)
    counts.schema.require(Kind.DISCRETE, "Tables need")
    network = counts.fit(dag, pseudo_count)
    assert isinstance(network, DiscreteNetwork)
    return network


def fit_gaussian(moments: Moments | Regimes, dag: DAG) -> GaussianNetwork:
    """Estimate intercepts, coefficients and residual variances of ``dag`` by maximum likelihood.

    Sums of squares are divided by the number of rows, not by degrees of freedom, so that equivalent
    graphs have the same distribution: answers to interventions rely on it.

    If parents are collinear, the coefficients are the solution of minimum norm, in units of the
    standard deviations; a constant parent has the coefficient zero. Of several regimes, each node
    is fitted on the rows in which it was not a target.
    """
    discrete = moments.schema.of_kind(Kind.DISCRETE)
    if discrete:
        raise MismatchError(
            f"A linear Gaussian network has continuous variables only; {list(discrete[:5])} are "
            "discrete. Leave them out, or fit a network of discrete variables from counts."
        )
    network = moments.fit(dag, 0.0)
    assert isinstance(network, GaussianNetwork)
    return network


def refine(
    network: GaussianNetwork, rows: Rows, *, curves: bool = True
) -> GaussianNetwork | MixedNetwork:
    """Add to a network of lines what rows tell, and moments do not.

    These are curves and interactions where they pay, and sampling errors for noise of any variance.

    Parameters
    ----------
    network
        The network of lines, fitted to these rows.
    rows
        The rows; the nodes of the graph are variables of them. Values that are missing are NaN:
        curves are then those of the rows that are complete for a node and its parents, and lines
        stay as they are.
    curves
        Whether there may be curves and interactions.

    Returns
    -------
    GaussianNetwork or MixedNetwork
        A mixed network if effects are curved or interact.
    """
    dag, schema = network.dag, rows.schema
    nodes = len(dag.nodes) if curves else 0
    absent = np.isnan(rows.values)
    conditionals: dict[str, Conditional] = {}
    for node in dag.nodes:
        family = ParentRows.of(rows, dag.parents(node))
        slopes = [network.coefficients[node][p] for p in family.continuous]
        lines = ConditionalGaussian(
            (),
            family.continuous,
            np.array(network.intercepts[node]),
            np.array(slopes),
            np.array(network.variances[node]),
            np.array(network.rows),
        )
        own = rows.values[:, schema.index(node)]
        if absent.any():
            chosen = list(schema.indices((node, *family.names)))
            there = np.flatnonzero(~absent[:, chosen].any(axis=1))
            conditionals[node] = _curved(own[there], family.part(there), lines, nodes)
            continue
        fitted = curve_numbers(own, family, lines, 1.0, nodes)
        conditionals[node] = robust(fitted, own, family.columns())
    if absent.any():
        if not any(isinstance(own, CurvedGaussian) for own in conditionals.values()):
            return network
        return MixedNetwork(dag, conditionals, network.cpdag, network.maps)
    covariances = {
        node: own.covariances
        for node, own in conditionals.items()
        if isinstance(own, ConditionalGaussian) and own.covariances is not None
    }
    if len(covariances) == len(dag.nodes):
        return replace(network, covariances=covariances, supports=_supports(rows, dag))
    return MixedNetwork(dag, conditionals, network.cpdag, network.maps, _supports(rows, dag))


def _curved(
    own: Floats, family: ParentRows, lines: ConditionalGaussian, nodes: int
) -> NormalConditional:
    """Return curves if complete rows pay for them, and otherwise the lines of all rows."""
    if not nodes or family.n < 2:
        return lines
    fitted = curve_numbers(own, family, fit_regression(own, family, 1.0), 1.0, nodes)
    return robust(fitted, own, family.columns()) if isinstance(fitted, CurvedGaussian) else lines


def fit_mixed(
    rows: Rows,
    dag: DAG,
    *,
    pseudo_count: float = 1.0,
    observed: NDArray[np.bool_] | None = None,
    curves: bool = True,
) -> MixedNetwork:
    """Estimate the parameters of a network of mixed variables.

    A discrete node with discrete parents gets a probability table. A continuous node gets a linear
    regression for each configuration of its discrete parents, or a `Hurdle` if it often has
    exactly one value, such as zero, and that explains the rows better, by the BIC. A discrete node
    with continuous parents gets a multinomial logistic regression, of curves where they pay.

    Parameters
    ----------
    rows
        The rows; the nodes of the graph are variables of them.
    dag
        The graph.
    pseudo_count
        Weight of the prior, in rows; 0 for maximum likelihood. For a logistic regression it is
        spread over the levels at the mean of the parents, and is the precision of a normal prior
        of the standardised slopes, the same for all levels. For tables and linear regressions, see
        below.
    observed
        Shape (n, d): which values of the rows were not imputed, in which case there are no
        hurdles and no curves; None if all were observed. See `fit_incomplete`.
    curves
        Whether effects of continuous parents may be curved and interact, where that pays.

    Notes
    -----
    The probabilities of a combination of parents are shrunk towards what it would have without
    interactions: towards the logistic regression on the levels of the parents, which has the prior
    of `pseudo_count` rows, or with one parent towards the shares of all rows. The weight of this
    prior is estimated for each table, by its marginal likelihood. A table without parents has
    `pseudo_count` rows divided equally among its cells.

    A configuration with at least six residual degrees of freedom (of observed values) has the
    least-squares regression of its own rows, whatever ``pseudo_count`` is. To a configuration
    with fewer, ``pseudo_count`` rows are added around its own mean, with the covariance within
    configurations, pooled over all of them, and the sum of squared residuals is divided by the
    degrees of freedom; so a single row gets the common slopes and variance. Slopes that the
    rows of a configuration leave open (a parent is constant there) are the common ones. A
    configuration without rows has the common slopes, and the mean and variance of all rows
    about them. If the rows of a configuration lie exactly on a line, its variance comes from
    the added rows.
    """
    check_pseudo_count(pseudo_count)
    schema, nodes = rows.schema, len(dag.nodes) if curves else 0
    conditionals: dict[str, Conditional] = {}
    for node in dag.nodes:
        parents = dag.parents(node)
        family = ParentRows.of(rows, parents)
        own, levels = rows.values[:, schema.index(node)], schema[node].levels
        _refuse_large(node, parents, family.sizes, max(len(levels), 1))
        if levels:
            codes = own.astype(np.intp)
            plain = fit_levels(codes, levels, family, pseudo_count)
            conditionals[node] = plain
            if observed is None and isinstance(plain, MultinomialLogit):
                conditionals[node] = curve_levels(codes, family, plain, pseudo_count, nodes)
        elif observed is None:
            conditionals[node] = fit_numbers(own, family, pseudo_count, nodes)
        else:
            there = observed[:, schema.index(node)]
            conditionals[node] = fit_regression(own, family, pseudo_count, there)
    supports = _supports(rows, dag) if observed is None else {}
    return MixedNetwork(dag, conditionals, supports=supports)


def _supports(rows: Rows, dag: DAG) -> dict[str, Support]:
    """Return the ranges of the numbers, also with the levels of each node in the same family."""
    schema, supports = rows.schema, {}
    discrete = set(schema.of_kind(Kind.DISCRETE))
    near: dict[str, set[str]] = {v: set() for v in dag.nodes}
    for node in dag.nodes:
        family = {node, *dag.parents(node)}
        for name in family - discrete:
            near[name] |= family & discrete
    for name in dag.nodes:
        if name not in discrete:
            given = {
                v: (rows.values[:, schema.index(v)].astype(np.intp), len(schema[v].levels))
                for v in sorted(near[name])
            }
            supports[name] = Support.of(rows.values[:, schema.index(name)], given)
    return supports


def _refuse_large(node: str, parents: tuple[str, ...], sizes: tuple[int, ...], levels: int) -> None:
    cells = levels
    for size in sizes:
        cells *= size
    if cells > _LARGEST:
        raise DataError(
            f"Node {node!r} with the parents {list(parents)} would have {cells:,} parameters; at "
            f"most {_LARGEST:,} are allowed. Use fewer parents, or group levels."
        )


# --- Gaussian-process networks from moments of basis functions ----------------------------------


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
    from isthmus.gp.density import chebyshev_nodes
    from isthmus.gp.families import posterior_effects

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
