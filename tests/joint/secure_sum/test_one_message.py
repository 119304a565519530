"""Sums of one message each: keys agreed on once, questions pinned, answers repeated exactly."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from tests.joint.federation.rosters import LIMBS, Party, ints

import isthmus as ist
from isthmus.errors import AbortedError, FederationError, LedgerError
from isthmus.joint import (
    ADMM,
    AskConsensus,
    AskTotals,
    EnvelopeKind,
    Federation,
    FileJournal,
    FileSlot,
    Identity,
    InProcess,
    Journal,
    MemoryJournal,
    MemoryLedger,
    MemorySlot,
    Policy,
    Refusal,
    RoundRequest,
    SecureSums,
    Signature,
    Site,
    SiteController,
    Slot,
    Study,
    run_round,
)
from isthmus.joint.federation.round_scheduler import restart
from isthmus.joint.federation.simulation import simulated
from isthmus.joint.records.journal import Record
from isthmus.joint.secure_sum.envelopes import (
    COORDINATOR,
    Standing,
    pack,
    parse,
    read_refusal,
    standing_context,
    write_set,
)
from isthmus.joint.secure_sum.heads import HeadStatement
from isthmus.joint.secure_sum.one_message_coordinator import KeyRound, OneMessageRound
from isthmus.joint.transport.base import drive
from isthmus.statistics import Schema


class KilledError(BaseException):
    """The process ends here."""


def members(party: Party) -> frozenset[int]:
    return frozenset(range(len(party.sites)))


def settled(party: Party, number: int = 1) -> bytes:
    led = KeyRound(party.terms, party.boss, number, members(party), party.verifier)
    drive(led, party.transport())
    return led.keys


def single(
    party: Party,
    keys: bytes,
    number: int = 2,
    request: bytes = b"x",
    heads: Mapping[int, bytes] | None = None,
) -> OneMessageRound:
    opening = RoundRequest(number, request, party.size, LIMBS)
    return OneMessageRound(
        party.terms, party.boss, opening, members(party), keys, party.verifier, heads
    )


def why(answer: bytes) -> Refusal:
    frame = parse(answer)
    assert frame.kind is EnvelopeKind.REFUSE
    return read_refusal(frame.body)[0]


@pytest.mark.parametrize("sites", [3, 4, 10])
def test_the_sum_is_exact(sites: int) -> None:
    party = Party(sites)
    keys, heads = settled(party), dict[int, bytes]()
    for number in (2, 3, 7):
        led = single(party, keys, number, heads=heads)
        found = ints(run_round(led, party.transport()))
        heads = led.heads
        assert found == party.expected(led.active)
    assert len(led.active) == sites


def test_without_a_site_there_is_no_sum() -> None:
    party = Party(4)
    keys = settled(party)
    led = single(party, keys)
    with pytest.raises(AbortedError, match=r"Silent: \['s2'\]") as caught:
        run_round(led, party.transport(lost=[("s2", 0)]))
    assert caught.value.silent == ("s2",)
    with pytest.raises(AbortedError, match="no sum"):
        _ = led.total
    # What did arrive does not add up to anything that anyone sent.
    got = [
        ints(np.frombuffer(f.body[32 : -HeadStatement.SIZE], "<u4").reshape(-1, LIMBS))
        for f in led._got.values()
    ]
    sums = {sum(column) % 2**128 for column in zip(*got, strict=True)}
    kept = party.expected(["s0", "s1", "s3"])
    assert not sums & {v % 2**128 for v in kept}


def test_a_refusal_is_named() -> None:
    party = Party(3)
    keys = settled(party)
    party.sites[1] = party.revived(1)  # its keys are gone
    with pytest.raises(AbortedError, match="'s1': 'no_keys'"):
        run_round(single(party, keys), party.transport())


def test_the_same_question_gets_the_same_bytes() -> None:
    party = Party(3)
    keys = settled(party)
    outgoing = single(party, keys).begin()
    first = party.answers(outgoing)
    assert party.answers(outgoing) == first
    party.keepers[0].values = party.keepers[0].values + np.uint32(1)
    assert party.answers(outgoing) == first  # not even when its numbers are others now


def test_another_question_of_the_same_number_is_refused() -> None:
    party = Party(3)
    keys = settled(party)
    first = party.answers(single(party, keys).begin())
    other = single(party, keys, request=b"another").begin()
    assert {why(a) for a in party.answers(other).values()} == {Refusal.TWO_OPENINGS}
    assert party.answers(single(party, keys).begin()) == first


def test_earlier_numbers_are_gone() -> None:
    party = Party(3)
    keys = settled(party)
    old = single(party, keys, 2).begin()
    first = single(party, keys, 2)
    run_round(first, party.transport())
    run_round(single(party, keys, 3, heads=first.heads), party.transport())
    assert {why(a) for a in party.answers(old).values()} == {Refusal.REPLAY}
    opened = party.coordinator(3).begin()
    assert {why(a) for a in party.answers(opened).values()} == {Refusal.REPLAY}
    led = party.coordinator(4)
    assert ints(run_round(led, party.transport())) == party.expected(led.active)


def test_masks_are_bound_to_the_question() -> None:
    """A site that forgot what it pinned still does not use a mask twice."""
    party = Party(3)
    slots = [MemorySlot() for _ in range(3)]
    party.sites = [slotted(party, i, slot) for i, slot in enumerate(slots)]
    keys = settled(party)
    before = [slot.read() for slot in slots]
    first = party.answers(single(party, keys).begin())
    for i, slot in enumerate(slots):
        slot.write(before[i] or b"")
        party.keepers[i].last = 1
        party.sites[i] = slotted(party, i, slot)
    second = party.answers(single(party, keys, request=b"another").begin())
    for name in first:
        masked = (parse(x[name]).body[32 : -HeadStatement.SIZE] for x in (first, second))
        a, b = (np.frombuffer(numbers, "<u4") for numbers in masked)
        assert (a == b).mean() < 0.2


def slotted(party: Party, i: int, slot: Slot) -> Site:
    return Site(
        party.terms, party.identities[i], party.keepers[i], verifier=party.verifier, slot=slot
    )


def test_keys_of_the_coordinator_are_not_taken() -> None:
    party = Party(3)
    led = KeyRound(party.terms, party.boss, 1, members(party), party.verifier)
    answers = party.answers(led.begin())
    forged = Standing(standing_context(party.terms, 1, members(party)), bytes(range(32))).body()
    stranger = Identity.generate()
    raws = [
        answers["s0"],
        pack(EnvelopeKind.STANDING, party.terms, 1, 1, forged, stranger),
        answers["s2"],
    ]
    settle = party.signed(EnvelopeKind.SETTLE, b"".join(raws))
    assert why(party.sites[0].handle(settle)) is Refusal.BAD_SIGNATURE


def test_keys_are_pinned() -> None:
    party = Party(3)
    led = KeyRound(party.terms, party.boss, 1, members(party), party.verifier)
    for answer in party.answers(led.begin()).values():
        led.receive(answer)
    settle = led.advance()
    site = party.sites[0]
    first = site.handle(settle["s0"])
    assert site.handle(settle["s0"]) == first  # once more is harmless
    body = parse(settle["s0"]).body
    step = len(body) // 3
    doubled = body[:step] * 2 + body[2 * step :]
    assert why(site.handle(party.signed(EnvelopeKind.SETTLE, doubled))) is Refusal.KEYS_CHANGED
    fewer = body[: 2 * step]
    assert why(site.handle(party.signed(EnvelopeKind.SETTLE, fewer))) is Refusal.KEYS_CHANGED
    wrong = party.signed(EnvelopeKind.SETTLE, body, number=2)
    assert why(site.handle(wrong)) is Refusal.REPLAY


def test_keys_that_lack_a_site_are_refused() -> None:
    party = Party(4)
    led = KeyRound(party.terms, party.boss, 1, members(party), party.verifier)
    for answer in party.answers(led.begin()).values():
        led.receive(answer)
    body = parse(led.advance()["s0"]).body
    fewer = party.signed(EnvelopeKind.SETTLE, body[: 3 * len(body) // 4])
    assert why(party.sites[0].handle(fewer)) is Refusal.BAD_ACTIVE_SET
    few = party.signed(EnvelopeKind.AGREE, write_set([0, 1]), number=5)
    assert why(party.sites[0].handle(few)) is Refusal.TOO_FEW
    without = party.signed(EnvelopeKind.AGREE, write_set([1, 2, 3]), number=5)
    assert why(party.sites[0].handle(without)) is Refusal.BAD_ACTIVE_SET


def test_a_key_of_small_order_is_refused() -> None:
    party = Party(3)
    led = KeyRound(party.terms, party.boss, 1, members(party), party.verifier)
    answers = party.answers(led.begin())
    zero = Standing(standing_context(party.terms, 1, members(party)), bytes(32)).body()
    answers["s1"] = pack(EnvelopeKind.STANDING, party.terms, 1, 1, zero, party.identities[1])
    settle = party.signed(EnvelopeKind.SETTLE, b"".join(answers.values()))
    assert why(party.sites[0].handle(settle)) is Refusal.KEYS_CHANGED


def test_nothing_is_asked_without_keys_or_with_others() -> None:
    party = Party(3)
    assert why(party.answers(single(party, bytes(32)).begin())["s0"]) is Refusal.NO_KEYS
    keys = settled(party)
    short = party.signed(EnvelopeKind.SINGLE, keys[:5], number=2)
    assert why(party.sites[0].handle(short)) is Refusal.NO_KEYS
    settled(party, 4)
    assert why(party.answers(single(party, keys, 5).begin())["s0"]) is Refusal.NO_KEYS


def test_frames_of_another_study_or_sender_are_refused() -> None:
    party, other = Party(3), Party(3, study=bytes(32))
    keys = settled(party)
    frame = single(party, keys).begin()["s0"]
    assert why(other.sites[0].handle(frame)) is Refusal.OTHER_STUDY
    body = parse(frame).body
    mine = pack(EnvelopeKind.SINGLE, party.terms, 2, COORDINATOR, body, party.identities[1])
    assert why(party.sites[0].handle(mine)) is Refusal.BAD_SIGNATURE


class Fragile(Slot):
    """A slot of a process that is killed after some writes."""

    def __init__(self, inner: Slot) -> None:
        self.inner = inner
        self.left = 10**9

    def read(self) -> bytes | None:
        return self.inner.read()

    def write(self, value: bytes) -> None:
        self.inner.write(value)
        self.left -= 1
        if self.left == 0:
            raise KilledError


@pytest.mark.parametrize("writes", [1, 2])
def test_a_killed_site_gives_the_same_answer(writes: int) -> None:
    party = Party(3)
    slot = Fragile(MemorySlot())
    party.sites[0] = slotted(party, 0, slot)
    keys = settled(party)
    led = single(party, keys)
    frame = led.begin()["s0"]
    slot.left = writes
    with pytest.raises(KilledError):
        party.sites[0].handle(frame)
    party.sites[0] = slotted(party, 0, slot)
    other = single(party, keys, request=b"another").begin()["s0"]
    assert why(party.sites[0].handle(other)) is Refusal.TWO_OPENINGS
    assert ints(run_round(led, party.transport())) == party.expected(led.active)


class Full(Slot):
    """A slot on a full disk."""

    def read(self) -> bytes | None:
        return None

    def write(self, value: bytes) -> None:
        raise LedgerError("full")


def test_what_cannot_be_kept_is_not_sent() -> None:
    party = Party(3)
    party.sites[0] = slotted(party, 0, Full())
    agree = party.signed(EnvelopeKind.AGREE, write_set(range(3)))
    assert why(party.sites[0].handle(agree)) is Refusal.REFUSED
    assert party.keepers[0].refusals == [Refusal.LEDGER]


# --- files -----------------------------------------------------------------------------------


def test_a_slot_in_a_file(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("slot") / "state"
    slot = FileSlot(path)
    assert slot.read() is None
    slot.write(b"one")
    slot.write(b"two")
    assert FileSlot(path).read() == b"two"
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_bytes(path.read_bytes()[:-1] + b"O")
    with pytest.raises(LedgerError, match="changed"):
        FileSlot(path).read()
    with pytest.raises(LedgerError, match="cannot be written"):
        FileSlot(path.parent / "none" / "state").write(b"x")


def test_a_journal_in_a_file(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal"
    journal = FileJournal(path)
    with pytest.raises(LedgerError, match="Another process"):
        FileJournal(path)
    journal.append({"a": 1})
    journal.append({"b": [2]})
    journal.close()
    whole = path.read_bytes()
    path.write_bytes(whole + b"0123 half a li")  # cut off by a crash
    again = FileJournal(path)
    assert again.records() == ({"a": 1}, {"b": [2]})
    again.append({"c": 3})
    again.close()
    assert path.read_bytes().startswith(whole)
    path.write_bytes(b"X" + path.read_bytes()[1:])
    with pytest.raises(LedgerError, match="line 1"):
        FileJournal(path)


# --- a killed coordinator, a killed site -------------------------------------------------------


class Mortal(Journal):
    """A journal of a process that is killed after some writes."""

    def __init__(self, inner: Journal, left: int) -> None:
        self.inner = inner
        self.left = left

    def append(self, record: Record) -> None:
        self.inner.append(record)
        self.left -= 1
        if self.left == 0:
            raise KilledError

    def records(self) -> tuple[Record, ...]:
        return self.inner.records()


class World:
    """A study of ADMM whose stations can be killed and started again."""

    def __init__(self, sites: int = 3) -> None:
        rng = np.random.default_rng(5)
        rows = rng.normal(size=(90, 3))
        rows[:, 2] += 1.5 * rows[:, 0]
        self.tables: dict[str, object] = {
            f"s{k}": dict(zip("abc", part.T, strict=True))
            for k, part in enumerate(np.array_split(rows, sites))
        }
        self.ledgers = {name: MemoryLedger() for name in self.tables}
        schema = Schema.continuous("abc")
        made = simulated(self.tables, schema, None, None, None, self.ledgers, ())
        self.study: Study = made[0]
        self.signatures: list[Signature] = made[1]
        self.boss = made[2]
        self.verifier = made[4]
        self.handlers: dict[str, Callable[[bytes], bytes]] = dict(made[3]._sites)

    def federation(self, journal: Journal) -> Federation:
        transport = InProcess(self.handlers)
        return Federation(
            self.study, self.signatures, self.boss, transport, self.verifier, journal=journal
        )


def test_a_coordinator_killed_after_any_write_comes_to_the_same_result() -> None:
    options = ADMM(rounds=3)
    whole = MemoryJournal()
    expected = ist.learn(World().federation(whole), search=options).details.weights.tobytes()
    writes = len(whole.records())
    assert writes == 2 + 2 + 3 * 2
    for last in range(1, writes + 1):
        world, journal = World(), MemoryJournal()
        with pytest.raises(KilledError):
            ist.learn(world.federation(Mortal(journal, last)), search=options)
        found = ist.learn(world.federation(journal), search=options)
        assert found.details.weights.tobytes() == expected, last


def test_other_options_restart() -> None:
    """Sums are asked for again with higher numbers, over the same sites and with the same keys."""
    world, journal = World(), MemoryJournal()
    ist.learn(world.federation(journal), search=ADMM(rounds=2))
    other = ADMM(rounds=3, rho1=1.0, rho2=0.5)
    with pytest.raises(FederationError, match="--restart"):
        ist.learn(world.federation(journal), search=other)
    restart(journal, world.study)
    found = ist.learn(world.federation(journal), search=other).details.weights.tobytes()
    assert (
        found
        == ist.learn(World().federation(MemoryJournal()), search=other).details.weights.tobytes()
    )
    assert found == ist.learn(world.federation(journal), search=other).details.weights.tobytes()
    events = [r["event"] for r in journal.records()]
    assert (events.count("keys"), events.count("restart")) == (1, 1)
    numbers = [r["round"] for r in journal.records() if r["event"] == "sum"]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 3 + 4


def test_a_journal_is_of_one_study_and_one_computation() -> None:
    journal = MemoryJournal()
    world = World()
    asked = world.federation(journal)
    assert asked.kept == 0
    asked.moments(["a"])
    assert world.federation(journal).kept == 1
    with pytest.raises(FederationError, match=r"another request.*uses up rounds"):
        world.federation(journal).moments(["b"])
    with pytest.raises(FederationError, match="another study"):
        World().federation(journal)
    again = world.federation(journal)
    sent = len(world.ledgers["s0"].entries())
    assert again.moments(["a"]).n == 90
    assert len(world.ledgers["s0"].entries()) == sent  # nothing was asked again
    assert again.active == ("s0", "s1", "s2")


class Phoenix:
    """A site that is killed after some writes to its slot, and started again at once."""

    def __init__(self, world: World, name: str, identity: Identity, writes: int) -> None:
        self.slot = Fragile(MemorySlot())
        self.parts = world, name, identity
        self.site = started_again(*self.parts, self.slot)
        self.slot.left = writes

    def handle(self, data: bytes) -> bytes:
        try:
            return self.site.handle(data)
        except KilledError:
            self.slot.left = 10**9
            self.site = started_again(*self.parts, self.slot)
            return self.site.handle(data)


def test_a_station_goes_on_with_admm_after_a_kill() -> None:
    options = ADMM(rounds=4)
    expected = ist.learn(
        World().federation(MemoryJournal()), search=options
    ).details.weights.tobytes()
    for writes in range(1, 11):
        identity = Identity.generate()
        world = with_identity(World(), "s1", identity)
        phoenix = Phoenix(world, "s1", identity, writes)
        world.handlers["s1"] = phoenix.handle
        journal = MemoryJournal()
        if writes == 1:  # its key was kept and not sent: it cannot be asked for again
            with pytest.raises(AbortedError, match="replay"):
                ist.learn(world.federation(journal), search=options)
        found = ist.learn(world.federation(journal), search=options)
        assert found.details.weights.tobytes() == expected, writes
        assert phoenix.slot.left > 10**6  # it was killed


def with_identity(world: World, name: str, identity: Identity) -> World:
    """The same study, with a key that the test knows."""
    from isthmus.joint import Member

    names = [m.name for m in world.study.members]
    keys = {n: Identity.generate() for n in names} | {name: identity}
    author, boss = Identity.generate(), Identity.generate()
    study = Study.draft(
        "ADMM",
        purpose="test",
        author=author.public,
        coordinator=boss.public,
        members=[Member(n, n, keys[n].public) for n in names],
        schema=world.study.schema,
        bounds=world.study.bounds,
        protocol=SecureSums(),
        requests=[AskTotals.name, AskConsensus.name],
        rounds=10**6,
    )
    world.study = study
    world.signatures = [study.sign(author), *(study.sign(k, n) for n, k in keys.items())]
    world.boss = boss
    for n in names:
        world.handlers[n] = started_again(world, n, keys[n], MemorySlot()).handle
    return world


def started_again(world: World, name: str, identity: Identity, slot: Slot) -> Site:
    policy = Policy.parse(POLICY)
    tables: Mapping[str, object] = world.tables
    ledger = world.ledgers[name]
    station = SiteController(world.study, world.signatures, identity, tables[name], policy, ledger)
    return station.site(world.verifier, slot=slot)


POLICY = b"""
format = "isthmus-policy/3"
minimum_cohort = 1
minimum_cell = 1
minimum_organisations = 3
columns_per_row = 9.0
largest_share = 1.0
persons = "none"
fixed_windows = true
fixed_membership = true
revoked = []
variables = ["*"]
protocols = ["secure sums"]
requests = ["totals", "consensus"]
rounds_per_study = 1000
rounds_per_year = 1000
queries_per_year = 1000
stop_file = "/dev/null/stop"
peers = "*"
"""
