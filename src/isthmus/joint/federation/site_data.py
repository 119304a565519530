"""The data of a site in one study, and whether the rules on data let it take part."""

from __future__ import annotations

import math
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np

from isthmus.errors import DataError, MissingExtraError
from isthmus.joint.agreement.identity import Identity
from isthmus.joint.agreement.policy import Policy
from isthmus.joint.agreement.study import Study
from isthmus.joint.disclosure.denial import Denial
from isthmus.joint.disclosure.material import ReleaseCandidates, RowsOfColumns
from isthmus.joint.disclosure.patterns import hide_rare_patterns, pattern_materials
from isthmus.joint.disclosure.rules import SiteRules
from isthmus.joint.disclosure.trace import Trace
from isthmus.joint.federation.requests.base import SumRequest
from isthmus.joint.federation.requests.expectation import allows_holes
from isthmus.joint.federation.requests.statistics import AskCounts, AskFeatures
from isthmus.joint.federation.snapshot import (
    Snapshot,
    fingerprint_of_sums,
    local_source,
    rows_with_holes,
    snapshot_of,
)
from isthmus.joint.federation.stored_rows import StoredRows
from isthmus.joint.noise.answers import NoisyAnswers
from isthmus.joint.records.ledger import Ledger
from isthmus.joint.request_catalogue import registered_request
from isthmus.sources.base import Source, countable
from isthmus.sources.tables.frame import Frame
from isthmus.sources.tables.series import Series
from isthmus.statistics import Counts, Expansion, Kind, Schema
from isthmus.statistics.blocks import planned_sets
from isthmus.types import Floats, Integers


def materials_of(study: Study, snapshot: Snapshot) -> list[ReleaseCandidates]:
    """Return the most that the requests of a study could release, each part a table of its own.

    With missing values, the rows of each pattern are such a part, and only expected sums leave.
    """
    if allows_holes(study) and np.isnan(snapshot.values).any():
        return pattern_materials(study.schema.names, snapshot.values, snapshot.persons)
    return [material_of(study, snapshot)]


def material_of(study: Study, snapshot: Snapshot) -> ReleaseCandidates:
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
    material = ReleaseCandidates(
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
        material = ReleaseCandidates({}, columns, persons=snapshot.persons)
    return ReleaseCandidates(**(vars(material) | {"tables": tables}))


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


def _tables(study: Study, snapshot: Snapshot, material: ReleaseCandidates) -> list[Integers]:
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


@final
class SiteData:
    """The data of a site, read when they are first needed.

    Parameters
    ----------
    study, identity, policy, ledger, rules
        Study, identity, policy, ledger and disclosure rules of the site.
    data
        The site's table or source.
    noisy
        The answers with noise, if the study has differential privacy.
    folder
        A folder for copies of tables of an engine; ``None`` keeps them in memory.
    """

    def __init__(
        self,
        study: Study,
        identity: Identity,
        data: object,
        policy: Policy,
        ledger: Ledger,
        rules: SiteRules,
        noisy: NoisyAnswers | None,
        folder: Path | None = None,
    ) -> None:
        self._study = study
        self._identity = identity
        self._data = data
        self._policy = policy
        self._ledger = ledger
        self._rules = rules
        self._noisy = noisy
        self._folder = folder

    @cached_property
    def snapshot(self) -> Snapshot | None:
        """A copy of the data; ``None`` if nothing needs rows, or if there are none."""
        if not self._policy.checks_rows and self._noisy is None:
            return None
        hide = self._hide if allows_holes(self._study) else None
        persons = self._policy.persons
        return snapshot_of(self._data, self._study.schema, persons, self._folder, hide)

    def _hide(self, values: Floats, persons: Integers | None) -> Floats:
        return hide_rare_patterns(self._study.schema.names, values, persons, self._policy)

    @cached_property
    def source(self) -> Source:
        """The data, read as the study says."""
        if self.snapshot is not None:
            return self.snapshot.source
        return local_source(self._data, self._study.schema, holes=allows_holes(self._study))

    @cached_property
    def admission(self) -> tuple[Denial, list[str]] | None:
        """Why nothing at all may leave, for programs and for people; ``None`` if something may.

        The rules on data are applied to everything that the study allows. Nobody can find out by
        clever questions which part of it they forbid.
        """
        try:
            if self._noisy is not None and self.snapshot is not None:
                # Values are clipped. A rule that refuses the data because of some persons would
                # tell of them what the noise hides.
                problem = self._noisy.problem()
                return None if problem is None else (Denial.DATA, [problem])
            self._require_bounds()
            if self.snapshot is not None:
                broken = []
                for material in materials_of(self._study, self.snapshot):
                    broken += self._rules.material_violations(material)
                return (Denial.POLICY, list(dict.fromkeys(broken))) if broken else None
        except MissingExtraError as error:
            return Denial.DATA, [str(error).rstrip(".")]
        except Exception as error:  # noqa: BLE001 - engines raise exceptions of any type
            return Denial.DATA, [unfit(error)]
        if self._policy.checks_rows or self._noisy is not None:
            return Denial.POLICY, ["rules and noise need rows, and the source has none"]
        return None

    def _require_bounds(self) -> None:
        """Compare every value with the bounds if rows are available; else the sums are checked."""
        if not isinstance(self.source, (StoredRows, Frame, Series)):
            return
        schema, bounds = self._study.schema, self._study.bounds
        values = rows_with_holes(self.source) if allows_holes(self._study) else self.source.rows()
        for name in (n for n in schema.names if n in bounds):
            column, (low, high) = values[:, schema.index(name)], bounds[name]
            if not (((column >= low) & (column <= high)) | np.isnan(column)).all():
                raise DataError(f"Variable {name!r} has values outside of the study's bounds.")

    @cached_property
    def trace(self) -> Trace | None:
        """Keyed hashes of the data, to compare them with those of other releases."""
        if self.snapshot is None:
            return None
        original, values = self.snapshot.original, self.snapshot.values
        return Trace.of(
            self._ledger.secret(),
            self._study.schema,
            values,
            self.snapshot.persons,
            folder=self.snapshot.folder,
            original=None if original is values else original,
        )

    @cached_property
    def fingerprint(self) -> str:
        """Identifies the data without revealing them: keyed, and only this site has the key."""
        if self.trace is not None:
            return self.trace.fingerprint(self._ledger.secret())
        key = self._identity.fingerprint_key(b"data of " + self._study.identity)
        return fingerprint_of_sums(self.source, self._study.schema, key.reveal())


def unfit(error: Exception) -> str:
    """Return a phrase about data that cannot be used; messages about data may quote them."""
    return (
        f"the data of this site do not fit the study ({type(error).__name__}); read them at the "
        "site with Frame(data, schema=study.schema) to see why"
    )
