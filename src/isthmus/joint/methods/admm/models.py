"""The models that ADMM can fit: linear models, time series, neural networks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol, final

import numpy as np

from isthmus.errors import DataError, SchemaError
from isthmus.graphs.lags import Lag
from isthmus.graphs.order import above_threshold
from isthmus.joint.methods.admm.requests import AskConsensus, AskNetworks, StepOfADMM
from isthmus.joint.methods.admm.steps import Pull, Turn, joint_step, soft, without_cycles
from isthmus.joint.secure_sum.envelopes import REQUEST
from isthmus.statistics import Schema
from isthmus.types import Bools, Floats


class ModelOptions(Protocol):
    """The options of a model; `ADMM` has them."""

    @property
    def penalty(self) -> float:
        """Coefficient of the ℓ1 norm of the weights."""

    @property
    def lagged_penalty(self) -> float:
        """Coefficient of the ℓ1 norm of lagged weights."""

    @property
    def threshold(self) -> float:
        """Smaller weights are dropped."""

    @property
    def lagged_threshold(self) -> float:
        """Smaller lagged weights are dropped."""

    @property
    def hidden(self) -> int:
        """Units in the hidden layer of each neural network."""


class ConsensusModel(ABC):
    """Base class of the models that ADMM can fit.

    Parameters
    ----------
    options
        The penalties and thresholds.
    schema
        The variables; those that the model is not for are refused.
    forbidden
        Edges ``[cause, effect]`` that must not be in the graph; by default only loops.
    """

    def __init__(
        self, options: ModelOptions, schema: Schema, forbidden: Bools | None = None
    ) -> None:
        self._options = options
        self._names = schema.names
        self._forbidden = np.eye(len(schema), dtype=bool) if forbidden is None else forbidden

    @abstractmethod
    def start(self, rng: np.random.Generator) -> Floats:
        """Return the initial common parameters."""

    @abstractmethod
    def request(self, turn: Turn) -> StepOfADMM:
        """Return the request to the sites for one step."""

    @abstractmethod
    def join(self, target: Floats, common: Floats, pull: Pull) -> Floats:
        """Compute the coordinator's step from the mean of the sites' contributions."""

    @abstractmethod
    def weights(self, common: Floats) -> Floats:
        """Return the edge weights ``[cause, effect]``. Effects come first among the causes."""

    @abstractmethod
    def edges(self, common: Floats) -> Bools:
        """Return the edges above the threshold, without cycles."""


@final
class LinearConsensus(ConsensusModel):
    """Linear models: one weight per edge."""

    def start(self, rng: np.random.Generator) -> Floats:
        """Return zeros."""
        del rng
        return np.zeros((len(self._names), len(self._names)))

    def request(self, turn: Turn) -> AskConsensus:
        """Return the request to the sites for one step."""
        return turn.linear()

    def join(self, target: Floats, common: Floats, pull: Pull) -> Floats:
        """Compute the coordinator's step."""
        return joint_step(target, common, pull, self._options.penalty, self._forbidden)

    def weights(self, common: Floats) -> Floats:
        """Return the parameters, which are the weights."""
        return common

    def edges(self, common: Floats) -> Bools:
        """Return the edges above the threshold, without cycles."""
        return above_threshold(common, self._options.threshold)


@final
class DynamicConsensus(ConsensusModel):
    """Time series: contemporaneous and lagged edges, after section 5.2.

    The schema states which variables are lagged, as that of a `Series` does. Only contemporaneous
    edges can form a cycle.
    """

    def __init__(
        self, options: ModelOptions, schema: Schema, forbidden: Bools | None = None
    ) -> None:
        super().__init__(options, schema, forbidden)
        given = list(schema.lag_of.values())
        now = [lag.variable for lag in given if lag.steps == 0]
        wanted = [Lag(name, steps) for steps in range(schema.lags + 1) for name in now]
        if schema.lags == 0 or wanted != given:
            raise SchemaError(
                "ADMM for time series needs all variables, then all of them one time step "
                f"earlier, and so on; {list(schema.names)[:8]} were given, with {schema.lags} "
                "earlier steps. Pass Series(table, lags=2) for each site."
            )
        self._effects = len(now)

    def start(self, rng: np.random.Generator) -> Floats:
        """Return zeros, with one column per contemporaneous variable."""
        del rng
        return np.zeros((len(self._names), self._effects))

    def request(self, turn: Turn) -> AskConsensus:
        """Return the request to the sites for one step."""
        return turn.linear()

    def join(self, target: Floats, common: Floats, pull: Pull) -> Floats:
        """Compute the coordinator's step; lagged weights need no acyclicity constraint."""
        d, options, forbidden = self._effects, self._options, self._forbidden[:, : self._effects]
        now = joint_step(target[:d], common[:d], pull, options.penalty, forbidden[:d])
        lagged = soft(target[d:], options.lagged_penalty / pull.weight)
        return np.concatenate([now, np.where(forbidden[d:], 0.0, lagged)])

    def weights(self, common: Floats) -> Floats:
        """Return the parameters, which are the weights."""
        return common

    def edges(self, common: Floats) -> Bools:
        """Return the edges above the thresholds."""
        d = self._effects
        now = above_threshold(common[:d], self._options.threshold)
        return np.concatenate([now, np.abs(common[d:]) > self._options.lagged_threshold])


@final
class PerceptronConsensus(ConsensusModel):
    """One small neural network per variable. Needs JAX at every site (the extra ``neural``).

    The weight of an edge is the norm of the weights from the cause to the hidden layer of the
    effect.
    """

    def __init__(
        self, options: ModelOptions, schema: Schema, forbidden: Bools | None = None
    ) -> None:
        from isthmus.neural import perceptron

        super().__init__(options, schema, forbidden)
        hidden, d = options.hidden, len(schema)
        size = perceptron.size(d, hidden)
        most = 3 * REQUEST // 32 - sum(map(len, schema.names)) - 1000  # base64 of 8 bytes each
        if size > most:
            raise DataError(
                f"Networks of {hidden} units for {d} variables have {size:,} parameters; "
                f"about {most:,} fit into a request. Use fewer hidden units or fewer variables."
            )

    def start(self, rng: np.random.Generator) -> Floats:
        """Draw the initial parameters; no network uses the variable that it predicts."""
        from isthmus.neural import perceptron

        drawn = perceptron.drawn(len(self._names), self._options.hidden, rng)
        self._first(drawn)[self._forbidden] = 0.0
        return drawn

    def request(self, turn: Turn) -> AskNetworks:
        """Return the request to the sites for one step."""
        sent, hidden = turn.common.astype("<f8").tobytes(), self._options.hidden
        return AskNetworks(turn.names, hidden, turn.step, turn.rows, turn.rho, sent, turn.centre)

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

    def edges(self, common: Floats) -> Bools:
        """Return the edges above the threshold, without cycles."""
        return above_threshold(self.weights(common), self._options.threshold)

    def _first(self, common: Floats) -> Floats:
        """Return a view of the first layers: [cause, effect, unit]."""
        d, hidden = len(self._names), self._options.hidden
        return common[: d * d * hidden].reshape(d, d, hidden)
