"""A federation within one process: the whole protocol, without a network."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.parties.agreement.policy import ANY, Policy
from isthmus.parties.agreement.roster import FEWEST, Member
from isthmus.parties.agreement.study import Method, Signature, Study
from isthmus.parties.identity import Identity, Verifier
from isthmus.parties.records.ledger import Ledger, MemoryLedger
from isthmus.parties.transport.base import InProcess
from isthmus.sources.base import Source
from isthmus.sources.horizontal.requests.sums import Message
from isthmus.sources.horizontal.station import Station, local_source
from isthmus.statistics import Kind, Plan, Schema


def simulated(
    tables: Mapping[str, object],
    schema: Schema,
    bounds: Mapping[str, tuple[float, float]] | None,
    plan: Plan | None,
    method: Method | None,
    ledgers: Mapping[str, Ledger] | None,
    lost: Iterable[tuple[str, int]],
) -> tuple[Study, list[Signature], Identity, InProcess, Verifier]:
    """What `Federation` takes, for tables that are all here."""
    sources = {name: local_source(t, schema) for name, t in tables.items()}
    if bounds is None:
        bounds = _bounds(sources.values(), schema)
    keys = {name: Identity.generate() for name in tables}
    boss, author = Identity.generate(), Identity.generate()
    study = Study.draft(
        "Simulation",
        purpose="research within one process",
        author=author.public,
        coordinator=boss.public,
        members=[Member(n, n, key.public) for n, key in keys.items()],
        schema=schema,
        bounds=bounds,
        method=Method.SECURE_SUMS if method is None else method,
        messages=list(Message),
        plan=Plan.everything() if plan is None else plan,
        rounds=10**6,
    )
    signatures = [study.sign(author), *(study.sign(key, n) for n, key in keys.items())]
    verifier = Verifier()
    handlers = {}
    for name, key in keys.items():
        ledger = MemoryLedger() if ledgers is None else ledgers[name]
        station = Station(study, signatures, key, sources[name], _lenient(), ledger)
        handlers[name] = station.site(verifier).handle
    transport = InProcess(handlers, lost=lost)
    return study, signatures, boss, transport, verifier


def _bounds(sources: Iterable[Source], schema: Schema) -> dict[str, tuple[float, float]]:
    """Bounds of tables that are all here."""
    names = schema.of_kind(Kind.CONTINUOUS)
    if not names:
        return {}
    at = list(schema.indices(names))
    values: list[NDArray[Any]] = [source.rows()[:, at] for source in sources]
    low = np.min([v.min(axis=0) for v in values], axis=0)
    high = np.max([v.max(axis=0) for v in values], axis=0)
    flat = low == high
    low, high = low - flat, high + flat
    return dict(zip(names, zip(low.tolist(), high.tolist(), strict=True), strict=True))


def _lenient() -> Policy:
    """What a simulated site allows."""
    return Policy(
        minimum_cohort=1,
        minimum_cell=1,
        minimum_organisations=FEWEST,
        variables=(ANY,),
        methods=tuple(Method),
        messages=tuple(Message),
        rounds_per_study=10**6,
        rounds_per_year=10**6,
        queries_per_year=10**6,
        stop_file=Path(os.devnull, "stop"),  # never there
    )
