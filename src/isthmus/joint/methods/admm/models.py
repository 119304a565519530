"""The models that ADMM can fit: linear models and time series, or neural networks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import numpy as np

from isthmus.errors import SchemaError
from isthmus.graphs.lags import Lag
from isthmus.graphs.order import above_threshold
from isthmus.joint.methods.admm.options import ADMMOptions
from isthmus.joint.methods.admm.steps import Pull, joint_step, soft, without_cycles
from isthmus.statistics import Schema
from isthmus.types import Bools, Floats


class ConsensusModel(ABC):
    """Base class of the models that ADMM can fit.

    Parameters
    ----------
    schema
        The variables; those that the model is not for are refused.
    """

    def __init__(self, schema: Schema, options: ADMMOptions) -> None:
        self._options = options
        self._d = len(schema)
        self._forbidden = options.forbidden_among(schema.names)

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of the parameters."""

    @abstractmethod
    def start(self) -> Floats:
        """Return the initial common parameters."""

    @abstractmethod
    def join(self, target: Floats, common: Floats, pull: Pull) -> Floats:
        """Compute the coordinator's step from the mean of the sites' contributions."""

    @abstractmethod
    def weights(self, common: Floats) -> Floats:
        """Return the edge weights ``[cause, effect]``. Effects come first among the causes."""

    def edges(self, common: Floats, threshold: float, lagged_threshold: float) -> Bools:
        """Return the edges above the thresholds, without cycles."""
        weights = self.weights(common)
        effects = weights.shape[1]
        now = above_threshold(weights[:effects], threshold)
        return np.concatenate([now, np.abs(weights[effects:]) > lagged_threshold])


@final
class LinearConsensus(ConsensusModel):
    """Linear models: one weight per edge; of time series also lagged edges, after section 5.2.

    The schema states which variables are lagged, as that of a `Series` does. Only contemporaneous
    edges can form a cycle.
    """

    def __init__(self, schema: Schema, options: ADMMOptions) -> None:
        super().__init__(schema, options)
        self.effects = self._d
        if schema.lags:
            given = list(schema.lag_of.values())
            now = [lag.variable for lag in given if lag.steps == 0]
            if given != [Lag(name, steps) for steps in range(schema.lags + 1) for name in now]:
                raise SchemaError(
                    "ADMM for time series needs all variables, then all of them one time step "
                    f"earlier, and so on; {list(schema.names)[:8]} were given, with {schema.lags} "
                    "earlier steps. Pass Series(table, lags=2) for each site."
                )
            self.effects = len(now)

    @property
    def shape(self) -> tuple[int, ...]:
        """One row per variable, and one column per contemporaneous variable."""
        return self._d, self.effects

    def start(self) -> Floats:
        return np.zeros(self.shape)

    def join(self, target: Floats, common: Floats, pull: Pull) -> Floats:
        """Compute the coordinator's step; lagged weights need no acyclicity constraint."""
        d, options, forbidden = self.effects, self._options, self._forbidden[:, : self.effects]
        now = joint_step(target[:d], common[:d], pull, options.penalty, forbidden[:d])
        lagged = soft(target[d:], options.lagged_penalty / pull.weight)
        return np.concatenate([now, np.where(forbidden[d:], 0.0, lagged)])

    def weights(self, common: Floats) -> Floats:
        return common


@final
class PerceptronConsensus(ConsensusModel):
    """One small neural network per variable. Needs JAX at every site (the extra ``neural``).

    The weight of an edge is the norm of the weights from the cause to the hidden layer of the
    effect.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """All parameters in one row."""
        from isthmus.neural import perceptron

        return (perceptron.size(self._d, self._options.hidden),)

    def start(self) -> Floats:
        """Draw the initial parameters; no network uses the variable that it predicts."""
        from isthmus.neural import perceptron

        rng = np.random.default_rng(self._options.seed)
        drawn = perceptron.drawn(self._d, self._options.hidden, rng)
        self._first(drawn)[self._forbidden] = 0.0
        return drawn

    def join(self, target: Floats, common: Floats, pull: Pull) -> Floats:
        """Compute the coordinator's step; only first layers are penalised and can form cycles."""
        new = target.copy()
        first = soft(self._first(target), self._options.penalty / pull.weight)
        first[self._forbidden] = 0.0
        wanted = np.sqrt((first * first).sum(axis=2))
        kept = np.abs(without_cycles(wanted, self.weights(common), pull))
        share = np.divide(kept, wanted, out=np.zeros_like(kept), where=wanted > 0.0)
        self._first(new)[:] = first * share[:, :, None]
        return new

    def weights(self, common: Floats) -> Floats:
        """Return the norms of the weights from a cause to the hidden layer of an effect."""
        first = self._first(common)
        norms: Floats = np.sqrt((first * first).sum(axis=2))
        return norms

    def _first(self, common: Floats) -> Floats:
        """Return a view of the first layers: [cause, effect, unit]."""
        d, hidden = self._d, self._options.hidden
        return common[: d * d * hidden].reshape(d, d, hidden)
