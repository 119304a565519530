"""Least squares with one small neural network per node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.objectives import PARAMETRIC_MODEL, Capabilities, ParametricLoss
from isthmus.objectives.parametric import NodeModel
from isthmus.options import require_integer, require_number
from isthmus.scores.base import Score
from isthmus.statistics import Kind, Rows
from isthmus.types import Bools, Floats, Work, completed

_GRID = 2.0**-24
"""Rows are rounded to this fraction of the noise. They are then identical bit by bit in all units,
and an optimisation with many local minima ends in the same one."""
_CURVES = 4
"""Number of functions of a column by which two columns are compared."""
_PIECE = 2**28
"""Multiplications in one piece of work; they take some 20 ms."""


@final
@dataclass(frozen=True)
class Perceptrons(Score[Rows, ParametricLoss]):
    """Squared error ``|x_j - f_j(x)|² / 2n`` of neural networks with one hidden layer per node.

    For continuous variables; lower is better. Columns are centred and divided by the smallest of
    their standard deviations, which is an upper bound on the noise if all noise has the same scale.
    Multiplying all columns by the same factor therefore does not matter, and weights, penalties and
    ``ridge`` are in units of the noise. The weight of an edge is the norm of the weights from the
    cause to the hidden layer of the effect (Zheng et al. 2020, arXiv 1909.13189). The score needs
    rows, and JAX: install the extra ``neural``.

    Parameters
    ----------
    hidden
        Number of units in the hidden layer of each node.
    ridge
        Ridge penalty: half of this times the sum of all squared weights is added to the loss.
    """

    hidden: int = 10
    ridge: float = 0.01
    needs: ClassVar[type[Rows]] = Rows
    kind: ClassVar[Kind] = Kind.CONTINUOUS
    gives: ClassVar[Capabilities] = frozenset({PARAMETRIC_MODEL})

    def __post_init__(self) -> None:
        require_integer(self, "hidden", least=1)
        require_number(self, "ridge", least=0)

    def bind(self, statistics: Rows) -> ParametricLoss:
        values = statistics.values - statistics.values.mean(axis=0)
        spread = values.std(axis=0)
        largest = float(np.abs(statistics.values).max(initial=0.0))
        positive = spread[spread > 1e-12 * largest]
        unit = float(positive.min()) if len(positive) else 1.0
        rows = _GRID * np.rint(values / (unit * _GRID))
        return PerceptronLoss(statistics.schema.names, rows, unit, self)


@final
class PerceptronLoss(ParametricLoss):
    """The loss of `Perceptrons` on rows in units of the noise."""

    def __init__(
        self, names: tuple[str, ...], rows: Floats, unit: float, options: Perceptrons
    ) -> None:
        from isthmus.neural import perceptron

        d = len(names)
        self.nodes = names
        self.sample_size, self.unit = len(rows), unit
        self._rows, self._options, self._hidden = rows, options, options.hidden
        self.edge = np.full(perceptron.size(d, options.hidden), -1)
        self.edge[: d * d * options.hidden] = np.repeat(np.arange(d * d), options.hidden)
        self._evaluate = perceptron.evaluation(rows, options.hidden, options.ridge)

    def start(self, rng: np.random.Generator) -> Floats:
        from isthmus.neural import perceptron

        return perceptron.drawn(len(self.nodes), self._hidden, rng)

    def value_and_gradient(self, parameters: Floats) -> tuple[float, Floats]:
        return completed(self._evaluate(parameters))

    def evaluation(self, parameters: Floats) -> Work[tuple[float, Floats]]:
        return self._evaluate(parameters)

    def refit(
        self, target: int, parents: Sequence[int], start: Floats | NodeModel
    ) -> Work[NodeModel]:
        from isthmus.neural import perceptron_nodes

        hidden, ridge = self._hidden, self._options.ridge
        inputs, seen = self._rows[:, list(parents)], self._rows[:, target]
        first, rest = self._layers(target, parents, start)
        fit = yield from perceptron_nodes.fit(
            np.concatenate([first.ravel(), rest]), inputs, seen, hidden, ridge
        )
        decay = fit.parameters.copy()
        decay[len(parents) * hidden : (len(parents) + 1) * hidden] = 0.0
        loss = 0.5 * fit.variance + 0.5 * ridge * float(decay[:-1] @ decay[:-1])
        return NodeModel(
            tuple(parents),
            fit.parameters,
            fit.variance,
            loss,
            fit.freedom,
            fit.residual,
            fit.contributions,
        )

    def _layers(
        self, target: int, parents: Sequence[int], start: Floats | NodeModel
    ) -> tuple[Floats, Floats]:
        """Return the first layer [parent, unit] and the other parameters to start from."""
        d, hidden = len(self.nodes), self._hidden
        if isinstance(start, NodeModel):
            size = len(start.parents) * hidden
            first = start.parameters[:size].reshape(-1, hidden)
            return first[[start.parents.index(p) for p in parents]], start.parameters[size:]
        size = d * d * hidden
        first = start[:size].reshape(d, d, hidden)[list(parents), target]
        bias, outer = start[size : size + 2 * d * hidden].reshape(2, d, hidden)[:, target]
        return first, np.concatenate([bias, outer, start[size + 2 * d * hidden + target :][:1]])

    def joined(self, models: Sequence[NodeModel]) -> Floats:
        d, hidden = len(self.nodes), self._hidden
        first, inner = np.zeros((d, d, hidden)), np.zeros((2, d, hidden))
        last = np.zeros(d)
        for target, model in enumerate(models):
            size = len(model.parents) * hidden
            first[list(model.parents), target] = model.parameters[:size].reshape(-1, hidden)
            inner[:, target] = model.parameters[size:-1].reshape(2, hidden)
            last[target] = model.parameters[-1]
        return np.concatenate([first.ravel(), inner.ravel(), last])

    def restricted(self, nodes: Sequence[int]) -> ParametricLoss:
        names = tuple(self.nodes[i] for i in nodes)
        return PerceptronLoss(names, self._rows[:, list(nodes)], self.unit, self._options)

    def looks_dependent(self) -> Work[Bools]:
        """Test all pairs of columns for dependence, by correlations of functions of both columns.

        Interactions of causes are detected too. Under independence, n times the sum of the squared
        correlations is approximately chi-squared; the level admits 0.1 false pairs per node.
        """
        from scipy.special import chdtri

        n, d = self._rows.shape
        blocks = np.zeros((n, d, _CURVES))
        for node in range(d):
            blocks[:, node] = _curves(self._rows[:, node])
            yield
        flat = blocks.reshape(n, d * _CURVES)
        sums = np.empty((d, d))
        size = max(1, _PIECE // max(n * d * _CURVES**2, 1))
        for start in range(0, d, size):
            part = slice(start, start + size)
            squares = (blocks[:, part].reshape(n, -1).T @ flat / n) ** 2
            sums[part] = n * squares.reshape(-1, _CURVES, d, _CURVES).sum(axis=(1, 3))
            yield
        dependent: Bools = sums > float(chdtri(_CURVES**2, 0.2 / max(d, 2)))
        np.fill_diagonal(dependent, val=False)
        return dependent | dependent.T


def _curves(column: Floats) -> Floats:
    """Return uncorrelated bounded functions of a column: cosines of its ranks."""
    if not np.ptp(column) > 0.0:
        return np.zeros((len(column), _CURVES))
    quantiles = (_ranks(column) - 0.5) / len(column)
    curves = np.cos(np.pi * quantiles[:, None] * np.arange(1, _CURVES + 1))
    curves -= curves.mean(axis=0)
    spread = curves.std(axis=0)
    scaled: Floats = curves / np.where(spread > 1e-9, spread, 1.0)
    return scaled


def _ranks(column: Floats) -> Floats:
    """Return ranks from 1; equal values share the mean of theirs."""
    _, inverse, counts = np.unique(column, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - 0.5 * (counts - 1.0))[inverse]
    return ranks
