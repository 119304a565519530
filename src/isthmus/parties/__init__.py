"""Identities, studies, policies, ledgers and transports, for every protocol.

Transports that reach other machines are in `isthmus.parties.transport`.
"""

from __future__ import annotations

from isthmus.parties.agreement.cards import Card, Folder
from isthmus.parties.agreement.code import code_hash
from isthmus.parties.agreement.persons import Persons
from isthmus.parties.agreement.policy import Policy
from isthmus.parties.agreement.protocol import (
    Protocol,
    protocol_names,
    register_protocol,
    request_names,
)
from isthmus.parties.agreement.roster import Member, Roster
from isthmus.parties.agreement.signatures import Signature, read_signatures, write_signatures
from isthmus.parties.agreement.study import Study
from isthmus.parties.agreement.variables import read_variables
from isthmus.parties.disclosure.dryrun import DryRun
from isthmus.parties.disclosure.rules import SiteRules
from isthmus.parties.identity import Identity, Verifier, key_bytes, key_text
from isthmus.parties.privacy.section import Privacy
from isthmus.parties.records.events import Event
from isthmus.parties.records.journal import (
    FileJournal,
    FileSlot,
    Journal,
    MemoryJournal,
    MemorySlot,
    Slot,
)
from isthmus.parties.records.ledger import FileLedger, Ledger, MemoryLedger
from isthmus.parties.records.ledger_maintenance import repair, rotate
from isthmus.parties.records.ledger_text import readable
from isthmus.parties.records.ledger_verification import verify
from isthmus.parties.records.ledger_writer import LedgerWriter, Sent
from isthmus.parties.requests import Request, register_request
from isthmus.parties.transport.base import InProcess, SiteState, Timeouts, Transport

__all__ = [
    "Card",
    "DryRun",
    "Event",
    "FileJournal",
    "FileLedger",
    "FileSlot",
    "Folder",
    "Identity",
    "InProcess",
    "Journal",
    "Ledger",
    "LedgerWriter",
    "Member",
    "MemoryJournal",
    "MemoryLedger",
    "MemorySlot",
    "Persons",
    "Policy",
    "Privacy",
    "Protocol",
    "Request",
    "Roster",
    "Sent",
    "Signature",
    "SiteRules",
    "SiteState",
    "Slot",
    "Study",
    "Timeouts",
    "Transport",
    "Verifier",
    "code_hash",
    "key_bytes",
    "key_text",
    "protocol_names",
    "read_signatures",
    "read_variables",
    "readable",
    "register_protocol",
    "register_request",
    "repair",
    "request_names",
    "rotate",
    "verify",
    "write_signatures",
]
