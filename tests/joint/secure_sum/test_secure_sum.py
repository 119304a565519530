"""Secure sums are exact, or there is none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.joint.federation.rosters import LIMBS, STUDY, Party, ints

from isthmus.errors import AbortedError, DataError, StudyError
from isthmus_joint import Member, Roster
from isthmus_joint.agreement.identity import Secret
from isthmus_joint.secure_sum import shamir
from isthmus_joint.secure_sum.envelopes import EnvelopeKind
from isthmus_joint.secure_sum.sides import run_round
from isthmus_joint.secure_sum.terms import (
    LimbAccumulator,
    Terms,
    from_digits,
    from_int64,
    from_ints,
    to_int64,
    to_ints,
)

EXCHANGES = 5
HALF = 2 ** (32 * LIMBS - 1)


@given(st.lists(st.integers(-HALF, HALF - 1), min_size=1), st.lists(st.sampled_from([1, -1])))
def test_words_are_integers_modulo_a_power_of_two(values: list[int], signs: list[int]) -> None:
    words = from_ints(values, LIMBS)
    assert to_ints(words) == values
    total = LimbAccumulator(len(values), LIMBS)
    for sign in signs:
        total.add(words, sign)
    wrapped = [(sum(signs) * v + HALF) % (2 * HALF) - HALF for v in values]
    assert to_ints(total.total()) == wrapped


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_words_of_64_bits(values: list[int]) -> None:
    words = from_int64(np.array(values, dtype=np.int64))
    assert to_ints(words) == values
    assert to_int64(words).tolist() == values


@given(st.lists(st.integers(-(2**62) + 1, 2**62 - 1), max_size=12), st.integers(0, 70))
def test_words_of_shifted_integers(digits: list[int], lowest: int) -> None:
    expected = sum(v << (16 * k + lowest) for k, v in enumerate(digits))
    words = from_digits(np.array(digits, dtype=np.int64)[:, None], lowest, LIMBS)
    assert to_ints(words) == [(expected + HALF) % (2 * HALF) - HALF]


def test_a_number_too_large_is_refused() -> None:
    with pytest.raises(DataError, match="128 bits"):
        from_ints([HALF], LIMBS)


@given(st.binary(min_size=32, max_size=32), st.data())
def test_any_threshold_of_shares_gives_the_secret(secret: bytes, draw: st.DataObject) -> None:
    n = draw.draw(st.integers(1, 12))
    t = draw.draw(st.integers(1, n))
    shares = shamir.split(secret, t, n, Secret.fresh())
    chosen = draw.draw(st.permutations(range(n)))[:t]
    assert shamir.join(chosen, shares[chosen]) == secret


def test_many_shares_are_exact() -> None:
    secret = bytes([255] * 32)
    shares = shamir.split(secret, 700, 1000, Secret.fresh())
    assert shamir.join(range(300, 1000), shares[300:]) == secret
    assert int(shares.max()) < shamir.PRIME


def test_fewer_shares_say_nothing() -> None:
    """One share less than needed fits every secret equally well: its values are uniform."""
    drawn = (
        np.array([shamir.split(bytes(32), 2, 2, Secret.fresh())[0] for _ in range(2000)])
        / shamir.PRIME
    )
    assert abs(drawn.mean() - 0.5) < 0.02
    counts, _ = np.histogram(drawn, bins=16, range=(0, 1))
    expected = drawn.size / 16
    assert ((counts - expected) ** 2 / expected).sum() < 60  # chi-squared with 15 degrees


@pytest.mark.long
@pytest.mark.parametrize("sites", [3, 10, 64])
def test_sum_is_bit_exact(sites: int) -> None:
    party = Party(sites)
    coordinator = party.coordinator()
    total = run_round(coordinator, party.transport())
    assert ints(total) == party.expected(coordinator.active)
    assert len(coordinator.active) == sites


@pytest.mark.long
@pytest.mark.parametrize("way", ["lost", "muted"])
@pytest.mark.parametrize("stage", range(EXCHANGES))
@pytest.mark.parametrize("sites", [3, 10])
def test_dropout_gives_the_sum_of_the_survivors_or_nothing(
    sites: int, stage: int, way: str
) -> None:
    for gone in range(0, sites, 1 if sites == 3 else 3):
        party = Party(sites)
        coordinator = party.coordinator()
        transport = party.transport(**{way: [(f"s{gone}", stage)]})
        if sites == 3:
            with pytest.raises(AbortedError, match=f"s{gone}"):
                run_round(coordinator, transport)
            with pytest.raises(AbortedError):
                _ = coordinator.total
            continue
        total = run_round(coordinator, transport)
        assert ints(total) == party.expected(coordinator.active)
        # A site that sent its masked numbers is counted, even if it dies before the end.
        assert (f"s{gone}" in coordinator.active) == (stage > 2)


@pytest.mark.long
def test_64_sites_with_dropouts_at_every_stage() -> None:
    party = Party(64)
    coordinator = party.coordinator()
    lost = [(f"s{4 * k + i}", k) for k in range(EXCHANGES) for i in range(4)]
    total = run_round(coordinator, party.transport(lost))
    assert ints(total) == party.expected(coordinator.active)
    assert len(coordinator.active) == 64 - 12


@pytest.mark.parametrize("stage", range(EXCHANGES))
def test_too_many_dropouts_abort(stage: int) -> None:
    party = Party(10)
    coordinator = party.coordinator()
    lost = [(f"s{i}", stage) for i in range(4)]
    with pytest.raises(AbortedError, match="No sum was formed"):
        run_round(coordinator, party.transport(lost))
    assert coordinator.is_over
    with pytest.raises(AbortedError):
        _ = coordinator.total
    # Nobody gave a share: what was masked stays masked.
    given = [kind for keeper in party.keepers for kind in keeper.recorded]
    if stage < EXCHANGES - 1:
        assert EnvelopeKind.REVEAL not in given


def test_rounds_follow_each_other() -> None:
    party = Party(4)
    for number in (1, 2, 7):
        coordinator = party.coordinator(number)
        total = run_round(coordinator, party.transport())
        assert ints(total) == party.expected(coordinator.active)


def test_a_lost_round_does_not_block_the_next() -> None:
    party = Party(3)
    with pytest.raises(AbortedError):
        run_round(party.coordinator(1), party.transport([("s1", 3)]))
    assert ints(run_round(party.coordinator(2), party.transport())) == party.expected(
        ["s0", "s1", "s2"]
    )


def test_organisations_count_not_sites() -> None:
    keys = [bytes([i]) * 32 for i in range(5)]
    two = tuple(Member(f"s{i}", f"o{i % 2}", keys[i]) for i in range(4))
    with pytest.raises(StudyError, match="organisations"):
        Terms(Roster(STUDY, two, keys[4]))
    three = tuple(Member(f"s{i}", f"o{min(i, 2)}", keys[i]) for i in range(4))
    terms = Terms(Roster(STUDY, three, keys[4]))
    assert terms.threshold == 4  # two sites of one organisation may collude
    assert terms.enough(frozenset(range(4)))
    assert not terms.enough(frozenset({0, 1, 2}))
    five = tuple(Member(f"s{i}", f"o{i % 3}", keys[i]) for i in range(5))
    terms = Terms(Roster(STUDY, five, bytes([9]) * 32))
    assert terms.threshold == 4
    assert terms.enough(frozenset({0, 1, 2, 3}))
    assert not terms.enough(frozenset({0, 1, 3, 4}))


@pytest.mark.parametrize(("sites", "threshold"), [(2, 0), (3, 2), (10, 5), (10, 11)])
def test_thresholds_that_would_expose_a_site_are_refused(sites: int, threshold: int) -> None:
    members = tuple(Member(f"s{i}", f"o{i}", bytes([i]) * 32) for i in range(sites))
    with pytest.raises(StudyError):
        Terms(Roster(STUDY, members, bytes([99]) * 32), threshold)
