"""What each of two parties released for a run, and who learned it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from isthmus.joint.agreement.study import Study
from isthmus.joint.shares.party_controller import FORM_OF_COLUMNS, FORM_OF_IDENTIFIERS
from isthmus.joint.shares.private_tables import table_label
from isthmus.joint.shares.protocol import two_parties
from isthmus.joint.shares.requests import IntersectionSize, OwnTables, TwoPartyRequest
from isthmus.plurals import counted
from isthmus.results.disclosure import Release


def releases(
    study: Study, request: TwoPartyRequest, rows: int, outcome: dict[str, Any]
) -> list[Release]:
    """Return what each party released to the other for one run, and learned from it."""
    terms = two_parties(study.protocol)
    first, second = terms.parties
    names = f"{first.name} and {second.name}"
    entries = [Release(names, "how many people each of them brought", "to both", 2)]
    if request.name == IntersectionSize.name:
        found = Release(names, f"{request}; both learned it", FORM_OF_IDENTIFIERS, 1)
        return [*entries, found]
    for party, other in ((first, second), (second, first)):
        what, size = f"which of the people of {other.name} it has, too", rows
        if not terms.knows(other.name):
            what, size = f"how many of the people of {other.name} it has, too", 1
        entries += [
            Release(party.name, f"{what}; {other.name} learned that", FORM_OF_IDENTIFIERS, size),
            Release(
                party.name,
                f"{counted(len(party.columns), 'column')}, of which {other.name} learned nothing "
                "but the results if it followed the protocol",
                FORM_OF_COLUMNS,
                rows * len(party.columns),
            ),
        ]
    entries.append(Release(names, str(request), "to both", _numbers(outcome)))
    return entries


def _numbers(outcome: Mapping[str, Any]) -> int:
    """Return how many numbers both parties learned."""
    if "parents" in outcome:
        return len(outcome.get("steps", outcome["parents"]))
    return sum(np.size(outcome[name]) for name in ("shift", "sums", "gram"))


def table_releases(study: Study, parents: Mapping[str, Sequence[str]]) -> list[Release]:
    """Return which tables over columns of both parties were opened, and to whom."""
    if OwnTables.name not in study.requests:
        return []
    terms, schema = two_parties(study.protocol), study.schema
    entries = []
    for owner, other in (terms.parties, terms.parties[::-1]):
        for name in owner.columns:
            if not set(parents[name]).intersection(other.columns):
                continue
            cells = math.prod(len(schema[v].levels) for v in (name, *parents[name]))
            what = table_label(name, parents[name], owner.name, terms.minimum_cell)
            entries.append(Release(other.name, what, f"to {owner.name}", cells))
    return entries
