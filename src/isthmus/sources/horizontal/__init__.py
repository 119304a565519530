"""Many sites with the same columns: secure sums of their statistics."""

from __future__ import annotations

from isthmus.sources.horizontal.admm.agreed import Agreed
from isthmus.sources.horizontal.admm.baselines import average, vote
from isthmus.sources.horizontal.admm.consensus import Client, LinearClient, NetworkClient
from isthmus.sources.horizontal.admm.learn import (
    DynamicADMM,
    LinearADMM,
    PerceptronADMM,
    learn_admm,
)
from isthmus.sources.horizontal.admm.steps import ADMM, Centring, Stiffness
from isthmus.sources.horizontal.governance.cards import Card, Folder
from isthmus.sources.horizontal.governance.dryrun import DryRun
from isthmus.sources.horizontal.governance.ledger import (
    FileLedger,
    Ledger,
    MemoryLedger,
    readable,
    verify,
)
from isthmus.sources.horizontal.governance.policy import Policy
from isthmus.sources.horizontal.governance.study import (
    Method,
    Signature,
    Study,
    code_hash,
    read_signatures,
    write_signatures,
)
from isthmus.sources.horizontal.protocol.coordinator import Coordinator, Stage
from isthmus.sources.horizontal.protocol.frames import BrokenFrameError, FrameKind, Opening, Refusal
from isthmus.sources.horizontal.protocol.gathering import KeyRound, SingleRound
from isthmus.sources.horizontal.protocol.journal import (
    FileJournal,
    FileSlot,
    Journal,
    MemoryJournal,
    MemorySlot,
    Slot,
)
from isthmus.sources.horizontal.protocol.keeper import Keeper
from isthmus.sources.horizontal.protocol.primitives import Identity, Verifier, key_bytes, key_text
from isthmus.sources.horizontal.protocol.roster import Member, Terms
from isthmus.sources.horizontal.protocol.site import Site
from isthmus.sources.horizontal.protocol.transport import (
    InProcess,
    SiteState,
    Timeouts,
    Transport,
    run_round,
)
from isthmus.sources.horizontal.requests.grid import Grid
from isthmus.sources.horizontal.requests.sums import (
    AskConsensus,
    AskCounts,
    AskFeatures,
    AskMoments,
    AskNetworks,
    AskTotals,
    Message,
    Request,
    Step,
)
from isthmus.sources.horizontal.service.flower import Flower
from isthmus.sources.horizontal.service.flower_link import Link
from isthmus.sources.horizontal.service.flower_node import Node
from isthmus.sources.horizontal.service.host import Host
from isthmus.sources.horizontal.service.sockets import Service, Sockets
from isthmus.sources.horizontal.station import Station

__all__ = [
    "ADMM",
    "Agreed",
    "AskConsensus",
    "AskCounts",
    "AskFeatures",
    "AskMoments",
    "AskNetworks",
    "AskTotals",
    "BrokenFrameError",
    "Card",
    "Centring",
    "Client",
    "Coordinator",
    "DryRun",
    "DynamicADMM",
    "FileJournal",
    "FileLedger",
    "FileSlot",
    "Flower",
    "Folder",
    "FrameKind",
    "Grid",
    "Host",
    "Identity",
    "InProcess",
    "Journal",
    "Keeper",
    "KeyRound",
    "Ledger",
    "LinearADMM",
    "LinearClient",
    "Link",
    "Member",
    "MemoryJournal",
    "MemoryLedger",
    "MemorySlot",
    "Message",
    "Method",
    "NetworkClient",
    "Node",
    "Opening",
    "PerceptronADMM",
    "Policy",
    "Refusal",
    "Request",
    "Service",
    "Signature",
    "SingleRound",
    "Site",
    "SiteState",
    "Slot",
    "Sockets",
    "Stage",
    "Station",
    "Step",
    "Stiffness",
    "Study",
    "Terms",
    "Timeouts",
    "Transport",
    "Verifier",
    "average",
    "code_hash",
    "key_bytes",
    "key_text",
    "learn_admm",
    "read_signatures",
    "readable",
    "run_round",
    "verify",
    "vote",
    "write_signatures",
]
