"""How long a site needs for a refusal, by the rule that refuses: what a coordinator can measure.

    python benchmarks/federation/refusal_times.py [--rows 100000] [--variables 20] [--repeat 40]

All refusals have the same form, so that the time is all that could tell them apart. Times are CPU
time of one site in this process, with its ledger on disk; on a busy machine the time that passes
says nothing. The rows are asked in turn, each rule once per repetition.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from isthmus.joint import (
    AskFeatures,
    AskMoments,
    EnvelopeKind,
    Federation,
    FileLedger,
    Identity,
    InProcess,
    Member,
    Policy,
    RoundRequest,
    SecureSums,
    SiteController,
    Study,
    SumRequest,
)
from isthmus.joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus.joint.federation.study_terms import terms_of
from isthmus.joint.secure_sum.envelopes import COORDINATOR, pack, parse
from isthmus.statistics import Chebyshev, Expansion, Schema

SITES = ("north", "east", "south")
Table = dict[str, Any]


class World:
    """One study of three sites, of which the first is timed."""

    def __init__(self, folder: Path, schema: Schema, keys: dict[str, Identity], title: str) -> None:
        self.folder, self.keys = folder, keys
        self.study = Study.draft(
            title,
            purpose="benchmark",
            author=keys["author"].public,
            coordinator=keys["coordinator"].public,
            members=[Member(n, f"Organisation {n}", keys[n].public) for n in SITES],
            schema=schema,
            bounds=dict.fromkeys(schema.names, (-10.0, 10.0)),
            protocol=SecureSums(),
            requests=["moments"],
            rounds=10**6,
        )
        self.signatures = [self.study.sign(keys["author"])]
        self.signatures += [self.study.sign(keys[n], n) for n in SITES]

    def controller(self, name: str, table: Table, ledger: str, **rules: Any) -> SiteController:
        settings: dict[str, Any] = {
            "minimum_cohort": 50,
            "minimum_cell": 5,
            "minimum_organisations": 3,
            "variables": self.study.schema.names,
            "protocols": (self.study.protocol.name,),
            "requests": ("features", "moments"),
            "rounds_per_study": 10**6,
            "rounds_per_year": 10**6,
            "queries_per_year": 10**6,
            "stop_file": self.folder / f"{ledger}.STOP",
            "peers": self.study.members,
        }
        return SiteController(
            self.study,
            self.signatures,
            self.keys[name],
            table,
            Policy(**(settings | rules)),
            FileLedger(self.folder / f"{ledger}.jsonl"),
        )

    def release(self, tables: dict[str, Table], ledger: str) -> None:
        """Let the sites answer one sum."""
        handlers = {
            n: self.controller(n, t, ledger if n == SITES[0] else f"{ledger} {n}").site().handle
            for n, t in tables.items()
        }
        boss = self.keys["coordinator"]
        Federation(self.study, self.signatures, boss, InProcess(handlers)).moments()

    def frame(self, number: int, request: SumRequest[Any] | bytes, more: int = 0) -> bytes:
        """The question of a coordinator; `more` numbers than it has."""
        body = request if isinstance(request, bytes) else request.to_bytes()
        size, limbs = 1, 6
        if not isinstance(request, bytes):
            size, limbs = request.size(FixedPointEncoding.of(self.study)), request.limbs
        terms, opening = terms_of(self.study), RoundRequest(number, body, size + more, limbs)
        boss = self.keys["coordinator"]
        return pack(EnvelopeKind.OPEN, terms, number, COORDINATOR, opening.body(), boss)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--rows", type=int, default=100_000)
    options.add_argument("--variables", type=int, default=20)
    options.add_argument("--repeat", type=int, default=40)
    given = options.parse_args()
    rng = np.random.default_rng(0)
    schema = Schema.continuous([f"x{i}" for i in range(given.variables)])
    tables = {
        s: {n: np.clip(rng.normal(size=given.rows), -9, 9) for n in schema.names} for s in SITES
    }
    own = tables[SITES[0]]
    keys = {n: Identity.generate() for n in (*SITES, "author", "coordinator")}

    def changed(at: int, value: float) -> Table:
        first = own["x0"].copy()
        first[at] = value
        return own | {"x0": first}

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        earlier, study = (World(folder, schema, keys, t) for t in ("Earlier", "Study"))
        earlier.release(tables, "one person")
        study.release(tables, "other data")
        moments = AskMoments(schema.names)
        basis = Expansion.within(Chebyshev(2), dict.fromkeys(schema.names, (-10.0, 10.0)))
        few = {n: v[:40] for n, v in own.items()}
        dominated = {n: np.where(np.arange(given.rows) == 7, 9.0, v * 1e-3) for n, v in own.items()}
        cases: dict[str, tuple[SiteController, Callable[[int], bytes]]] = {}

        def case(what: str, table: Table, ask: Any = moments, more: int = 0, **rules: Any) -> None:
            controller = study.controller(SITES[0], table, what, **rules)
            cases[what] = controller, lambda number: study.frame(number, ask, more)

        case("answered", own)
        case("request that the study does not allow", own, AskFeatures(basis))
        case("not a request", own, b"{")
        case("another number of sums", own, more=1)
        case("limit of rounds", own, rounds_per_year=0)
        case("stopped", own)
        case("too few persons", few)
        case("dominance", dominated)
        case("outside of the bounds", changed(7, 11.0))
        case("one person", changed(7, 0.5))
        case("other data", changed(8, 0.25))
        sites = {what: controller.site() for what, (controller, _) in cases.items()}
        (folder / "stopped.STOP").touch()
        times: dict[str, list[float]] = {what: [] for what in cases}
        answers: dict[str, set[EnvelopeKind]] = {what: set() for what in cases}
        for i in range(given.repeat):
            for what, (_, ask) in cases.items():
                frame = ask(10 + i)
                start = time.thread_time()
                answer = sites[what].handle(frame)
                times[what].append(1e3 * (time.thread_time() - start))
                answers[what].add(parse(answer).kind)
    print(f"{given.rows} rows, {given.variables} variables, {given.repeat} questions per rule\n")
    print("| refused by | CPU ms: median | 10 % to 90 % |\n| --- | --- | --- |")
    for what, values in times.items():
        kind = EnvelopeKind.ADVERT if what == "answered" else EnvelopeKind.REFUSE
        assert answers[what] == {kind}, (what, answers[what])
        low, median, high = np.quantile(values, [0.1, 0.5, 0.9])
        print(f"| {what} | {median:.2f} | {low:.2f} to {high:.2f} |")


if __name__ == "__main__":
    main()
