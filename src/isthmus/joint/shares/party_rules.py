"""Rules of a party that do not depend on who the people in common are."""

from __future__ import annotations

from datetime import UTC, datetime

from isthmus.errors import RefusedError
from isthmus.joint.agreement.code import code_hash
from isthmus.joint.agreement.policy import Policy
from isthmus.joint.agreement.study import Study
from isthmus.joint.records.ledger import Ledger
from isthmus.joint.records.ledger_writer import LedgerWriter
from isthmus.joint.records.site_rules import SiteRules
from isthmus.joint.shares.party_table import PartyTable
from isthmus.joint.shares.protocol import ALIGNING, TwoParties, two_parties
from isthmus.joint.shares.requests import OwnTables


def refusals(
    study: Study, policy: Policy, ledger: Ledger, name: str, table: PartyTable
) -> list[str]:
    """Return why a party would refuse a run now; writes nothing and needs no signatures."""
    forbidden = policy.violations(study)
    broken = forbidden + table_violations(study, policy)
    broken += people_violations(two_parties(study.protocol), name, len(table.identifiers))
    writer = LedgerWriter(study, policy, ledger)
    broken += other_tables(writer, table)
    if forbidden:  # no rules are made for a study that the policy does not allow
        return broken
    rules = SiteRules(study, policy, writer, lambda: datetime.now(UTC), code_hash())
    try:
        rules.require_open()
    except RefusedError as error:
        broken.append(str(error).rstrip("."))
    return broken + rules.limits()


def table_violations(study: Study, policy: Policy) -> list[str]:
    """Return a phrase for each rule that the own tables of a study break."""
    if OwnTables.name not in study.requests:
        return []
    broken = OwnTables.of(study).violations(study)
    given, least = two_parties(study.protocol).minimum_cell, policy.minimum_cell
    if given < least:
        broken.append(
            f"the study releases tables with cells of {given} people; the policy needs at least "
            f"{least}"
        )
    return broken


def people_violations(terms: TwoParties, name: str, people: int) -> list[str]:
    """Return a phrase if a party comes with too few or too many people."""
    least, most = terms.minimum_cohort, terms.holding(name).people
    if least <= people <= most:
        return []
    return [f"{name} comes with {people} people; the study allows {least} to {most}"]


def other_tables(writer: LedgerWriter, table: PartyTable) -> list[str]:
    """Return a phrase if earlier runs of the study were over another table."""
    known = writer.here.fingerprints.get(ALIGNING.name, set())
    if not known - {table.fingerprint}:
        return []
    text = (
        "earlier runs of this study were over another table, and two results of different tables "
        "reveal more than one. Use the same table. A new study with the same organisation needs it "
        "as well, for columns that were shared"
    )
    return [text]
