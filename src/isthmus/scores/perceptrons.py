"""Least squares with one small neural network a node, from rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.errors import DataError
from isthmus.objectives import PARAMETRIC_MODEL, Capabilities, ParametricLoss
from isthmus.scores.base import Score
from isthmus.statistics import Kind, Rows
from isthmus.types import Floats


@final
@dataclass(frozen=True)
class Perceptrons(Score[Rows, ParametricLoss]):
    """``|x_j - f_j(x)|² / 2n`` with f_j one hidden layer of sigmoids over the causes of j.

    The weight of an edge is the norm of what leads from the cause into the hidden layer of
    the effect (Zheng et al. 2020, arXiv 1909.13189). Needs rows, and JAX: the extra ``numerics``.

    Parameters
    ----------
    hidden
        Units in the hidden layer of each node.
    ridge
        Half of this times the sum of the squares of all weights is added.
    """

    hidden: int = 10
    ridge: float = 0.01
    needs: ClassVar[type[Rows]] = Rows
    kind: ClassVar[Kind] = Kind.CONTINUOUS
    gives: ClassVar[Capabilities] = frozenset({PARAMETRIC_MODEL})

    def __post_init__(self) -> None:
        if self.hidden < 1:
            raise DataError(f"hidden must be at least 1; {self.hidden} was given.")
        if self.ridge < 0:
            raise DataError(f"ridge must not be negative; {self.ridge} was given.")

    def bind(self, statistics: Rows) -> ParametricLoss:
        """Give the objective that a search sees."""
        return PerceptronLoss(statistics.schema.names, statistics.values, self)


@final
class PerceptronLoss(ParametricLoss):
    """The loss of `Perceptrons` on some rows."""

    def __init__(self, names: tuple[str, ...], values: Floats, options: Perceptrons) -> None:
        from isthmus.numerics import perceptron

        d = len(names)
        self.nodes = names
        self._hidden = options.hidden
        self.edge = np.full(perceptron.size(d, options.hidden), -1)
        self.edge[: d * d * options.hidden] = np.repeat(np.arange(d * d), options.hidden)
        self._call = perceptron.value_and_gradient(values, options.hidden, options.ridge)

    def start(self, rng: np.random.Generator) -> Floats:
        """Draw parameters."""
        from isthmus.numerics import perceptron

        return perceptron.drawn(len(self.nodes), self._hidden, rng)

    def value_and_gradient(self, parameters: Floats) -> tuple[float, Floats]:
        """Return the loss at ``parameters`` and its gradient."""
        return self._call(parameters)
