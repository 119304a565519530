"""Everything that a study of secure sums could let leave a site, for the rules of the site."""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np

from isthmus.joint.agreement.study import Study
from isthmus.joint.disclosure.material import Material, RowsOfColumns
from isthmus.joint.disclosure.patterns import pattern_materials
from isthmus.joint.federation.requests.base import SumRequest
from isthmus.joint.federation.requests.expectation import allows_holes
from isthmus.joint.federation.requests.statistics import AskCounts, AskFeatures
from isthmus.joint.federation.snapshot import Snapshot
from isthmus.joint.request_catalogue import registered_request
from isthmus.sources.base import countable
from isthmus.statistics import Counts, Expansion, Kind, Schema
from isthmus.statistics.blocks import planned_sets
from isthmus.types import Floats, Integers


def materials_of(study: Study, snapshot: Snapshot) -> list[Material]:
    """Return the most that the requests of a study could release, each part a table of its own.

    With missing values, the rows of each pattern are such a part, and only expected sums leave.
    """
    if allows_holes(study) and np.isnan(snapshot.values).any():
        return pattern_materials(study.schema.names, snapshot.values, snapshot.persons)
    return [material_of(study, snapshot)]


def material_of(study: Study, snapshot: Snapshot) -> Material:
    """Return the most that the requests of a study could release, whatever is asked."""
    schema, values = study.schema, snapshot.values
    by_level = frozenset(schema.of_kind(Kind.DISCRETE))
    expansion = study.features if AskFeatures.name in study.requests else None
    columns: RowsOfColumns = values[:, :0]
    if _releases_columns(study):
        columns = ReleasedColumns(schema, values, expansion)
    windows, functions = {}, 1
    if expansion is not None and columns.shape[1]:
        functions += expansion.basis.size
        for name, own in expansion.features.items():
            if all(map(math.isfinite, own.window)):
                windows[name] = own.window
    material = Material(
        {name: values[:, i] for i, name in enumerate(schema.names)},
        columns,
        by_level,
        functions,
        (),
        windows,
        persons=snapshot.persons,
    )
    tables = _tables(study, snapshot, material)
    if not columns.shape[1]:
        # Only the planned tables leave: single values are cells of theirs.
        material = Material({}, columns, persons=snapshot.persons)
    return Material(**(vars(material) | {"tables": tables}))


def _releases_columns(study: Study) -> bool:
    classes: list[Any] = [registered_request(name) for name in study.requests]
    return any(not issubclass(c, SumRequest) or c.releases_columns for c in classes)


@final
class ReleasedColumns:
    """The columns whose sums and products may be released, computed for some rows at a time.

    These are values, a column of zeros and ones for each level, and basis functions.

    Parameters
    ----------
    schema
        The variables.
    values
        The rows of all variables.
    expansion
        The basis functions; ``None`` for none.
    """

    def __init__(self, schema: Schema, values: Floats, expansion: Expansion | None) -> None:
        self._schema = schema
        self._values = values
        self._features = {} if expansion is None else dict(expansion.features)
        self.shape: tuple[int, ...] = len(values), self[slice(0, 0)].shape[1]

    def __getitem__(self, rows: slice | Integers) -> Floats:
        values = np.asarray(self._values[rows])
        parts = [np.zeros((len(values), 0))]
        for variable, column in zip(self._schema.variables, values.T, strict=True):
            if variable.kind is Kind.DISCRETE:
                levels = np.arange(len(variable.levels))
                parts.append((column[:, None] == levels).astype(np.float64))
            else:
                parts.append(column[:, None])
        for name, own in self._features.items():
            parts.append(own.evaluate(values[:, self._schema.index(name)]).T)
        return np.concatenate(parts, axis=1)


def _tables(study: Study, snapshot: Snapshot, material: Material) -> list[Integers]:
    """Return the planned tables as numbers of persons."""
    if AskCounts.name not in study.requests or study.plan is None:
        return []
    if snapshot.persons is None:
        counts: Counts = snapshot.source.counts(study.plan)
        return list(counts.cells())
    schema = countable(study.schema, study.plan)
    sizes, values = schema.cardinalities, snapshot.values
    tables = []
    for positions in planned_sets(schema, study.plan):
        cell = np.zeros(len(values), dtype=np.int64)
        for i in positions:
            column = values[:, study.schema.index(schema.names[i])].astype(np.int64)
            cell = cell * int(sizes[i]) + column
        codes = np.unique(cell, return_inverse=True)[1].reshape(-1)
        tables.append(material.tally(codes, int(codes.max()) + 1))
    return tables
