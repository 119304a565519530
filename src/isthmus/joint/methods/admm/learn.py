"""ADMM over a federation (Ng and Zhang 2022): linear models, time series, neural networks.

The coordinator's step uses only secure sums, so the coordinator never sees the parameters of a
site. This does not make ADMM harmless. For linear models, the sums of many rounds together with
what the coordinator sent determine ``Σ_k (S_k + ρ I)⁻¹`` for every ρ of the schedule, from which
the statistics of few sites can be separated. Where moments add up, one secure sum of moments
reveals less and learns better.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError, SchemaError
from isthmus.graphs import DAG
from isthmus.graphs.lags import Lag
from isthmus.graphs.order import above_threshold
from isthmus.joint.federation.federation import Federation
from isthmus.joint.federation.requests.statistics import AskTotals
from isthmus.joint.methods.admm.requests import AskConsensus, AskNetworks, fixed_centre
from isthmus.joint.methods.admm.result import ADMMResult
from isthmus.joint.methods.admm.steps import (
    ADMM,
    Centring,
    Pull,
    Stiffness,
    Turn,
    cycles,
    iterate,
    joint_step,
    soft,
    without_cycles,
)
from isthmus.joint.secure_sum.frames import REQUEST
from isthmus.options import require_integer, require_number
from isthmus.statistics import Kind, Schema
from isthmus.types import Floats


@final
@dataclass(frozen=True)
class LinearADMM(ADMM):
    """ADMM for linear models. The defaults are those of the paper.

    For the parameters see `ADMM`.
    """

    def start(self, schema: Schema) -> Floats:
        """Return zeros."""
        return np.zeros((len(schema), len(schema)))

    def request(self, turn: Turn) -> AskConsensus:
        """Return the request to the sites for one step."""
        return turn.linear()

    def join(self, target: Floats, common: Floats, pull: Pull) -> Floats:
        """Compute the coordinator's step."""
        return joint_step(target, common, pull, self.penalty)

    def weights(self, common: Floats) -> Floats:
        """Return the parameters, which are the weights."""
        return common


@final
@dataclass(frozen=True)
class DynamicADMM(ADMM):
    """ADMM for time series: contemporaneous and lagged edges, after section 5.2.

    The schema states which variables are lagged, as that of a `Series` does. Only contemporaneous
    edges can form a cycle.

    Parameters
    ----------
    lagged_penalty
        Coefficient of the ℓ1 norm of lagged weights.
    lagged_threshold
        Smaller lagged weights are dropped.

    Notes
    -----
    For the other parameters see `ADMM`.
    """

    lagged_penalty: float = 0.01
    lagged_threshold: float = 0.1

    def __post_init__(self) -> None:
        ADMM.__post_init__(self)
        require_number(self, "lagged_penalty", least=0)
        require_number(self, "lagged_threshold", least=0)

    def start(self, schema: Schema) -> Floats:
        """Return zeros, with one column per contemporaneous variable."""
        given = list(schema.lag_of.values())
        now = [lag.variable for lag in given if lag.steps == 0]
        wanted = [Lag(name, steps) for steps in range(schema.lags + 1) for name in now]
        if schema.lags == 0 or wanted != given:
            raise SchemaError(
                "ADMM for time series needs all variables, then all of them one time step "
                f"earlier, and so on; {list(schema.names)[:8]} were given, with {schema.lags} "
                "earlier steps. Pass Series(table, lags=2) for each site."
            )
        return np.zeros((len(schema), len(now)))

    def request(self, turn: Turn) -> AskConsensus:
        """Return the request to the sites for one step."""
        return turn.linear()

    def join(self, target: Floats, common: Floats, pull: Pull) -> Floats:
        """Compute the coordinator's step; lagged weights need no acyclicity constraint."""
        d = target.shape[1]
        now = joint_step(target[:d], common[:d], pull, self.penalty)
        return np.concatenate([now, soft(target[d:], self.lagged_penalty / pull.weight)])

    def weights(self, common: Floats) -> Floats:
        """Return the parameters, which are the weights."""
        return common

    def edges(self, common: Floats) -> NDArray[np.bool_]:
        """Return the edges above the thresholds."""
        d = common.shape[1]
        now = above_threshold(common[:d], self.threshold)
        return np.concatenate([now, np.abs(common[d:]) > self.lagged_threshold])


@final
@dataclass(frozen=True)
class PerceptronADMM(ADMM):
    """ADMM for one small neural network per variable (`Perceptrons`).

    Needs JAX at every site (the extra ``neural``). The weight of an edge is the norm of the
    weights from the cause to the hidden layer of the effect. The paper's schedule is ``penalty =
    0.001``, ``rho1 = rho2 = 0.1`` and `Stiffness.EACH`; with many sites it stops learning early.

    Parameters
    ----------
    hidden
        Units in the hidden layer of each network.
    seed
        Random seed of the initial parameters, which are the same for all sites.

    Notes
    -----
    For the other parameters see `ADMM`.
    """

    rho1: float = 0.01
    rho2: float = 0.16
    tolerance: float = 1e-3
    stiffness: Stiffness = Stiffness.TOGETHER
    hidden: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        ADMM.__post_init__(self)
        require_integer(self, "hidden", least=1)
        require_integer(self, "seed", least=0)

    def start(self, schema: Schema) -> Floats:
        """Draw the initial parameters; no network uses the variable that it predicts."""
        from isthmus.neural import perceptron

        names = schema.names
        most = 3 * REQUEST // 32 - sum(map(len, names)) - 1000  # base64 of 8 bytes each
        if perceptron.size(len(names), self.hidden) > most:
            raise DataError(
                f"Networks of {self.hidden} units for {len(names)} variables have "
                f"{perceptron.size(len(names), self.hidden):,} parameters; about {most:,} fit into "
                "a request. Use fewer hidden units or fewer variables."
            )
        drawn = perceptron.drawn(len(names), self.hidden, np.random.default_rng(self.seed))
        self._first(drawn, len(names))[np.diag_indices(len(names))] = 0.0
        return drawn

    def request(self, turn: Turn) -> AskNetworks:
        """Return the request to the sites for one step."""
        sent = turn.common.astype("<f8").tobytes()
        return AskNetworks(
            turn.names, self.hidden, turn.step, turn.rows, turn.rho, sent, turn.centre
        )

    def join(self, target: Floats, common: Floats, pull: Pull) -> Floats:
        """Compute the coordinator's step; only first layers are penalised and can form cycles."""
        d = self._nodes(target)
        new = target.copy()
        first = soft(self._first(target, d), self.penalty / pull.weight)
        first[np.diag_indices(d)] = 0.0
        wanted = np.sqrt((first * first).sum(axis=2))
        kept = np.abs(without_cycles(wanted, self.weights(common), pull))
        share = np.divide(kept, wanted, out=np.zeros_like(kept), where=wanted > 0.0)
        self._first(new, d)[:] = first * share[:, :, None]
        return new

    def weights(self, common: Floats) -> Floats:
        """Return the norms of the weights from a cause to the hidden layer of an effect."""
        first = self._first(common, self._nodes(common))
        norms: Floats = np.sqrt((first * first).sum(axis=2))
        return norms

    def _nodes(self, common: Floats) -> int:
        """Return the number of variables d, given h d² + (2 h + 1) d parameters."""
        h, b = self.hidden, 2 * self.hidden + 1
        return round((math.sqrt(b * b + 4 * h * len(common)) - b) / (2 * h))

    def _first(self, common: Floats, d: int) -> Floats:
        """Return a view of the first layers: [cause, effect, unit]."""
        return common[: d * d * self.hidden].reshape(d, d, self.hidden)


def learn_admm(
    federation: Federation,
    options: ADMM = LinearADMM(),
    *,
    watch: Callable[[int], None] = lambda _step: None,
) -> ADMMResult:
    """Learn a network by ADMM, with one secure sum per round.

    Parameters
    ----------
    federation
        The sites. Their study must allow the requests of ADMM.
    options
        `LinearADMM`, `DynamicADMM` for `Series`, or `PerceptronADMM`.
    watch
        Called with the number of each step before it is sent to the sites.

    Raises
    ------
    AbortedError
        A site does not answer. ADMM needs all sites in every round: run it again when the site is
        back.
    """
    schema = federation.schema()
    schema.require(Kind.CONTINUOUS, "ADMM")
    start = options.start(schema)
    totals = federation.ask(AskTotals(schema.names))
    centre = None
    if options.centring is Centring.POOLED:
        name = AskNetworks.name if isinstance(options, PerceptronADMM) else AskConsensus.name
        fixed = fixed_centre(federation.study, name, schema.names)
        centre = tuple(totals.mean().tolist()) if fixed is None else fixed

    def ask(step: int, common: Floats, rho: float) -> Floats:
        watch(step)
        turn = Turn(schema.names, totals.n, centre, step, rho, common)
        return federation.ask(options.request(turn))

    common, rounds = iterate(ask, start, len(federation.study.members), options)
    weights, edges = options.weights(common), options.edges(common)
    square = np.zeros((len(schema), len(schema)), dtype=bool)
    square[:, : edges.shape[1]] = edges
    return ADMMResult(
        DAG.from_adjacency(schema.names, square),
        weights,
        common,
        rounds,
        cycles(weights),
        federation.disclosure(),
        options,
    )
