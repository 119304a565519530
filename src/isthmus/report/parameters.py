"""The parameters of one variable, as HTML."""

from __future__ import annotations

import itertools
from html import escape
from math import sqrt

from isthmus.models import DiscreteNetwork, GaussianNetwork
from isthmus.report.html_table import table

_CELLS = 400
"""Larger tables are not for reading."""


def parameters(network: DiscreteNetwork | GaussianNetwork, name: str) -> str:
    """A table of probabilities, or an equation."""
    if isinstance(network, GaussianNetwork):
        return _equation(network, name)
    return _probabilities(network, name)


def _equation(network: GaussianNetwork, name: str) -> str:
    terms = [f"{network.intercepts[name]:.4g}"]
    terms += [
        f"{'−' if weight < 0 else '+'} {abs(weight):.4g} · {escape(parent)}"
        for parent, weight in network.coefficients[name].items()
    ]
    spread = sqrt(network.variances[name])
    return f"<p>{escape(name)} = {' '.join(terms)}, standard deviation {spread:.4g}</p>"


def _probabilities(network: DiscreteNetwork, name: str) -> str:
    held, parents = network.tables[name], network.dag.parents(name)
    if held.size > _CELLS:
        return (
            f"<p>{held.size:,} probabilities given {escape(', '.join(parents))}: too many to read. "
            "Write the network as BIF or JSON to have them.</p>"
        )
    levels = [[escape(str(v)) for v in network.levels[p]] for p in parents]
    head = [*(escape(p) for p in parents), *(escape(str(v)) for v in network.levels[name])]
    rows = (
        [*(own[i] for own, i in zip(levels, at, strict=True)), *(f"{p:.4f}" for p in held[at])]
        for at in itertools.product(*(range(len(own)) for own in levels))
    )
    return table(head, rows)
