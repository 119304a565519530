"""Parameters of a variable as HTML."""

from __future__ import annotations

import itertools
from html import escape
from math import sqrt

from isthmus.models import DiscreteNetwork, GaussianNetwork
from isthmus.report.html_table import table

_CELLS = 400
"""Tables with more cells are not shown."""


def parameters(network: DiscreteNetwork | GaussianNetwork, name: str) -> str:
    """Return the conditional probabilities or the regression equation of a variable as HTML."""
    if isinstance(network, GaussianNetwork):
        return _equation(network, name)
    return _probabilities(network, name)


def _equation(network: GaussianNetwork, name: str) -> str:
    terms = [f"{network.intercepts[name]:.4g}"]
    terms += [
        f"{'−' if weight < 0 else '+'} {abs(weight):.4g} · {escape(parent)}"
        for parent, weight in network.coefficients[name].items()
    ]
    deviation = sqrt(network.variances[name])
    return f"<p>{escape(name)} = {' '.join(terms)}, standard deviation {deviation:.4g}</p>"


def _probabilities(network: DiscreteNetwork, name: str) -> str:
    probabilities, parents = network.tables[name], network.dag.parents(name)
    if probabilities.size > _CELLS:
        return (
            f"<p>{probabilities.size:,} probabilities given {escape(', '.join(parents))}: too many "
            "to show. Write the network to a BIF or JSON file to get them.</p>"
        )
    levels = [[escape(str(v)) for v in network.levels[p]] for p in parents]
    head = [*(escape(p) for p in parents), *(escape(str(v)) for v in network.levels[name])]
    rows = (
        [
            *(names[i] for names, i in zip(levels, codes, strict=True)),
            *(f"{p:.4f}" for p in probabilities[codes]),
        ]
        for codes in itertools.product(*(range(len(names)) for names in levels))
    )
    return table(head, rows)
