"""What a malicious coordinator, a stranger or a broken wire may try, and what it gets."""

from __future__ import annotations

import logging
import pickle
import random
from collections.abc import Iterable
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.joint.federation.rosters import LIMBS, Open, Party, ints

from isthmus.errors import AbortedError, FederationError
from isthmus_joint import Identity
from isthmus_joint.agreement.identity import Agreement, Secret, stream
from isthmus_joint.secure_sum import envelopes as fr
from isthmus_joint.secure_sum import shamir
from isthmus_joint.secure_sum.envelopes import BrokenEnvelopeError, EnvelopeKind, Refusal
from isthmus_joint.secure_sum.masks import RoundKeys, add_mask
from isthmus_joint.secure_sum.round import Leaving
from isthmus_joint.secure_sum.sides import Coordinator, Site, run_round
from isthmus_joint.secure_sum.terms import LimbAccumulator, from_bytes, to_bytes

KINDS = [
    EnvelopeKind.OPEN,
    EnvelopeKind.KEYS,
    EnvelopeKind.INBOX,
    EnvelopeKind.ACTIVE,
    EnvelopeKind.UNMASK,
]


def refusal(answer: bytes) -> Refusal:
    frame = fr.parse(answer)
    assert frame.kind is EnvelopeKind.REFUSE
    return fr.read_refusal(frame.body)[0]


def active_set(coordinator: Coordinator, sites: Iterable[int]) -> bytes:
    """The body of an active set, with the right hashes where there are any."""
    masked = coordinator._state.masked
    return fr.write_entries((i, masked.get(i, bytes(32))) for i in sites)


def still_works(party: Party, number: int) -> None:
    coordinator = party.coordinator(number)
    assert ints(run_round(coordinator, party.transport())) == party.expected(coordinator.active)


# --- replay ----------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", range(5))
def test_replay_in_the_same_round(stage: int) -> None:
    party = Party(4)
    coordinator, outgoing = party.up_to(stage)
    first = party.answers(outgoing)
    again = party.answers(outgoing)
    assert {refusal(a) for a in again.values()} <= {Refusal.REPLAY, Refusal.OUT_OF_ORDER}
    for answer in first.values():
        coordinator.receive(answer)
        with pytest.raises(BrokenEnvelopeError) as error:
            coordinator.receive(answer)
        assert error.value.why is Refusal.REPLAY


@pytest.mark.parametrize("stage", range(5))
def test_replay_after_a_restart(stage: int) -> None:
    party = Party(4)
    _, outgoing = party.up_to(stage)
    party.answers(outgoing)
    back = party.revived(0)
    assert refusal(back.handle(outgoing["s0"])) is Refusal.REPLAY
    party.sites[0] = back
    still_works(party, 2)


@pytest.mark.parametrize("stage", range(5))
def test_replay_in_another_study(stage: int) -> None:
    party, other = Party(4), Party(4, study=bytes(32))
    other.boss = party.boss
    _, outgoing = party.up_to(stage)
    for site in other.sites:
        assert refusal(site.handle(outgoing["s0"])) is Refusal.OTHER_STUDY


def test_an_answer_of_an_earlier_round_is_not_taken() -> None:
    party = Party(4)
    _, outgoing = party.up_to(2)
    old = party.answers(outgoing)["s0"]
    assert fr.parse(old).kind is EnvelopeKind.MASKED
    later = party.coordinator(2)
    with pytest.raises(BrokenEnvelopeError) as error:
        later.receive(old)
    assert error.value.why is Refusal.REPLAY


# --- keys ------------------------------------------------------------------------------------


def test_the_coordinator_cannot_put_in_keys_of_its_own() -> None:
    party = Party(4)
    _, outgoing = party.up_to(1)
    adverts = fr.read_frames(fr.parse(outgoing["s0"]).body, fr.Advert.SIZE, 4)
    mine = Agreement()
    sent = fr.parse(adverts[1])
    forged = fr.Advert(sent.body[:32], mine.public, mine.public, bytes(32)).body()
    # It signs with the only key it has: its own.
    fake = fr.pack(EnvelopeKind.ADVERT, party.terms, 1, 1, forged, party.boss)
    body = b"".join([adverts[0], fake, *adverts[2:]])
    assert (
        refusal(party.sites[0].handle(party.signed(EnvelopeKind.KEYS, body)))
        is Refusal.BAD_SIGNATURE
    )
    still_works(party, 2)


def test_keys_of_another_round_or_request_are_not_taken() -> None:
    party = Party(4)
    _, outgoing = party.up_to(1)
    old = fr.parse(outgoing["s0"]).body
    answers = party.answers(party.coordinator(2, b"something else").begin())
    assert all(fr.parse(a).kind is EnvelopeKind.ADVERT for a in answers.values())
    assert (
        refusal(party.sites[0].handle(party.signed(EnvelopeKind.KEYS, old, 2)))
        is Refusal.KEYS_CHANGED
    )


def test_different_requests_to_different_sites_end_the_round() -> None:
    party = Party(4)
    a, b = party.coordinator(1, b"one"), party.coordinator(1, b"other")
    handlers = party.handlers()
    answers = [handlers[n]((a if n < "s2" else b).begin()[n]) for n in sorted(handlers)]
    body = b"".join(answers)
    for site in party.sites:
        assert refusal(site.handle(party.signed(EnvelopeKind.KEYS, body))) is Refusal.KEYS_CHANGED


def test_a_site_that_was_left_out_or_doubled_does_not_go_on() -> None:
    party = Party(4)
    _, outgoing = party.up_to(1)
    adverts = fr.read_frames(fr.parse(outgoing["s0"]).body, fr.Advert.SIZE, 4)
    left_out = party.signed(EnvelopeKind.KEYS, b"".join(adverts[1:]))
    doubled = party.signed(EnvelopeKind.KEYS, b"".join([adverts[0], adverts[0], *adverts[2:]]))
    assert refusal(party.sites[0].handle(left_out)) is Refusal.KEYS_CHANGED
    assert refusal(party.sites[1].handle(doubled)) is Refusal.KEYS_CHANGED


def test_different_keys_shown_to_different_sites_cannot_be_used() -> None:
    """Shares are sealed under the list of keys: with two lists nobody can open them."""
    party = Party(5)
    _, outgoing = party.up_to(1)
    adverts = fr.read_frames(fr.parse(outgoing["s0"]).body, fr.Advert.SIZE, 5)
    lists = [b"".join(adverts), b"".join(adverts[:4])]
    shares = {
        i: fr.parse(party.sites[i].handle(party.signed(EnvelopeKind.KEYS, lists[i == 3]))).body
        for i in range(5)
    }
    box = [(i, fr.read_entries(shares[i][32:], fr.SEALED, 5)[0]) for i in (1, 2, 3)]
    answer = party.sites[0].handle(party.signed(EnvelopeKind.INBOX, fr.write_entries(box)))
    assert refusal(answer) is Refusal.BAD_SHARES


def test_a_key_of_small_order_is_refused() -> None:
    party = Party(4)
    _, outgoing = party.up_to(1)
    adverts = fr.read_frames(fr.parse(outgoing["s0"]).body, fr.Advert.SIZE, 4)
    weak = fr.Advert(fr.parse(adverts[1]).body[:32], bytes(32), bytes(32), bytes(32)).body()
    signed = fr.pack(EnvelopeKind.ADVERT, party.terms, 1, 1, weak, party.identities[1])
    body = b"".join([adverts[0], signed, *adverts[2:]])
    assert (
        refusal(party.sites[0].handle(party.signed(EnvelopeKind.KEYS, body)))
        is Refusal.KEYS_CHANGED
    )


def test_a_stranger_is_not_a_site() -> None:
    party = Party(3)
    with pytest.raises(FederationError, match="roster"):
        Site(party.terms, Identity.generate(), party.keepers[0])
    stranger = Identity.generate()
    frame = fr.pack(EnvelopeKind.OPEN, party.terms, 1, fr.COORDINATOR, b"12345", stranger)
    assert refusal(party.sites[0].handle(frame)) is Refusal.BAD_SIGNATURE


def test_a_site_cannot_speak_for_the_coordinator_or_another_site() -> None:
    party = Party(3)
    coordinator = party.coordinator()
    opening = coordinator.begin()["s0"]
    answer = party.sites[0].handle(opening)
    body = fr.parse(answer).body
    for sender, kind in ((1, EnvelopeKind.ADVERT), (fr.COORDINATOR, EnvelopeKind.OPEN)):
        fake = fr.pack(kind, party.terms, 1, sender, body, party.identities[0])
        with pytest.raises(BrokenEnvelopeError) as error:
            coordinator.receive(fake)
        assert error.value.why is Refusal.BAD_SIGNATURE


# --- unmasking -------------------------------------------------------------------------------


def test_two_different_active_sets() -> None:
    party = Party(7)
    coordinator, outgoing = party.up_to(3)
    assert fr.parse(outgoing["s0"]).kind is EnvelopeKind.ACTIVE
    party.answers(outgoing)
    for gone in range(1, 7):
        other = active_set(coordinator, set(range(7)) - {gone})
        answer = party.sites[0].handle(party.signed(EnvelopeKind.ACTIVE, other))
        assert refusal(answer) is Refusal.OUT_OF_ORDER


def test_split_active_sets_cannot_be_unmasked() -> None:
    """Half the sites sign one set, half another: neither gets enough signatures."""
    party = Party(7)
    coordinator, _ = party.up_to(3)
    views = {i: frozenset(range(7)) - ({6} if i < 3 else frozenset()) for i in range(7)}
    bodies = {i: active_set(coordinator, views[i]) for i in range(7)}
    consents = {
        i: party.sites[i].handle(party.signed(EnvelopeKind.ACTIVE, bodies[i])) for i in range(7)
    }
    assert all(fr.parse(c).kind is EnvelopeKind.CONSENT for c in consents.values())
    for i, chosen in product(range(7), (range(3), range(3, 7), range(7))):
        unmask = party.signed(EnvelopeKind.UNMASK, b"".join(consents[j] for j in chosen))
        answer = fr.parse(party.sites[i].handle(unmask))
        assert answer.kind is EnvelopeKind.REFUSE
    assert all(EnvelopeKind.REVEAL not in k.recorded for k in party.keepers)


def test_sites_that_are_shown_different_numbers_do_not_unmask() -> None:
    """Otherwise a site could choose its numbers after the sum of the others is known."""
    party = Party(4)
    coordinator, outgoing = party.up_to(3)
    masked = dict(coordinator._state.masked)
    other = fr.write_entries((masked | {3: bytes(32)}).items())
    assert refusal(party.sites[3].handle(party.signed(EnvelopeKind.ACTIVE, other))) is (
        Refusal.BAD_ACTIVE_SET
    )
    consents = [
        party.sites[0].handle(party.signed(EnvelopeKind.ACTIVE, other)),
        *(party.sites[i].handle(outgoing[f"s{i}"]) for i in (1, 2)),
    ]
    unmask = party.signed(EnvelopeKind.UNMASK, b"".join(consents))
    for i in range(3):
        assert refusal(party.sites[i].handle(unmask)) is Refusal.NO_CONSENT


def test_one_signature_many_times_is_one_signature() -> None:
    party = Party(4)
    _, outgoing = party.up_to(3)
    consents = party.answers(outgoing)
    unmask = party.signed(EnvelopeKind.UNMASK, consents["s0"] * 4)
    assert refusal(party.sites[1].handle(unmask)) is Refusal.NO_CONSENT


def test_never_both_shares_of_one_site() -> None:
    """The kind of share follows from the signed set; a second question gets no answer."""
    party = Party(10)
    coordinator = party.coordinator()
    outgoing = coordinator.begin()
    secrets = {}
    for exchange in range(4):
        if exchange == 2:
            outgoing.pop("s9")  # shared its secrets, and died before it sent its numbers
            secrets = {
                i: (s._round.secrets.seed.reveal(), s._round.secrets.mask.reveal())
                for i, s in enumerate(party.sites)
                if s._round is not None
            }
        for answer in party.answers(outgoing).values():
            coordinator.receive(answer)
        outgoing = coordinator.advance()
    bodies = [fr.parse(a).body for a in party.answers(outgoing).values()]
    revealed = [fr.read_entries(b, fr.SHARE, 10) for b in bodies]
    for j in range(10):
        shares = np.array([np.frombuffer(r[j], "<u4") for r in revealed[:7]])
        assert shamir.join(range(7), shares) == secrets[j][j == 9]
    again = party.answers(outgoing)
    assert {refusal(a) for a in again.values()} == {Refusal.REPLAY}
    assert all(k.recorded.count(EnvelopeKind.REVEAL) <= 1 for k in party.keepers)


def test_unmasking_without_a_signed_set() -> None:
    party = Party(4)
    party.up_to(3)
    assert (
        refusal(party.sites[0].handle(party.signed(EnvelopeKind.UNMASK, b"")))
        is Refusal.OUT_OF_ORDER
    )
    party = Party(4)
    _, outgoing = party.up_to(4)
    few = fr.read_frames(fr.parse(outgoing["s0"]).body, 32 + fr.HEAD, 4)[:2]
    answer = party.sites[0].handle(party.signed(EnvelopeKind.UNMASK, b"".join(few)))
    assert refusal(answer) is Refusal.NO_CONSENT


@pytest.mark.parametrize("active", [[], [0], [0, 1], [1, 2, 3], [0, 1, 2, 4]])
def test_active_sets_that_would_expose_a_site(active: list[int]) -> None:
    party = Party(5)
    coordinator = party.coordinator()
    outgoing = coordinator.begin()
    outgoing.pop("s4")  # never took part
    for _ in range(3):
        for answer in party.answers(outgoing).values():
            coordinator.receive(answer)
        outgoing = coordinator.advance()
    answer = party.sites[0].handle(
        party.signed(EnvelopeKind.ACTIVE, active_set(coordinator, active))
    )
    assert refusal(answer) in {Refusal.TOO_FEW, Refusal.BAD_ACTIVE_SET}


def test_wrong_shares_are_found_out() -> None:
    party = Party(4)
    coordinator, outgoing = party.up_to(4)
    for name, answer in party.answers(outgoing).items():
        if name == "s1":
            body = bytearray(fr.parse(answer).body)
            body[2] ^= 1
            answer = fr.pack(
                EnvelopeKind.REVEAL, party.terms, 1, 1, bytes(body), party.identities[1]
            )
        coordinator.receive(answer)
    with pytest.raises(AbortedError, match="wrong share"):
        coordinator.advance()
    with pytest.raises(AbortedError):
        _ = coordinator.total


# --- garbage ---------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", range(5))
def test_a_changed_byte_is_noticed_on_both_sides(stage: int) -> None:
    party = Party(3)
    coordinator, outgoing = party.up_to(stage)
    frame = outgoing["s0"]
    for at in random.Random(stage).sample(range(len(frame)), 12):
        broken = bytearray(frame)
        broken[at] ^= 1 << random.Random(at).randrange(8)
        assert refusal(party.sites[0].handle(bytes(broken))) in {
            Refusal.MALFORMED,
            Refusal.OTHER_STUDY,
            Refusal.BAD_SIGNATURE,
        }
    answer = party.sites[0].handle(frame)
    for at in random.Random(stage).sample(range(len(answer)), 12):
        broken = bytearray(answer)
        broken[at] ^= 1 << random.Random(at).randrange(8)
        with pytest.raises(BrokenEnvelopeError):
            coordinator.receive(bytes(broken))
    # The round goes on as if nothing had happened.
    coordinator.receive(answer)
    for name in ("s1", "s2"):
        coordinator.receive(party.answers({name: outgoing[name]})[name])
    while outgoing := coordinator.advance():
        for good in party.answers(outgoing).values():
            coordinator.receive(good)
    assert ints(coordinator.total) == party.expected(coordinator.active)


def test_a_share_changed_by_the_coordinator() -> None:
    party = Party(4)
    _, outgoing = party.up_to(2)
    body = bytearray(fr.parse(outgoing["s0"]).body)
    body[10] ^= 1
    answer = party.sites[0].handle(party.signed(EnvelopeKind.INBOX, bytes(body)))
    assert refusal(answer) is Refusal.BAD_SHARES


def _at_every_stage() -> list[Party]:
    found = []
    for stage in range(5):
        party = Party(3)
        party.up_to(stage)
        found.append(party)
    return found


@pytest.fixture(scope="module")
def parties() -> list[Party]:
    return _at_every_stage()


@pytest.mark.long
@settings(max_examples=200)
@given(data=st.binary(max_size=400))
def test_garbage_changes_nothing(parties: list[Party], data: bytes) -> None:
    for party in parties:
        assert refusal(party.sites[0].handle(data)) is Refusal.MALFORMED
        with pytest.raises(BrokenEnvelopeError):
            party.coordinator(10**6).receive(data)


@settings(max_examples=150)
@given(
    stage=st.integers(0, 4),
    kind=st.sampled_from(KINDS),
    number=st.sampled_from([0, 1, 2, 2**32 - 1]),
    body=st.binary(max_size=300),
)
def test_signed_garbage_gets_no_more_than_a_refusal(
    parties: list[Party], stage: int, kind: EnvelopeKind, number: int, body: bytes
) -> None:
    """A malicious coordinator can sign what it likes."""
    party = parties[stage]
    answer = fr.parse(party.sites[0].handle(party.signed(kind, body, number)))
    if answer.kind is not EnvelopeKind.REFUSE:
        assert kind is EnvelopeKind.OPEN
        assert answer.kind is EnvelopeKind.ADVERT
    assert EnvelopeKind.REVEAL not in party.keepers[0].recorded


def test_a_huge_frame_is_not_read() -> None:
    head = fr.HEADER.pack(fr.MAGIC, fr.VERSION, 1, bytes(32), 1, fr.COORDINATOR, 2**32 - 1)
    with pytest.raises(BrokenEnvelopeError):
        fr.parse(head + bytes(64))


# --- secrets ---------------------------------------------------------------------------------


def test_masks_do_not_follow_from_a_seed() -> None:
    """The same global seeds, study, round and data: other masks."""
    seen = []
    for _ in range(2):
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002
        party = Party(3)
        _, outgoing = party.up_to(2)
        seen.append(fr.parse(party.answers(outgoing)["s0"]).body[32:])
    assert seen[0] != seen[1]


def search(masked: list[int], candidates: list[list[int]], likely: int) -> list[int]:
    """The attack on masks from small seeds: try each, and see whether small numbers come out."""
    found = []
    for seed, mask in enumerate(candidates):
        plain = [(m - k) % 2**128 for m, k in zip(masked, mask, strict=True)]
        if all(min(v, 2**128 - v) < likely for v in plain):
            found.append(seed)
    return found


@pytest.mark.long
def test_masks_stand_up_to_a_search_over_small_seeds() -> None:
    """The search that breaks masks of a 28-bit seed, scaled down, breaks those and not ours."""
    seeds, size = 4096, 4

    def words(data: bytes) -> list[int]:
        return [v % 2**128 for v in ints(from_bytes(data, LIMBS))]

    weak = [words(np.random.RandomState(s).bytes(16 * size)) for s in range(seeds)]
    small = [
        words(b"".join(stream(Secret(s.to_bytes(32, "little")), 16 * size))) for s in range(seeds)
    ]
    secret = [3, -5, 70, 12]
    for candidates in (weak, small):
        broken = [(v + m) % 2**128 for v, m in zip(secret, candidates[1234], strict=True)]
        assert search(broken, candidates, 1000) == [1234]
    party = Party(3, size)
    for keeper in party.keepers:
        keeper.values = from_bytes(
            b"".join(v.to_bytes(16, "little", signed=True) for v in secret), LIMBS
        )
    _, outgoing = party.up_to(2)
    for answer in party.answers(outgoing).values():
        masked = words(fr.parse(answer).body[32:])
        for candidates in (weak, small):
            assert search(masked, candidates, 1000) == []
            # Nor with a second mask of the kind left on it, as after collusion.
            assert search([v * 2 % 2**128 for v in masked], candidates, 1000) == []


def test_keys_have_their_full_length() -> None:
    """Bits of keys are balanced and independent: no short seed is stretched over them."""
    keys = [Secret.fresh().reveal() for _ in range(2000)]
    bound = RoundKeys(bytes(32), bytes(32))
    a, b = Agreement(), Agreement()
    assert (
        bound.pair_mask(a, 0, b.public, 1).reveal() == bound.pair_mask(b, 1, a.public, 0).reveal()
    )
    keys += [bound.pair_mask(Agreement(), 0, b.public, 1).reveal() for _ in range(500)]
    assert len(set(keys)) == len(keys)
    bits = np.unpackbits(np.frombuffer(b"".join(keys), np.uint8)).reshape(len(keys), 256)
    assert np.linalg.matrix_rank(bits - bits.mean(axis=0)) == 256
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 0.06


def test_keys_differ_by_study_round_pair_and_direction() -> None:
    a, b = Agreement(), Agreement()
    found = set()
    for context, keys in product((b"1" * 32, b"2" * 32), repeat=2):
        bound = RoundKeys(context, keys)
        for i, j in ((0, 1), (0, 2), (1, 2)):
            found.add(bound.pair_mask(a, i, b.public, j).reveal())
            found |= {k.reveal() for k in bound.channels(a, i, b.public, j)}
        found.add(bound.self_mask(Secret(bytes(32)), 0).reveal())
    assert len(found) == 4 * (3 + 6 + 1)
    total = LimbAccumulator(3, 4)
    add_mask(total, Secret(bytes(32)), fr.RoundRequest(1, b"", 3, 4))
    assert to_bytes(total.total()) == b"".join(stream(Secret(bytes(32)), 48))


def test_secrets_are_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = Secret.fresh()
    identity, agreement = Identity.generate(), Agreement()
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    party = Party(3)
    party.up_to(3)
    hidden = [
        secret.reveal(),
        agreement._private.private_bytes_raw(),
        identity._private.private_bytes_raw(),
    ]
    hidden += [s._round.secrets.seed.reveal() for s in party.sites if s._round is not None]
    shown = " ".join(
        [repr(x) for x in (secret, agreement, identity, *party.sites, party.coordinator())]
        + [repr(vars(s._round)) for s in party.sites]
        + [caplog.text]
    )
    for value in hidden:
        assert value.hex() not in shown
        assert repr(value)[2:-1] not in shown


def test_a_masked_number_says_nothing() -> None:
    """Masked frames of the same data are uniform: their bytes are those of a key stream."""
    party = Party(3, size=2000)
    for keeper in party.keepers:
        keeper.values = from_bytes(bytes(16 * 2000), LIMBS)
    _, outgoing = party.up_to(2)
    body = fr.parse(party.answers(outgoing)["s0"]).body[32:]
    counts = np.bincount(np.frombuffer(body, np.uint8), minlength=256)
    expected = len(body) / 256
    assert ((counts - expected) ** 2 / expected).sum() < 400  # chi-squared, 255 degrees


def test_a_keeper_may_refuse_at_any_stage() -> None:
    class Shy(Open):
        def record(self, leaving: Leaving) -> None:
            if leaving.kind is EnvelopeKind.MASKED:
                raise BrokenEnvelopeError(Refusal.STOPPED)
            super().record(leaving)

    party = Party(4)
    shy = Shy(party.keepers[0].values)
    party.keepers[0] = shy
    party.sites[0] = party.revived(0)
    coordinator = party.coordinator()
    total = run_round(coordinator, party.transport())
    assert coordinator.refusals == {"s0": Refusal.REFUSED}
    assert ints(total) == party.expected(["s1", "s2", "s3"])
