"""Many sites with the same columns: secure sums of their statistics."""

from __future__ import annotations

from isthmus.sources.horizontal.admm import (
    Agreed,
    DynamicADMM,
    LinearADMM,
    PerceptronADMM,
    learn_admm,
)
from isthmus.sources.horizontal.admm_steps import ADMM, Centring, Stiffness
from isthmus.sources.horizontal.baselines import average, vote
from isthmus.sources.horizontal.cards import Card, Folder
from isthmus.sources.horizontal.consensus import Client, LinearClient, NetworkClient
from isthmus.sources.horizontal.coordinator import Coordinator, Stage
from isthmus.sources.horizontal.dryrun import DryRun
from isthmus.sources.horizontal.flower import Flower
from isthmus.sources.horizontal.flower_link import Link
from isthmus.sources.horizontal.flower_node import Node
from isthmus.sources.horizontal.frames import BrokenFrameError, FrameKind, Opening, Refusal
from isthmus.sources.horizontal.gathering import KeyRound, SingleRound
from isthmus.sources.horizontal.grid import Grid
from isthmus.sources.horizontal.host import Host
from isthmus.sources.horizontal.journal import (
    FileJournal,
    FileSlot,
    Journal,
    MemoryJournal,
    MemorySlot,
    Slot,
)
from isthmus.sources.horizontal.keeper import Keeper
from isthmus.sources.horizontal.ledger import FileLedger, Ledger, MemoryLedger, readable, verify
from isthmus.sources.horizontal.policy import Policy
from isthmus.sources.horizontal.primitives import Identity, Verifier, key_bytes, key_text
from isthmus.sources.horizontal.requests import (
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
from isthmus.sources.horizontal.roster import Member, Terms
from isthmus.sources.horizontal.site import Site
from isthmus.sources.horizontal.sockets import Service, Sockets
from isthmus.sources.horizontal.station import Station
from isthmus.sources.horizontal.study import (
    Method,
    Signature,
    Study,
    code_hash,
    read_signatures,
    write_signatures,
)
from isthmus.sources.horizontal.transport import (
    InProcess,
    SiteState,
    Timeouts,
    Transport,
    run_round,
)

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
