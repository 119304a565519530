"""What would have been: bounds on counterfactuals of networks with levels, for one row.

A row says which noise each node had. For numbers, the noise is the rest of the regression, which
the other world keeps. For levels, a probability table does not say what a unit at one level would
have done with other parents: of all ways that agree with the tables, the smallest and the largest
probability are bounds (Tian and Pearl 2000). The noises of different nodes are independent, since
the graph has no hidden common causes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats
from isthmus.errors import DataError, GraphError, MismatchError
from isthmus.frames import table_of
from isthmus.graphs import CPDAG, DAG, PDAG
from isthmus.graphs.names import listed
from isthmus.networks.columns import Level
from isthmus.networks.conditionals import Conditional, DiscreteConditional, NormalConditional

_LARGEST = 2**20
"""Maximum number of combinations of levels that the affected nodes may have."""


@final
@dataclass(frozen=True, eq=False)
class Counterfactual:
    """Bounds on what a variable would have been in one row.

    Attributes
    ----------
    name
        The variable.
    levels
        Its levels; empty for a number.
    lower, upper
        Bounds on the probability of each level, or on the expected number (one element). They hold
        whatever the mechanisms behind the parameters are. If more than one variable lies between
        cause and target, they can be wider than necessary. The sampling error of fitted parameters
        is not included.
    """

    name: str
    levels: tuple[Level, ...]
    lower: Floats
    upper: Floats

    def __getitem__(self, level: Level) -> tuple[float, float]:
        """Return the bounds on the probability of a level."""
        if level not in self.levels:
            raise DataError(f"{level!r} is not one of the levels of {self.name!r}: {self.levels}.")
        place = self.levels.index(level)
        return float(self.lower[place]), float(self.upper[place])

    def to_frame(self, like: object = None) -> Any:
        """Return one row per level, or one for a number; see :func:`isthmus.to_frame`."""
        columns: dict[str, Any] = {self.name: self.levels} if self.levels else {}
        return table_of({**columns, "lower": self.lower, "upper": self.upper}, like)

    def __str__(self) -> str:
        bounds = zip(self.lower.tolist(), self.upper.tolist(), strict=True)
        shown = [
            f"{low:.4g}" if high - low < 1e-9 else f"between {low:.4g} and {high:.4g}"
            for low, high in bounds
        ]
        if not self.levels:
            return f"{self.name}: {shown[0]}"
        rows = zip(self.levels, shown, strict=True)
        return "\n".join([self.name, *(f"{level}: {text}" for level, text in rows)])

    __repr__ = __str__


def require_causal(cpdag: CPDAG | PDAG | None) -> None:
    """Raise `GraphError` if a network stands for several causal graphs."""
    if cpdag is not None and cpdag.undirected:
        raise GraphError(
            f"A counterfactual needs the direction of every edge, and {len(cpdag.undirected)} "
            "edges of the learned graph have none. Fit a graph that you take for causal: "
            "ist.fit(data, dag)."
        )


def affected_nodes(dag: DAG, do: Mapping[str, Any], target: str) -> list[str]:
    """Return the nodes that an intervention changes, up to a target, causes first."""
    reached = {v for cause in do for v in dag.descendants(cause)} - do.keys()
    useful = {target, *dag.ancestors(target)}
    return [v for v in dag.topological_order() if v in reached & useful]


def unknown_nodes(
    dag: DAG, row: Mapping[str, Any], affected: Sequence[str], target: str
) -> list[str]:
    """Return the nodes whose observed value matters and is not in the row."""
    needed = {target, *(u for v in affected for u in (v, *dag.parents(v)))}
    return [v for v in dag.nodes if v in needed and v not in row]


def counterfactual_bounds(
    conditionals: Mapping[str, Conditional],
    row: Mapping[str, float],
    do: Mapping[str, float],
    affected: Sequence[str],
    target: str,
) -> tuple[Floats, Floats]:
    """Return bounds on a target, of which everything that matters was observed.

    Parameters
    ----------
    row
        What was observed: codes of levels, and numbers.
    affected
        The nodes that change, causes first, as `affected_nodes` returns them.
    """
    levels = len(conditionals[target].levels)
    if target not in affected:
        known = row[target]
        value = np.eye(levels)[int(known)] if levels else np.array([known])
        return value, value
    seen = {v: np.array([x]) for v, x in row.items()}
    other: dict[str, NDArray[Any]] = {**seen, **{v: np.array([x]) for v, x in do.items()}}
    n, steps = 1, list[Floats]()
    for name in affected:
        own = conditionals[name]
        other = {v: np.broadcast_to(x, (n,)) if len(x) == 1 else x for v, x in other.items()}
        if isinstance(own, NormalConditional):
            other[name] = _same_noise(own, seen, other, name, n)
        elif isinstance(own, DiscreteConditional):
            most = _largest_shares(own, seen, other, name, n)
            size = most.shape[1]
            if n * size > _LARGEST:
                raise DataError(
                    f"More than {_LARGEST:,} combinations of levels lie between {listed(do)} and "
                    f"{target!r}. Ask for a target that is closer."
                )
            steps.append(most)
            other = {v: np.repeat(x, size) for v, x in other.items()}
            other[name] = np.tile(np.arange(size), n)
            n *= size
        else:
            raise MismatchError(
                f"The distribution of {name!r} has a share of zeros, for which no counterfactual "
                "is defined. Ask for a target before it, or leave it out."
            )
    last = other[target]
    wanted = np.eye(levels)[last.astype(np.intp)].T if levels else last[None].astype(np.float64)
    ends = [
        np.array([sign * _largest(steps, sign * each) for each in wanted]) for sign in (-1.0, 1.0)
    ]
    return ends[0], ends[1]


def _same_noise(
    own: NormalConditional,
    seen: Mapping[str, NDArray[Any]],
    other: Mapping[str, NDArray[Any]],
    name: str,
    n: int,
) -> Floats:
    """Return the value of a number with other parents and the noise that was observed."""
    rest = seen[name] - own.mean(seen, 1)
    spread = np.sqrt(own.variance(seen, 1))
    noise = rest / spread if spread[0] > 0.0 else np.zeros(1)
    value: Floats = own.mean(other, n) + np.sqrt(own.variance(other, n)) * noise
    return value


def _largest_shares(
    own: DiscreteConditional,
    seen: Mapping[str, NDArray[Any]],
    other: Mapping[str, NDArray[Any]],
    name: str,
    n: int,
) -> Floats:
    """Return the largest probability of each level with other parents, of shape (n, levels)."""
    code = int(seen[name][0])
    observed = float(np.exp(own.log_probabilities(seen, 1)[0, code]))
    if observed <= 0.0:
        raise DataError(f"The row has probability zero in this network, because of {name!r}.")
    most: Floats = np.minimum(np.exp(own.log_probabilities(other, n)) / observed, 1.0)
    same = np.ones(n, dtype=np.bool_)
    for parent in own.parents:
        same &= other[parent] == seen[parent][0]
    most[same] = np.eye(most.shape[1])[code]
    return most


def _largest(steps: Sequence[Floats], value: Floats) -> float:
    """Return the largest expected value, if each step divides probabilities up to its limits."""
    for most in reversed(steps):
        values = value.reshape(most.shape)
        order = np.argsort(-values, axis=1)
        limits = np.take_along_axis(most, order, axis=1)
        before = np.cumsum(limits, axis=1) - limits
        given = np.clip(1.0 - before, 0.0, limits)
        value = (given * np.take_along_axis(values, order, axis=1)).sum(axis=1)
    return float(value[0])
