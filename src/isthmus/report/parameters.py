"""Parameters of a variable as HTML."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from html import escape
from math import sqrt
from typing import TypeAlias

import numpy as np

from isthmus.models import (
    ConditionalGaussian,
    DiscreteNetwork,
    GaussianNetwork,
    GPNetwork,
    Level,
    MultinomialLogit,
    Network,
    ProbabilityTable,
)
from isthmus.report.curves import gp_parameters
from isthmus.report.html_table import table
from isthmus.types import Floats

Levels: TypeAlias = Mapping[str, Sequence[Level]]

_CELLS = 400
"""Tables with more cells are not shown."""


def parameters(network: Network | GPNetwork, name: str) -> str:
    """Return the probabilities, the regression equations or the curves of a variable as HTML."""
    if isinstance(network, GPNetwork):
        return gp_parameters(network, name)
    if isinstance(network, GaussianNetwork):
        own = network.coefficients[name]
        return _equation(name, network.intercepts[name], own, network.variances[name])
    if isinstance(network, DiscreteNetwork):
        return _probabilities(network.tables[name], network.dag.parents(name), network.levels, name)
    conditional = network.conditionals[name]
    if isinstance(conditional, ProbabilityTable):
        given = conditional.parents
        return _probabilities(conditional.probabilities, given, network.levels, name)
    if isinstance(conditional, ConditionalGaussian):
        return _equations(conditional, network.levels, name)
    assert isinstance(conditional, MultinomialLogit)
    return _log_odds(conditional, network.levels)


def _equation(
    name: str, intercept: float, coefficients: Mapping[str, float], variance: float
) -> str:
    terms = [f"{intercept:.4g}"]
    terms += [
        f"{'−' if weight < 0 else '+'} {abs(weight):.4g} · {escape(parent)}"
        for parent, weight in coefficients.items()
    ]
    deviation = sqrt(variance)
    return f"<p>{escape(name)} = {' '.join(terms)}, standard deviation {deviation:.4g}</p>"


def _equations(own: ConditionalGaussian, levels: Levels, name: str) -> str:
    """Return one equation for each configuration of the discrete parents."""
    if own.intercepts.size * (2 + len(own.continuous)) > _CELLS:
        return f"<p>{own.parameters:,} parameters: too many to show.</p>"
    lines = []
    for codes in np.ndindex(own.intercepts.shape):
        slopes = dict(zip(own.continuous, own.coefficients[codes].tolist(), strict=True))
        intercept, variance = float(own.intercepts[codes]), float(own.variances[codes])
        case = ", ".join(
            f"{escape(p)} = {escape(str(levels[p][i]))}"
            for p, i in zip(own.discrete, codes, strict=True)
        )
        lines.append(
            (f"<p>{case}:</p>" if case else "") + _equation(name, intercept, slopes, variance)
        )
    return "".join(lines)


def _log_odds(own: MultinomialLogit, levels: Levels) -> str:
    """Return the coefficients of a logistic regression, one column per level but the first."""
    head = ["log-odds", *(escape(str(level)) for level in own.levels[1:])]
    rows = [["intercept", *own.intercepts[1:].tolist()]]
    for parent, effect in zip(own.discrete, own.effects, strict=True):
        pairs = zip(levels[parent][1:], effect[1:], strict=True)
        rows += [[f"{parent} = {level}", *row[1:].tolist()] for level, row in pairs]
    rows += [[p, *row[1:].tolist()] for p, row in zip(own.continuous, own.slopes, strict=True)]
    cells = ([escape(str(name)), *(f"{v:.4g}" for v in values)] for name, *values in rows)
    return f"<p>against {escape(str(own.levels[0]))}:</p>{table(head, cells)}"


def _probabilities(probabilities: Floats, parents: Sequence[str], known: Levels, name: str) -> str:
    if probabilities.size > _CELLS:
        return (
            f"<p>{probabilities.size:,} probabilities given {escape(', '.join(parents))}: too many "
            "to show. Write the network to a BIF or JSON file to get them.</p>"
        )
    levels = [[escape(str(v)) for v in known[p]] for p in parents]
    head = [*(escape(p) for p in parents), *(escape(str(v)) for v in known[name])]
    rows = (
        [
            *(names[i] for names, i in zip(levels, codes, strict=True)),
            *(f"{p:.4f}" for p in probabilities[codes]),
        ]
        for codes in itertools.product(*(range(len(names)) for names in levels))
    )
    return table(head, rows)
