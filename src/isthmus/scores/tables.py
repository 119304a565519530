"""Scores of contingency tables, shared by all scores for discrete variables."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from isthmus.kernels.scoring import DiscreteForm, discrete_score, row_score
from isthmus.objectives import BoundWork, LocalScore, PythonLocalScore
from isthmus.scores.costs import counting_cost
from isthmus.statistics import Counts
from isthmus.statistics.on_demand import RowsOfScores
from isthmus.types import Floats, Integers

TableScore: TypeAlias = Callable[[Integers | Floats], Floats]
"""Scores of tables with parent configurations as rows and levels of the child as columns; axes in
front number the tables."""


def bind_counts(
    counts: Counts,
    form: DiscreteForm,
    parameter: float,
    table_score: TableScore,
    *,
    equivalent: bool,
    score_bound: Callable[[], BoundWork] | None = None,
) -> LocalScore:
    """Bind a score to counts: to the joint rows if they are available, otherwise to single tables.

    Parameters
    ----------
    counts
        The counts.
    form, parameter
        The score in the compiled core, used for joint rows.
    table_score
        The same score of one table.
    equivalent
        Whether Markov-equivalent graphs always have the same total.
    score_bound
        Returns the bound on supersets; called only if needed.
    """
    names = counts.schema.names
    joint = counts.joint
    if joint is not None:
        cards = counts.schema.cardinalities
        kernel = discrete_score(joint.codes, joint.weights, cards, form, parameter)
        cost = counting_cost(counts.schema, counts.n)
        return LocalScore(names, kernel, equivalent=equivalent, score_bound=score_bound, cost=cost)
    if counts.on_demand is not None:
        rows = RowsOfScores(counts.on_demand, names, table_score)
        return LocalScore(
            names,
            row_score(len(names), rows.values),
            equivalent=equivalent,
            score_bound=score_bound,
            cost=lambda _: math.inf,
        )

    def local(child: int, parents: tuple[int, ...]) -> float:
        table = counts.table([*(names[p] for p in parents), names[child]])
        return float(table_score(table.reshape(-1, table.shape[-1])))

    # Only the planned tables came over. A search that looks at every set would ask for more.
    return PythonLocalScore(
        names, local, equivalent=equivalent, score_bound=score_bound, cost=lambda _: math.inf
    )


def log_likelihood(table: Integers | Floats) -> Floats:
    """Return the maximised log-likelihood of the child given its parents."""
    from scipy.special import xlogy

    rows = table.sum(axis=-1)
    difference: Floats = xlogy(table, table).sum(axis=(-2, -1)) - xlogy(rows, rows).sum(axis=-1)
    return difference


def free_parameters(table: Integers | Floats) -> int:
    """Return the number of free parameters, including configurations that do not occur."""
    configurations, levels = table.shape[-2:]
    return int(configurations * (levels - 1))


def log_dirichlet(table: Integers | Floats, per_cell: float) -> Floats:
    """Return the log marginal likelihood under a symmetric Dirichlet prior per configuration.

    Configurations that do not occur contribute exactly 0.
    """
    from scipy.special import gammaln

    prior = table.shape[-1] * per_cell
    total = gammaln(prior) - gammaln(prior + table.sum(axis=-1))
    cells = gammaln(per_cell + table) - gammaln(per_cell)
    likelihood: Floats = total.sum(axis=-1) + cells.sum(axis=(-2, -1))
    return likelihood
