"""The kinds of entries that a protocol writes into a ledger, and why something does not leave."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import final


@final
@dataclass(frozen=True)
class Event:
    """A kind of ledger entry.

    Attributes
    ----------
    name
        Name in the ledger, the same in all protocols that use it.
    opens_round
        Whether it is the first entry of a round. Such entries count towards the limits on rounds.
    sends_statistic
        Whether a statistic leaves the site at this entry. Such entries count towards the limits on
        queries.
    reveals_result
        Whether a result over the parties named in the entry is known afterwards.
    """

    name: str
    opens_round: bool = False
    sends_statistic: bool = False
    reveals_result: bool = False


REFUSED = Event("refused")
REPAIRED = Event("repaired")
"""A torn last line was removed from the ledger."""

RESTORED = Event("restored", opens_round=True, sends_statistic=True)
"""A round that a restored ledger lacks and others remember, and the end of such a restoration."""

COMMON = (REFUSED, REPAIRED, RESTORED)
"""Entries of every protocol."""


class Denial(StrEnum):
    """The reasons that do not depend on the protocol."""

    POLICY = "policy"
    DATA = "data"
    STOPPED = "stopped"
    EXPIRED = "expired"
    LEDGER = "ledger"
    OTHER_CODE = "other_code"
    MEMBERSHIP = "membership"
    OTHER_DATA = "other_data"


@final
class DeniedError(Exception):
    """Something may not leave the site. The protocol turns this into its own refusal."""

    def __init__(self, reason: Denial) -> None:
        super().__init__(reason.value.replace("_", " "))
        self.reason = reason
