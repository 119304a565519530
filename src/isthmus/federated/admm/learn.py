"""ADMM over a federation (Ng and Zhang 2022): linear models, time series, neural networks.

The coordinator's step is taken from secure sums, so it never sees the parameters of a site. That
does not make ADMM harmless: for linear models sums over many rounds, together with what the
coordinator sent, determine ``Σ_k (S_k + ρ I)⁻¹`` for every ρ of the schedule, from which few sites
can be told apart. Where moments add up, one secure sum of moments tells less and learns better.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError, SchemaError
from isthmus.federated.admm.agreed import Agreed
from isthmus.federated.admm.requests import AskConsensus, AskNetworks
from isthmus.federated.admm.steps import (
    ADMM,
    Centring,
    Pull,
    Stiffness,
    Turn,
    acyclic,
    cycles,
    iterate,
    joint_step,
    soft,
    without_cycles,
)
from isthmus.graphs import DAG
from isthmus.graphs.lags import lagged_name, split_lag
from isthmus.sources.horizontal.requests.sums import AskTotals
from isthmus.sources.horizontal.secure_sum.frames import REQUEST
from isthmus.statistics import Kind

if TYPE_CHECKING:
    from isthmus.sources.horizontal.federation import Federation

Floats: TypeAlias = NDArray[np.float64]


@final
@dataclass(frozen=True)
class LinearADMM(ADMM):
    """ADMM for linear models; the defaults are the paper's, but for the centring.

    For the parameters see `ADMM`.
    """

    def start(self, names: tuple[str, ...]) -> Floats:
        """Zero."""
        return np.zeros((len(names), len(names)))

    def request(self, turn: Turn) -> AskConsensus:
        """The question to the sites in one step."""
        return turn.linear()

    def join(self, target: Floats, common: Floats, pull: Pull) -> Floats:
        """The coordinator's step."""
        return joint_step(target, common, pull, self.penalty)

    def weights(self, common: Floats) -> Floats:
        """The parameters are the weights."""
        return common


@final
@dataclass(frozen=True)
class DynamicADMM(ADMM):
    """ADMM for time series: edges within a step and from earlier steps, after section 5.2.

    The columns of earlier steps are named ``x@1``, ``x@2`` …, as `Series` makes them. Only edges
    within a step can close a cycle.

    Parameters
    ----------
    lagged_penalty
        Weight of the ℓ1 norm of weights from earlier steps.
    lagged_threshold
        Weights from earlier steps below are dropped.

    Notes
    -----
    For the other parameters see `ADMM`.
    """

    lagged_penalty: float = 0.01
    lagged_threshold: float = 0.1

    def start(self, names: tuple[str, ...]) -> Floats:
        """Zero; a column for each variable of the present."""
        now = [n for n in names if split_lag(n)[1] == 0]
        lags, left = divmod(len(names), max(len(now), 1))
        wanted = tuple(lagged_name(n, lag) for lag in range(lags) for n in now)
        if left or lags < 2 or wanted != names:
            raise SchemaError(
                "ADMM for time series needs the columns of all variables now, then one step "
                f"earlier, and so on: x, y, x@1, y@1 …; given are {list(names)[:8]}. Give "
                "Series(table, lags=2) for each site."
            )
        return np.zeros((len(names), len(now)))

    def request(self, turn: Turn) -> AskConsensus:
        """The question to the sites in one step."""
        return turn.linear()

    def join(self, target: Floats, common: Floats, pull: Pull) -> Floats:
        """The coordinator's step; weights from earlier steps need no constraint."""
        d = target.shape[1]
        now = joint_step(target[:d], common[:d], pull, self.penalty)
        return np.concatenate([now, soft(target[d:], self.lagged_penalty / pull.weight)])

    def weights(self, common: Floats) -> Floats:
        """The parameters are the weights."""
        return common

    def edges(self, common: Floats) -> NDArray[np.bool_]:
        """The edges above the thresholds."""
        d = common.shape[1]
        now = acyclic(common[:d], self.threshold)
        return np.concatenate([now, np.abs(common[d:]) > self.lagged_threshold])


@final
@dataclass(frozen=True)
class PerceptronADMM(ADMM):
    """ADMM for one small neural network a node (`Perceptrons`).

    Needs JAX at every site: the extra ``numerics``. The weight of an edge is the norm of what
    leads from the cause into the hidden layer of the effect. The paper's schedule is ``penalty =
    0.001``, ``rho1 = rho2 = 0.1`` and `Stiffness.EACH`; with many sites it stops to learn early.

    Parameters
    ----------
    hidden
        Units in the hidden layer of each network.
    seed
        Draws the first parameters, from which all sites start.

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
        if self.hidden < 1:
            raise DataError(f"hidden must be at least 1; {self.hidden} was given.")

    def start(self, names: tuple[str, ...]) -> Floats:
        """Drawn, but no network reads the variable that it predicts."""
        from isthmus.numerics import perceptron

        most = 3 * REQUEST // 32 - sum(map(len, names)) - 1000  # base64 of 8 bytes each
        if perceptron.size(len(names), self.hidden) > most:
            raise DataError(
                f"Networks of {self.hidden} units for {len(names)} variables have "
                f"{perceptron.size(len(names), self.hidden):,} parameters; about {most:,} fit into "
                "a request. Take fewer units or variables."
            )
        found = perceptron.drawn(len(names), self.hidden, np.random.default_rng(self.seed))
        self._first(found, len(names))[np.diag_indices(len(names))] = 0.0
        return found

    def request(self, turn: Turn) -> AskNetworks:
        """The question to the sites in one step."""
        sent = turn.common.astype("<f8").tobytes()
        return AskNetworks(
            turn.names, self.hidden, turn.step, turn.rows, turn.rho, sent, turn.centre
        )

    def join(self, target: Floats, common: Floats, pull: Pull) -> Floats:
        """The coordinator's step: only the first layers are penalised and make cycles."""
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
        """Norms of what leads from a cause into the hidden layer of an effect."""
        first = self._first(common, self._nodes(common))
        found: Floats = np.sqrt((first * first).sum(axis=2))
        return found

    def _nodes(self, common: Floats) -> int:
        """The number of nodes, of which the number of parameters is h d² + (2 h + 1) d."""
        h, b = self.hidden, 2 * self.hidden + 1
        return round((math.sqrt(b * b + 4 * h * len(common)) - b) / (2 * h))

    def _first(self, common: Floats, d: int) -> Floats:
        """A view of the first layers: [cause, effect, unit]."""
        return common[: d * d * self.hidden].reshape(d, d, self.hidden)


def learn_admm(
    federation: Federation,
    options: ADMM = LinearADMM(),
    *,
    watch: Callable[[int], None] = lambda _step: None,
) -> Agreed:
    """Learn a network by ADMM, every round a secure sum.

    Parameters
    ----------
    federation
        The sites; the method of their study must be `Method.ADMM`.
    options
        `LinearADMM`, `DynamicADMM` for `Series`, or `PerceptronADMM`.
    watch
        Is told the number of each step before it is asked of the sites.

    Raises
    ------
    AbortedError
        A site is gone. ADMM needs all sites in every round: open the study again when it is back.
    """
    schema = federation.schema()
    schema.require(Kind.CONTINUOUS, "ADMM")
    start = options.start(schema.names)
    n, means = federation.totals(AskTotals(schema.names))
    centre = tuple(means.tolist()) if options.centring is Centring.POOLED else None

    def ask(step: int, common: Floats, rho: float) -> Floats:
        watch(step)
        turn = Turn(schema.names, n, centre, step, rho, common)
        return federation.consensus(options.request(turn))

    common, rounds = iterate(ask, start, len(federation.study.members), options)
    weights, edges = options.weights(common), options.edges(common)
    square = np.zeros((len(schema), len(schema)), dtype=bool)
    square[:, : edges.shape[1]] = edges
    return Agreed(
        DAG.from_adjacency(schema.names, square),
        weights,
        common,
        rounds,
        cycles(weights),
        federation.disclosure(),
        options,
    )
