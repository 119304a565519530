"""Structure learning across sites by ADMM on model parameters (Ng and Zhang 2022)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import nan
from typing import Any, ClassVar, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Bools, Floats
from isthmus.errors import DataError, MismatchError, SchemaError, StudyError
from isthmus.graphs import BoundKnowledge
from isthmus.objectives import Capability, Sense
from isthmus.options import require_choice, require_integer, require_number
from isthmus.results.details import SearchDetails
from isthmus.searches.base import Accepts, JointObjective, Search, SearchResult
from isthmus.statistics import Kind, Moments, Schema
from isthmus.tables.base import Source
from isthmus.watch import Watch
from isthmus_joint.agreement.study import Study
from isthmus_joint.federation.requests.base import SiteSteps, StepRequest
from isthmus_joint.federation.requests.fixed_point import (
    IMPOSSIBLE,
    FixedPointEncoding,
    require_count,
)
from isthmus_joint.federation.requests.statistics import show_array
from isthmus_joint.methods.admm_models import (
    LARGEST,
    SMALLEST,
    ADMMOptions,
    ConsensusModel,
    LinearConsensus,
    PerceptronConsensus,
    Pull,
    cycles,
)
from isthmus_joint.secure_sum.terms import LimbArray, from_ints, to_ints

# --- The clients of ADMM at the sites: they fit parameters of their own near the common ones ----
#
# After Ng and Zhang 2022, section 5. A site contributes ``B + β/ρ`` to a sum, and the
# coordinator's step needs only that sum.


class Client(ABC):
    """One site in ADMM, before its next step.

    Parameters
    ----------
    shape
        Shape of the parameters.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._multipliers = np.zeros(shape)
        self._own: Floats | None = None
        self._rho = 0.0

    @abstractmethod
    def _fit(self, common: Floats, rho: float) -> Floats:
        """Minimise the site's loss plus ``β · (B - W) + ρ/2 |B - W|²``."""

    def answer(self, common: Floats, rho: float) -> Floats:
        """Do one step, and return ``B + β/ρ`` for these common parameters."""
        if self._own is not None:
            self._multipliers = self._multipliers + self._rho * (self._own - common)
        self._own, self._rho = self._fit(common, rho), rho
        contribution: Floats = self._own + self._multipliers / rho
        return contribution


@final
class LinearClient(Client):
    """A site in ADMM for linear models.

    Parameters
    ----------
    second
        Second moments of the site's rows about their means, divided by the number of rows of *all*
        sites.
    targets
        Number of effects. The first variables are effects, the others are only causes (such as
        lagged variables). By default all variables are effects.
    """

    def __init__(self, second: Floats, targets: int | None = None) -> None:
        self._second = second
        self._targets = len(second) if targets is None else targets
        super().__init__((len(second), self._targets))

    def _fit(self, common: Floats, rho: float) -> Floats:
        right = rho * common - self._multipliers + self._second[:, : self._targets]
        solved = np.linalg.solve(self._second + rho * np.eye(len(self._second)), right)
        return solved.astype(np.float64)


@final
class NetworkClient(Client):
    """A site in ADMM for one small neural network per variable. Needs JAX.

    Parameters
    ----------
    values
        The site's rows, less their means.
    hidden
        Units in the hidden layer of each network.
    rows
        Number of rows of *all* sites.
    iterations
        Maximum number of L-BFGS iterations per step. Exact minima in early steps are not useful.
    """

    def __init__(self, values: Floats, hidden: int, rows: int, iterations: int = 30) -> None:
        from isthmus.neural import perceptron

        n, d = values.shape
        size = perceptron.size(d, hidden)
        super().__init__((size,))
        self._values = values
        self._hidden = hidden
        self._share = n / rows
        self._iterations = iterations
        # No network uses the variable that it predicts.
        own = np.repeat(np.eye(d, dtype=bool).ravel(), hidden)
        self._held = np.zeros(size, dtype=bool)
        self._held[: len(own)] = own

    def _fit(self, common: Floats, rho: float) -> Floats:
        from scipy.optimize import minimize

        from isthmus.neural import perceptron

        loss = perceptron.value_and_gradient(self._values, self._hidden, 0.0)
        # Divided by ρ, so that tolerances have the same meaning in early and late steps.
        pull, share = self._multipliers / rho, self._share / rho

        def objective(parameters: Floats) -> tuple[float, Floats]:
            value, gradient = loss(parameters)
            away = parameters - common
            value = share * value + float((pull + 0.5 * away) @ away)
            return value, np.where(self._held, 0.0, share * gradient + pull + away)

        optimum = minimize(
            objective,
            common if self._own is None else np.where(self._held, common, self._own),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": self._iterations, "ftol": 1e-10, "gtol": 1e-6},
        )
        return np.asarray(optimum.x, dtype=np.float64)


# --- The coordinator's steps ---------------------------------------------------------------------
#
# The course of ADMM: from the sums of the steps so far to the parameters of the next step.

LARGEST_PARAMETER = 1024.0
"""Common parameters are not larger; those of a site are then far below the limit of its answer."""


@final
class ADMMCourse:
    """The common parameters of the next step, which follow from the sums of the steps so far.

    The coordinator and the sites compute them alike. Nobody can choose them.

    Attributes
    ----------
    step
        Number of the next step; step 0 counts sites and rows.
    common, rho
        The common parameters and the penalty on disagreement of the next step.
    cycles, moved, apart
        Of the last step: the acyclicity measure, by how much the common parameters changed, and
        how far they are from the mean of the sites.
    """

    def __init__(self, model: ConsensusModel, options: ADMMOptions) -> None:
        self._model, self._options = model, options
        self.step = self.sites = self.rows = 0
        self.common, self.rho = model.start(), options.rho2
        self.cycles = cycles(model.weights(self.common))
        self.moved = self.apart = np.inf
        self._alpha, self._rho1 = 0.0, options.rho1

    def take(self, total: Floats) -> None:
        """Take the sum of a step over all sites.

        Raises
        ------
        DataError
            The parameters that follow from it are larger than those of any sensible model.
        """
        if self.step == 0:
            self._count(*total.tolist())
        else:
            self._join(total / self.sites)
        self.step += 1

    def _count(self, sites: float, rows: float) -> None:
        if not 1 <= sites <= rows:
            raise DataError(
                f"The sites say that they are {sites:.0f} and have {rows:.0f} rows. A site may "
                "have sent a wrong answer. Check the sites, and start a new run."
            )
        self.sites, self.rows = int(sites), int(rows)
        if self._options.together:
            self.rho = max(self.rho / sites, SMALLEST)

    def _join(self, target: Floats) -> None:
        pull = Pull(self.sites * self.rho, self._alpha, self._rho1)
        new = self._model.join(target, self.common, pull)
        # A site could otherwise choose parameters at which the answers of other sites are cut, and
        # learn from the total which ones were.
        if not np.abs(new).max(initial=0.0) <= LARGEST_PARAMETER:
            raise DataError(
                f"The common parameters are larger than {LARGEST_PARAMETER:g}. The units of the "
                "variables may differ too much, or a site may have sent a wrong answer. Check the "
                "sites, and start a new run."
            )
        options, h = self._options, cycles(self._model.weights(new))
        self.cycles = h
        self.moved = float(np.abs(new - self.common).max())
        self.apart = float(np.abs(new - target).max())
        self.common = new
        self._alpha += self._rho1 * h
        self._rho1 = float(np.clip(self._rho1 * options.growth1, SMALLEST, LARGEST))
        self.rho = float(np.clip(self.rho * options.growth2, SMALLEST, LARGEST))


# --- Requests for the steps of ADMM -------------------------------------------------------------

Matrix: TypeAlias = NDArray[np.float64]

LIMBS = 4
"""Parameters are sent as integers of 128 bits."""

PARAMETER_BITS = 20
"""Parameters of a model are smaller than two to this power."""

CAUTION = (
    "ADMM reveals more than one secure sum: the sums of many rounds can reveal the statistics of "
    "single sites if there are few sites. See 'Learn with ADMM over real sites' in the "
    "documentation."
)


@dataclass(frozen=True)
class StepOfADMM(StepRequest[Matrix]):
    """One step of ADMM.

    Step 0 asks for the number of sites and of rows. Every later step asks for the parameters that a
    site fits near the common ones, which follow from all sums before.
    """

    options: ADMMOptions = ADMMOptions()
    limbs: ClassVar[int] = LIMBS
    caution: ClassVar[str] = CAUTION

    @staticmethod
    def steps_allowed(study: Study) -> int:
        return study.rounds

    @abstractmethod
    def model(self, schema: Schema) -> ConsensusModel:
        """Return the model that the sites fit."""

    @abstractmethod
    def client(self, source: Source, moments: Moments, rows: int) -> Client:
        """Return the site before step 1, given the number of rows of all sites."""

    def violations(self, study: Study) -> list[str]:
        fit = self.options.fit(self.asked)
        return super().violations(study) + ([] if fit else ["no run of ADMM has these options"])

    def begin(self, source: Source, grid: FixedPointEncoding) -> ADMMAtSite:
        return ADMMAtSite(self, source, grid)

    def size(self, grid: FixedPointEncoding) -> int:
        schema = grid.schema.subset(self.asked)
        schema.require(Kind.CONTINUOUS, "ADMM needs")
        return 2 if self.step == 0 else math.prod(self.model(schema).shape)

    def decode(self, total: LimbArray, grid: FixedPointEncoding) -> Matrix:
        if self.step == 0:
            return np.array(to_ints(total), dtype=np.float64)
        one = 1 << _fraction(grid)
        numbers = np.array([v / one for v in to_ints(total)])
        return numbers.reshape(self.model(grid.schema).shape)

    def require_plausible(self, total: LimbArray, grid: FixedPointEncoding) -> None:
        if self.step == 0:
            sites, rows = to_ints(total)
            require_count(sites, grid.sites)
            require_count(rows, grid.rows * grid.sites)
        elif np.abs(self.decode(total, grid)).max(initial=0.0) > grid.sites * 2**PARAMETER_BITS:
            raise DataError(IMPOSSIBLE)

    def show(self, numbers: LimbArray, grid: FixedPointEncoding) -> list[str]:
        value = self.decode(numbers, grid)
        if self.step == 0:
            return [f"  sites: {value[0]:.0f}", f"  rows: {value[1]:.0f}"]
        return [show_array(value)]

    def __str__(self) -> str:
        if self.step == 0:
            return "number of sites and rows"
        kind = "neural networks of " if self.name == AskNetworks.name else ""
        return (
            f"parameters of ADMM for {kind}{len(self.asked)} variables; sums of many rounds can "
            "reveal single sites, see 'Learn with ADMM over real sites' in the documentation"
        )


@final
class AskConsensus(StepOfADMM):
    """Request one step of ADMM for linear models."""

    name: ClassVar[str] = "consensus"

    def model(self, schema: Schema) -> LinearConsensus:
        return LinearConsensus(schema, self.options)

    def client(self, source: Source, moments: Moments, rows: int) -> LinearClient:
        second = moments.shifted(moments.mean()).gram / rows
        return LinearClient(second, self.model(moments.schema).effects)


@final
class AskNetworks(StepOfADMM):
    """Request one step of ADMM for one small neural network per variable."""

    name: ClassVar[str] = "networks"
    caution: ClassVar[str] = f"{CAUTION} Sites whose rows describe persons refuse neural networks."

    def model(self, schema: Schema) -> PerceptronConsensus:
        return PerceptronConsensus(schema, self.options)

    def client(self, source: Source, moments: Moments, rows: int) -> NetworkClient:
        columns = list(source.schema().indices(self.asked))
        # A fixed memory layout, because the last digits of sums depend on it.
        values = np.ascontiguousarray(source.rows()[:, columns])
        return NetworkClient(values - values.mean(axis=0), self.options.hidden, rows)


@final
class ADMMAtSite(SiteSteps):
    """ADMM at a site."""

    def __init__(self, request: StepOfADMM, source: Source, grid: FixedPointEncoding) -> None:
        self._request, self._source, self._grid = request, source, grid
        self._moments = source.moments(request.asked)
        self._course = ADMMCourse(request.model(grid.schema), request.options)
        self._client: Client | None = None
        self._next: LimbArray | None = from_ints([1, self._moments.n], LIMBS)

    def contribution(self) -> LimbArray:
        if self._next is None:
            course = self._course
            if self._client is None:
                self._client = self._request.client(self._source, self._moments, course.rows)
            self._next = encoded_parameters(
                self._client.answer(course.common, course.rho), self._grid
            )
        return self._next

    def take(self, total: LimbArray) -> None:
        self.contribution()  # the next one depends on it, also when steps are done again
        request = replace(self._request, step=self._course.step)
        self._course.take(request.decode(total, self._grid))
        self._next = None


def encoded_parameters(parameters: Matrix, grid: FixedPointEncoding) -> LimbArray:
    """Return the parameters of a site as integers."""
    # Whether a site answers must not depend on its data: large numbers are cut, not refused.
    most = np.nextafter(2.0**PARAMETER_BITS, 0.0)
    cut = np.clip(np.nan_to_num(parameters), -most, most)
    scaled = np.ldexp(cut, _fraction(grid)).ravel().tolist()
    return from_ints([round(v) for v in scaled], LIMBS)


def _fraction(grid: FixedPointEncoding) -> int:
    """Return the binary digits after the point of a summed parameter."""
    return 32 * LIMBS - 2 - PARAMETER_BITS - grid.sites.bit_length()


# --- ADMM over a federation (Ng and Zhang 2022): linear models, time series, neural networks ----
#
# The coordinator's step uses only secure sums, so the coordinator never sees the parameters of a
# site. Every site computes the step itself from the same sums, so the coordinator cannot choose
# the parameters. This does not make ADMM harmless. For linear models, the sums of many rounds
# determine ``Σ_k (S_k + ρ I)⁻¹`` for every ρ of the schedule, from which the statistics of few
# sites can be separated. Where moments add up, one secure sum of moments reveals less and learns
# better.

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
