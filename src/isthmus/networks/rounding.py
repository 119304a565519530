"""Networks with no more digits than their sampling errors support, and without counts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from math import floor, log10, sqrt
from typing import Any, cast

import numpy as np

from isthmus.arrays import Floats
from isthmus.errors import MismatchError
from isthmus.networks.conditionals import Conditional, Factor
from isthmus.networks.discrete import DiscreteNetwork
from isthmus.networks.gaussian import GaussianNetwork
from isthmus.networks.mixed import MixedNetwork

DIGITS = 3
"""Significant digits of numbers whose sampling errors are not known."""

ROW_DIGITS = 2


def significant(value: float, digits: int = DIGITS) -> float:
    """Return a number with so many significant digits."""
    return float(f"{value:.{digits - 1}e}") if np.isfinite(value) else float(value)


def step_of(error: float) -> float:
    """Return the smallest of the steps 1, 2, 5, 10 … that is at least half a standard error."""
    if not error > 0:
        return 0.0
    power = 10.0 ** floor(log10(error / 2))
    return next(s * power for s in (1, 2, 5, 10, 20) if s * power >= error / 2 * (1 - 1e-12))


def rounded_to(value: float, error: float) -> float:
    """Return a number without the digits that its standard error does not support."""
    step = step_of(error)
    return significant(value) if step == 0.0 else float(f"{round(value / step) * step:.12g}")


def rounded_network(network: Any) -> Any:
    """Return a network whose parameters differ from the given one by a fraction of their errors.

    Exact parameters and numbers of rows give back the sums that they were computed from, to the
    last person. Rounded to steps of between 0.5 and 1.25 standard errors, they predict as well and
    do not. Counts, covariances and ranges are left out.
    """
    if isinstance(network, GaussianNetwork):
        return _rounded_lines(network)
    if isinstance(network, DiscreteNetwork):
        counts = network.counts or {}
        tables = {v: _rounded_table(t, counts.get(v)) for v, t in network.tables.items()}
        return replace(network, tables=tables, counts=None)
    if not isinstance(network, MixedNetwork):
        raise MismatchError(
            f"There is no published form of a {type(network).__name__}. Publish the graph."
        )
    own = {name: _rounded_conditional(c) for name, c in network.conditionals.items()}
    return replace(network, conditionals=own, supports={})


def _rounded_lines(network: GaussianNetwork) -> GaussianNetwork:
    """Round slopes first, and then intercepts so that the means of all nodes stay in place."""
    nodes, n = network.dag.nodes, network.rows
    mean, covariance = dict(zip(nodes, network.mean(), strict=True)), network.covariance()
    slopes: dict[str, dict[str, float]] = {}
    intercepts, variances = dict[str, float](), dict[str, float]()
    published = dict[str, float]()
    for name in network.dag.topological_order():
        parents, variance = network.dag.parents(name), network.variances[name]
        at = [network.dag.index(p) for p in parents]
        inverse = np.linalg.pinv(covariance[np.ix_(at, at)]) if at else np.zeros((0, 0))
        errors = np.sqrt(np.diagonal(inverse) * variance / n) if n else np.zeros(len(at))
        slopes[name] = {
            p: rounded_to(network.coefficients[name][p], float(e))
            for p, e in zip(parents, errors, strict=True)
        }
        shift = sum(slopes[name][p] * published[p] for p in parents)
        error = sqrt(covariance[network.dag.index(name)][network.dag.index(name)] / n) if n else 0.0
        intercepts[name] = rounded_to(mean[name] - shift, error)
        published[name] = intercepts[name] + shift
        variances[name] = rounded_to(variance, variance * sqrt(2 / n) if n else 0.0)
    rows = None if n is None else rounded_rows(n)
    return replace(
        network,
        intercepts=intercepts,
        coefficients=slopes,
        variances=variances,
        rows=rows,
        covariances=None,
        supports={},
    )


def rounded_rows(n: int) -> int:
    """Return a number of rows with two digits."""
    return int(significant(n, ROW_DIGITS))


_NUMBER = r"(?<![\w.,])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)"
_QUOTED = r"(?<!\w)'[^']*'(?!\w)|`[^`]*`|\"[^\"]*\""


def rounded_text(text: str) -> str:
    """Return sentences whose integers have two digits and other numbers three; no quoted name."""

    def rounded(found: re.Match[str]) -> str:
        written = found[0]
        if written[0] in "'`\"":
            return written
        value = float(written.replace(",", ""))
        if value.is_integer() and "." not in written and "e" not in written:
            return f"{rounded_rows(int(value)):{',' if ',' in written else ''}}"
        return f"{significant(value):.12g}"

    return re.sub(f"{_QUOTED}|{_NUMBER}", rounded, text)


def _rounded_table(table: Floats, counts: Any) -> Floats:
    """Round probabilities; the most probable level gets what is missing to one."""
    flat = table.reshape(-1, table.shape[-1]).copy()
    rows = np.zeros(len(flat)) if counts is None else np.asarray(counts).reshape(flat.shape).sum(1)
    for own, n in zip(flat, rows, strict=True):
        most = int(own.argmax())
        for j, p in enumerate(own.tolist()):
            # One person more or less is below the error also where a level is rare.
            error = sqrt((p * (1 - p) + 1 / (n + 1)) / (n + 1)) if n else 0.0
            own[j] = min(max(rounded_to(p, error), 0.0), 1.0)
        own[most] = 0.0
        rest = own.sum()
        if rest > 1.0:
            own /= rest
        own[most] = max(round(1.0 - own.sum(), 12), 0.0)
    return cast("Floats", flat.reshape(table.shape))


def _rounded_conditional(own: Conditional) -> Conditional:
    """Round the parameters of a node of a mixed network, and leave out its counts."""
    changed: dict[str, Any] = {}
    for name, value in vars(own).items():
        if name == "probabilities":
            changed[name] = _rounded_table(value, getattr(own, "counts", None))
        elif name in ("counts", "covariances"):
            changed[name] = None
        elif isinstance(value, Conditional):
            changed[name] = _rounded_conditional(value)
        else:
            changed[name] = rounded_values(value)
    return cast("Conditional", replace(cast("Any", own), **changed))


def rounded_values(value: Any) -> Any:
    """Return numbers, arrays and containers of them with three significant digits."""
    if isinstance(value, float):
        return significant(value)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return np.array([significant(x) for x in value.ravel().tolist()]).reshape(value.shape)
    if isinstance(value, Mapping):
        return {k: rounded_values(v) for k, v in value.items()}
    if isinstance(value, Factor):
        return replace(value, window=rounded_values(value.window))
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(rounded_values(v) for v in value)
    return value
