"""ADMM over a federation (Ng and Zhang 2022): linear models, time series, neural networks.

The coordinator's step uses only secure sums, so the coordinator never sees the parameters of a
site. This does not make ADMM harmless. For linear models, the sums of many rounds together with
what the coordinator sent determine ``Σ_k (S_k + ρ I)⁻¹`` for every ρ of the schedule, from which
the statistics of few sites can be separated. Where moments add up, one secure sum of moments
reveals less and learns better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from math import nan
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar, final

import numpy as np

from isthmus.errors import MismatchError, SchemaError, StudyError
from isthmus.graphs import BoundKnowledge
from isthmus.joint.agreement.study import Study
from isthmus.joint.federation.requests.base import SumRequest
from isthmus.joint.federation.requests.statistics import AskTotals
from isthmus.joint.methods.admm.models import (
    ConsensusModel,
    DynamicConsensus,
    LinearConsensus,
    PerceptronConsensus,
)
from isthmus.joint.methods.admm.requests import CAUTION, AskConsensus, AskNetworks, fixed_centre
from isthmus.joint.methods.admm.steps import Pull, Turn, cycles
from isthmus.joint.methods.objective import JointObjective
from isthmus.objectives import Capability, Sense
from isthmus.options import require_choice, require_integer, require_number
from isthmus.results.details import SearchDetails
from isthmus.searches.base import Accepts, Run, Search, SearchResult
from isthmus.statistics import Kind, Moments
from isthmus.types import Bools, Floats

T = TypeVar("T")
Ask: TypeAlias = Callable[[int, Floats, float], Floats]
"""Returns the sum over sites of ``B + β/ρ``, given step, common parameters and penalty."""

LARGEST = 1e16
"""Upper limit of the penalties."""
ROUNDS = 200
SPARE = 10
"""Rounds of a study that are not steps: totals, keys, and rounds that must be repeated."""
SCALES = (
    "Least squares depends on the scale of the columns: in other units the graph may be different. "
    "The study should use units in which the variables have similar variances."
)


class ADMMModel(StrEnum):
    """The model that all sites fit."""

    LINEAR = "linear"
    DYNAMIC = "dynamic"
    PERCEPTRON = "perceptron"


class Centring(StrEnum):
    """Which means a site subtracts from its rows."""

    POOLED = "pooled"
    LOCAL = "local"


class Stiffness(StrEnum):
    """Whether ``rho2`` is the penalty of each site or of all sites together."""

    EACH = "each"
    TOGETHER = "together"


class Asks(Protocol):
    """Sends a request to all sites and returns the sum of their answers."""

    def __call__(self, request: SumRequest[T], /) -> T:
        """Return the sum."""


@final
class Consensus(JointObjective):
    """The loss of all sites together, which nobody knows: sites fit parameters and add them up.

    Parameters
    ----------
    study
        The study of the sites.
    ask
        Sends a request to all sites.
    """

    equivalent = False
    sense = Sense.MINIMISE

    def __init__(self, study: Study, ask: Asks) -> None:
        self.nodes = study.schema.names
        self.capabilities = frozenset({CONSENSUS})
        self.study = study
        self.ask = ask

    @cached_property
    def totals(self) -> Moments:
        """Number of rows and sums of all sites; one secure sum."""
        return self.ask(AskTotals(self.nodes))

    def default_search(self) -> ADMM:
        """Return ADMM for the model of the study."""
        return ADMM()


CONSENSUS: Capability[Consensus] = Capability(
    "parameters that sites agree on", offered_by="a Federation whose study allows ADMM"
)


@final
@dataclass(frozen=True, eq=False)
class ADMMDetails(SearchDetails):
    """What `ADMM` reports.

    Attributes
    ----------
    model
        The model that the sites fitted.
    weights
        The common weights ``[cause, effect]``, before the threshold. For time series there are
        more causes than effects; for neural networks they are norms.
    parameters
        The common parameters: the weights, or the parameters of the networks.
    rounds
        Number of rounds.
    cycles
        Acyclicity measure of the final weights; zero for an acyclic graph.
    """

    model: ADMMModel
    weights: Floats = field(repr=False)
    parameters: Floats = field(repr=False)
    rounds: int
    cycles: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, with all digits of every number."""
        return vars(self) | {
            "weights": self.weights.tolist(),
            "parameters": self.parameters.tolist(),
        }


@final
@dataclass(frozen=True)
class ADMM(Search[Consensus]):
    """Learn a network from the sites of a federation, with one secure sum per round.

    The study must allow the requests of ADMM, and all sites must answer in every round. Knowledge
    can forbid edges. The defaults are those of the paper; for neural networks they are our own,
    because the paper's schedule (``penalty=0.001``, ``rho1=0.1``, ``rho2=0.1``, `Stiffness.EACH`)
    stops learning early with many sites.

    Parameters
    ----------
    model
        The model that all sites fit: linear, dynamic (for `Series`), or one small neural network
        per variable (`Perceptrons`), which needs JAX at every site. By default that of the study.
    penalty, lagged_penalty
        Coefficients of the ℓ1 norm of the weights, and of lagged weights.
    threshold, lagged_threshold
        Smaller weights, and smaller lagged weights, are dropped; then the weakest edges until
        there is no cycle.
    hidden
        Units in the hidden layer of each neural network.
    rho1, rho2
        Initial penalties on cycles and on disagreement; by default 0.001, for neural networks 0.01
        and 0.16.
    growth1, growth2
        Factors by which they grow in each round.
    rounds
        Maximum number of rounds; by default 200, or what the study allows.
    tolerance
        Stop early if, in five consecutive rounds, the parameters moved less than this, and both the
        acyclicity measure and the distance to the mean of the sites are below a hundred times this.
        Zero never stops early. By default 1e-6, for neural networks 0.001.
    centring
        Subtract the means of each site, as in the paper, which costs one degree of freedom per
        site; or the pooled means. Sites accept pooled means only if the study fixes them, because
        second moments about a centre that the coordinator chooses show the means of sites.
    stiffness
        Whether ``rho2`` is the penalty of each site, as in the paper, or of all sites together, as
        by default for neural networks. Then the size of a step does not depend on the number of
        sites.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> numbers = simulate.linear(ist.DAG(["a", "b"], [("a", "b")]), 300, seed=1).data
    >>> sites = [{k: v[i::3] for k, v in numbers.items()} for i in range(3)]
    >>> solution = ist.learn(ist.Federation.simulate(sites), search=ist.ADMM(rounds=60))
    >>> solution.dag.edges
    (('a', 'b'),)
    """

    model: ADMMModel | None = None
    penalty: float = 0.01
    lagged_penalty: float = 0.01
    threshold: float = 0.3
    lagged_threshold: float = 0.1
    hidden: int = 10
    rho1: float | None = None
    rho2: float | None = None
    growth1: float = 1.75
    growth2: float = 1.25
    rounds: int | None = None
    tolerance: float | None = None
    centring: Centring = Centring.LOCAL
    stiffness: Stiffness | None = None
    accepts: ClassVar[Accepts] = (CONSENSUS,)

    def __post_init__(self) -> None:
        for name in ("penalty", "lagged_penalty", "threshold", "lagged_threshold"):
            require_number(self, name, least=0)
        require_number(self, "tolerance", least=0, optional=True)
        for name in ("rho1", "rho2"):
            require_number(self, name, above=0, optional=True)
        for name in ("growth1", "growth2"):
            require_number(self, name, above=0)
        require_integer(self, "hidden", least=1)
        require_integer(self, "rounds", least=1, optional=True)
        require_choice(self, "centring", Centring)
        for name, choices in (("model", ADMMModel), ("stiffness", Stiffness)):
            if getattr(self, name) is not None:
                require_choice(self, name, choices)

    def begin(
        self, objective: Consensus, knowledge: BoundKnowledge, rng: np.random.Generator
    ) -> ADMMRun:
        """Start a run; nothing is sent before its first step."""
        consensus = CONSENSUS.require(objective)
        study, names = consensus.study, consensus.nodes
        if knowledge.required.any():
            raise MismatchError(
                "ADMM cannot require edges: a penalty moves all weights towards zero. Forbid the "
                "opposite edges, or use another search, such as Boss()."
            )
        kind, rounds = self.allowed(study)
        model = MODELS[kind](self, study.schema, knowledge.forbidden)
        request = AskNetworks if kind is ADMMModel.PERCEPTRON else AskConsensus

        def ask(step: int, common: Floats, rho: float) -> Floats:
            centre = None
            if self.centring is Centring.POOLED:
                fixed = fixed_centre(study, request.name, names)
                centre = tuple(consensus.totals.mean().tolist()) if fixed is None else fixed
            turn = Turn(names, consensus.totals.n, centre, step, rho, common)
            return consensus.ask(model.request(turn))

        return ADMMRun(self, kind, model, ask, len(study.members), model.start(rng), rounds)

    def allowed(self, study: Study) -> tuple[ADMMModel, int]:
        """Return the model and the number of rounds that a study allows.

        A study that allows requests for networks is for neural networks, one with lagged variables
        for time series, and any other for linear models.

        Raises
        ------
        StudyError
            The study does not allow ADMM, or not as many rounds as these options ask for.
        MismatchError
            The study is for another model.
        """
        discrete = study.schema.of_kind(Kind.DISCRETE)
        if discrete:
            raise SchemaError(
                f"ADMM needs continuous variables, and the study states that {list(discrete[:10])} "
                "are discrete. Leave out the search to get one that fits, or draft a study "
                "in which the columns are encoded as numbers or left out."
            )
        lagged = study.schema.lags > 0
        kinds = []
        if AskConsensus.name in study.requests:
            kinds.append(ADMMModel.DYNAMIC if lagged else ADMMModel.LINEAR)
        if AskNetworks.name in study.requests and not lagged:
            kinds.append(ADMMModel.PERCEPTRON)
        if not kinds or AskTotals.name not in study.requests:
            raise StudyError(
                f"The study allows the requests {sorted(study.requests)}. ADMM needs 'totals' and "
                "'consensus', or 'totals' and 'networks' (not for time series)."
            )
        if self.model is not None and self.model not in kinds:
            raise MismatchError(
                f"The study is for a {' or '.join(kinds)} model; a {self.model} one was given. The "
                "requests of a study and the time steps of its variables determine its model."
            )
        kind, most = self.model or kinds[0], study.rounds - SPARE
        if most < 1 or (self.rounds is not None and self.rounds > most):
            raise StudyError(
                f"The study allows {study.rounds} rounds, of which {SPARE} are reserved for the "
                f"first sum, for keys, and for rounds that must be repeated. This leaves "
                f"{max(most, 0)} steps for ADMM"
                + ("." if self.rounds is None else f"; {self.rounds} were requested.")
            )
        MODELS[kind](self, study.schema)  # raises an error for variables that do not fit
        return kind, min(ROUNDS, most) if self.rounds is None else self.rounds


MODELS: dict[ADMMModel, type[ConsensusModel]] = {
    ADMMModel.LINEAR: LinearConsensus,
    ADMMModel.DYNAMIC: DynamicConsensus,
    ADMMModel.PERCEPTRON: PerceptronConsensus,
}


@final
class ADMMRun(Run[SearchResult]):
    """A run of ADMM: one round per step.

    Parameters
    ----------
    options
        The schedule.
    kind, model
        The model that the sites fit.
    ask
        Asks the sites for one step.
    sites
        Number of sites.
    start
        The initial common parameters.
    rounds
        Maximum number of rounds.
    """

    def __init__(
        self,
        options: ADMM,
        kind: ADMMModel,
        model: ConsensusModel,
        ask: Ask,
        sites: int,
        start: Floats,
        rounds: int = ROUNDS,
    ) -> None:
        networks = kind is ADMMModel.PERCEPTRON
        rho1, rho2, tolerance = (0.01, 0.16, 1e-3) if networks else (1e-3, 1e-3, 1e-6)
        usual = Stiffness.TOGETHER if networks else Stiffness.EACH
        self._options, self._kind, self._model = options, kind, model
        self._ask, self._sites, self._rounds = ask, sites, rounds
        self._alpha = 0.0
        self._rho1 = options.rho1 or rho1
        self._rho2 = options.rho2 or rho2
        if (options.stiffness or usual) is Stiffness.TOGETHER:
            self._rho2 /= sites
        self._tolerance = tolerance if options.tolerance is None else options.tolerance
        self._quiet = 0
        self.done = 0
        self.common = start

    def step(self) -> bool:
        """Do one round and return whether it was the last one."""
        target = self._ask(self.done + 1, self.common, self._rho2) / self._sites
        pull = Pull(self._sites * self._rho2, self._alpha, self._rho1)
        new = self._model.join(target, self.common, pull)
        h = cycles(self._model.weights(new))
        self._alpha += self._rho1 * h
        moved = float(np.abs(new - self.common).max())
        apart = float(np.abs(new - target).max())
        self.common = new
        self.done += 1
        # In the first rounds the penalty keeps all weights at zero, far from the mean of the sites.
        still = max(moved, 0.01 * h, 0.01 * apart) < self._tolerance
        self._quiet = self._quiet + 1 if still else 0
        self._rho1 = min(self._rho1 * self._options.growth1, LARGEST)
        self._rho2 = min(self._rho2 * self._options.growth2, LARGEST)
        return self._quiet == 5 or self.done == self._rounds

    def edges(self) -> Bools:
        """Return the edges ``[cause, effect]`` of the graph so far."""
        return self._model.edges(self.common)

    def best(self) -> SearchResult:
        """Return the graph of the common weights so far."""
        weights, edges = self._model.weights(self.common), self.edges()
        parents = [tuple(np.flatnonzero(column).tolist()) for column in edges.T]
        parents += [()] * (len(edges) - len(parents))
        details = ADMMDetails(self._kind, weights, self.common, self.done, cycles(weights))
        return SearchResult(
            tuple(parents),
            nan,
            details,
            converged=self._quiet == 5,
            notes=(CAUTION, SCALES),
        )

    def describe(self) -> tuple[str, float, float | None]:
        """Return the number of rounds; how many more are needed is not known."""
        return f"round {self.done} of at most {self._rounds}", nan, None

    def conclusion(self) -> str:
        """Say whether the weights have converged."""
        if self._quiet == 5:
            return f"the weights did not change any more after {self.done} rounds."
        return f"all {self.done} rounds were used: the weights may not have converged."
