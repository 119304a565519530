"""Why a site does not let something leave."""

from __future__ import annotations

from enum import StrEnum
from typing import final


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
