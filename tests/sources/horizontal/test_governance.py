"""Studies, policies, ledgers: what a site signs, allows and writes down."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import AbortedError, DataError, LedgerError, RefusedError, StudyError
from isthmus.parties import (
    FileLedger,
    Identity,
    InProcess,
    Ledger,
    Member,
    MemoryLedger,
    Policy,
    Study,
    code_hash,
    read_signatures,
    readable,
    verify,
    write_signatures,
)
from isthmus.parties.agreement.toml import Reader, document
from isthmus.sources import Federation, Frame
from isthmus.sources.horizontal import (
    AskCounts,
    AskMoments,
    FrameKind,
    Opening,
    Refusal,
    SecureSums,
    SiteController,
)
from isthmus.sources.horizontal.requests.grid import counts_size
from isthmus.sources.horizontal.secure_sum.frames import COORDINATOR, pack, parse
from isthmus.sources.horizontal.study_terms import terms_of
from isthmus.statistics import Kind, Moments, Plan, Schema, Variable
from isthmus.testing.source import check_source

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
            "plan": Plan.sets([["ward", "ill"]]),
        }
        self.study = Study.draft("Dose and illness", **(terms | changes))
        self.signatures = [self.study.sign(self.author)]
        self.signatures += [self.study.sign(k, n) for n, k in self.keys.items()]
        self.data = {name: table(i) for i, name in enumerate(NAMES)}
        self.policies = dict.fromkeys(NAMES, policy(folder))
        self.ledgers: dict[str, Ledger] = {n: FileLedger(folder / f"{n}.jsonl") for n in NAMES}
        self.clock: Callable[[], datetime] = lambda: datetime.now(UTC)
        self.code = code_hash()

    def station(self, name: str) -> SiteController:
        return SiteController(
            self.study,
            self.signatures,
            self.keys[name],
            self.data[name],
            self.policies[name],
            self.ledgers[name],
            clock=lambda: self.clock(),
            code=self.code,
        )

    def federation(self, first_round: int = 1) -> Federation:
        self.sites = {name: self.station(name).site() for name in NAMES}
        transport = InProcess({name: s.handle for name, s in self.sites.items()})
        return Federation(
            self.study, self.signatures, self.boss, transport, first_round=first_round
        )

    def events(self, name: str) -> list[str]:
        return [e["event"] for e in self.ledgers[name].entries()]

    def why(self, name: str) -> list[str]:
        return [e["why"] for e in self.ledgers[name].entries() if e["event"] == "refused"]


def policy(folder: Path) -> Policy:
    return Policy(
        minimum_cohort=20,
        minimum_cell=2,
        minimum_organisations=3,
        variables=("age", "dose", "ward", "ill", "others"),
        protocols=("secure sums",),
        requests=("moments", "counts"),
        rounds_per_study=10,
        rounds_per_year=20,
        queries_per_year=20,
        stop_file=folder / "STOP",
    )


@pytest.fixture
def four(tmp_path: Path) -> Consortium:
    return Consortium(tmp_path)


def test_a_study_runs_as_signed(four: Consortium) -> None:
    federation = four.federation()
    pooled = {n: np.concatenate([d[n] for d in four.data.values()]) for n in SCHEMA.names}
    check_source(federation, Frame(pooled, schema=SCHEMA))
    for name in NAMES:
        events = four.events(name)
        assert events[:5] == ["opened", "shares", "sent", "agreed", "unmasked"]
        entries = verify(four.folder / f"{name}.jsonl")
        sent = next(e for e in entries if e["event"] == "sent")
        assert sent["study"] == four.study.identity.hex()
        assert sent["form"] == "secure sum"
        assert sent["numbers"] == 21
        assert "sums and products" in readable(entries)


# --- the study -------------------------------------------------------------------------------


def test_a_study_is_what_its_bytes_are(four: Consortium) -> None:
    path = four.folder / "study.toml"
    four.study.write(path)
    again = Study.read(path)
    assert again == four.study
    assert again.identity == four.study.identity
    write_signatures(four.folder / "study.sig", four.signatures)
    again.require(read_signatures(four.folder / "study.sig"), ["author", *NAMES])


def test_a_flipped_byte_needs_new_signatures(four: Consortium) -> None:
    text = four.study.text
    at = text.index(b"learn")
    other = Study.parse(text[:at] + b"L" + text[at + 1 :])
    assert other.identity != four.study.identity
    with pytest.raises(StudyError, match="author"):
        other.require(four.signatures, ["author"])
    four.study = other
    with pytest.raises(StudyError, match="signature"):
        four.station("north")


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
    assert federation.moments().n == 240


@pytest.mark.parametrize("role", ["author", "south"])
def test_signatures_cannot_be_swapped(four: Consortium, role: str) -> None:
    others = [s for s in four.signatures if s.role != role]
    forged = replace(others[0], role=role)
    with pytest.raises(StudyError, match=role):
        four.study.require([*others, forged], ["author", *NAMES])
    by_stranger = four.study.sign(Identity.generate(), role)
    with pytest.raises(StudyError, match=role):
        four.study.require([*others, by_stranger], ["author", *NAMES])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'format = "isthmus-study/2"', b'format = "x"', "format"),
        (b"rounds = 10\n", b"", "rounds is missing"),
        (b"rounds = 10\n", b'rounds = "ten"\n', "rounds is a str"),
        (b"rounds = 10\n", b"rounds = 0\n", "at least 1"),
        (b"rounds = 10\n", b"rounds = 10\nwhatever = 1\n", "whatever is not a known key"),
        (b"organisations = 3", b"organisations = 2", "organisations"),
        (b'"moments"', b'"everything"', "requests"),
        (b"high = 120.0\n", b"", "high is missing"),
        (b"high = 120.0\n", b"high = -1.0\n", "ascending"),
        (b"high = 120.0\n", b"high = inf\n", "finite"),
        (b'kind = "continuous"', b'kind = "odd"', "kind"),
        (b"levels =", b"stairs =", "levels is missing"),
        (b"threshold = 3", b"threshold = 2", "threshold"),
        (b'name = "dose"', b'name = "age"', "unique"),
        (b'name = "north"', b'name = "east"', "same name"),
        (b"ed25519:", b"rsa:", "not a public key"),
        (b"[[sites]]", b"[[villages]]", "sites is missing"),
        (b"title =", b"title", "not TOML"),
        (b'sets = [["ill", "ward"]]', b'sets = "all"', "plan"),
    ],
)
def test_mistakes_in_a_study_are_named(
    four: Consortium, old: bytes, new: bytes, message: str
) -> None:
    assert old in four.study.text
    with pytest.raises(StudyError, match=message):
        Study.parse(four.study.text.replace(old, new))


def test_all_mistakes_are_named_at_once(four: Consortium) -> None:
    text = four.study.text.replace(b"rounds = 10\n", b"").replace(b"title =", b"name =")
    with pytest.raises(
        StudyError, match=r"title is missing.*rounds is missing.*name is not a known key"
    ):
        Study.parse(text)


def test_expiry_needs_a_zone(four: Consortium) -> None:
    at = four.study.text.index(b"expires = ") + len(b"expires = 2027-01-01T00:00:00")
    with pytest.raises(StudyError, match="time zone"):
        Study.parse(four.study.text[:at] + four.study.text[at + 1 :])


@settings(max_examples=60)
@given(st.text(max_size=20), st.floats(allow_nan=False, allow_infinity=False), st.booleans())
def test_what_is_written_is_read(text: str, number: float, truth: bool) -> None:
    made = document({"a b": text, "n": number, "t": truth}, {"x": [{"k": [text, 1, number]}]})
    top = Reader.parse(made.encode(errors="surrogatepass"), "test")
    assert (top.take("a b", str), top.take("n", float), top.take("t", bool)) == (
        text,
        number,
        truth,
    )


def test_expired_studies_are_not_answered(four: Consortium) -> None:
    federation = four.federation()
    four.clock = lambda: four.study.expires + timedelta(seconds=1)
    with pytest.raises(AbortedError, match="expired"):
        federation.moments()
    with pytest.raises(RefusedError, match="expired"):
        four.station("north")


def test_other_code_is_not_run(four: Consortium) -> None:
    assert four.study.code == (code_hash(),)
    four.code = "sha256:" + "0" * 64
    with pytest.raises(RefusedError, match="hash"):
        four.station("north")


# --- the policy ------------------------------------------------------------------------------


def test_a_policy_is_read_as_written(tmp_path: Path) -> None:
    made = policy(tmp_path)
    (tmp_path / "policy.toml").write_text(made.to_toml(), encoding="utf-8")
    assert Policy.read(tmp_path / "policy.toml") == made


@pytest.mark.parametrize("line", range(11))
def test_a_missing_key_refuses(tmp_path: Path, line: int) -> None:
    lines = policy(tmp_path).to_toml().splitlines()
    assert len(lines) == 11
    gone = lines.pop(line)
    key = gone.partition(" ")[0]
    with pytest.raises(StudyError, match=key):
        Policy.parse("\n".join(lines).encode())


def test_a_policy_cannot_allow_two_organisations(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="minimum_organisations is 2"):
        replace(policy(tmp_path), minimum_organisations=2)
    text = policy(tmp_path).to_toml().replace("organisations = 3", "organisations = 2")
    with pytest.raises(StudyError, match="at least 3"):
        Policy.parse(text.encode())


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
        four.station("east")
    assert four.events("east") == []


@pytest.mark.parametrize(
    "change",
    [
        {"minimum_cohort": 61},
        {"minimum_cell": 30},
        {"rounds_per_study": 0},
        {"rounds_per_year": 0},
        {"queries_per_year": 0},
    ],
)
def test_limits_are_kept_before_masking(four: Consortium, change: dict[str, Any]) -> None:
    four.policies["east"] = replace(four.policies["east"], **change)
    federation = four.federation()
    assert federation.moments().n == 180
    assert federation.active == ("north", "south", "west")
    assert four.events("east") == ["refused"]
    assert four.why("east") == ["policy"]


@pytest.mark.parametrize("ask", ["moments", "counts"])
def test_small_cells_are_found_in_tables_and_in_moments(four: Consortium, ask: str) -> None:
    rare = four.data["west"]["ward"] == "c"
    four.data["west"]["ill"][rare] = False
    four.data["west"]["ill"][np.flatnonzero(rare)[0]] = True  # one row in the cell (c, ill)
    federation = four.federation()
    found = federation.moments() if ask == "moments" else federation.counts(Plan.everything())
    assert found.n == 180
    assert four.why("west") == ["policy"]


def test_rounds_of_the_study_are_capped(tmp_path: Path) -> None:
    four = Consortium(tmp_path, rounds=1)
    federation = four.federation()
    federation.moments(["age"])
    with pytest.raises(AbortedError, match="policy"):
        federation.moments()


def test_a_year_is_a_year(four: Consortium) -> None:
    for name in NAMES:
        four.policies[name] = replace(four.policies[name], queries_per_year=1)
    federation = four.federation()
    federation.moments(["age"])
    with pytest.raises(AbortedError, match="policy"):
        federation.moments(["dose"])
    four.study = replace(four.study, expires=four.study.expires + timedelta(days=800))
    four.clock = lambda: datetime.now(UTC) + timedelta(days=366)
    assert four.station("north")._rules.violations(AskMoments(("dose",))) == []


def test_requests_beyond_the_study(tmp_path: Path) -> None:
    four = Consortium(tmp_path, requests=["moments"])
    with pytest.raises(AbortedError, match="policy"):
        four.federation().counts(Plan.sets([["ward"]]))


class Officer:
    """Touches the stop file when a frame of some stage comes in."""

    def __init__(self, stop: Path, stage: int, handle: Callable[[bytes], bytes]) -> None:
        self.stop, self.left, self.handle = stop, stage, handle

    def __call__(self, data: bytes) -> bytes:
        if self.left == 0:
            self.stop.touch()
        self.left -= 1
        return self.handle(data)


@pytest.mark.parametrize("stage", range(5))
def test_the_kill_switch_works_at_every_stage(four: Consortium, stage: int) -> None:
    stop = four.folder / "STOP"
    four.federation()
    handlers: dict[str, Callable[[bytes], bytes]] = {n: s.handle for n, s in four.sites.items()}
    handlers["north"] = Officer(stop, stage, handlers["north"])
    transport = InProcess(handlers)
    federation = Federation(four.study, four.signatures, four.boss, transport)
    with pytest.raises(AbortedError, match="stopped"):
        federation.moments()
    assert "unmasked" not in [e for name in NAMES for e in four.events(name)]
    assert four.why("north") == ["stopped"]
    with pytest.raises(RefusedError, match="STOP"):
        four.station("north")
    stop.unlink()
    assert four.federation(first_round=2).moments().n == 240


# --- data ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "value"),
    [("age", np.nan), ("age", np.inf), ("age", 1e300), ("age", 120.5), ("ward", "Mr Miller")],
)
def test_strange_data_are_refused_and_not_told(
    four: Consortium, column: str, value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    cells = four.data["east"][column].astype(object if isinstance(value, str) else float)
    cells[7] = value
    four.data["east"][column] = cells
    station = four.station("east")
    shown = str(station.dry_run(AskMoments(SCHEMA.names)))
    federation = four.federation()
    assert federation.moments().n == 180
    assert four.why("east") == ["data"]
    with pytest.raises(RefusedError) as error:
        station._contribution(AskMoments(SCHEMA.names))
    assert error.value.__context__ is None
    text = (four.folder / "east.jsonl").read_text() + str(error.value) + caplog.text + shown
    for secret in (str(value), "Miller", "120.5"):
        assert secret not in text


def test_a_second_dataset_is_refused(four: Consortium) -> None:
    four.federation().moments(["age"])
    four.data["south"] = table(99)
    federation = four.federation(first_round=2)
    # Nor may the others be summed without it: the difference would show it.
    with pytest.raises(AbortedError):
        federation.moments(["age"])
    assert four.why("south") == ["other_data"]
    assert "membership" in four.why("north")


def test_sums_over_other_sites_are_not_unmasked(four: Consortium) -> None:
    federation = four.federation()
    federation.moments(["age"])
    sites = {name: four.station(name).site().handle for name in NAMES}
    transport = InProcess(sites, lost=[("west", 0)])
    again = Federation(four.study, four.signatures, four.boss, transport, first_round=2)
    with pytest.raises(AbortedError):
        again.moments(["age"])
    assert {why for name in NAMES[:3] for why in four.why(name)} == {"membership"}


def test_rounds_do_not_begin_again_after_a_restart(four: Consortium) -> None:
    four.federation().moments(["age"])
    four.ledgers = {n: FileLedger(four.folder / f"{n}.jsonl") for n in NAMES}
    with pytest.raises(AbortedError, match="replay"):
        four.federation().moments(["age"])


# --- the dry run -----------------------------------------------------------------------------


def test_a_dry_run_opens_no_socket_and_writes_nothing(
    four: Consortium, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    station = four.station("north")
    run = station.dry_run(AskMoments(SCHEMA.names))
    assert run.violations == ()
    assert run.contribution == Frame(four.data["north"], schema=SCHEMA).moments()
    assert run.numbers == 21
    text = str(run)
    assert "21 numbers" in text
    assert "rows: 60" in text
    assert isinstance(run.contribution, Moments)
    assert str(run.contribution.sums)[1:9] in text
    counts = str(station.dry_run(AskCounts(("ward", "ill"), Plan.sets([["ward", "ill"]]))))
    assert "ward × ill" in counts
    assert four.events("north") == []


def test_a_dry_run_says_what_stands_against_it(four: Consortium) -> None:
    four.policies["north"] = replace(four.policies["north"], minimum_cohort=100, minimum_cell=50)
    run = four.station("north").dry_run(AskCounts(("ward", "ill"), Plan.sets([["ill"]])))
    assert "does not plan" not in str(run)
    planned = Study.parse(four.study.text.replace(b'"ill", "ward"', b'"ill"'))
    four.study = planned
    four.signatures = [planned.sign(four.author), planned.sign(four.keys["north"], "north")]
    run = four.station("north").dry_run(AskCounts(("ward", "ill"), Plan.sets([["ward", "ill"]])))
    text = str(run)
    assert "does not plan" in text
    assert "fewer than 100 rows" in text
    assert "fewer than 50 rows" in text


# --- the ledger ------------------------------------------------------------------------------


def filled(path: Path, entries: int = 4) -> FileLedger:
    ledger = FileLedger(path)
    for i in range(entries):
        ledger.append("sent", round=i, what="ß")
    return ledger


def test_any_changed_byte_is_found(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    filled(path)
    good = path.read_bytes()
    assert len(verify(path)) == 4
    for at in range(0, len(good), 3):
        path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        with pytest.raises(LedgerError):
            verify(path)


def test_lines_cannot_be_dropped_swapped_or_added(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    filled(path)
    lines = path.read_bytes().splitlines(keepends=True)
    for wrong in (lines[1:], [lines[0], *lines[2:]], lines[::-1], [*lines, lines[-1]]):
        path.write_bytes(b"".join(wrong))
        with pytest.raises(LedgerError, match="line"):
            verify(path)
    path.write_bytes(b"".join(lines)[:-1])
    with pytest.raises(LedgerError, match="middle of line"):
        verify(path)
    path.write_bytes(b"".join(lines[:2]))
    assert len(verify(path)) == 2
    with pytest.raises(LedgerError, match="cut off"):
        verify(path, head=json.loads(lines[3])["hash"])


def test_a_ledger_goes_on_where_it_ended(tmp_path: Path) -> None:
    filled(tmp_path / "ledger", 2)
    filled(tmp_path / "ledger", 3)
    assert [e["number"] for e in verify(tmp_path / "ledger")] == [1, 2, 3, 4, 5]


def test_two_writers_notice_each_other(tmp_path: Path) -> None:
    one, two = FileLedger(tmp_path / "ledger"), FileLedger(tmp_path / "ledger")
    one.append("sent")
    with pytest.raises(LedgerError, match="someone else"):
        two.append("sent")
    assert len(verify(tmp_path / "ledger")) == 1


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
    assert federation.moments().n == 180
    monkeypatch.undo()
    os.close(checked)
    assert federation.active == ("east", "south", "west")
    assert verify(full) == ()
    with pytest.raises(AbortedError):
        # Others were unmasked together; the first site cannot come back into this study.
        four.federation(first_round=2).moments(["age"])


def test_strangers_cannot_fill_the_ledger(four: Consortium) -> None:
    four.ledgers["north"] = MemoryLedger()
    site = four.station("north").site()
    for _ in range(1000):
        site.handle(b"garbage")
    entries = four.ledgers["north"].entries()
    assert [e["frames"] for e in entries] == [2**k for k in range(10)]
    assert {e["why"] for e in entries} == {Refusal.MALFORMED.name.lower()}


def test_nor_can_the_coordinator(four: Consortium) -> None:
    four.ledgers["north"] = MemoryLedger()
    federation = four.federation()
    old = Opening(0, b"", 1, 1)
    frame = pack(FrameKind.OPEN, terms_of(four.study), 0, COORDINATOR, old.body(), four.boss)
    for _ in range(300):
        four.sites["north"].handle(frame)
    entries = four.ledgers["north"].entries()
    assert len(entries) == 102
    assert [e["frames"] for e in entries[100:]] == [128, 256]
    assert federation.moments().n == 240


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
        b'{"consensus":["age"],"step":1,"rows":1,"rho":1.0,"weights":[[NaN]],"centre":null}',
        b'{"consensus":["age"],"step":1,"rows":0,"rho":1.0,"weights":[[0.0]],"centre":null}',
        b'{"totals":' + b"[" * 100000,
    ],
)
def test_strange_requests_are_refused(four: Consortium, request_: bytes) -> None:
    site = four.station("north").site()
    opening = Opening(1, request_, 3, 4)
    frame = pack(FrameKind.OPEN, terms_of(four.study), 1, COORDINATOR, opening.body(), four.boss)
    assert parse(site.handle(frame)).kind is FrameKind.REFUSE
    assert four.why("north") == ["bad_request"]


def test_a_plan_with_too_many_sets_is_not_listed() -> None:
    schema = Schema.discrete({f"x{i}": (0, 1) for i in range(200)})
    with pytest.raises(DataError, match="too many cells"):
        counts_size(schema, Plan.up_to(5))
