"""Running one round of a secure sum over a transport."""

from __future__ import annotations

from isthmus.joint.secure_sum.coordinator import Coordinator
from isthmus.joint.secure_sum.limbs import LimbArray
from isthmus.joint.secure_sum.one_message_coordinator import OneMessageRound
from isthmus.joint.transport.base import Transport, drive


def run_round(coordinator: Coordinator | OneMessageRound, transport: Transport) -> LimbArray:
    """Run a round to its end and return the sum over the coordinator's `active` sites.

    Raises
    ------
    AbortedError
        Too few sites were left. Only the names of the silent ones are known.
    """
    drive(coordinator, transport)
    return coordinator.total
