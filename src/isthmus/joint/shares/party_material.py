"""Everything that a study of two parties could let leave a party, for the rules of the party."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from isthmus.joint.agreement.study import Study
from isthmus.joint.cohorts.candidates import ReleaseCandidates
from isthmus.joint.shares.party_table import PartyTable
from isthmus.joint.shares.protocol import two_parties
from isthmus.joint.shares.requests import CrossMoments, OwnTables
from isthmus.statistics import Kind


def material_of(
    study: Study, name: str, table: PartyTable, rows: NDArray[np.intp]
) -> ReleaseCandidates:
    """Return the most that the requests of a study could release about some rows of a party.

    A network is neither a sum nor a table, so that of its rows only the number of persons matters.

    Parameters
    ----------
    rows
        The positions of the rows that the results are over.
    """
    terms = two_parties(study.protocol)
    persons = None if table.persons is None else table.persons[rows]
    if persons is not None:
        persons = np.unique(persons, return_inverse=True)[1].reshape(-1)
    values = table.columns[rows]
    more = _cells(study, name) if OwnTables.name in study.requests else 0
    if CrossMoments.name not in study.requests:
        return ReleaseCandidates({}, values[:, :0], more_columns=more, persons=persons)
    columns = {column: values[:, i] for i, column in enumerate(table.names)}
    more += len(terms.other(name).columns)
    return ReleaseCandidates(columns, values, more_columns=more, persons=persons)


def _cells(study: Study, name: str) -> int:
    """Return the largest number of cells that the other party can learn, whatever the network."""
    terms, schema = two_parties(study.protocol), study.schema
    own = terms.holding(name).columns
    total = 0
    for i, variable in enumerate(terms.order):
        before = terms.order[:i]
        if variable in own or not set(own).intersection(before) or terms.max_parents < 1:
            continue
        sizes = sorted((len(schema[v].levels) for v in before), reverse=True)
        total += len(schema[variable].levels) * math.prod(sizes[: terms.max_parents])
    return total


def constant_columns(study: Study, table: PartyTable, rows: NDArray[np.intp]) -> list[str]:
    """Return the names of continuous columns that are constant in these rows."""
    kinds = [study.schema[name].kind for name in table.names]
    spread = np.ptp(table.columns[rows], axis=0) if len(rows) else np.zeros(len(kinds))
    return [
        name
        for name, kind, width in zip(table.names, kinds, spread, strict=True)
        if kind is Kind.CONTINUOUS and width == 0
    ]
