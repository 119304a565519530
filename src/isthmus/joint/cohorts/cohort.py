"""A cohort: frozen rows of a site, their definitions, and what they may be used for."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from isthmus.errors import RefusedError
from isthmus.joint.agreement.policy import DataRules, Policy
from isthmus.joint.agreement.study import Study
from isthmus.joint.agreement.variables import Variables
from isthmus.joint.cohorts.candidates import candidates_of, has_patterns
from isthmus.joint.cohorts.checks import broken_rules
from isthmus.joint.cohorts.freezing import FrozenRows, freeze_rows, local_source, read_rows
from isthmus.joint.cohorts.patterns import hide_rare_patterns, pattern_candidates
from isthmus.joint.cohorts.row_hashes import Words
from isthmus.joint.cohorts.stored_rows import StoredRows
from isthmus.joint.federation.requests.expectation import AskExpectation, allows_holes
from isthmus.joint.secure_sum.protocol import secure_sums
from isthmus.plurals import counted
from isthmus.sources.base import Source
from isthmus.sources.tables.frame import Frame
from isthmus.sources.tables.missing import KeepMissing
from isthmus.types import Floats, Integers

SIMULATED = "simulated"
"""Identity of a cohort that nobody froze."""


class RowsOfStudy(NamedTuple):
    """The rows of a cohort, with the variables of one study.

    Attributes
    ----------
    values
        The rows; ``None`` for a simulation with a source that has none.
    persons
        The person of each row, as codes from zero; ``None`` if each row is a person of its own.
    """

    values: Floats | None
    persons: Integers | None
    source: Source


@final
@dataclass(frozen=True, eq=False)
class Cohort:
    """Frozen rows of a site, from which it answers studies.

    Everything that depends on data is decided when a cohort is frozen, or opened for a further
    study. When a site is asked, it looks at the study, the policy and the certificate only.

    Attributes
    ----------
    identity
        A random number that ledgers name.
    variables
        The variables with their definitions.
    roster
        Keys of the sites whose studies the cohort may be used in.
    values
        The rows, levels as codes; NaN where a value may be missing.
    persons
        The person of each row: a keyed hash of the identifier, or a number; ``None`` if each row is
        a person of its own.
    certificate
        What was checked; ``None`` if the cohort is for studies with noise, or simulated.
    studies
        The studies that the cohort is open to, with or without a check.
    frozen
        What happened to the rows of the table; ``None`` after the cohort was read from its folder.
    origin
        Identity of the cohort that this one is a successor of, directly or not; empty if of none.
    """

    identity: str
    variables: Variables
    roster: frozenset[bytes]
    values: Floats | None
    persons: Words | None
    certificate: DataRules | None
    studies: tuple[Study, ...]
    frozen: FrozenRows | None = None
    origin: str = ""
    _source: Source | None = field(default=None, repr=False)

    @classmethod
    def freeze(
        cls,
        study: Study,
        data: object,
        policy: Policy,
        *,
        key: bytes = b"",
        known: Words | None = None,
    ) -> Cohort:
        """Freeze a table for a study.

        Parameters
        ----------
        study
            The study, which need not be signed yet.
        data
            The site's table or source.
        policy
            The policy of the site.
        key
            Key of the hashes of identifiers.
        known
            Hashes of persons who are in other cohorts, and are left out.

        Raises
        ------
        RefusedError
            The policy does not allow the study, or the rows break a rule of the policy. With
            noise, no rows are refused.
        """
        policy.require(study)
        schema, persons = study.schema, policy.persons
        column = persons.column
        frozen = freeze_rows(
            read_rows(data, schema, column, key),
            schema,
            study.bounds,
            study.resolutions,
            holes=allows_holes(study),
            known=known if study.privacy is None else None,
        )
        owners = None if persons.not_persons else frozen.persons
        values, exact = frozen.values, study.privacy is None
        if exact and allows_holes(study) and np.isnan(values).any():
            blur = study.resolutions
            values = hide_rare_patterns(schema.names, values, _codes(owners), policy, blur)
            # Rows of which nothing is left would still be counted, one person at a time.
            kept = ~np.isnan(values).all(axis=1)
            values, owners = values[kept], None if owners is None else owners[kept]
            values.flags.writeable = False
        cohort = cls(
            secrets.token_hex(16),
            Variables(schema, study.bounds, study.resolutions),
            frozenset(m.key for m in study.members),
            values,
            owners,
            policy.rules_on_data() if exact else None,
            (),
            frozen._replace(values=values, persons=owners),
        )
        try:
            return cohort.opened(study, policy)
        except RefusedError as error:
            text = str(error)
            if frozen.absent:
                text += (
                    f" {counted(frozen.dropped, 'row')} of the table lacked a value or had a level "
                    f"that the study does not list, and were dropped: {frozen.why_dropped()}."
                )
            if frozen.outside:
                text += (
                    " Values outside of the bounds of the study were clipped: "
                    f"{frozen.why_clipped()}."
                )
            if frozen.known:
                text += (
                    f" {counted(frozen.known, 'person')} of the table are in another cohort and "
                    "were left out. To use that cohort for this study, open it: isthmus site "
                    "freeze HOME STUDY, without --data."
                )
            raise RefusedError(text) from None

    @classmethod
    def simulated(cls, data: object, study: Study) -> Cohort:
        """Return a cohort without any protection, for simulations: nothing is blurred or checked.

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
            rows = read_rows(source, study.schema, "", b"")
            values = freeze_rows(rows, study.schema, study.bounds, {}).values
        roster = frozenset(m.key for m in study.members)
        variables = Variables(study.schema, study.bounds, study.resolutions)
        return cls(SIMULATED, variables, roster, values, None, None, (study,), _source=source)

    @property
    def is_simulated(self) -> bool:
        """Whether nobody froze the rows, so that nothing protects them."""
        return self.identity == SIMULATED

    @property
    def with_noise(self) -> bool:
        """Whether the cohort is for studies with noise."""
        return self.certificate is None and not self.is_simulated

    @cached_property
    def number_of_persons(self) -> int:
        """Number of persons, or of rows if these are not persons."""
        if self.persons is not None:
            return len(np.unique(self.persons))
        return 0 if self.values is None else len(self.values)

    @cached_property
    def lacks_values(self) -> bool:
        """Whether values are missing."""
        return self.values is not None and bool(np.isnan(self.values).any())

    # --- studies -----------------------------------------------------------------------------

    def opened(self, study: Study, policy: Policy) -> Cohort:
        """Return the cohort, open to a further study as well.

        Raises
        ------
        RefusedError
            The definitions differ, or the rows break a rule for all these studies together.
        """
        problems = self._differences(study)
        if self.certificate is not None and self.certificate.persons != policy.persons:
            problems.append("the policy identifies persons in another way than the cohort does")
        if problems:
            raise RefusedError(
                f"The cohort cannot be used for {study.title!r}: {'; '.join(problems)}. Freeze a "
                "cohort of other persons for this study, or change the study."
            )
        others = tuple(s for s in self.studies if s.identity != study.identity)
        studies = (*others, study)
        if self.certificate is None:
            return replace(self, studies=studies)
        broken = self.violations(policy, studies)
        assert self.values is not None
        if len(self.values) > secure_sums(study.protocol).rows:
            broken.append("the site has more rows than the study states")
        if broken:
            raise RefusedError(
                f"This site cannot take part in {study.title!r}: {'; '.join(broken)}. The rows "
                "were not used."
            )
        return replace(self, studies=studies, certificate=policy.rules_on_data())

    def violations(self, policy: Policy, studies: tuple[Study, ...] | None = None) -> list[str]:
        """Return a phrase for each rule on data that these rows break, by default for its studies.

        The rows of each pattern of missing values are checked as a cohort of their own.
        """
        assert self.values is not None
        studies = self.studies if studies is None else studies
        persons = _codes(self.persons)
        if has_patterns(studies, self.values):
            schema, _, blur = self.variables
            parts = pattern_candidates(schema.names, self.values, persons, blur)
        else:
            parts = [candidates_of(studies, self.variables, self.values, persons)]
        broken = [phrase for part in parts for phrase in broken_rules(part, policy)]
        if self.number_of_persons < policy.minimum_cohort:
            broken.append(f"fewer than {policy.minimum_cohort} persons")
        return list(dict.fromkeys(broken))

    def problems(self, study: Study, policy: Policy) -> list[str]:
        """Return a phrase for each reason why a study cannot be answered from this cohort.

        Only study, policy and certificate are compared.
        """
        if self.is_simulated:
            return []
        problems = self._differences(study)
        if all(s.identity != study.identity for s in self.studies):
            problems.append("the cohort was not opened for this study")
        if self.certificate is not None and self.certificate.is_weaker_than(policy):
            problems.append("the policy has become stricter since the cohort was frozen")
        return problems

    def _differences(self, study: Study) -> list[str]:
        """Return a phrase for each definition in which a study differs from the cohort."""
        own, problems = self.variables, []
        if frozenset(m.key for m in study.members) != self.roster:
            problems.append("the sites of the study are not those that the cohort was frozen for")
        if (study.privacy is not None) is not self.with_noise:
            return ["a cohort is for exact sums, or for sums with noise"]  # never defined alike
        lacking = [n for n in study.schema.names if n not in own.schema]
        if lacking:
            problems.append(f"the cohort has no variables {lacking[:10]}")
        others = [
            v.name
            for v in study.schema.variables
            if v.name in own.schema
            and (
                own.schema[v.name] != v
                or own.bounds.get(v.name) != study.bounds.get(v.name)
                or own.resolutions.get(v.name) != study.resolutions.get(v.name)
            )
        ]
        if others:
            problems.append(f"the study defines {others[:10]} differently")
        lagged = [
            v.name
            for v in study.schema.variables
            if v.lag is not None
            and any(
                given.get(v.name) != given.get(v.lag.variable, given.get(v.name))
                for given in (study.bounds, study.resolutions)
            )
        ]
        if lagged and self.certificate is not None:
            problems.append(f"the lags {lagged[:10]} are defined differently from their variables")
        requests = sorted(study.requests - {AskExpectation.name})
        if allows_holes(study) and requests and self.certificate is not None:
            problems.append(f"values may be missing, for which there are no requests {requests}")
        if self.lacks_values and not allows_holes(study):
            problems.append("values are missing in the cohort")
        exact = () if self.certificate is None else self.studies
        known = {
            n: own
            for s in exact
            if s.features is not None
            for n, own in s.features.features.items()
        }
        asked = {} if study.features is None else study.features.features
        windows = [n for n, features in asked.items() if known.get(n, features) != features]
        if windows:
            problems.append(f"the study has other basis functions of {windows[:10]}")
        return problems

    def rows_of(self, study: Study) -> RowsOfStudy:
        """Return the rows, with the variables of a study in its order."""
        if self._source is not None:
            return RowsOfStudy(self.values, None, self._source)
        assert self.values is not None
        schema, places = study.schema, self.variables.schema.indices(study.schema.names)
        values = self.values
        if tuple(places) != tuple(range(values.shape[1])):
            values = np.asarray(values[:, list(places)])
            values.flags.writeable = False
        source: Source = StoredRows(schema, values)
        if self.lacks_values:
            source = Frame(values, names=schema.names, schema=schema, missing=KeepMissing())
        return RowsOfStudy(values, _codes(self.persons), source)


def _codes(persons: Words | None) -> Integers | None:
    """Return the persons as codes from zero."""
    if persons is None:
        return None
    return np.unique(persons, return_inverse=True)[1].reshape(-1).astype(np.int64)
