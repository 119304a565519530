# The public names. `isthmus.lazy` imports each when it is first used.

from isthmus_joint.agreement.cards import Card, Folder
from isthmus_joint.agreement.identity import (
    Identity,
    Signature,
    Verifier,
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
from isthmus_joint.federation.requests.base import (
    MethodState,
    StatisticRequest,
    StepRequest,
    SumRequest,
)
from isthmus_joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus_joint.federation.requests.statistics import AskCounts, AskFeatures, AskMoments
from isthmus_joint.federation.site_controller import DryRun, SiteController, SiteService
from isthmus_joint.methods.admm import (
    ADMM,
    ADMMDetails,
    ADMMModel,
    AskConsensus,
    AskNetworks,
    Client,
    LinearClient,
    NetworkClient,
    Stiffness,
)
from isthmus_joint.methods.secret_search import PrivateK2, SecretDetails, StructureOnly
from isthmus_joint.noise.accounting import DifferentialPrivacy
from isthmus_joint.noise.synthesis import Synthesis, synthesise
from isthmus_joint.records.journal import Event, FileJournal, Journal, MemoryJournal
from isthmus_joint.records.ledger import FileLedger, Ledger, MemoryLedger, readable, repair, rotate
from isthmus_joint.records.ledger_entries import verify
from isthmus_joint.records.ledger_writer import LedgerWriter, Sent, SiteRules
from isthmus_joint.request_catalogue import register_request
from isthmus_joint.secure_sum.envelopes import (
    BrokenEnvelopeError,
    EnvelopeKind,
    Refusal,
    RoundRequest,
)
from isthmus_joint.secure_sum.protocol import SecureSums
from isthmus_joint.secure_sum.round import Leaving, ReleaseGate
from isthmus_joint.secure_sum.sides import Coordinator, Site, run_round
from isthmus_joint.secure_sum.terms import Terms
from isthmus_joint.shares.two_party import TwoParty
from isthmus_joint.transport.base import InProcess, RemoteTransport, SiteState, Timeouts, Transport

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
    "Synthesis",
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
    "synthesise",
    "verify",
    "write_signatures",
]
