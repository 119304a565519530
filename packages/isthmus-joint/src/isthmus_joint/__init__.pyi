# The public names. `isthmus.lazy` imports each when it is first used.

from isthmus_joint.agreement.cards import Card, Folder
from isthmus_joint.agreement.identity import (
    Identity,
    Signature,
    key_bytes,
    key_text,
    read_signatures,
    write_signatures,
)
from isthmus_joint.agreement.policy import Policy
from isthmus_joint.agreement.protocol import Protocol
from isthmus_joint.agreement.protocol_catalogue import (
    protocol_names,
    register_protocol,
    request_names,
)
from isthmus_joint.agreement.requests import Request
from isthmus_joint.agreement.roster import Member, Persons, Roster
from isthmus_joint.agreement.study import Study, code_hash, read_variables
from isthmus_joint.extracts.extract import Extract, ExtractStore
from isthmus_joint.federation.federation import Federation
from isthmus_joint.federation.requests.base import StatisticRequest, SumRequest
from isthmus_joint.federation.requests.statistics import AskCounts, AskFeatures, AskMoments
from isthmus_joint.federation.site_controller import SiteController, SiteService
from isthmus_joint.methods.admm import (
    ADMM,
    ADMMDetails,
    ADMMModel,
    AskConsensus,
    AskNetworks,
    Stiffness,
)
from isthmus_joint.methods.secret_search import PrivateK2, SecretDetails, StructureOnly
from isthmus_joint.noise.accounting import DifferentialPrivacy
from isthmus_joint.noise.synthesis import Synthesis, synthesise
from isthmus_joint.records.journal import FileJournal, Journal, MemoryJournal
from isthmus_joint.records.ledger import FileLedger, Ledger, MemoryLedger, readable, repair, rotate
from isthmus_joint.records.ledger_entries import verify
from isthmus_joint.request_catalogue import register_request
from isthmus_joint.secure_sum.protocol import SecureSums
from isthmus_joint.shares.two_party import TwoParty
from isthmus_joint.transport.base import InProcess, RemoteTransport, Timeouts, Transport

__all__ = [
    "ADMM",
    "ADMMDetails",
    "ADMMModel",
    "AskConsensus",
    "AskCounts",
    "AskFeatures",
    "AskMoments",
    "AskNetworks",
    "Card",
    "DifferentialPrivacy",
    "Extract",
    "ExtractStore",
    "Federation",
    "FileJournal",
    "FileLedger",
    "Folder",
    "Identity",
    "InProcess",
    "Journal",
    "Ledger",
    "Member",
    "MemoryJournal",
    "MemoryLedger",
    "Persons",
    "Policy",
    "PrivateK2",
    "Protocol",
    "RemoteTransport",
    "Request",
    "Roster",
    "SecretDetails",
    "SecureSums",
    "Signature",
    "SiteController",
    "SiteService",
    "StatisticRequest",
    "Stiffness",
    "StructureOnly",
    "Study",
    "SumRequest",
    "Synthesis",
    "Timeouts",
    "Transport",
    "TwoParty",
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
    "synthesise",
    "verify",
    "write_signatures",
]
