"""The extract of a study: rows of a site that were frozen for it and checked once."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from functools import cached_property
from typing import final

import numpy as np

from isthmus.errors import RefusedError
from isthmus.joint.agreement.policy import DataRules, Policy
from isthmus.joint.agreement.study import Study
from isthmus.joint.extracts.candidates import candidates_of
from isthmus.joint.extracts.checks import broken_rules
from isthmus.joint.extracts.reading import FrozenRows, freeze_rows, local_source, read_rows
from isthmus.joint.extracts.stored_rows import StoredRows
from isthmus.joint.federation.requests.expectation import AskExpectation, allows_holes
from isthmus.joint.secure_sum.protocol import secure_sums
from isthmus.plurals import counted
from isthmus.sources.base import Source
from isthmus.sources.tables.frame import Frame
from isthmus.sources.tables.missing import KeepMissing
from isthmus.types import Floats, Integers

SIMULATED = "simulated"
"""Identity of an extract that nobody froze."""


@final
@dataclass(frozen=True, eq=False)
class Extract:
    """Rows of a site, frozen for one study. All its answers in this study are over these rows.

    Attributes
    ----------
    identity
        A random number that the ledger names.
    study
        SHA-256 of the study.
    values
        The rows, levels as codes, with NaN where a value may be missing; ``None`` for a simulation
        with a source that has none.
    persons
        The person of each row, as codes from zero; ``None`` if each row is a person of its own.
    checked
        The rules that the rows were checked against; ``None`` if the study has noise, or is a
        simulation.
    frozen
        What happened to the rows of the table; ``None`` after the extract was read from its folder.
    """

    identity: str
    study: bytes
    values: Floats | None
    persons: Integers | None
    checked: DataRules | None
    source: Source = field(repr=False)
    frozen: FrozenRows | None = None

    @classmethod
    def freeze(cls, study: Study, data: object, policy: Policy) -> Extract:
        """Freeze a table for a study.

        Parameters
        ----------
        study
            The study, which need not be signed yet.
        data
            The site's table or source.
        policy
            The policy of the site.

        Raises
        ------
        RefusedError
            The policy does not allow the study, or the rows break a rule of the policy. With
            noise, no rows are refused: a refusal could depend on one person.
        """
        policy.require(study)
        holes, rules = allows_holes(study), policy.persons
        frozen = freeze_rows(
            read_rows(data, study.schema, rules.column), study.schema, study.bounds, holes=holes
        )
        persons = None if rules.not_persons else frozen.persons
        if study.privacy is None:
            broken = violations(study, policy, frozen.values, persons)
            if broken:
                raise RefusedError(
                    f"This site cannot take part in {study.title!r}: {'; '.join(broken)}. The rows "
                    f"were not used.{frozen.remarks()}"
                )
        checked = policy.rules_on_data() if study.privacy is None else None
        return cls.of(study, frozen.values, persons, checked, secrets.token_hex(16), frozen)

    @classmethod
    def of(
        cls,
        study: Study,
        values: Floats,
        persons: Integers | None,
        checked: DataRules | None,
        identity: str,
        frozen: FrozenRows | None = None,
    ) -> Extract:
        """Return the extract of frozen rows."""
        source: Source = StoredRows(study.schema, values)
        if allows_holes(study):
            kept = KeepMissing()
            source = Frame(values, names=study.schema.names, schema=study.schema, missing=kept)
        return cls(identity, study.identity, values, persons, checked, source, frozen)

    @classmethod
    def simulated(cls, data: object, study: Study) -> Extract:
        """Return an extract for simulations: nothing is frozen or checked.

        Parameters
        ----------
        data
            A table, or any source.
        study
            The study of the simulation.
        """
        source = local_source(data, study.schema, holes=allows_holes(study))
        values: Floats | None = None
        if study.privacy is not None:
            rows = read_rows(source, study.schema, "")
            values = freeze_rows(rows, study.schema, study.bounds).values
        return cls(SIMULATED, study.identity, values, None, None, source)

    @property
    def is_simulated(self) -> bool:
        """Whether nobody froze the rows."""
        return self.identity == SIMULATED

    @cached_property
    def number_of_persons(self) -> int:
        """Number of persons, or of rows if these are not persons."""
        if self.persons is not None:
            return len(np.unique(self.persons))
        return 0 if self.values is None else len(self.values)

    def problems(self, study: Study, policy: Policy) -> list[str]:
        """Return a phrase for each reason why a study cannot be answered from this extract."""
        if self.is_simulated:
            return []
        problems = []
        if study.identity != self.study:
            problems.append("the extract was frozen for another study")
        if self.checked is not None and self.checked.is_weaker_than(policy):
            problems.append("the policy has become stricter since the extract was frozen")
        return problems


def violations(study: Study, policy: Policy, values: Floats, persons: Integers | None) -> list[str]:
    """Return a phrase for each rule on data that these rows break in a study of exact sums."""
    broken = broken_rules(candidates_of(study, values, persons), policy)
    most = secure_sums(study.protocol).rows
    if len(values) > most:
        broken.append(f"the site has more rows than the study states, {counted(most, 'row')}")
    others = sorted(study.requests - {AskExpectation.name})
    if allows_holes(study) and others:
        broken.append(f"values may be missing, for which there are no requests {others}")
    return broken
