"""Estimate the parameters of networks of discrete and continuous variables from rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError
from isthmus.fitting.logit import fit_logit
from isthmus.fitting.tables import probabilities
from isthmus.graphs import DAG
from isthmus.models import Conditional, ConditionalGaussian, MixedNetwork, ProbabilityTable
from isthmus.statistics import Kind, Rows
from isthmus.types import Floats, Integers

_LARGEST = 10_000_000
"""Maximum number of parameters of one node."""


def fit_mixed(rows: Rows, dag: DAG, *, pseudo_count: float = 1.0) -> MixedNetwork:
    """Estimate the parameters of a network of mixed variables.

    A discrete node with discrete parents gets a probability table. A continuous node gets a linear
    regression for each configuration of its discrete parents. A discrete node with continuous
    parents gets a multinomial logistic regression.

    Parameters
    ----------
    rows
        The rows; the nodes of the graph are variables of them.
    dag
        The graph.
    pseudo_count
        Weight of the prior, in rows; 0 for maximum likelihood. For a table it is divided equally
        among the cells, as by `fit_tables`. For a regression it adds rows to each configuration
        that are distributed as all rows together, so a configuration that does not occur has
        the regression of all rows. For a logistic regression it is spread over the levels at the
        mean of the parents, and is the precision of a normal prior of the standardised slopes.
    """
    schema = rows.schema
    columns = {v: rows.values[:, schema.index(v)] for v in dag.nodes}
    conditionals: dict[str, Conditional] = {}
    for node in dag.nodes:
        parents = dag.parents(node)
        discrete = tuple(p for p in parents if schema[p].kind is Kind.DISCRETE)
        continuous = tuple(p for p in parents if schema[p].kind is Kind.CONTINUOUS)
        sizes = tuple(len(schema[p].levels) for p in discrete)
        codes = [columns[p].astype(np.intp) for p in discrete]
        numbers = np.stack([columns[p] for p in continuous], axis=1) if continuous else None
        levels = schema[node].levels
        _refuse_large(node, parents, sizes, max(len(levels), 1))
        own = columns[node]
        if not levels:
            place = _places(codes, sizes, rows.n)
            fitted = _regressions(own, numbers, place, sizes, pseudo_count)
            conditionals[node] = ConditionalGaussian(discrete, continuous, *fitted)
        elif numbers is None:
            shape = (*sizes, len(levels))
            place = _places([*codes, own.astype(np.intp)], shape, rows.n)
            table = np.bincount(place, minlength=int(np.prod(shape))).reshape(shape)
            estimated = probabilities(table, pseudo_count)
            conditionals[node] = ProbabilityTable(levels, discrete, estimated, table)
        else:
            conditionals[node] = fit_logit(
                levels,
                own.astype(np.intp),
                discrete,
                codes,
                sizes,
                continuous,
                numbers,
                pseudo_count,
            )
    return MixedNetwork(dag, conditionals)


def _refuse_large(node: str, parents: tuple[str, ...], sizes: tuple[int, ...], levels: int) -> None:
    cells = levels
    for size in sizes:
        cells *= size
    if cells > _LARGEST:
        raise DataError(
            f"Node {node!r} with the parents {list(parents)} would have {cells:,} parameters; at "
            f"most {_LARGEST:,} are allowed. Use fewer parents, or group levels."
        )


def _places(codes: list[NDArray[np.intp]], sizes: tuple[int, ...], n: int) -> NDArray[np.intp]:
    place = np.zeros(n, np.intp)
    for column, size in zip(codes, sizes, strict=True):
        place = place * size + column
    return place


def _regressions(
    y: Floats,
    x: Floats | None,
    place: NDArray[np.intp],
    sizes: tuple[int, ...],
    pseudo_count: float,
) -> tuple[Floats, Floats, Floats, Integers]:
    """Return intercepts, coefficients, variances and counts of all configurations."""
    columns = y[:, None] if x is None else np.column_stack([x, y])
    k = columns.shape[1] - 1
    cells = int(np.prod(sizes))
    centre = columns.mean(axis=0)
    deviations = columns - centre
    pooled = deviations.T @ deviations / len(y)
    counts = np.bincount(place, minlength=cells)
    intercepts, variances = np.empty(cells), np.empty(cells)
    coefficients = np.empty((cells, k))
    ends = np.concatenate([[0], np.cumsum(counts)])
    order = np.argsort(place, kind="stable")
    for cell in range(cells):
        part = deviations[order[ends[cell] : ends[cell + 1]]]
        # A configuration without rows and without a prior has the regression of all rows.
        prior = pseudo_count if pseudo_count > 0 else float(len(part) == 0)
        weight = len(part) + prior
        # About the mean of its own rows nothing cancels, however far apart configurations are.
        own = part.mean(axis=0) if len(part) else np.zeros(k + 1)
        mean = len(part) * own / weight
        around, between = part - own, own - mean
        covariance = around.T @ around + len(part) * np.outer(between, between)
        covariance = (covariance + prior * (pooled + np.outer(mean, mean))) / weight
        slopes = np.linalg.lstsq(covariance[:k, :k], covariance[:k, k], rcond=None)[0]
        cross = covariance[:k, k]
        explained = 2.0 * slopes @ cross - slopes @ covariance[:k, :k] @ slopes
        coefficients[cell] = slopes
        intercepts[cell] = mean[k] + centre[k] - slopes @ (mean[:k] + centre[:k])
        variances[cell] = max(covariance[k, k] - explained, 0.0)
    return (
        intercepts.reshape(sizes),
        coefficients.reshape(*sizes, k),
        variances.reshape(sizes),
        counts.reshape(sizes),
    )
