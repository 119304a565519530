"""Two companies with different columns of the same people, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isthmus.statistics import Schema
from isthmus_joint import Identity, Member, Policy, Study
from isthmus_joint.shares.protocol import Holding, TwoParties
from isthmus_joint.shares.requests import PrivateK2Request

NAMES = ("bank", "shop")
LEVELS = {"income": ("low", "high"), "debt": ("no", "yes"), "visits": ("few", "many")}


def holdings(*columns: tuple[str, ...]) -> tuple[Holding, ...]:
    given = columns or (("income", "debt"), ("visits",))
    return tuple(
        Holding(name, "sha256:" + str(i) * 64, each, 1000)
        for i, (name, each) in enumerate(zip(NAMES, given, strict=True))
    )


def protocol(**changes: Any) -> TwoParties:
    terms: dict[str, Any] = {
        "parties": holdings(),
        "identifier": "person",
        "order": ("debt", "income", "visits"),
        "minimum_cohort": 2,
        "minimum_cell": 1,
        "largest_share": 1.0,
        "columns_per_row": 1e9,
    }
    return TwoParties(**(terms | changes))


class Companies:
    """A bank and a shop, with keys and a study."""

    def __init__(self, **changes: Any) -> None:
        self.keys = {name: Identity.generate() for name in NAMES}
        terms: dict[str, Any] = {
            "purpose": "to learn a network",
            "author": self.keys["bank"].public,
            "members": [Member(n, n.title(), k.public) for n, k in self.keys.items()],
            "schema": Schema.discrete(LEVELS),
            "bounds": {},
            "protocol": protocol(),
            "requests": [PrivateK2Request.name],
            "rounds": 2,
        }
        self.study = Study.draft("Debt and visits", **(terms | changes))

    def policy(self, folder: Path, **changes: Any) -> Policy:
        rules: dict[str, Any] = {
            "minimum_cohort": 20,
            "minimum_cell": 1,
            "minimum_organisations": 2,
            "variables": ("*",),
            "protocols": (TwoParties.name,),
            "requests": (PrivateK2Request.name,),
            "rounds_per_study": 5,
            "rounds_per_year": 5,
            "queries_per_year": 20,
            "stop_file": folder / "STOP",
        }
        return Policy(**(rules | changes))
