"""Four hospitals, a coordinator and an author, for the tests of studies and policies."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from isthmus.statistics import CountPlan, Kind, Schema, Variable
from isthmus_joint import (
    Extract,
    Federation,
    FileLedger,
    Identity,
    InProcess,
    Ledger,
    Member,
    Policy,
    SecureSums,
    SiteController,
    Study,
    code_hash,
)
from isthmus_joint.extracts.reading import StoredRows

SCHEMA = Schema(
    (
        Variable("age", Kind.CONTINUOUS),
        Variable("dose", Kind.CONTINUOUS),
        Variable("ward", Kind.DISCRETE, ("a", "b", "c")),
        Variable("ill", Kind.DISCRETE, (False, True)),
    )
)
NAMES = ("north", "east", "south", "west")


def table(seed: int, n: int = 60) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "age": rng.uniform(0, 100, n),
        "dose": rng.uniform(0, 5, n),
        "ward": rng.choice(["a", "b", "c"], n),
        "ill": rng.random(n) < 0.4,
    }


class Consortium:
    """Four hospitals, a coordinator, an author."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        self.folder = folder
        self.keys = {name: Identity.generate() for name in NAMES}
        self.author, self.boss = Identity.generate(), Identity.generate()
        terms: dict[str, Any] = {
            "purpose": "to learn a network",
            "author": self.author.public,
            "coordinator": self.boss.public,
            "members": [Member(n, f"{n} hospital", k.public) for n, k in self.keys.items()],
            "schema": SCHEMA,
            "bounds": {"age": (0, 120), "dose": (0, 10)},
            "protocol": SecureSums(),
            "requests": ["moments", "counts"],
            "plan": CountPlan.sets([["ward", "ill"]]),
            "exact": changes.get("privacy") is None,
        }
        self.study = Study.draft("Dose and illness", **(terms | changes))
        self.signatures = [self.study.sign(self.author)]
        self.signatures += [self.study.sign(k, n) for n, k in self.keys.items()]
        self.data = {name: table(i) for i, name in enumerate(NAMES)}
        self.policies = dict.fromkeys(NAMES, policy(folder))
        self.ledgers: dict[str, Ledger] = {n: FileLedger(folder / f"{n}.jsonl") for n in NAMES}
        self.clock: Callable[[], datetime] = lambda: datetime.now(UTC)
        self.code = code_hash()
        self._extracts: dict[tuple[str, int, bytes], Extract] = {}

    def extract(self, name: str) -> Extract:
        """The frozen table of a hospital."""
        place = name, id(self.data[name]), self.study.identity
        if place not in self._extracts:
            self._extracts[place] = Extract.freeze(self.study, self.data[name], self.policies[name])
        return self._extracts[place]

    def pooled(self) -> StoredRows:
        """The frozen rows of all hospitals."""
        rows = [self.extract(name).values for name in NAMES]
        return StoredRows(self.study.schema, np.concatenate([r for r in rows if r is not None]))

    def controller(self, name: str) -> SiteController:
        return SiteController(
            self.study,
            self.signatures,
            self.keys[name],
            self.extract(name),
            self.policies[name],
            self.ledgers[name],
            clock=lambda: self.clock(),
            code=self.code,
        )

    def federation(self, first_round: int = 1, without: Iterable[str] | None = None) -> Federation:
        self.sites = {name: self.controller(name).site() for name in NAMES}
        transport = InProcess({name: s.handle for name, s in self.sites.items()})
        return Federation(
            self.study,
            self.signatures,
            self.boss,
            transport,
            first_round=first_round,
            without=without,
        )

    def events(self, name: str) -> list[str]:
        return [e["event"] for e in self.ledgers[name].entries()]

    def why(self, name: str) -> list[str]:
        return [e["why"] for e in self.ledgers[name].entries() if e["event"] == "refused"]


def policy(folder: Path) -> Policy:
    return Policy(
        minimum_cohort=20,
        minimum_cell=3,
        minimum_organisations=3,
        variables=("age", "dose", "ward", "ill", "others"),
        protocols=("secure sums",),
        requests=("moments", "counts"),
        rounds_per_study=10,
        rounds_per_year=20,
        queries_per_year=20,
        exact_studies=("*",),
        stop_file=folder / "STOP",
    )
