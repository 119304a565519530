"""Running one round of a secure sum over a transport."""

from __future__ import annotations

from isthmus.parties.transport.base import Transport, drive
from isthmus.sources.horizontal.secure_sum.coordinator import Coordinator
from isthmus.sources.horizontal.secure_sum.limbs import LimbArray
from isthmus.sources.horizontal.secure_sum.one_message_coordinator import OneMessageRound


def run_round(coordinator: Coordinator | OneMessageRound, transport: Transport) -> LimbArray:
    """Run a round to its end and return the sum over the coordinator's `active` sites.

    Raises
    ------
    AbortedError
        Too few sites were left. Only the names of the silent ones are known.
    """
    drive(coordinator, transport)
    return coordinator.total
