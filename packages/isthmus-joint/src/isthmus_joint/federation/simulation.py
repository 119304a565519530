"""A federation within one process: the whole protocol, without a network."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import ArgumentError, StudyError
from isthmus.statistics import CountPlan, Kind, Schema
from isthmus.tables.base import Source
from isthmus_joint.agreement import policy
from isthmus_joint.agreement.identity import Identity, Signature, Verifier
from isthmus_joint.agreement.policy import ANY, Policy
from isthmus_joint.agreement.protocol_catalogue import request_names
from isthmus_joint.agreement.roster import NOT_PERSONS, Member, Persons
from isthmus_joint.agreement.study import Study
from isthmus_joint.extracts.extract import Extract
from isthmus_joint.extracts.reading import local_source, rows_with_holes
from isthmus_joint.federation.requests.expectation import AskExpectation
from isthmus_joint.federation.site_controller import SiteController
from isthmus_joint.noise.accounting import DifferentialPrivacy
from isthmus_joint.noise.answers import require_possible
from isthmus_joint.records.ledger import Ledger, MemoryLedger
from isthmus_joint.secure_sum.protocol import SecureSums
from isthmus_joint.transport.base import InProcess

UNLIMITED = 10**6


def named_tables(tables: Mapping[str, object] | Sequence[object]) -> dict[str, object]:
    """Return the table of each site by its name; sites of a list are named by their position."""
    if isinstance(tables, list | tuple):
        tables = {f"site{number}": table for number, table in enumerate(tables, start=1)}
    if not isinstance(tables, Mapping) or not tables:
        raise ArgumentError(
            "Federation.simulate needs the table of each site, as a dictionary such as "
            "{'north': table1, 'east': table2, 'south': table3} or as a list; "
            f"{'an empty one' if isinstance(tables, Mapping) else type(tables).__name__} was given."
        )
    columns = [name for name, table in tables.items() if not _is_table(table)]
    if columns:
        raise ArgumentError(
            "Federation.simulate needs one table per site; a "
            f"{type(tables[columns[0]]).__name__} was given for {columns[0]!r}. Divide the rows "
            "among the sites: {'north': table[:300], 'east': table[300:600], ...}."
        )
    return dict(tables)


def _is_table(value: object) -> bool:
    """Whether a value can be a table; a list or array of one dimension is a column."""
    return (
        not isinstance(value, str | list | tuple | float | int) and getattr(value, "ndim", 2) == 2
    )


def simulated(
    tables: Mapping[str, object],
    schema: Schema,
    bounds: Mapping[str, tuple[float, float]] | None,
    plan: CountPlan | None,
    requests: Iterable[str] | None,
    ledgers: Mapping[str, Ledger] | None,
    lost: Iterable[tuple[str, int]],
    privacy: DifferentialPrivacy | None = None,
    *,
    within_sites: bool = True,
) -> tuple[Study, list[Signature], Identity, InProcess, Verifier]:
    """Return the arguments of `Federation` for tables that are all in this process."""
    holes = requests is not None and AskExpectation.name in (requests := tuple(requests))
    sources = {name: local_source(t, schema, holes=holes) for name, t in tables.items()}
    if privacy is not None:
        bounds = _public_bounds(schema, privacy, bounds)
        all_discrete = len(schema.of_kind(Kind.DISCRETE)) == len(schema)
        requests = (["counts"] if all_discrete else ["moments"]) if requests is None else requests
        plan = CountPlan.up_to(min(3, len(schema))) if plan is None else plan
    if bounds is None:
        bounds = _bounds(sources.values(), schema)
    keys = {name: Identity.generate() for name in tables}
    coordinator, author = Identity.generate(), Identity.generate()
    study = Study.draft(
        "Simulation",
        purpose="research within one process",
        author=author.public,
        coordinator=coordinator.public,
        members=[Member(n, n, key.public) for n, key in keys.items()],
        schema=schema,
        bounds=bounds,
        protocol=SecureSums(),
        requests=request_names(SecureSums.name) if requests is None else requests,
        plan=CountPlan.everything() if plan is None else plan,
        rounds=UNLIMITED,
        privacy=privacy,
        within_sites=within_sites,
        exact=privacy is None,
    )
    require_possible(study)
    signatures = [study.sign(author), *(study.sign(key, n) for n, key in keys.items())]
    verifier = Verifier()
    handlers = {}
    for name, key in keys.items():
        ledger = MemoryLedger() if ledgers is None else ledgers[name]
        own, extract = _lenient_policy(privacy), Extract.simulated(sources[name], study)
        site = SiteController(study, signatures, key, extract, own, ledger)
        handlers[name] = site.site(verifier).handle
    transport = InProcess(handlers, lost=lost)
    return study, signatures, coordinator, transport, verifier


def _public_bounds(
    schema: Schema, privacy: DifferentialPrivacy, bounds: Mapping[str, tuple[float, float]] | None
) -> dict[str, tuple[float, float]]:
    """Return bounds that do not depend on data."""
    known = dict(privacy.bounds) | dict(bounds or {})
    missing = [n for n in schema.of_kind(Kind.CONTINUOUS) if n not in known]
    if missing:
        raise StudyError(
            f"With differential privacy, the continuous variables {missing[:10]} need bounds that "
            "are known without looking at the data: DifferentialPrivacy(..., bounds={name: (low, "
            "high)})."
        )
    return {n: known[n] for n in schema.of_kind(Kind.CONTINUOUS)}


def _bounds(sources: Iterable[Source], schema: Schema) -> dict[str, tuple[float, float]]:
    """Return bounds that contain the values of all tables."""
    names = schema.of_kind(Kind.CONTINUOUS)
    if not names:
        return {}
    columns = list(schema.indices(names))
    values: list[NDArray[Any]] = [rows_with_holes(source)[:, columns] for source in sources]
    low = np.min([np.nan_to_num(v, nan=np.inf).min(axis=0) for v in values], axis=0)
    high = np.max([np.nan_to_num(v, nan=-np.inf).max(axis=0) for v in values], axis=0)
    empty = low > high  # no values at any site
    low, high = np.where(empty, 0.0, low), np.where(empty, 0.0, high)
    constant = low == high
    low, high = low - constant, high + constant
    return dict(zip(names, zip(low.tolist(), high.tolist(), strict=True), strict=True))


def _lenient_policy(privacy: DifferentialPrivacy | None) -> Policy:
    """Return a policy that allows whatever the protocol allows."""
    return Policy(
        minimum_cohort=1,
        minimum_cell=1,
        minimum_organisations=SecureSums.minimum_parties,
        variables=(ANY,),
        protocols=(SecureSums.name,),
        requests=request_names(SecureSums.name),
        rounds_per_study=UNLIMITED,
        rounds_per_year=UNLIMITED,
        queries_per_year=UNLIMITED,
        stop_file=Path(os.devnull, "stop"),  # cannot exist
        columns_per_row=policy.UNLIMITED,
        largest_share=1.0,
        persons=Persons(NOT_PERSONS),
        exact_studies=(ANY,),
        maximum_epsilon=0.0 if privacy is None else privacy.epsilon,
        maximum_delta=policy.MAXIMUM_DELTA if privacy is None else privacy.delta,
    )
