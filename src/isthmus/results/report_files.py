"""What the reports of all results share: how to run again, and the files to download."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import date

from isthmus.errors import IsthmusError
from isthmus.graphs import CPDAG, DAG, PDAG
from isthmus.io import to_bif, to_json
from isthmus.models import DiscreteNetwork, Network
from isthmus.report import RunAgain
from isthmus.results.provenance import Provenance
from isthmus.results.status import Status


def header_facts(table: str | None, rows: int | None = None) -> tuple[str, ...]:
    """Return what stands beside the title: name of the table, number of rows, and the date."""
    today = date.today()
    size = None if rows is None else f"{rows:,} {'row' if rows == 1 else 'rows'}"
    return tuple(fact for fact in (table, size, f"{today.day} {today:%B %Y}") if fact)


def run_again(provenance: Provenance, status: Status | None, command: str | None) -> RunAgain:
    """Return how to compute a result again."""
    return RunAgain(
        provenance.code or None,
        command,
        provenance.seed,
        None if status is None else status.seconds,
        provenance.versions,
    )


def write_exports(thing: DAG | CPDAG | PDAG | Network) -> Mapping[str, str]:
    """Return a graph or a network as texts, by file name extension: JSON, and BIF if possible."""
    texts: dict[str, str] = {}
    if isinstance(thing, DiscreteNetwork):
        with suppress(IsthmusError):  # BIF has no way to write some levels
            texts["bif"] = to_bif(thing)
    with suppress(IsthmusError):
        texts["json"] = to_json(thing)
    return texts
