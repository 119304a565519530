"""The data of a site in one study, and whether the rules on data let it take part."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import final

import numpy as np

from isthmus.errors import DataError, MissingExtraError
from isthmus.joint.agreement.identity import Identity
from isthmus.joint.agreement.policy import Policy
from isthmus.joint.agreement.study import Study
from isthmus.joint.disclosure.denial import Denial
from isthmus.joint.disclosure.patterns import hide_rare_patterns
from isthmus.joint.disclosure.rules import SiteRules
from isthmus.joint.disclosure.trace import Trace
from isthmus.joint.federation.requests.expectation import allows_holes
from isthmus.joint.federation.snapshot import (
    Snapshot,
    fingerprint_of_sums,
    local_source,
    rows_with_holes,
    snapshot_of,
)
from isthmus.joint.federation.stored_rows import StoredRows
from isthmus.joint.federation.study_material import materials_of
from isthmus.joint.noise.answers import NoisyAnswers
from isthmus.joint.records.ledger import Ledger
from isthmus.sources.base import Source
from isthmus.sources.tables.frame import Frame
from isthmus.sources.tables.series import Series
from isthmus.types import Floats, Integers


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
