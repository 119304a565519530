"""Many sites with the same columns: secure sums of their statistics.

The protocol is imported when one of its names is used: most programs federate nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isthmus.sources.horizontal.host import Host
    from isthmus.sources.horizontal.requests.grid import Grid
    from isthmus.sources.horizontal.requests.sums import (
        AskCounts,
        AskFeatures,
        AskMoments,
        AskTotals,
        Message,
        Request,
    )
    from isthmus.sources.horizontal.secure_sum.coordinator import Coordinator, Stage
    from isthmus.sources.horizontal.secure_sum.frames import (
        BrokenFrameError,
        FrameKind,
        Opening,
        Refusal,
    )
    from isthmus.sources.horizontal.secure_sum.gathering import KeyRound, SingleRound
    from isthmus.sources.horizontal.secure_sum.keeper import Keeper
    from isthmus.sources.horizontal.secure_sum.site import Site
    from isthmus.sources.horizontal.station import Station

_HOMES = {
    "AskCounts": "isthmus.sources.horizontal.requests.sums",
    "AskFeatures": "isthmus.sources.horizontal.requests.sums",
    "AskMoments": "isthmus.sources.horizontal.requests.sums",
    "AskTotals": "isthmus.sources.horizontal.requests.sums",
    "BrokenFrameError": "isthmus.sources.horizontal.secure_sum.frames",
    "Coordinator": "isthmus.sources.horizontal.secure_sum.coordinator",
    "FrameKind": "isthmus.sources.horizontal.secure_sum.frames",
    "Grid": "isthmus.sources.horizontal.requests.grid",
    "Host": "isthmus.sources.horizontal.host",
    "Keeper": "isthmus.sources.horizontal.secure_sum.keeper",
    "KeyRound": "isthmus.sources.horizontal.secure_sum.gathering",
    "Message": "isthmus.sources.horizontal.requests.sums",
    "Opening": "isthmus.sources.horizontal.secure_sum.frames",
    "Refusal": "isthmus.sources.horizontal.secure_sum.frames",
    "Request": "isthmus.sources.horizontal.requests.sums",
    "SingleRound": "isthmus.sources.horizontal.secure_sum.gathering",
    "Site": "isthmus.sources.horizontal.secure_sum.site",
    "Stage": "isthmus.sources.horizontal.secure_sum.coordinator",
    "Station": "isthmus.sources.horizontal.station",
}

__all__ = [
    "AskCounts",
    "AskFeatures",
    "AskMoments",
    "AskTotals",
    "BrokenFrameError",
    "Coordinator",
    "FrameKind",
    "Grid",
    "Host",
    "Keeper",
    "KeyRound",
    "Message",
    "Opening",
    "Refusal",
    "Request",
    "SingleRound",
    "Site",
    "Stage",
    "Station",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
