"""Many sites with the same columns: secure sums of their statistics."""

from __future__ import annotations

from isthmus.sources.horizontal.coordinator import Coordinator, Stage
from isthmus.sources.horizontal.frames import BrokenFrameError, Kind, Opening, Refusal
from isthmus.sources.horizontal.primitives import Identity, Verifier, key_bytes, key_text
from isthmus.sources.horizontal.roster import Member, Terms
from isthmus.sources.horizontal.site import Keeper, Site
from isthmus.sources.horizontal.transport import InProcess, Transport, run_round

__all__ = [
    "BrokenFrameError",
    "Coordinator",
    "Identity",
    "InProcess",
    "Keeper",
    "Kind",
    "Member",
    "Opening",
    "Refusal",
    "Site",
    "Stage",
    "Terms",
    "Transport",
    "Verifier",
    "key_bytes",
    "key_text",
    "run_round",
]
