"""What any joint computation needs, whatever its protocol."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isthmus.parties.agreement.cards import Card, Folder
    from isthmus.parties.agreement.policy import Policy
    from isthmus.parties.agreement.roster import Member, Terms
    from isthmus.parties.agreement.study import (
        Method,
        Signature,
        Study,
        code_hash,
        read_signatures,
        write_signatures,
    )
    from isthmus.parties.disclosure.dryrun import DryRun
    from isthmus.parties.identity import Identity, Verifier, key_bytes, key_text
    from isthmus.parties.records.journal import (
        FileJournal,
        FileSlot,
        Journal,
        MemoryJournal,
        MemorySlot,
        Slot,
    )
    from isthmus.parties.records.ledger import FileLedger, Ledger, MemoryLedger, readable, verify
    from isthmus.parties.transport.base import InProcess, SiteState, Timeouts, Transport, run_round
    from isthmus.parties.transport.flower.flower import Flower
    from isthmus.parties.transport.flower.flower_link import Link
    from isthmus.parties.transport.flower.flower_node import Node
    from isthmus.parties.transport.sockets import Service, Sockets

_HOMES = {
    "Card": "isthmus.parties.agreement.cards",
    "DryRun": "isthmus.parties.disclosure.dryrun",
    "FileJournal": "isthmus.parties.records.journal",
    "FileLedger": "isthmus.parties.records.ledger",
    "FileSlot": "isthmus.parties.records.journal",
    "Flower": "isthmus.parties.transport.flower.flower",
    "Folder": "isthmus.parties.agreement.cards",
    "Identity": "isthmus.parties.identity",
    "InProcess": "isthmus.parties.transport.base",
    "Journal": "isthmus.parties.records.journal",
    "Ledger": "isthmus.parties.records.ledger",
    "Link": "isthmus.parties.transport.flower.flower_link",
    "Member": "isthmus.parties.agreement.roster",
    "MemoryJournal": "isthmus.parties.records.journal",
    "MemoryLedger": "isthmus.parties.records.ledger",
    "MemorySlot": "isthmus.parties.records.journal",
    "Method": "isthmus.parties.agreement.study",
    "Node": "isthmus.parties.transport.flower.flower_node",
    "Policy": "isthmus.parties.agreement.policy",
    "Service": "isthmus.parties.transport.sockets",
    "Signature": "isthmus.parties.agreement.study",
    "SiteState": "isthmus.parties.transport.base",
    "Slot": "isthmus.parties.records.journal",
    "Sockets": "isthmus.parties.transport.sockets",
    "Study": "isthmus.parties.agreement.study",
    "Terms": "isthmus.parties.agreement.roster",
    "Timeouts": "isthmus.parties.transport.base",
    "Transport": "isthmus.parties.transport.base",
    "Verifier": "isthmus.parties.identity",
    "code_hash": "isthmus.parties.agreement.study",
    "key_bytes": "isthmus.parties.identity",
    "key_text": "isthmus.parties.identity",
    "read_signatures": "isthmus.parties.agreement.study",
    "readable": "isthmus.parties.records.ledger",
    "run_round": "isthmus.parties.transport.base",
    "verify": "isthmus.parties.records.ledger",
    "write_signatures": "isthmus.parties.agreement.study",
}

__all__ = [
    "Card",
    "DryRun",
    "FileJournal",
    "FileLedger",
    "FileSlot",
    "Flower",
    "Folder",
    "Identity",
    "InProcess",
    "Journal",
    "Ledger",
    "Link",
    "Member",
    "MemoryJournal",
    "MemoryLedger",
    "MemorySlot",
    "Method",
    "Node",
    "Policy",
    "Service",
    "Signature",
    "SiteState",
    "Slot",
    "Sockets",
    "Study",
    "Terms",
    "Timeouts",
    "Transport",
    "Verifier",
    "code_hash",
    "key_bytes",
    "key_text",
    "read_signatures",
    "readable",
    "run_round",
    "verify",
    "write_signatures",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
