"""What a site writes into its ledger, before anything leaves."""

from __future__ import annotations

from collections import Counter
from typing import Any, final

from isthmus.errors import LedgerError
from isthmus.parties.agreement.policy import Policy
from isthmus.parties.agreement.study import Study
from isthmus.parties.identity import KEY, digest
from isthmus.parties.records.ledger import Entry, Ledger
from isthmus.sources.horizontal.requests.sums import read_request
from isthmus.sources.horizontal.secure_sum.frames import (
    BrokenFrameError,
    FrameKind,
    Opening,
    Refusal,
    size_of,
)

EVENTS = {
    FrameKind.ADVERT: "opened",
    FrameKind.SHARES: "shares",
    FrameKind.MASKED: "sent",
    FrameKind.CONSENT: "agreed",
    FrameKind.REVEAL: "unmasked",
    FrameKind.SUMMAND: "single",
}
OPENINGS = frozenset({"opened", "keys", "single"})
"""Events that are the first of a round."""

SENDINGS = frozenset({"sent", "single"})
"""Events at which a statistic leaves."""

SUMS = frozenset({"unmasked", "single"})
"""Events after which a sum over `sites` is known."""

STRANGE = frozenset({Refusal.MALFORMED, Refusal.OTHER_STUDY, Refusal.BAD_SIGNATURE})
"""Refusals of frames that may come from anyone."""

PATIENCE = 100
"""So many refusals of one kind are all written down."""

LONG = 4096
"""Of a request that is longer, the hash is written down."""


@final
class Book:
    """Writes entries for a site.

    Parameters
    ----------
    study, policy
        Whose rules hold.
    ledger
        Where to write.
    """

    def __init__(self, study: Study, policy: Policy, ledger: Ledger) -> None:
        self._study = study
        self._policy = policy
        self._ledger = ledger
        self._often: Counter[str] = Counter()

    def past(self) -> list[Entry]:
        """All entries of this study."""
        mine = self._study.identity.hex()
        return [e for e in self._ledger.entries() if e.get("study") == mine]

    def last_round(self) -> int:
        """The highest round ever opened in this study."""
        return max((e["round"] for e in self.past() if e["event"] in OPENINGS), default=0)

    def record(
        self,
        kind: FrameKind,
        opening: Opening,
        active: frozenset[int] | None,
        fingerprint: str | None,
    ) -> None:
        """Write down what is about to leave, or refuse it."""
        details: dict[str, Any] = {}
        if kind in (FrameKind.ADVERT, FrameKind.SUMMAND):
            details |= self._asked(opening)
        if fingerprint is not None:
            details |= {
                "numbers": opening.size,
                "bytes": size_of(KEY + 4 * opening.size * opening.limbs),
                "form": "secure sum",
                "data": fingerprint,
            }
        if kind in (FrameKind.CONSENT, FrameKind.REVEAL, FrameKind.SUMMAND) and active is not None:
            details["sites"] = self._agreed(active)
        self._append(EVENTS[kind], opening.number, details)

    def _asked(self, opening: Opening) -> dict[str, Any]:
        request = read_request(opening.request, self._study.grid)
        short = len(opening.request) <= LONG
        plain = request.to_dict() if short else {"sha256": digest(opening.request).hex()}
        return {"request": plain, "what": str(request)}

    def record_keys(self, number: int, sites: frozenset[int]) -> None:
        """Write down that a key is about to leave; nothing of the data does."""
        what = "a key, for sums of one message each"
        self._append("keys", number, {"what": what, "sites": self._agreed(sites)})

    def record_again(self, number: int) -> None:
        """Write down that the same bytes leave once more."""
        details: dict[str, Any] = {}
        if self._worth("again", details):
            self._append("again", number, details)

    def _append(self, event: str, number: int, details: dict[str, Any]) -> None:
        mine = self._study.identity.hex()
        try:
            self._ledger.append(event, study=mine, round=number, **details)
        except LedgerError:
            raise BrokenFrameError(Refusal.LEDGER) from None

    def _agreed(self, active: frozenset[int]) -> list[str]:
        """The names of the sites in a sum; refuses sums that could be subtracted."""
        members = [self._study.members[i] for i in sorted(active)]
        if len({m.organisation for m in members}) < self._policy.minimum_organisations:
            raise BrokenFrameError(Refusal.POLICY)
        names = [m.name for m in members]
        if self._study.fixed_membership:
            before = [e["sites"] for e in self.past() if e["event"] in SUMS]
            if any(sites != names for sites in before):
                raise BrokenFrameError(Refusal.MEMBERSHIP)
        return names

    def refused(self, why: Refusal, number: int) -> None:
        """Write down that a frame was not answered.

        Nobody can fill the disk: of frames that are not authentic, which anyone can send, and of
        others after the first hundred, only every one whose number is a power of two is written,
        with that number.
        """
        details: dict[str, Any] = {"why": why.name.lower()}
        if self._worth(details["why"], details, strange=why in STRANGE):
            try:
                self._append("refused", number, details)
            except BrokenFrameError:
                # Nothing left the site; there is nobody to tell where the ledger is gone.
                return

    def _worth(self, what: str, details: dict[str, Any], *, strange: bool = False) -> bool:
        self._often[what] += 1
        often = self._often[what]
        if strange or often > PATIENCE:
            details["frames"] = often
            return not often & (often - 1)
        return True
