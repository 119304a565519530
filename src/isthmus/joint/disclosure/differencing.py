"""Differences of two releases: what one sum minus another one would show."""

from __future__ import annotations

from typing import NamedTuple, final

from isthmus.joint.agreement.policy import Policy
from isthmus.joint.agreement.study import Study
from isthmus.joint.disclosure.groups import Apart, groups_apart
from isthmus.joint.disclosure.trace import Trace
from isthmus.joint.records.ledger import Ledger

FEWEST_ORGANISATIONS = 3
"""Two results may not differ by fewer organisations than this."""


Party = tuple[str, str, str]
"""Name, organisation and key of a site."""


@final
class _Traced(NamedTuple):
    """An earlier release of data with a kept trace."""

    kept: str
    fingerprint: str | None
    variables: frozenset[str]


@final
class _Result(NamedTuple):
    """An earlier entry that names sites, their organisations and their keys."""

    event: str
    study: str | None
    parties: frozenset[Party]
    variables: frozenset[str]


@final
class EarlierReleases:
    """Earlier releases of a site in any study, from its ledger.

    Parameters
    ----------
    ledger, policy
        The ledger and the policy of the site.
    """

    def __init__(self, ledger: Ledger, policy: Policy) -> None:
        self._ledger = ledger
        self._policy = policy
        self._apart: dict[tuple[str, str], Apart | None] = {}
        self._read = 0
        # In order and without repetitions; the values are not used.
        self._traces: dict[_Traced, None] = {}
        self._results: dict[_Result, None] = {}

    def _update(self) -> None:
        """Read the entries that are new since the last time."""
        for entry in self._ledger.entries(self._read):
            self._read += 1
            if "trace" in entry:
                variables = frozenset(entry["variables"])
                self._traces[_Traced(entry["trace"], entry.get("data"), variables)] = None
            if "organisations" in entry:
                columns = entry["sites"], entry["organisations"], entry["keys"]
                parties = frozenset(zip(*columns, strict=True))
                variables = frozenset(entry["variables"])
                result = _Result(entry["event"], entry.get("study"), parties, variables)
                self._results[result] = None

    def data_violations(self, trace: Trace, fingerprint: str) -> list[str]:
        """Return a phrase if the data differ by few persons from those of an earlier release.

        Parameters
        ----------
        trace, fingerprint
            The trace of the data, and its fingerprint with the secret of the ledger.
        """
        asked = frozenset(trace.names)
        self._update()
        for earlier in self._traces:
            if earlier.fingerprint == fingerprint or asked.isdisjoint(earlier.variables):
                continue
            apart = self._persons_apart(trace, fingerprint, earlier.kept)
            least = self._policy.minimum_cohort
            if apart is None or 0 < apart.cohort < least:
                return [f"fewer than {least} persons are not in the data of an earlier release"]
            least = self._policy.minimum_cell
            if 0 < apart.cell < least:
                return [f"a group differs by fewer than {least} persons from an earlier release"]
        return []

    def _persons_apart(self, trace: Trace, mine: str, kept: str) -> Apart | None:
        """Return by how many persons two versions differ; ``None`` if that cannot be known."""
        if (mine, kept) not in self._apart:
            data = self._ledger.kept(kept)
            other = None if data is None else Trace.read(data)
            same_key = other is not None and other.key == trace.key
            limit = max(self._policy.minimum_cohort, self._policy.minimum_cell)
            self._apart[mine, kept] = _apart(trace, other, limit) if other and same_key else None
        return self._apart[mine, kept]

    def is_too_similar(self, study: Study, parties: frozenset[int]) -> bool:
        """Return whether a result differs from one of another study by few organisations."""
        if not study.protocol.results_add_up:
            return False
        members = [study.members[i] for i in parties]
        ours = frozenset((m.name, m.organisation, m.key.hex()) for m in members)
        events = {event.name for event in study.protocol.events if event.reveals_result}
        mine, variables = study.identity.hex(), frozenset(study.schema.names)
        self._update()
        for result in self._results:
            if result.event not in events or result.study == mine:
                continue
            organisations = _others(ours, result.parties) | _others(result.parties, ours)
            common = not variables.isdisjoint(result.variables)
            if common and 0 < len(organisations) < FEWEST_ORGANISATIONS:
                return True
        return False


def _apart(mine: Trace, theirs: Trace, limit: int) -> Apart | None:
    """Return by how few persons two versions differ; ``None`` if they have nothing in common."""
    all_persons = mine.persons_apart(theirs)
    if all_persons is None:
        return None
    groups = groups_apart(mine, theirs, limit)
    cohorts = [number for number in (all_persons, groups.cohort) if number]
    return Apart(min(cohorts, default=0), groups.cell)


def _others(some: frozenset[Party], known: frozenset[Party]) -> set[str]:
    """Return the organisations of sites that are not known, neither by name nor by key.

    An author who renames a site, or a site with a new key, does not become another one by that.
    """
    names = {(name, organisation) for name, organisation, _ in known}
    keys = {key for _, _, key in known}
    return {
        organisation
        for name, organisation, key in some
        if (name, organisation) not in names and key not in keys
    }
