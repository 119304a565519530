"""Four hospitals with a study that has differential privacy, for the tests beside this file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.joint.consortium import NAMES, SCHEMA, Consortium

from isthmus_joint import DifferentialPrivacy, Federation, FileLedger, SecureSums, Study

ROUNDS = 100
"""Moments take up to eight rounds, and tests ask for them several times."""

PRIVACY = DifferentialPrivacy(2.0, 1e-6, {"age": (0.0, 100.0)})


def consortium(folder: Path, limit: float = 2.0, **changes: Any) -> Consortium:
    group = Consortium(folder, **({"privacy": PRIVACY, "rounds": ROUNDS} | changes))
    rounds: dict[str, Any] = dict.fromkeys(
        ("rounds_per_study", "rounds_per_year", "queries_per_year"), ROUNDS
    )
    for name in NAMES:
        group.policies[name] = replace(group.policies[name], maximum_epsilon=limit, **rounds)
    return group


def opened(group: Consortium) -> int:
    return 1 + max((e.get("round", 0) for e in group.ledgers["north"].entries()), default=0)


def again(group: Consortium) -> Federation:
    """The same study after all sites were restarted, with a coordinator that forgot everything."""
    group.ledgers = {n: FileLedger(group.folder / f"{n}.jsonl") for n in NAMES}
    return group.federation(first_round=opened(group))


def renewed(group: Consortium, **changes: Any) -> Consortium:
    """Another study of the same sites, with the same ledgers."""
    new = consortium(group.folder, 2.5)
    new.keys, new.ledgers, new.author, new.boss = (
        group.keys,
        group.ledgers,
        group.author,
        group.boss,
    )
    old = group.study
    terms: dict[str, Any] = {
        "purpose": old.purpose,
        "author": old.author,
        "coordinator": old.coordinator,
        "members": old.members,
        "schema": SCHEMA,
        "bounds": old.bounds,
        "protocol": SecureSums(),
        "requests": sorted(old.requests),
        "plan": old.plan,
        "privacy": PRIVACY,
        "rounds": ROUNDS,
    }
    new.study = Study.draft("Another study", **(terms | changes))
    new.signatures = [new.study.sign(new.author)]
    new.signatures += [new.study.sign(k, n) for n, k in new.keys.items()]
    return new
