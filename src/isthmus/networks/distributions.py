"""Answers to queries: distributions of some variables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from statistics import NormalDist
from typing import Any, TypeVar, final

import numpy as np

from isthmus.arrays import Floats
from isthmus.errors import ArgumentError, GraphError, MismatchError, a_type, rounded
from isthmus.frames import cells_of, table_of
from isthmus.graphs import CPDAG, DAG, PDAG
from isthmus.graphs.names import listed
from isthmus.graphs.possible_parents import (
    is_identified,
    parent_configurations,
    possible_descendants,
)
from isthmus.networks.column_maps import ColumnMap, NetworkMaps, TimeMap, scored_nodes, table_values
from isthmus.networks.columns import Level, unknown_level
from isthmus.networks.sampling_error import DrawnAnswer
from isthmus.options import check_level

_POINT = 1e-12
"""Standard deviation that stands for zero when quantiles of a mixture are computed."""
_FAR = 40.0
"""Standard deviations from the mean beyond which a normal distribution has no mass."""
_HALVINGS = 80
"""Number of bisections for a quantile of a mixture."""
_FROM_PRIOR = (
    "No row of the data has this combination of the parents of {}: the answer comes from the prior."
)
_SIMULATED = "More simulations reduce the simulation error."
_UNKNOWN = "The sampling error of the fitted parameters is not included."
_ESTIMATED = "The sampling error is that of the parameters, with {} taken as given."


@final
@dataclass(frozen=True, eq=False)
class Probabilities(DrawnAnswer):
    """The joint distribution of discrete variables; ``numpy.asarray`` gives the probabilities.

    Probabilities are those of the estimated parameters; `sampling_error` and `confidence_interval`
    say how far they may be from the true ones.

    Attributes
    ----------
    levels
        The values of each variable, by name, in the order of the axes.
    values
        The probabilities, one axis per variable.
    squares
        If the answer was simulated, the sum of the squared weights of the draws in each cell,
        from which `error` is computed. None if the answer is exact.
    unseen
        Variables whose distribution comes from the prior, because no row of the data has what was
        observed of their parents.
    note
        What an intervention does not change according to the learned graph, or nothing.
    redraw
        Computes the answer for drawn parameters, for the sampling error.
    """

    levels: Mapping[str, tuple[Level, ...]]
    values: Floats
    squares: Floats | None = None
    unseen: tuple[str, ...] = ()
    note: str = ""
    redraw: Callable[[], Floats] | None = field(default=None, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""
        return tuple(self.levels)

    @property
    def error(self) -> Floats | None:
        """Simulation error of each probability; None if the answer is exact for the parameters."""
        if self.squares is None:
            return None
        total, p = float(self.squares.sum()), self.values
        error: Floats = np.sqrt(self.squares * (1 - p) ** 2 + (total - self.squares) * p**2)
        return error

    def __getitem__(self, level: Level | tuple[Level, ...]) -> float:
        """Return the probability of a level, or of one level per variable."""
        asked = level if isinstance(level, tuple) else (level,)
        if len(asked) != len(self.levels):
            raise ArgumentError(f"Give one level for each of {list(self.names)}; got {level!r}.")
        place = []
        for (name, known), wanted in zip(self.levels.items(), asked, strict=True):
            if wanted not in known:
                raise unknown_level(name, wanted, known)
            place.append(known.index(wanted))
        return float(self.values[tuple(place)])

    def marginal(self, name: str) -> Probabilities:
        """Return the distribution of one of the variables."""
        if name not in self.levels:
            raise ArgumentError(f"{name!r} is not one of {list(self.names)}.")
        others = tuple(i for i, other in enumerate(self.names) if other != name)
        squares = None if self.squares is None else self.squares.sum(axis=others)
        values, redraw = self.values.sum(axis=others), None
        if self.redraw is not None:
            redraw = partial(_summed, self.redraw, tuple(1 + i for i in others))
        return Probabilities({name: self.levels[name]}, values, squares, redraw=redraw)

    def most_probable(self) -> dict[str, Level]:
        """Return the most probable level of each variable, jointly."""
        place = np.unravel_index(int(np.argmax(self.values)), self.values.shape)
        return {name: own[i] for (name, own), i in zip(self.levels.items(), place, strict=True)}

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.values, dtype=dtype)

    def to_frame(self, like: object = None) -> Any:
        """Return one row per combination of levels; see :func:`isthmus.to_frame`."""
        values = {"probability": self.values} | _errors(self)
        return table_of(cells_of(self.levels, values), like)

    def __str__(self) -> str:
        lines, errors = [", ".join(self.names)], (self.error, self.sampling_error)
        for place in np.ndindex(self.values.shape):
            known = zip(self.levels.values(), place, strict=True)
            row = ", ".join(str(own[i]) for own, i in known)
            lines.append(f"{row}: {self.values[place]:.4f}{_unsure(errors, place)}")
        return _joined(lines, errors, self.unseen, self.note)

    __repr__ = __str__


@final
@dataclass(frozen=True, eq=False)
class Explanation:
    """The most probable values of some variables, jointly, given the evidence.

    The sampling error of fitted parameters is not included.

    Attributes
    ----------
    values
        The level, or the value, of each variable.
    log_probability
        Logarithm of their joint probability given the evidence; of their joint density if they are
        continuous, which is that of the scores for normal scores.
    maps
        Units of dates and durations.
    """

    values: Mapping[str, Level | float]
    log_probability: float
    maps: NetworkMaps = field(default_factory=dict)

    def __getitem__(self, name: str) -> Level | float:
        """Return the value of a variable."""
        if name not in self.values:
            raise ArgumentError(f"{name!r} is not one of {list(self.values)}.")
        return self.values[name]

    def to_frame(self, like: object = None) -> Any:
        """Return one row per variable; see :func:`isthmus.to_frame`."""
        values = np.empty(len(self.values), dtype=object)
        values[:] = list(self.values.values())
        return table_of({"variable": np.array([*self.values]), "value": values}, like)

    def __str__(self) -> str:
        rows = [f"{name}: {_plain(self.maps, name, value)}" for name, value in self.values.items()]
        return "\n".join([*rows, f"log-probability: {self.log_probability:.6g}"])

    __repr__ = __str__


def _plain(maps: NetworkMaps, name: str, value: Level | float) -> str:
    return shown(maps, name, value) if isinstance(value, float) else str(value)


def shown(maps: NetworkMaps, name: str, value: float) -> str:
    """Return a number of a variable as text, and as a date if it stands for one."""
    own = maps.get(name)
    return own.shown(value) if isinstance(own, TimeMap) else f"{rounded(value, 4)}"


def _with_spread(maps: NetworkMaps, name: str, mean: float, spread: float) -> str:
    own = maps.get(name)
    away = own.spread(spread) if isinstance(own, TimeMap) else f"{rounded(spread, 4)}"
    return f"{name}: {shown(maps, name, mean)} ± {away}"


@final
@dataclass(frozen=True, eq=False)
class Normal(DrawnAnswer):
    """The joint normal distribution of continuous variables.

    Means are those of the estimated parameters, with a `sampling_error`. The covariance does not
    include it.

    Attributes
    ----------
    names
        Names of the variables, in the order of the arrays.
    mean, covariance
        Its parameters. Dates are numbers in the unit that was learned, since 1970.
    maps
        Units of dates and durations.
    note
        What an intervention does not change according to the learned graph, or nothing.
    redraw
        Computes the answer for drawn parameters, for the sampling error.
    """

    names: tuple[str, ...]
    mean: Floats
    covariance: Floats
    maps: NetworkMaps = field(default_factory=dict)
    note: str = ""
    redraw: Callable[[], Floats] | None = field(default=None, repr=False)

    @property
    def deviation(self) -> Floats:
        """Standard deviation of each variable."""
        deviation: Floats = np.sqrt(self.covariance.diagonal())
        return deviation

    def to_frame(self, like: object = None) -> Any:
        """Return one row per variable; see :func:`isthmus.to_frame`."""
        return table_of(_moments(self), like)

    def __str__(self) -> str:
        errors = None, self.sampling_error
        lines = [
            _with_spread(self.maps, *each)
            + _unsure(errors, i, " of the mean", self.maps.get(each[0]))
            for i, each in enumerate(
                zip(self.names, self.mean.tolist(), self.deviation.tolist(), strict=True)
            )
        ]
        return _joined(lines, errors, (), self.note)

    __repr__ = __str__

    def quantile(self, share: float) -> Floats:
        """Return for each variable the value with this probability of smaller ones."""
        quantile: Floats = self.mean + NormalDist().inv_cdf(share) * self.deviation
        return quantile


@final
@dataclass(frozen=True, eq=False)
class NormalMixture(DrawnAnswer):
    """The joint distribution of continuous variables as a weighted mixture of normal ones.

    Means are those of the estimated parameters, with a `sampling_error`. The covariance does not
    include it.

    Attributes
    ----------
    names
        Names of the variables, in the order of the arrays.
    weights
        Weight of each component; they sum to one.
    means, covariances
        Parameters of the components, with one row or one matrix per component.
    simulated
        Whether the components are weighted draws, each with covariance zero. Otherwise the
        mixture is exact.
    maps
        Units of dates and durations.
    unseen
        As in `Probabilities`.
    note
        What an intervention does not change according to the learned graph, or nothing.
    redraw
        Computes the answer for drawn parameters, for the sampling error.
    """

    names: tuple[str, ...]
    weights: Floats
    means: Floats
    covariances: Floats
    simulated: bool = False
    maps: NetworkMaps = field(default_factory=dict)
    unseen: tuple[str, ...] = ()
    note: str = ""
    redraw: Callable[[], Floats] | None = field(default=None, repr=False)

    @property
    def mean(self) -> Floats:
        """Mean of each variable; `error` is its simulation error."""
        mean: Floats = self.weights @ self.means
        return mean

    @property
    def covariance(self) -> Floats:
        """Covariance matrix of the variables."""
        away = self.means - self.mean
        within = np.tensordot(self.weights, self.covariances, axes=1)
        covariance: Floats = within + (self.weights[:, None] * away).T @ away
        return covariance

    @property
    def deviation(self) -> Floats:
        """Standard deviation of each variable."""
        deviation: Floats = np.sqrt(self.covariance.diagonal())
        return deviation

    @property
    def error(self) -> Floats | None:
        """Simulation error of each mean; None if the answer is exact for the parameters."""
        if not self.simulated:
            return None
        error: Floats = np.sqrt(self.weights**2 @ (self.means - self.mean) ** 2)
        return error

    def to_frame(self, like: object = None) -> Any:
        """Return one row per variable; see :func:`isthmus.to_frame`."""
        return table_of(_moments(self), like)

    def __str__(self) -> str:
        errors = self.error, self.sampling_error
        lines = [
            _with_spread(self.maps, *each)
            + _unsure(errors, i, " of the mean", self.maps.get(each[0]))
            for i, each in enumerate(
                zip(self.names, self.mean.tolist(), self.deviation.tolist(), strict=True)
            )
        ]
        return _joined(lines, errors, self.unseen, self.note)

    __repr__ = __str__

    def quantile(self, share: float) -> Floats:
        """Return for each variable the value with this probability of smaller ones."""
        from scipy.special import ndtr

        spread = np.sqrt(np.diagonal(self.covariances, axis1=1, axis2=2)) + _POINT
        low = (self.means - _FAR * spread).min(axis=0)
        high = (self.means + _FAR * spread).max(axis=0)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            with np.errstate(over="ignore"):
                below = self.weights @ ndtr((middle - self.means) / spread) < share
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        quantile: Floats = (low + high) / 2
        return quantile


@final
@dataclass(frozen=True, eq=False)
class Nonparanormal(DrawnAnswer):
    """The distribution of continuous variables, some of which were learned as normal scores.

    Scores are a monotone function of the values of a column. A median and other quantiles can
    therefore be given in the units of the columns; a mean and a standard deviation cannot.
    `interval` is that of a single value, and `confidence_interval` that of the median.

    Attributes
    ----------
    scores
        The distribution of the scores.
    maps
        The functions from values to scores; columns without one are in their own units.
    redraw
        Computes the medians for drawn parameters, for the sampling error.
    """

    scores: Normal | NormalMixture
    maps: NetworkMaps
    redraw: Callable[[], Floats] | None = field(default=None, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""
        return self.scores.names

    @property
    def median(self) -> Floats:
        """Median of each variable, in the units of its column."""
        return self.quantile(0.5)

    @property
    def mean(self) -> Floats:
        """Raises a `MismatchError`: the scores have a mean, which is not that of the values."""
        raise self._only_quantiles()

    @property
    def deviation(self) -> Floats:
        """Raises a `MismatchError`, as `mean` does."""
        raise self._only_quantiles()

    @property
    def covariance(self) -> Floats:
        """Raises a `MismatchError`, as `mean` does."""
        raise self._only_quantiles()

    def _only_quantiles(self) -> MismatchError:
        return MismatchError(
            f"{listed(scored_nodes(self.maps))} were learned as normal scores, whose means and "
            "standard deviations cannot be converted to units of the columns. Use median, "
            "interval() or quantile(); .scores has the distribution of the scores."
        )

    @property
    def error(self) -> Floats | None:
        """Simulation error of each median; None if the answer is exact for the parameters."""
        if isinstance(self.scores, Normal) or not self.scores.simulated:
            return None
        away = 0.5 * float(np.sqrt((self.scores.weights**2).sum()))
        error: Floats = (self.quantile(0.5 + away) - self.quantile(0.5 - away)) / 2
        return error

    def quantile(self, share: float) -> Floats:
        """Return for each variable the value with this probability of smaller ones.

        Beyond the outermost knots of its map, it is the value of the last knot.
        """
        scores = self.scores.quantile(share)
        return np.array(
            [table_values(self.maps, v, own) for v, own in zip(self.names, scores, strict=True)]
        )

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return the ends of the interval that has a value of each variable with a probability.

        Parameters
        ----------
        level
            The probability, between 0 and 1 (0.95, not 95).
        """
        check_level(level)
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)

    def to_frame(self, like: object = None) -> Any:
        """Return one row per variable; see :func:`isthmus.to_frame`."""
        low, high = self.interval()
        columns = {"variable": np.array(self.names), "median": self.median}
        return table_of(columns | {"lower": low, "upper": high} | _errors(self), like)

    def __str__(self) -> str:
        lines, errors, ends = [], (self.error, self.sampling_error), self.interval()
        scores = [self.scores.quantile(share) for share in (0.025, 0.975)]
        for i, (name, middle) in enumerate(zip(self.names, self.median.tolist(), strict=True)):
            low, high = (shown(self.maps, name, float(end[i])) for end in ends)
            own = self.maps.get(name)
            if isinstance(own, ColumnMap) and own.scores:
                low = f"at most {low}" if scores[0][i] < own.scores[0] else low
                high = f"at least {high}" if scores[1][i] > own.scores[-1] else high
            unsure = _unsure(errors, i, "", own)
            lines.append(
                f"{name}: median {shown(self.maps, name, middle)}{unsure}, 95% between {low} and "
                f"{high}"
            )
        unseen = self.scores.unseen if isinstance(self.scores, NormalMixture) else ()
        return _joined(lines, errors, unseen, self.scores.note, given="the graph and the scores")

    __repr__ = __str__


AnswerT = TypeVar("AnswerT", bound=Normal | NormalMixture)


def in_units(answer: AnswerT, maps: NetworkMaps) -> AnswerT | Nonparanormal:
    """Return a distribution of nodes as one of the columns that they were learned from."""
    own = {v: maps[v] for v in answer.names if v in maps}
    return Nonparanormal(answer, own) if scored_nodes(own) else replace(answer, maps=own)


def centre(answer: Probabilities | Normal | NormalMixture | Nonparanormal) -> Floats:
    """Return what an answer estimates: probabilities, means, or medians."""
    if isinstance(answer, Probabilities):
        return answer.values
    return answer.median if isinstance(answer, Nonparanormal) else answer.mean


def _moments(answer: Normal | NormalMixture) -> dict[str, Any]:
    columns = {"variable": np.array(answer.names), "mean": answer.mean}
    return columns | {"standard_deviation": answer.deviation} | _errors(answer)


def _errors(answer: Probabilities | Normal | NormalMixture | Nonparanormal) -> dict[str, Any]:
    simulation = None if isinstance(answer, Normal) else answer.error
    errors = {"simulation_error": simulation, "sampling_error": answer.sampling_error}
    return {name: error for name, error in errors.items() if error is not None}


def _summed(redraw: Callable[[], Floats], axes: tuple[int, ...]) -> Floats:
    total: Floats = redraw().sum(axis=axes)
    return total


def _unsure(
    errors: tuple[Floats | None, Floats | None],
    place: Any,
    more: str = "",
    unit: ColumnMap | TimeMap | None = None,
) -> str:
    """Return the errors of one number in brackets; nothing if it has none."""
    named = zip(("simulation error", "sampling error"), errors, strict=True)
    known = [(word, float(error[place])) for word, error in named if error is not None]
    times = unit if isinstance(unit, TimeMap) else None
    parts = [
        f"{word}{more} {rounded(e) if times is None else times.spread(e)}" for word, e in known
    ]
    return f" ({', '.join(parts)})" if parts else ""


def _joined(
    lines: list[str],
    errors: tuple[Floats | None, Floats | None],
    unseen: tuple[str, ...],
    note: str,
    given: str = "the graph",
) -> str:
    simulated, estimated = (error is not None for error in errors)
    about = [_SIMULATED] * simulated + [_ESTIMATED.format(given)] * estimated
    about += [_UNKNOWN] * (simulated and not estimated)
    return "\n".join([*lines, *about, *map(_FROM_PRIOR.format, unseen), *[note] * bool(note)])


# --- Which members of an equivalence class an intervention must be answered for -----------------

MAX_CONFIGURATIONS = 1024
"""Maximum number of choices of the parents of the variables that are set: all subsets of ten
neighbours. Each of them takes a junction tree, some milliseconds."""


def check_class(dag: DAG, cpdag: CPDAG | PDAG | None) -> None:
    """Raise a GraphError if a graph is not a member of an equivalence class."""
    if cpdag is None:
        return
    if not isinstance(cpdag, CPDAG | PDAG):
        raise GraphError(f"cpdag must be a CPDAG or a PDAG; got {a_type(cpdag)}.")
    same = set(cpdag.nodes) == set(dag.nodes) and cpdag.skeleton() == dag.skeleton()
    if not same or not all(dag.has_edge(*edge) for edge in cpdag.directed):
        raise GraphError("The graph of the network is not a member of the class in cpdag.")


def members_to_ask(
    dag: DAG,
    cpdag: CPDAG | PDAG | None,
    do: Collection[str],
    asked: Collection[str],
) -> tuple[DAG, ...]:
    """Return the graphs for which an intervention must be answered; none if there are too many.

    Parameters
    ----------
    dag
        The graph of the network, which is the only one if all members give the same answer.
    cpdag
        The equivalence class; None if the graph is causal by assumption.
    """
    if cpdag is None or not do or is_identified(cpdag, do, asked):
        return (dag,)
    graphs = tuple(islice(parent_configurations(cpdag, do), MAX_CONFIGURATIONS + 1))
    return () if len(graphs) > MAX_CONFIGURATIONS else graphs


def reason_for_range(do: Collection[str], choices: int, more: str = "") -> str:
    """Return why an intervention has no single answer."""
    text = f"the data do not determine the directions of all edges at {listed(do)}."
    if choices:
        return f"{text} Bounds over {choices} possible sets of parents:"
    return (
        f"{text} The range was not computed{more}. Add background knowledge, or ask "
        "solution.effect for the range of an effect."
    )


def note_without_path(
    cpdag: CPDAG | PDAG | None, do: Collection[str], targets: Collection[str]
) -> str:
    """Return what to say if no intervention has a path to the targets in a learned graph."""
    if cpdag is None or not do:
        return ""
    reached = {v for cause in do for v in possible_descendants(cpdag, cause)}
    if reached & {*targets}:
        return ""
    return (
        f"The learned graph has no directed path from {listed(do)} to {listed(targets)}, so the "
        "intervention changes nothing here. The search may have missed an edge: solution.effect "
        "compares the levels or values in the data."
    )
