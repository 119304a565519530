"""What leaves a site, what it refuses, and what it writes down."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.joint.consortium import NAMES, SCHEMA, Consortium, table

from isthmus.errors import AbortedError, DataError, RefusedError
from isthmus.statistics import CountPlan, Moments, Schema
from isthmus.statistics.within import moments_within
from isthmus.testing.source import check_counts
from isthmus_joint import (
    AskCounts,
    AskMoments,
    Extract,
    Federation,
    FileLedger,
    InProcess,
    MemoryLedger,
    Persons,
    Study,
    code_hash,
    readable,
    verify,
)
from isthmus_joint.federation.requests.statistics import counts_size, show_array
from isthmus_joint.secure_sum.envelopes import (
    COORDINATOR,
    EnvelopeKind,
    Refusal,
    RoundRequest,
    pack,
    parse,
)
from isthmus_joint.secure_sum.protocol import secure_sums


def test_a_study_runs_as_signed(four: Consortium) -> None:
    federation = four.federation()
    moments, pooled = federation.moments(), four.pooled()
    sites = np.repeat(np.arange(len(NAMES)), 60)
    expected = moments_within(SCHEMA, list(pooled.rows().T), sites)
    assert (moments.n, moments.groups) == (expected.n, len(NAMES))
    np.testing.assert_allclose(moments.mean(), expected.mean(), rtol=1e-12)
    numbers = np.ix_([0, 1], [0, 1])
    np.testing.assert_allclose(moments.scatter()[numbers], expected.scatter()[numbers], rtol=1e-9)
    # Products of levels are rounded to whole numbers at each site.
    assert np.abs(moments.scatter() - expected.scatter()).max() <= 0.5 * len(NAMES)
    plan = CountPlan.sets([["ward", "ill"]])
    check_counts(federation.counts(plan), pooled.counts(plan))
    for name in NAMES:
        events = four.events(name)
        assert events[:3] == ["opened", "sent", "unmasked"]
        entries = verify(four.folder / f"{name}.jsonl")
        sent = next(e for e in entries if e["event"] == "sent")
        assert sent["study"] == four.study.identity.hex()
        assert sent["form"] == "secure sum"
        assert sent["numbers"] == 22
        assert "sums and products" in readable(entries)


def test_sites_of_another_study_do_not_understand_each_other(four: Consortium) -> None:
    """The hash of the study is in every frame."""
    federation = four.federation()
    text = four.study.text.replace(b"to learn", b"to LEARN")
    changed = Study.parse(text)
    signatures = [changed.sign(four.author), *(changed.sign(k, n) for n, k in four.keys.items())]
    transport = InProcess({name: s.handle for name, s in four.sites.items()})
    with pytest.raises(AbortedError):
        Federation(changed, signatures, four.boss, transport).moments()
    assert four.why("north") == ["other_study"]
    assert federation.moments().number_of_rows == 240


def test_expired_studies_are_not_answered(four: Consortium) -> None:
    federation = four.federation()
    four.clock = lambda: four.study.expires + timedelta(seconds=1)
    with pytest.raises(AbortedError, match="refused"):
        federation.moments()
    with pytest.raises(RefusedError, match="expired"):
        four.controller("north")


def test_other_code_is_not_run(four: Consortium) -> None:
    assert four.study.code == (code_hash(),)
    four.code = "sha256:" + "0" * 64
    with pytest.raises(RefusedError, match="hash"):
        four.controller("north")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"variables": ("age", "dose", "ward")}, "ill"),
        ({"protocols": ()}, "protocol"),
        ({"requests": ("counts",)}, "moments"),
        ({"minimum_organisations": 5}, "organisations"),
    ],
)
def test_the_policy_stands_above_the_study(
    four: Consortium, change: dict[str, Any], message: str
) -> None:
    four.policies["east"] = replace(four.policies["east"], **change)
    with pytest.raises(RefusedError, match=message):
        four.controller("east")
    assert four.events("east") == []


@pytest.mark.parametrize(
    "change",
    [
        {"rounds_per_study": 0},
        {"rounds_per_year": 0},
        {"queries_per_year": 0},
    ],
)
def test_limits_are_kept_before_masking(four: Consortium, change: dict[str, Any]) -> None:
    four.policies["east"] = replace(four.policies["east"], **change)
    federation = four.federation()
    assert federation.moments().number_of_rows == 180
    assert federation.active == ("north", "south", "west")
    assert four.events("east") == ["refused"]
    assert four.why("east") == ["policy"]


@pytest.mark.parametrize("ask", ["moments", "counts"])
def test_small_cells_are_found_in_tables_and_in_moments(tmp_path: Path, ask: str) -> None:
    four = Consortium(tmp_path, requests=[ask])
    rare = four.data["west"]["ward"] == "c"
    four.data["west"]["ill"][rare] = False
    four.data["west"]["ill"][np.flatnonzero(rare)[0]] = True  # one row in the cell (c, ill)
    with pytest.raises(RefusedError, match="fewer than 3 persons"):
        four.extract("west")
    of_machines = replace(four.policies["west"], minimum_cell=1, persons=Persons("none"))
    four.policies["west"] = of_machines
    assert four.extract("west").number_of_persons == 60


def test_rounds_of_the_study_are_capped(tmp_path: Path) -> None:
    four = Consortium(tmp_path, rounds=1)
    federation = four.federation()
    federation.moments(["age"])
    with pytest.raises(AbortedError, match="refused"):
        federation.moments()


def test_a_year_is_a_year(four: Consortium) -> None:
    for name in NAMES:
        four.policies[name] = replace(four.policies[name], queries_per_year=1)
    federation = four.federation()
    federation.moments(["age"])
    with pytest.raises(AbortedError, match="refused"):
        federation.moments(["dose"])
    four.study = replace(four.study, expires=four.study.expires + timedelta(days=800))
    four.clock = lambda: datetime.now(UTC) + timedelta(days=366)
    assert four.controller("north")._rules.violations(AskMoments(("dose",))) == []


def test_requests_beyond_the_study(tmp_path: Path) -> None:
    four = Consortium(tmp_path, requests=["moments"])
    with pytest.raises(AbortedError, match="refused"):
        four.federation().counts(CountPlan.sets([["ward"]]))


class Officer:
    """Touches the stop file when a frame of some stage comes in."""

    def __init__(self, stop: Path, stage: int, handle: Callable[[bytes], bytes]) -> None:
        self.stop, self.left, self.handle = stop, stage, handle

    def __call__(self, data: bytes) -> bytes:
        if self.left == 0:
            self.stop.touch()
        self.left -= 1
        return self.handle(data)


@pytest.mark.long
@pytest.mark.parametrize("stage", range(5))
def test_the_kill_switch_works_at_every_stage(four: Consortium, stage: int) -> None:
    stop = four.folder / "STOP"
    four.federation()
    handlers: dict[str, Callable[[bytes], bytes]] = {n: s.handle for n, s in four.sites.items()}
    handlers["north"] = Officer(stop, stage, handlers["north"])
    transport = InProcess(handlers)
    federation = Federation(four.study, four.signatures, four.boss, transport)
    with pytest.raises(AbortedError, match="refused"):
        federation.moments()
    assert "unmasked" not in [e for name in NAMES for e in four.events(name)]
    assert four.why("north") == ["stopped"]
    with pytest.raises(RefusedError, match="STOP"):
        four.controller("north")
    stop.unlink()
    assert four.federation(first_round=2).moments().number_of_rows == 240


@pytest.mark.parametrize(
    ("column", "value", "rows"),
    [
        ("age", np.nan, 59),
        ("age", np.inf, 60),
        ("age", 1e300, 60),
        ("age", 120.5, 60),
        ("ward", "Mr Miller", 59),
    ],
)
def test_strange_values_are_dropped_or_clipped_and_not_told(
    four: Consortium, column: str, value: Any, rows: int
) -> None:
    cells = four.data["east"][column].astype(object if isinstance(value, str) else float)
    cells[7] = value
    four.data["east"][column] = cells
    extract = four.extract("east")
    assert extract.number_of_persons == rows
    assert extract.frozen is not None
    assert (extract.frozen.dropped, extract.frozen.clipped) == (60 - rows, rows - 59)
    assert four.federation().moments().number_of_rows == 180 + rows
    shown = str(four.controller("east").dry_run(AskMoments(SCHEMA.names)))
    text = (four.folder / "east.jsonl").read_text() + shown
    for secret in (str(value), "Miller", "120.5"):
        assert secret not in text


def test_an_error_about_data_quotes_no_value(four: Consortium) -> None:
    controller = four.controller("east")
    simulated = {"age": np.full(60, 1234.5)} | {n: four.data["east"][n] for n in SCHEMA.names[1:]}
    controller._extract = Extract.simulated(simulated, four.study)
    with pytest.raises(RefusedError) as error:
        controller._contribution(AskMoments(SCHEMA.names))
    assert error.value.__context__ is None
    assert "1234.5" not in str(error.value)


def test_a_study_is_answered_from_one_extract(four: Consortium) -> None:
    four.federation().moments(["age"])
    four.data["south"] = table(99)
    with pytest.raises(RefusedError, match="another extract"):
        four.controller("south")


def test_sums_over_other_sites_are_not_unmasked(four: Consortium) -> None:
    federation = four.federation()
    federation.moments(["age"])
    sites = {name: four.controller(name).site().handle for name in NAMES}
    transport = InProcess(sites, lost=[("west", 0)])
    again = Federation(
        four.study, four.signatures, four.boss, transport, first_round=2, without=None
    )
    with pytest.raises(AbortedError):
        again.moments(["age"])
    assert {why for name in NAMES[:3] for why in four.why(name)} == {"membership"}


def test_rounds_do_not_begin_again_after_a_restart(four: Consortium) -> None:
    four.federation().moments(["age"])
    four.ledgers = {n: FileLedger(four.folder / f"{n}.jsonl") for n in NAMES}
    with pytest.raises(AbortedError, match="replay"):
        four.federation().moments(["age"])


def test_a_dry_run_opens_no_socket_and_writes_nothing(
    four: Consortium, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    controller = four.controller("north")
    run = controller.dry_run(AskMoments(SCHEMA.names))
    assert run.violations == ()
    expected = four.extract("north").source.moments()
    assert isinstance(run.contribution, Moments)
    np.testing.assert_allclose(run.contribution.mean(), expected.mean())
    np.testing.assert_allclose(run.contribution.covariance(), expected.covariance(), atol=0.01)
    assert run.numbers == 22
    text = str(run)
    assert "22 numbers" in text
    assert "rows: 60" in text
    assert isinstance(run.contribution, Moments)
    sums = run.contribution.n * run.contribution.mean()
    assert show_array(sums).split()[1] in text
    counts = str(controller.dry_run(AskCounts(CountPlan.sets([["ward", "ill"]]))))
    assert "ward × ill" in counts
    assert four.events("north") == []


def test_a_dry_run_says_what_stands_against_it(four: Consortium) -> None:
    run = four.controller("north").dry_run(AskCounts(CountPlan.sets([["ill"]])))
    assert "does not plan" not in str(run)
    planned = Study.parse(four.study.text.replace(b'"ill", "ward"', b'"ill"'))
    four.study = planned
    four.signatures = [planned.sign(four.author), planned.sign(four.keys["north"], "north")]
    run = four.controller("north").dry_run(AskCounts(CountPlan.sets([["ward", "ill"]])))
    assert "does not plan" in str(run)


def test_nothing_leaves_when_the_disk_is_full(
    four: Consortium, monkeypatch: pytest.MonkeyPatch
) -> None:
    federation = four.federation()
    sync = os.fsync
    full = four.folder / "north.jsonl"

    def failing(handle: int) -> None:
        if os.path.sameopenfile(handle, checked):
            raise OSError(28, "No space left on device")
        sync(handle)

    checked = os.open(full, os.O_RDONLY)
    monkeypatch.setattr(os, "fsync", failing)
    assert federation.moments().number_of_rows == 180
    monkeypatch.undo()
    os.close(checked)
    assert federation.active == ("east", "south", "west")
    assert verify(full) == ()
    with pytest.raises(AbortedError):
        # Others were unmasked together; the first site cannot come back into this study.
        four.federation(first_round=2).moments(["age"])


def test_strangers_cannot_fill_the_ledger(four: Consortium) -> None:
    four.ledgers["north"] = MemoryLedger()
    site = four.controller("north").site()
    for _ in range(1000):
        site.handle(b"garbage")
    entries = four.ledgers["north"].entries()
    assert [e["frames"] for e in entries] == [2**k for k in range(10)]
    assert {e["why"] for e in entries} == {Refusal.MALFORMED.name.lower()}


def test_nor_can_the_coordinator(four: Consortium) -> None:
    four.ledgers["north"] = MemoryLedger()
    federation = four.federation()
    old = RoundRequest(0, b"", 1, 1)
    frame = pack(
        EnvelopeKind.OPEN,
        secure_sums(four.study.protocol).terms(four.study.roster),
        0,
        COORDINATOR,
        old.body(),
        four.boss,
    )
    for _ in range(300):
        four.sites["north"].handle(frame)
    entries = four.ledgers["north"].entries()
    assert len(entries) == 102
    assert [e["frames"] for e in entries[100:]] == [128, 256]
    assert federation.moments().number_of_rows == 240


@pytest.mark.parametrize(
    "request_",
    [
        b"",
        b"[]",
        b"null",
        b'{"moments":"age"}',
        b'{"moments":["age","age"]}',
        b'{"moments":["height"]}',
        b'{"moments": ["age"]}',
        b'{"moments":[]}',
        b'{"counts":["ward","ill"],"plan":{"up_to":10000}}',
        b'{"counts":["age"],"plan":{"everything":true}}',
        b'{"features":{"chebyshev":{"terms":3,"radius":3.0},"columns":{"ward":[0.0,1.0]}}}',
        b'{"features":{"chebyshev":{"terms":99,"radius":3.0},"columns":{"age":[0.0,1.0]}}}',
        b'{"consensus":["age"],"step":1}',
        b'{"consensus":["age"],"step":1,"rho2":NaN}',
        b'{"moments":' + b"[" * 100000,
    ],
)
def test_strange_requests_are_refused(four: Consortium, request_: bytes) -> None:
    site = four.controller("north").site()
    opening = RoundRequest(1, request_, 3, 4)
    frame = pack(
        EnvelopeKind.OPEN,
        secure_sums(four.study.protocol).terms(four.study.roster),
        1,
        COORDINATOR,
        opening.body(),
        four.boss,
    )
    assert parse(site.handle(frame)).kind is EnvelopeKind.REFUSE
    assert four.why("north")[0] in ("bad_request", "policy")


def test_a_plan_with_too_many_sets_is_not_listed() -> None:
    schema = Schema.discrete({f"x{i}": (0, 1) for i in range(200)})
    with pytest.raises(DataError, match="too many cells"):
        counts_size(schema, CountPlan.up_to(5))
