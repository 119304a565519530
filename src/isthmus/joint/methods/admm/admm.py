"""ADMM over a federation (Ng and Zhang 2022): linear models, time series, neural networks.

The coordinator's step uses only secure sums, so the coordinator never sees the parameters of a
site. Every site computes the step itself from the same sums, so the coordinator cannot choose the
parameters. This does not make ADMM harmless. For linear models, the sums of many rounds determine
``Σ_k (S_k + ρ I)⁻¹`` for every ρ of the schedule, from which the statistics of few sites can be
separated. Where moments add up, one secure sum of moments reveals less and learns better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import nan
from typing import Any, ClassVar, TypeAlias, final

import numpy as np

from isthmus.errors import MismatchError, SchemaError, StudyError
from isthmus.graphs import BoundKnowledge
from isthmus.joint.agreement.study import Study
from isthmus.joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus.joint.methods.admm.course import ADMMCourse
from isthmus.joint.methods.admm.models import LARGEST, SMALLEST, ADMMOptions, ConsensusModel
from isthmus.joint.methods.admm.requests import CAUTION, AskConsensus, AskNetworks, StepOfADMM
from isthmus.joint.methods.objective import JointObjective
from isthmus.objectives import Capability, Sense
from isthmus.options import require_choice, require_integer, require_number
from isthmus.results.details import SearchDetails
from isthmus.searches.base import Accepts, Search, SearchResult, Watch
from isthmus.statistics import Kind
from isthmus.types import Bools, Floats

Ask: TypeAlias = Callable[[ADMMCourse], Floats]
"""Returns the sum over sites of the next step of a course."""

ROUNDS = 200
SPARE = 10
"""Rounds of a study that are not steps: the first sum, and rounds that must be repeated."""
SCALES = (
    "Least squares depends on the scale of the columns: in other units the graph may be different. "
    "The study should use units in which the variables have similar variances."
)


class ADMMModel(StrEnum):
    """The model that all sites fit."""

    LINEAR = "linear"
    DYNAMIC = "dynamic"
    PERCEPTRON = "perceptron"


class Stiffness(StrEnum):
    """Whether ``rho2`` is the penalty of each site or of all sites together."""

    EACH = "each"
    TOGETHER = "together"


@final
class Consensus(JointObjective):
    """The loss of all sites together, which nobody knows: sites fit parameters and add them up."""

    equivalent = False
    sense = Sense.MINIMISE

    def __init__(self, study: Study, ask: Callable[[StepOfADMM], Floats]) -> None:
        self.nodes = study.schema.names
        self.capabilities = frozenset({CONSENSUS})
        self.study = study
        self.ask = ask

    def default_search(self) -> ADMM:
        return ADMM()

    def require(self, search: ADMM, knowledge: BoundKnowledge) -> None:
        search.begin(self, knowledge, np.random.default_rng(0))


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

    The study must allow the requests of ADMM, and all sites must answer in every round. Each site
    subtracts its own means from its rows, which costs one degree of freedom per site. Knowledge
    can forbid edges. The defaults are those of the paper; for neural networks they are our own,
    because the paper's schedule (``penalty=0.001``, ``rho1=0.1``, ``rho2=0.1``, `Stiffness.EACH`)
    stops learning early with many sites. The method of Ng and Zhang 2022 as it was published is
    :func:`isthmus.published.notears_admm`.

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
    stiffness: Stiffness | None = None
    accepts: ClassVar[Accepts] = (CONSENSUS,)

    def __post_init__(self) -> None:
        for name in ("penalty", "lagged_penalty", "threshold", "lagged_threshold"):
            require_number(self, name, least=0)
        require_number(self, "tolerance", least=0, optional=True)
        for name in ("rho1", "rho2"):
            require_number(self, name, least=SMALLEST, optional=True)
        for name in ("growth1", "growth2"):
            require_number(self, name, above=0)
        require_integer(self, "hidden", least=1, most=2**16)
        require_integer(self, "rounds", least=1, optional=True)
        for name, choices in (("model", ADMMModel), ("stiffness", Stiffness)):
            if getattr(self, name) is not None:
                require_choice(self, name, choices)

    def search(
        self,
        objective: Consensus,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
    ) -> SearchResult:
        run = self.begin(objective, knowledge, rng)
        with watch.until_stopped():
            watch.run(run.step, run.describe)
        return run.result()

    def begin(
        self, objective: Consensus, knowledge: BoundKnowledge, rng: np.random.Generator
    ) -> ADMMRun:
        """Return the rounds to do; nothing is sent before the first step."""
        consensus = CONSENSUS.require(objective)
        study, names = consensus.study, consensus.nodes
        if knowledge.required.any():
            raise MismatchError(
                "ADMM cannot require edges: a penalty moves all weights towards zero. Forbid the "
                "opposite edges, or use another search, such as Boss()."
            )
        kind, rounds = self.allowed(study)
        first = REQUESTS[kind](names, 0, self._options(kind, names, knowledge.forbidden, rng))

        def ask(course: ADMMCourse) -> Floats:
            return consensus.ask(replace(first, step=course.step))

        model = first.model(study.schema)
        course = ADMMCourse(model, first.options)
        return ADMMRun(self, kind, model, course, ask, rounds)

    def _options(
        self,
        kind: ADMMModel,
        names: tuple[str, ...],
        forbidden: Bools,
        rng: np.random.Generator,
    ) -> ADMMOptions:
        """Return the options that the sites must know."""
        networks = kind is ADMMModel.PERCEPTRON
        rho1, rho2 = (0.01, 0.16) if networks else (1e-3, 1e-3)
        usual = Stiffness.TOGETHER if networks else Stiffness.EACH
        pairs = np.argwhere(forbidden & ~np.eye(len(names), dtype=bool)).tolist()
        return ADMMOptions(
            float(self.penalty),
            float(self.lagged_penalty),
            min(float(self.rho1 or rho1), LARGEST),
            min(float(self.rho2 or rho2), LARGEST),
            float(self.growth1),
            float(self.growth2),
            together=(self.stiffness or usual) == Stiffness.TOGETHER,
            forbidden=tuple((names[i], names[j]) for i, j in pairs),
            hidden=self.hidden,
            seed=int(rng.integers(2**32)) if networks else 0,
        )

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
        if not kinds:
            raise StudyError(
                f"The study allows the requests {sorted(study.requests)}. ADMM needs 'consensus', "
                "or 'networks' (not for time series)."
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
                "first sum, and for rounds that must be repeated. This leaves "
                f"{max(most, 0)} steps for ADMM"
                + ("." if self.rounds is None else f"; {self.rounds} were requested.")
            )
        # Raises an error for variables that do not fit.
        REQUESTS[kind](study.schema.names, 1).size(FixedPointEncoding.of(study))
        return kind, min(ROUNDS, most) if self.rounds is None else self.rounds


REQUESTS: dict[ADMMModel, type[StepOfADMM]] = {
    ADMMModel.LINEAR: AskConsensus,
    ADMMModel.DYNAMIC: AskConsensus,
    ADMMModel.PERCEPTRON: AskNetworks,
}


@final
class ADMMRun:
    """A run of ADMM: one round per step.

    Parameters
    ----------
    rounds
        Maximum number of rounds, after the first, which counts rows.
    """

    def __init__(
        self,
        options: ADMM,
        kind: ADMMModel,
        model: ConsensusModel,
        course: ADMMCourse,
        ask: Ask,
        rounds: int = ROUNDS,
    ) -> None:
        usual = 1e-3 if kind is ADMMModel.PERCEPTRON else 1e-6
        self._options, self._kind, self._model = options, kind, model
        self._course, self._ask, self._rounds = course, ask, rounds
        self._tolerance = usual if options.tolerance is None else options.tolerance
        self._quiet = 0

    @property
    def done(self) -> int:
        """Number of rounds so far, without the first."""
        return max(self._course.step - 1, 0)

    @property
    def common(self) -> Floats:
        """The common parameters so far."""
        return self._course.common

    def step(self) -> bool:
        """Do one round and return whether it was the last one."""
        course = self._course
        if course.step == 0:
            course.take(self._ask(course))
        course.take(self._ask(course))
        # In the first rounds the penalty keeps all weights at zero, far from the mean of the sites.
        still = max(course.moved, 0.01 * course.cycles, 0.01 * course.apart) < self._tolerance
        self._quiet = self._quiet + 1 if still else 0
        return self._quiet == 5 or self.done == self._rounds

    def edges(self) -> Bools:
        """Return the edges ``[cause, effect]`` of the graph so far."""
        options = self._options
        return self._model.edges(self.common, options.threshold, options.lagged_threshold)

    def result(self) -> SearchResult:
        """Return the graph so far."""
        weights, edges = self._model.weights(self.common), self.edges()
        parents = [tuple(np.flatnonzero(column).tolist()) for column in edges.T]
        parents += [()] * (len(edges) - len(parents))
        details = ADMMDetails(self._kind, weights, self.common, self.done, self._course.cycles)
        return SearchResult(
            tuple(parents),
            nan,
            details,
            converged=self._quiet == 5,
            notes=(CAUTION, SCALES),
            conclusion=self._conclusion(),
        )

    def describe(self) -> tuple[str, float, float | None]:
        """Return the number of rounds; how many more are needed is not known."""
        return f"round {self.done} of at most {self._rounds}", nan, None

    def _conclusion(self) -> str:
        if self._quiet == 5:
            return f"the weights did not change any more after {self.done} rounds."
        return f"all {self.done} rounds were used: the weights may not have converged."
