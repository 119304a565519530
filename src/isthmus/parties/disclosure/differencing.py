"""Differences of two releases: what one sum minus another one would show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

from isthmus.parties.agreement.policy import Policy
from isthmus.parties.agreement.study import Study
from isthmus.parties.disclosure.trace import Trace
from isthmus.parties.records.ledger import Ledger

FEWEST_ORGANISATIONS = 3
"""Two results may not differ by fewer organisations than this."""


@final
class EarlierReleases:
    """What the ledger of a site knows about its earlier releases, in any study.

    Parameters
    ----------
    ledger, policy
        The ledger and the policy of the site.
    """

    def __init__(self, ledger: Ledger, policy: Policy) -> None:
        self._ledger = ledger
        self._policy = policy
        self._apart: dict[tuple[str, str], int | None] = {}

    def data_violations(self, trace: Trace) -> list[str]:
        """Return a phrase if the data differ by few persons from those of an earlier release."""
        asked, mine = frozenset(trace.names), trace.fingerprint(self._ledger.secret())
        for entry in self._ledger.entries():
            kept = entry.get("trace")
            if kept is None or entry.get("data") == mine or asked.isdisjoint(entry["variables"]):
                continue
            apart = self._persons_apart(trace, mine, kept)
            if apart is None or 0 < apart < self._policy.minimum_cohort:
                least = self._policy.minimum_cohort
                return [f"fewer than {least} persons are not in the data of an earlier release"]
        return []

    def _persons_apart(self, trace: Trace, mine: str, kept: str) -> int | None:
        """Return by how many persons two versions differ; ``None`` if that cannot be known."""
        if (mine, kept) not in self._apart:
            data = self._ledger.kept(kept)
            other = None if data is None else Trace.read(data)
            same_key = other is not None and other.key == trace.key
            self._apart[mine, kept] = trace.persons_apart(other) if other and same_key else None
        return self._apart[mine, kept]

    def is_too_similar(self, study: Study, parties: frozenset[int]) -> bool:
        """Return whether a result differs from one of another study by few organisations."""
        if not study.protocol.results_add_up:
            return False
        ours = {(study.members[i].name, study.members[i].organisation) for i in parties}
        for theirs in self._results(study):
            organisations = {organisation for _, organisation in ours ^ theirs}
            if 0 < len(organisations) < FEWEST_ORGANISATIONS:
                return True
        return False

    def _results(self, study: Study) -> Iterator[set[tuple[str, str]]]:
        """Return the sites behind each earlier result of other studies with common variables."""
        results = {event.name for event in study.protocol.events if event.reveals_result}
        mine, variables = study.identity.hex(), frozenset(study.schema.names)
        for entry in self._ledger.entries():
            if entry["event"] not in results or entry.get("study") == mine:
                continue
            if "organisations" in entry and not variables.isdisjoint(entry["variables"]):
                yield set(zip(entry["sites"], entry["organisations"], strict=True))
