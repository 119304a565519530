# The public names. `isthmus.lazy` imports each when it is first used.

from isthmus.joint.agreement.cards import Card, Folder
from isthmus.joint.agreement.code import code_hash
from isthmus.joint.agreement.identity import Identity, Verifier, key_bytes, key_text
from isthmus.joint.agreement.persons import Persons
from isthmus.joint.agreement.policy import Policy
from isthmus.joint.agreement.protocol import Protocol
from isthmus.joint.agreement.protocol_catalogue import (
    protocol_names,
    register_protocol,
    request_names,
)
from isthmus.joint.agreement.requests import Request
from isthmus.joint.agreement.roster import Member, Roster
from isthmus.joint.agreement.signatures import Signature, read_signatures, write_signatures
from isthmus.joint.agreement.study import Study
from isthmus.joint.agreement.variables import read_variables
from isthmus.joint.extracts.extract import Extract
from isthmus.joint.extracts.extract_store import ExtractStore
from isthmus.joint.federation.federation import Federation
from isthmus.joint.federation.requests.base import (
    StatisticRequest,
    SumRequest,
)
from isthmus.joint.federation.requests.counts import AskCounts
from isthmus.joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus.joint.federation.requests.statistics import AskFeatures, AskMoments
from isthmus.joint.federation.requests.steps import MethodState, StepRequest
from isthmus.joint.federation.site_controller import DryRun, SiteController
from isthmus.joint.federation.site_service import SiteService
from isthmus.joint.methods.admm.admm import ADMM, ADMMDetails, ADMMModel, Stiffness
from isthmus.joint.methods.admm.clients import Client, LinearClient, NetworkClient
from isthmus.joint.methods.admm.requests import AskConsensus, AskNetworks
from isthmus.joint.methods.secret_search import PrivateK2, SecretDetails, StructureOnly
from isthmus.joint.noise.section import DifferentialPrivacy
from isthmus.joint.records.events import Event
from isthmus.joint.records.journal import (
    FileJournal,
    Journal,
    MemoryJournal,
)
from isthmus.joint.records.ledger import FileLedger, Ledger, MemoryLedger, repair, rotate
from isthmus.joint.records.ledger_entries import verify
from isthmus.joint.records.ledger_text import readable
from isthmus.joint.records.ledger_writer import LedgerWriter, Sent
from isthmus.joint.records.site_rules import SiteRules
from isthmus.joint.request_catalogue import register_request
from isthmus.joint.secure_sum.coordinator import Coordinator, run_round
from isthmus.joint.secure_sum.envelopes import (
    BrokenEnvelopeError,
    EnvelopeKind,
    Refusal,
    RoundRequest,
)
from isthmus.joint.secure_sum.protocol import SecureSums
from isthmus.joint.secure_sum.release_gate import Leaving, ReleaseGate
from isthmus.joint.secure_sum.site import Site
from isthmus.joint.secure_sum.terms import Terms
from isthmus.joint.shares.two_party import TwoParty
from isthmus.joint.transport.base import InProcess, RemoteTransport, SiteState, Timeouts, Transport

__all__ = [
    "ADMM",
    "ADMMDetails",
    "ADMMModel",
    "AskConsensus",
    "AskCounts",
    "AskFeatures",
    "AskMoments",
    "AskNetworks",
    "BrokenEnvelopeError",
    "Card",
    "Client",
    "Coordinator",
    "DifferentialPrivacy",
    "DryRun",
    "EnvelopeKind",
    "Event",
    "Extract",
    "ExtractStore",
    "Federation",
    "FileJournal",
    "FileLedger",
    "FixedPointEncoding",
    "Folder",
    "Identity",
    "InProcess",
    "Journal",
    "Leaving",
    "Ledger",
    "LedgerWriter",
    "LinearClient",
    "Member",
    "MemoryJournal",
    "MemoryLedger",
    "MethodState",
    "NetworkClient",
    "Persons",
    "Policy",
    "PrivateK2",
    "Protocol",
    "Refusal",
    "ReleaseGate",
    "RemoteTransport",
    "Request",
    "Roster",
    "RoundRequest",
    "SecretDetails",
    "SecureSums",
    "Sent",
    "Signature",
    "Site",
    "SiteController",
    "SiteRules",
    "SiteService",
    "SiteState",
    "StatisticRequest",
    "StepRequest",
    "Stiffness",
    "StructureOnly",
    "Study",
    "SumRequest",
    "Terms",
    "Timeouts",
    "Transport",
    "TwoParty",
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
    "run_round",
    "verify",
    "write_signatures",
]
