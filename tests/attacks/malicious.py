"""A consortium of real sites with the rules of a drafted policy, and an attacker who leads it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isthmus.statistics import Schema
from isthmus_joint import (
    Extract,
    Federation,
    Identity,
    InProcess,
    Ledger,
    Member,
    MemoryLedger,
    Policy,
    SecureSums,
    SiteController,
    Study,
    SumRequest,
)
from isthmus_joint.agreement.identity import Verifier
from isthmus_joint.secure_sum.envelopes import (
    COORDINATOR,
    EnvelopeKind,
    Refusal,
    RoundRequest,
    pack,
    parse,
    read_refusal,
)
from isthmus_joint.secure_sum.protocol import secure_sums


def drafted_policy(study: Study, **changes: Any) -> Policy:
    """The rules that `isthmus site policy` drafts for a study."""
    rules: dict[str, Any] = {
        "minimum_cohort": 50,
        "minimum_cell": 5,
        "minimum_organisations": 3,
        "variables": study.schema.names,
        "protocols": (study.protocol.name,),
        "requests": tuple(sorted(study.requests)),
        "rounds_per_study": study.rounds,
        "rounds_per_year": 10 * study.rounds,
        "queries_per_year": 10 * study.rounds,
        "stop_file": Path("/nonexistent/STOP"),
        "exact_studies": (study.identity.hex(),),
    }
    return Policy(**(rules | changes))


class Attacked:
    """Sites of one study. The attacker holds the key of the coordinator."""

    def __init__(
        self,
        tables: Mapping[str, object],
        schema: Schema,
        bounds: Mapping[str, tuple[float, float]],
        *,
        requests: tuple[str, ...] = ("moments",),
        earlier: Attacked | None = None,
        rules: Mapping[str, Any] | None = None,
        members: Mapping[str, str] | None = None,
        protected: bool = True,
        **changes: Any,
    ) -> None:
        """Freeze the tables and let the sites join.

        Without `protected`, sites answer from their tables like those of a simulation, and have
        forgotten the earlier world: the attack must then work.
        """
        names = list(tables)
        self.tables = tables
        self.keys = {n: Identity.generate() for n in names}
        self.ledgers: dict[str, Ledger] = {n: MemoryLedger() for n in names}
        self.boss, self.author = Identity.generate(), Identity.generate()
        self.verifier: Verifier = Verifier() if earlier is None else earlier.verifier
        if earlier is not None:  # another study of the same parties
            self.keys |= {n: k for n, k in earlier.keys.items() if n in names}
            self.ledgers |= {n: x for n, x in earlier.ledgers.items() if n in names}
            self.boss, self.author = earlier.boss, earlier.author
        self._protected = protected
        if not protected:
            self.ledgers = {n: MemoryLedger() for n in names}
        owners = {n: f"{n} hospital" for n in names} | dict(members or {})
        terms: dict[str, Any] = {
            "purpose": "to learn a network",
            "author": self.author.public,
            "coordinator": self.boss.public,
            "members": [Member(n, owners[n], self.keys[n].public) for n in names],
            "within_sites": False,  # sums of products are then those of all rows
            "schema": schema,
            "bounds": bounds,
            "protocol": SecureSums(),
            "requests": requests,
            "exact": changes.get("privacy") is None,
        }
        self.study = Study.draft("A study", **(terms | changes))
        self.signatures = [self.study.sign(self.author)]
        self.signatures += [self.study.sign(self.keys[n], n) for n in names]
        self.rules = dict(rules or {})
        self.round = 0
        known = {} if earlier is None or not protected else earlier.extracts
        same = [n for n in known if n in names and earlier and earlier.tables[n] is tables[n]]
        self.extracts: dict[str, Extract] = {n: known[n] for n in same}
        self.join()

    def policy(self) -> Policy:
        return drafted_policy(self.study, **self.rules)

    def extract(self, site: str) -> Extract:
        """The frozen table of a site."""
        table = self.tables[site]
        if not self._protected:
            return Extract.simulated(table, self.study)
        if site not in self.extracts or self.extracts[site].study != self.study.identity:
            self.extracts[site] = Extract.freeze(self.study, table, self.policy())
        return self.extracts[site]

    def join(self) -> None:
        """Let every site start, or start again."""
        self.controllers = {
            n: SiteController(
                self.study,
                self.signatures,
                self.keys[n],
                self.extract(n),
                self.policy(),
                self.ledgers[n],
            )
            for n in self.tables
        }
        self.sites = {n: c.site(self.verifier) for n, c in self.controllers.items()}

    def federation(self, first_round: int = 1, lost: Any = ()) -> Federation:
        transport = InProcess({n: s.handle for n, s in self.sites.items()}, lost=lost)
        return Federation(
            self.study,
            self.signatures,
            self.boss,
            transport,
            first_round=first_round,
            without=None,  # the attacker drops whom it wants
        )

    def frame(self, request: SumRequest[Any] | bytes, size: int = 1) -> bytes:
        """One signed opening."""
        self.round += 1
        if isinstance(request, bytes):
            opening = RoundRequest(self.round, request, size, 4)
        else:
            grid = next(iter(self.controllers.values()))._grid
            opening = RoundRequest(
                self.round, request.to_bytes(), request.size(grid), request.limbs
            )
        terms = secure_sums(self.study.protocol).terms(self.study.roster)
        return pack(EnvelopeKind.OPEN, terms, self.round, COORDINATOR, opening.body(), self.boss)

    def answer(self, site: str, frame: bytes) -> tuple[EnvelopeKind, Refusal | None]:
        """What one site says to a frame: the kind of its answer, and the reason it gives."""
        answer = parse(self.sites[site].handle(frame))
        refused = answer.kind is EnvelopeKind.REFUSE
        return answer.kind, read_refusal(answer.body)[0] if refused else None

    def events(self, site: str) -> list[str]:
        return [e["event"] for e in self.ledgers[site].entries()]

    def why(self, site: str) -> list[str]:
        return [e["why"] for e in self.ledgers[site].entries() if e["event"] == "refused"]
