"""Many sites with the same columns: secure sums of their statistics."""

from __future__ import annotations

from isthmus.sources.horizontal.requests.base import (
    Contribution,
    MethodState,
    StatisticRequest,
    SumRequest,
)
from isthmus.sources.horizontal.requests.grid import Grid
from isthmus.sources.horizontal.requests.statistics import (
    AskCounts,
    AskFeatures,
    AskMoments,
    AskTotals,
)
from isthmus.sources.horizontal.secure_sum.coordinator import Coordinator, Stage
from isthmus.sources.horizontal.secure_sum.frames import (
    BrokenFrameError,
    FrameKind,
    Opening,
    Refusal,
)
from isthmus.sources.horizontal.secure_sum.one_message_coordinator import KeyRound, OneMessageRound
from isthmus.sources.horizontal.secure_sum.protocol import SecureSums
from isthmus.sources.horizontal.secure_sum.release_gate import ReleaseGate
from isthmus.sources.horizontal.secure_sum.running import run_round
from isthmus.sources.horizontal.secure_sum.site import Site
from isthmus.sources.horizontal.secure_sum.terms import Terms
from isthmus.sources.horizontal.site_controller import SiteController

__all__ = [
    "AskCounts",
    "AskFeatures",
    "AskMoments",
    "AskTotals",
    "BrokenFrameError",
    "Contribution",
    "Coordinator",
    "FrameKind",
    "Grid",
    "KeyRound",
    "MethodState",
    "OneMessageRound",
    "Opening",
    "Refusal",
    "ReleaseGate",
    "SecureSums",
    "Site",
    "SiteController",
    "Stage",
    "StatisticRequest",
    "SumRequest",
    "Terms",
    "run_round",
]
