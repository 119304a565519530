"""What the scores on counts share: the compiled kernel over rows, and one table at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from isthmus.objectives import CompiledLocalScore, LocalScore, PythonLocalScore, ScoreBound
from isthmus.statistics import Counts
from isthmus.types import Integers

if TYPE_CHECKING:
    from isthmus.numerics.discrete import Form


TableScore: TypeAlias = Callable[[Integers], float]
"""Scores a table of parent configurations (rows) by levels of the child (columns)."""


def bind_counts(
    counts: Counts,
    form: Callable[[], tuple[Form, float]],
    table_score: TableScore,
    *,
    equivalent: bool,
    ceiling: Callable[[], ScoreBound] | None = None,
) -> LocalScore:
    """Bind to the joint rows by the compiled kernel, or to planned tables one by one.

    Parameters
    ----------
    counts
        What was counted.
    form
        Gives the form of the compiled score and its parameter; called only if it is used.
    table_score
        The same score of one table.
    equivalent
        Whether Markov-equivalent graphs always get the same total.
    ceiling
        Makes what is known of supersets; called only if it is used.
    """
    names = counts.schema.names
    joint = counts.joint
    if joint is not None:
        from isthmus.numerics import discrete

        kind, parameter = form()
        data, keep = discrete.pack_discrete(
            joint.codes, joint.weights, counts.schema.cardinalities, kind, parameter
        )
        return CompiledLocalScore(
            names,
            discrete.discrete_score.address,
            data,
            keep,
            equivalent=equivalent,
            ceiling=ceiling,
        )

    def local(child: int, parents: tuple[int, ...]) -> float:
        table = counts.table([*(names[p] for p in parents), names[child]])
        return table_score(table.reshape(-1, table.shape[-1]))

    return PythonLocalScore(names, local, equivalent=equivalent, ceiling=ceiling)


def log_likelihood(table: Integers) -> float:
    """Maximised log-likelihood of the child given its parents."""
    from scipy.special import xlogy

    return float(xlogy(table, table).sum() - xlogy(table.sum(axis=1), table.sum(axis=1)).sum())


def free_parameters(table: Integers) -> int:
    """Number of free parameters, those of unseen configurations included."""
    configurations, levels = table.shape
    return int(configurations * (levels - 1))


def log_dirichlet(table: Integers, per_cell: float) -> float:
    """Log marginal likelihood under a symmetric Dirichlet prior for each configuration."""
    from scipy.special import gammaln

    # An unseen configuration contributes nothing; leaving it out keeps that exact.
    seen = table[table.sum(axis=1) > 0]
    r = table.shape[1]
    total = gammaln(r * per_cell) - gammaln(r * per_cell + seen.sum(axis=1))
    cells = gammaln(per_cell + seen) - gammaln(per_cell)
    return float(total.sum() + cells.sum())
