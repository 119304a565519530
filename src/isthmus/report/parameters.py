"""Parameters of a variable as plain records, which the template turns into HTML."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import TypeAlias

import numpy as np

from isthmus.models import (
    Conditional,
    ConditionalGaussian,
    Curve,
    CurvedGaussian,
    CurvedLogit,
    DiscreteNetwork,
    GaussianNetwork,
    GPNetwork,
    Hurdle,
    Level,
    MultinomialLogit,
    Network,
    ProbabilityTable,
)
from isthmus.models.curved import described_term
from isthmus.types import Floats, Integers

WIDTH, HEIGHT = 260.0, 170.0
LEFT, RIGHT, TOP, BOTTOM = 48.0, 10.0, 12.0, 34.0


def figure(value: float) -> str:
    """Return a number with four digits, and large ones without an exponent."""
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"


@dataclass(frozen=True)
class CurveDrawing:
    """The effect of a parent on its child, as SVG paths within 260 by 170 units."""

    parent: str
    child: str
    zero: str
    band: str
    mean: str
    left: str
    right: str
    low: str
    high: str


def draw_curve(curve: Curve, parent: str, child: str) -> CurveDrawing:
    """Return the paths and the axis labels of an effect with its band."""
    left, right = float(curve.at.min()), float(curve.at.max())
    low, high = min(float(curve.lower.min()), 0.0), max(float(curve.upper.max()), 0.0)
    if high == low:
        high = low + 1.0
    if right == left:
        right = left + 1.0

    def point(x: float, y: float) -> str:
        across = LEFT + (x - left) / (right - left) * (WIDTH - LEFT - RIGHT)
        down = TOP + (high - y) / (high - low) * (HEIGHT - TOP - BOTTOM)
        return f"{across:.1f},{down:.1f}"

    def path(xs: list[float], ys: list[float]) -> str:
        return "M" + " L".join(point(x, y) for x, y in zip(xs, ys, strict=True))

    at = curve.at.tolist()
    return CurveDrawing(
        parent,
        child,
        zero=path([left, right], [0.0, 0.0]),
        band=path(at + at[::-1], curve.upper.tolist() + curve.lower.tolist()[::-1]) + "Z",
        mean=path(at, curve.mean.tolist()),
        left=f"{left:.3g}",
        right=f"{right:.3g}",
        low=f"{low:.3g}",
        high=f"{high:.3g}",
    )


Levels: TypeAlias = Mapping[str, Sequence[Level]]

_CELLS = 400
"""Tables with more cells are not shown."""


@dataclass(frozen=True)
class Sentence:
    """A line of text, such as a regression equation."""

    text: str


@dataclass(frozen=True)
class Table:
    """A table of texts; the first ``given`` columns are headings of the rows."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    given: int = 0


Block: TypeAlias = Sentence | Table | CurveDrawing


def parameters(network: Network | GPNetwork, name: str) -> list[Block]:
    """Return the probabilities, the regression equations or the curves of a variable."""
    if isinstance(network, GPNetwork):
        return _curves(network, name)
    if isinstance(network, GaussianNetwork):
        own = network.coefficients[name]
        return [_equation(name, network.intercepts[name], own, network.variances[name])]
    if isinstance(network, DiscreteNetwork):
        counts = None if network.counts is None else network.counts[name]
        table = ProbabilityTable(
            tuple(network.levels[name]), network.dag.parents(name), network.tables[name], counts
        )
        return [_probabilities(table, network.levels)]
    return _conditional(network.conditionals[name], network.levels, name)


def _conditional(own: Conditional, levels: Levels, name: str) -> list[Block]:
    if isinstance(own, ProbabilityTable):
        return [_probabilities(own, levels)]
    if isinstance(own, ConditionalGaussian):
        return _equations(own, levels, name)
    if isinstance(own, CurvedGaussian | CurvedLogit):
        return _curved(own, levels, name)
    if isinstance(own, Hurdle):
        at = figure(own.at)
        away = f"log({name if own.at == 0 else f'{name} − {at}'})"
        if own.side < 0:
            away = f"log({at} − {name})"
        return [
            Sentence(f"whether {name} is not {at}:"),
            *_conditional(own.elsewhere, levels, name),
            Sentence("if it is not:"),
            *_conditional(own.rest, levels, away if own.side else name),
        ]
    assert isinstance(own, MultinomialLogit)
    return _log_odds(own, levels)


def _curves(network: GPNetwork, name: str) -> list[Block]:
    parents = network.dag.parents(name)
    terms = "".join(f" + effect of {parent}" for parent in parents)
    equation = Sentence(
        f"{name} = {figure(network.means[name])}{terms}, standard deviation of the noise "
        f"{figure(network.noises[name])}"
    )
    return [equation, *(draw_curve(network.curve(p, name), p, name) for p in parents)]


def _curved(own: CurvedGaussian | CurvedLogit, levels: Levels, name: str) -> list[Block]:
    """Return the regression on the terms, what they are, and drawings of single curves."""
    names = {str(i): described_term(term, levels) for i, term in enumerate(own.terms)}
    factors = {f.parent: f for term in own.terms for f in term if f.window is not None}
    windows = "; ".join(
        f"{v} from {figure(f.window[0])} to {figure(f.window[1])}"
        for v, f in factors.items()
        if f.window is not None
    )
    terms = Sentence(
        f"Effects are curved or interact: T2, T3 and so on are Chebyshev polynomials, and numbers "
        f"are scaled to the range from -1 to 1 ({windows})."
    )
    regression = replace(own.regression, continuous=tuple(names.values()))
    if isinstance(regression, MultinomialLogit):
        return [terms, *_log_odds(regression, levels)]
    drawn = [] if regression.discrete else list(_drawn(own, name))
    return [terms, *_equations(regression, levels, name), *drawn]


def _drawn(own: CurvedGaussian | CurvedLogit, name: str) -> Iterator[CurveDrawing]:
    """Yield the curves of parents whose effects are not straight, about their averages."""
    assert isinstance(own, CurvedGaussian)
    for parent in own.continuous:
        single = [(i, t[0]) for i, t in enumerate(own.terms) if {f.parent for f in t} == {parent}]
        if len(single) < 2 or single[0][1].window is None:
            continue
        at = np.linspace(*single[0][1].window, 101)
        values = np.array([factor.at({parent: at}) for _, factor in single])
        values -= values.mean(axis=1, keepdims=True)
        mean = own.regression.coefficients[[i for i, _ in single]] @ values
        yield draw_curve(Curve(at, mean, mean, mean), parent, name)


def _equation(
    name: str, intercept: float, coefficients: Mapping[str, float], variance: float
) -> Sentence:
    terms = [figure(intercept)]
    terms += [
        f"{'−' if weight < 0 else '+'} {figure(abs(weight))} · {parent}"
        for parent, weight in coefficients.items()
    ]
    return Sentence(f"{name} = {' '.join(terms)}, standard deviation {figure(sqrt(variance))}")


def _equations(own: ConditionalGaussian, levels: Levels, name: str) -> list[Block]:
    """Return one equation, or a table with a row per configuration of the discrete parents."""
    if own.intercepts.size * (2 + len(own.continuous)) > _CELLS:
        return [Sentence(f"{own.parameters:,} parameters: too many to show.")]
    if not own.discrete:
        slopes = dict(zip(own.continuous, own.coefficients.tolist(), strict=True))
        return [_equation(name, float(own.intercepts), slopes, float(own.variances))]
    rows = []
    for codes in np.ndindex(own.intercepts.shape):
        row = [str(levels[p][i]) for p, i in zip(own.discrete, codes, strict=True)]
        row += [figure(v) for v in (own.intercepts[codes], *own.coefficients[codes])]
        row.append(figure(sqrt(own.variances[codes])))
        rows.append(row if own.counts is None else [*row, f"{own.counts[codes]:,}"])
    head = [*own.discrete, "intercept", *(f"· {p}" for p in own.continuous), "standard deviation"]
    head += [] if own.counts is None else ["rows"]
    return [Sentence(f"{name}: one regression per row"), Table(head, rows, len(own.discrete))]


def _log_odds(own: MultinomialLogit, levels: Levels) -> list[Block]:
    """Return the coefficients of a logistic regression, one column per level but the first."""
    head = ["log-odds", *(str(level) for level in own.levels[1:])]
    rows: list[tuple[str, Floats]] = [("intercept", own.intercepts)]
    for parent, effect in zip(own.discrete, own.effects, strict=True):
        pairs = zip(levels[parent][1:], effect[1:], strict=True)
        rows += [(f"{parent} = {level}", row) for level, row in pairs]
    rows += zip(own.continuous, own.slopes, strict=True)
    cells = [[name, *map(figure, values[1:].tolist())] for name, values in rows]
    return [Sentence(f"against {own.levels[0]}:"), Table(head, cells, 1)]


def _probabilities(own: ProbabilityTable, levels: Levels) -> Block:
    probabilities: Floats = own.probabilities
    counts: Integers | None = own.counts
    if probabilities.size > _CELLS:
        given = ", ".join(own.given)
        return Sentence(
            f"{probabilities.size:,} probabilities given {given}: too many to show. Write the "
            "network to a BIF or JSON file to get them."
        )
    values = [[str(v) for v in levels[p]] for p in own.given]
    rows = []
    for codes in itertools.product(*(range(len(names)) for names in values)):
        row = [names[i] for names, i in zip(values, codes, strict=True)]
        row += [f"{p:.4f}" for p in probabilities[codes]]
        rows.append(row if counts is None else [*row, f"{counts[codes].sum():,}"])
    head = [*own.given, *(str(v) for v in own.levels)] + ([] if counts is None else ["rows"])
    return Table(head, rows, len(own.given))
