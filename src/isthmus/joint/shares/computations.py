"""What the engine computes for each request, from plain terms and the own columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from isthmus.joint.shares.private_k2 import private_k2, structure_only
from isthmus.joint.shares.private_tables import private_tables
from isthmus.joint.shares.secret_moments import opened_moments, secret_gaussian_structure
from isthmus.joint.shares.secret_scores import CountScore
from isthmus.joint.shares.terms import OWN, ComputationTerms, FoundNetwork

if TYPE_CHECKING:
    from isthmus.joint.shares.columns import Columns
    from isthmus.joint.shares.engine import SecretSharingRuntime


class Computation(Protocol):
    """Computes a result in plain data, the same at both parties except for `OWN`."""

    def __call__(
        self, engine: SecretSharingRuntime, columns: Columns, terms: ComputationTerms, /
    ) -> dict[str, Any]:
        """Compute together with the other party."""


def _greedy(
    engine: SecretSharingRuntime, columns: Columns, terms: ComputationTerms
) -> dict[str, Any]:
    score = CountScore(terms.score.lower(), terms.ess)
    found, steps = private_k2(engine, columns, terms.order, terms.max_parents, score)
    return _network(engine, columns, terms, found) | {"steps": [list(step) for step in steps]}


def _best(
    engine: SecretSharingRuntime, columns: Columns, terms: ComputationTerms
) -> dict[str, Any]:
    if not any(terms.levels.values()):
        found = secret_gaussian_structure(engine, columns, terms.order, terms.max_parents)
    else:
        score = CountScore(terms.score.lower(), terms.ess)
        found = structure_only(engine, columns, terms.order, terms.max_parents, score)
    return _network(engine, columns, terms, found)


def _moments(
    engine: SecretSharingRuntime, columns: Columns, terms: ComputationTerms
) -> dict[str, Any]:
    del terms
    found = opened_moments(engine, columns)
    arrays = {"shift": found.shift, "sums": found.sums, "gram": found.gram}
    return {"n": found.n, **{name: array.tolist() for name, array in arrays.items()}}


COMPUTATIONS: Mapping[str, Computation] = {
    "private k2": _greedy,
    "structure only": _best,
    "cross moments": _moments,
}
"""By the name of the request. The number of common people is counted without columns."""


def _network(
    engine: SecretSharingRuntime, columns: Columns, terms: ComputationTerms, found: FoundNetwork
) -> dict[str, Any]:
    """Return a network and, if the study says so, the tables of this party's own variables."""
    network = {"parents": {name: sorted(found.parents(name)) for name in found.nodes}}
    if not terms.own_tables:
        return network
    tables = private_tables(engine, columns, found, terms.minimum_cell, terms.names)
    return network | {OWN: [table.to_dict() for table in tables.values()]}
