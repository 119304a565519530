"""Products by oblivious transfer: sums are right, shares alone tell nothing, cheating is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.joint.shares.links import at_both

from isthmus.errors import AbortedError
from isthmus_joint.shares import secret_products
from isthmus_joint.shares.alignment import (
    ENCODED,
    added,
    choose_seeds,
    decoded,
    encoded,
    masking,
    negative,
    offer_seeds,
    point_from,
)
from isthmus_joint.shares.secret_products import (
    KEY,
    SECURITY,
    ColumnProducts,
    SecretProducts,
    _Check,
    _transposed,
    carries,
)


def products(
    own: Sequence[NDArray[Any]],
    chooser: int = 0,
    signed: bool = False,
    change: Callable[..., None] | None = None,
) -> Any:
    """Return what both parties get for the products of their matrices, and the link's ends.

    The first matrix is of bits, and belongs to the party that chooses.
    """
    rows, widths = len(own[0]), (own[0].shape[1], own[1].shape[1])

    def run(link: Any) -> Any:
        secret = SecretProducts(link)
        if change is not None:
            change(link, secret)
        mine = own[0] if link.rank == chooser else own[1]
        wanted = ColumnProducts(chooser, widths, lambda at: mine[at])
        return secret.sums(wanted, rows) if signed else secret.counts([wanted], rows)[0]

    return at_both(run)


def bits_of(rng: np.random.Generator, *shape: int) -> NDArray[np.bool_]:
    return rng.random(shape) < 0.4


@pytest.mark.long
@pytest.mark.parametrize(("widths", "chooser"), [((1, 1), 0), ((3, 5), 1), ((2, 17), 0)])
def test_shares_add_up_to_the_counts(widths: tuple[int, int], chooser: int) -> None:
    """Of whole groups of people, of one more and of one less, one after the other."""
    rng = np.random.default_rng(0)
    tables = [
        [bits_of(rng, rows, width) for width in widths]
        for rows in (1, 7, 8, 126, 127, 128, 129, 255, 1000)
    ]

    def run(link: Any) -> Any:
        secret, side = SecretProducts(link), int(link.rank != chooser)
        return [
            secret.counts([ColumnProducts(chooser, widths, own[side].__getitem__)], len(own[side]))
            for own in tables
        ]

    results, _ = at_both(run)
    for own, (first,), (second,) in zip(tables, *results, strict=True):
        assert (first + second == own[0].astype(np.int64).T @ own[1].astype(np.int64)).all()


@pytest.mark.long
@pytest.mark.parametrize("rows", [127, 128, 12_700])
def test_counts_of_all_rows(rows: int) -> None:
    (first, second), _ = products([np.ones((rows, 1), dtype=bool)] * 2)
    assert (first + second).tolist() == [[rows]]


def test_numbers_of_64_bits_with_signs() -> None:
    rng = np.random.default_rng(0)
    numbers: NDArray[Any] = rng.integers(-(2**50), 2**50, (50, 3))
    bits = bits_of(rng, 50, 4)
    (first, second), _ = products([bits, numbers], signed=True)
    assert ((first + second).view(np.int64) == bits.astype(np.int64).T @ numbers).all()


@pytest.mark.long
@pytest.mark.parametrize("lifted", [1, 20, 1 << 22])
def test_many_messages_of_both(monkeypatch: pytest.MonkeyPatch, lifted: int) -> None:
    """More than the link holds, in both directions, and several products in one call."""
    monkeypatch.setattr(secret_products, "MESSAGE", 256)
    monkeypatch.setattr(secret_products, "LIFTED", lifted)
    rng = np.random.default_rng(1)
    columns = bits_of(rng, 300, 5), bits_of(rng, 300, 6)
    places = [(0, [0, 1], [0, 2]), (1, [3], [1, 2, 4]), (0, [2], [5]), (1, [1, 5], [0])]

    def run(link: Any) -> Any:
        wanted = [
            ColumnProducts(c, (len(a), len(b)), _part(columns[link.rank], a if mine else b))
            for c, a, b in places
            for mine in (c == link.rank,)
        ]
        return SecretProducts(link).counts(wanted, 300)

    (first, second), links = at_both(run)
    for k, (chooser, a, b) in enumerate(places):
        x, y = columns[chooser][:, a].astype(int), columns[1 - chooser][:, b].astype(int)
        assert (first[k] + second[k] == x.T @ y).all()
    assert min(len(link.seen) for link in links) > 50


def _part(columns: NDArray[Any], places: list[int]) -> Callable[[slice], NDArray[Any]]:
    return lambda at: columns[at][:, places]


@pytest.mark.long
def test_a_share_and_all_messages_change_with_every_run() -> None:
    runs = [products([np.ones((200, 1), dtype=bool)] * 2) for _ in range(2)]
    shares = {int(share[0, 0]) for results, _ in runs for share in results}
    assert len(shares) == 4
    for rank in (0, 1):
        messages = [set(links[rank].seen) for _, links in runs]
        assert messages[0].isdisjoint(messages[1])


@pytest.mark.long
@pytest.mark.parametrize("value", [False, True])
def test_messages_look_random(value: bool) -> None:
    """Columns of zeros and of ones: half of the bits of each message, and of each column of it."""
    _, links = products([np.full((8000, 1), value)] * 2)
    choice = max(links[1].seen, key=len)
    (answer,) = (data for data in links[0].seen if len(data) == 8000)
    for data in (choice, answer):
        shown = np.unpackbits(np.frombuffer(data, dtype=np.uint8))
        assert abs(shown.mean() - 0.5) < 5 * 0.5 / np.sqrt(shown.size)
    columns = np.frombuffer(choice[: -(SECURITY + 1) * KEY], dtype=np.uint8).reshape(SECURITY, -1)
    means = np.unpackbits(columns, axis=1).mean(axis=1)
    assert np.abs(means - 0.5).max() < 6 * 0.5 / np.sqrt(8 * columns.shape[1])


# --- a party that deviates ----------------------------------------------------------------------


def other_bits(places: list[int]) -> Callable[..., None]:
    """Use other bits for the second half of some of the 128 streams than for the rest."""

    class Changed:
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        def update(self, data: bytes) -> bytes:
            return bytes(255 - x for x in self._stream.update(data))

    def change(link: Any, products: Any) -> None:
        if link.rank == 0:
            streams = products._chooser._streams
            for j in places:
                streams[j] = streams[j][0], Changed(streams[j][1])

    return change


@pytest.mark.long
def test_different_bits_in_some_transfers_are_found() -> None:
    own = [np.zeros((10, 1), dtype=bool)] * 2
    (_, second), _ = products(own, change=other_bits(list(range(64))))
    assert isinstance(second, AbortedError)
    assert second.reason == "broken message"
    assert not isinstance(products(own, change=other_bits([]))[0][1], AbortedError)


@pytest.mark.long
def test_a_guess_of_the_secret_choice_is_right_half_of_the_time() -> None:
    """What a party can try: one bit of the other's secret, which ends the run if it is wrong."""
    own = [np.zeros((1, 1), dtype=bool)] * 2
    caught: set[bool] = set()
    for j in range(SECURITY):  # until both have happened, after four attempts on average
        caught.add(isinstance(products(own, change=other_bits([j]))[0][1], AbortedError))
        if len(caught) == 2:
            return
    pytest.fail(f"always caught, or never: {caught}")


def test_the_first_party_knows_one_key_and_the_second_both() -> None:
    bits = np.random.default_rng(3).random(300) < 0.5

    def run(link: Any) -> Any:
        products: Any = SecretProducts(link)
        if link.rank == 0:
            return products._chooser.ask(bits)
        return products._sender.hear(bits.size), products._sender._choice

    (chosen, (zeros, choice)), _ = at_both(run)
    ones = zeros[:, :2] ^ choice
    assert (chosen[:, :2] == np.where(bits[:, None], ones, zeros[:, :2])).all()
    assert len(np.unique(zeros[:, :2], axis=0)) == 300
    assert (chosen[:, 2] == np.arange(300)).all()


@pytest.mark.long
@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("cut", [lambda d: d[:-1], lambda d: d + b"0", lambda _: b""])
def test_messages_of_another_length_are_refused(rank: int, cut: Callable[[bytes], bytes]) -> None:
    def change(link: Any, _: Any) -> None:
        if link.rank == rank:
            send = link.send
            link.send = lambda data: send(cut(data))

    results, _ = products([np.zeros((10, 1), dtype=bool)] * 2, change=change)
    assert isinstance(results[1 - rank], AbortedError)


def test_the_hash_of_the_check_is_linear_and_depends_on_the_message() -> None:
    rng = np.random.default_rng(5)
    first, second = rng.integers(0, 256, (2, 32)).astype(np.uint8)
    message = bytes(32 * SECURITY)
    check, other = _Check(b"s", 0, message), _Check(b"s", 1, message)
    both = np.frombuffer(check(first), np.uint8) ^ np.frombuffer(check(second), np.uint8)
    assert check(first ^ second) == both.tobytes()
    assert check(np.zeros(32, dtype=np.uint8)) == bytes(KEY)
    assert check(first) != other(first)
    # A single bit anywhere changes it.
    units = np.packbits(np.eye(256, dtype=np.uint8), axis=1)
    assert len({check(unit) for unit in units}) == 256


def test_transposed() -> None:
    rows = np.random.default_rng(6).integers(0, 256, (SECURITY, 40)).astype(np.uint8)
    bits = np.unpackbits(rows, axis=1, bitorder="little")
    columns = np.packbits(np.ascontiguousarray(bits.T), axis=1, bitorder="little")
    assert (_transposed(rows) == columns.view(np.uint64)).all()


# --- carries ------------------------------------------------------------------------------------


@pytest.mark.long
@given(st.lists(st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**64 - 1)), min_size=1))
@settings(max_examples=5, deadline=None)
def test_carries(pairs: list[tuple[int, int]]) -> None:
    rings = {8: np.uint8, 11: np.uint64, 64: np.uint64}
    shares = [
        [[(a % 2 ** (bits - 1) - b) % 2**bits for a, b in pairs], [b % 2**bits for _, b in pairs]]
        for bits in rings
    ]

    def run(link: Any) -> Any:
        secret = SecretProducts(link)
        return [
            carries(secret, np.array(both[link.rank], dtype=word), bits)
            for both, (bits, word) in zip(shares, rings.items(), strict=True)
        ]

    results, _ = at_both(run)
    for bits, both, first, second in zip(rings, shares, *results, strict=True):
        expected = [a + b >= 2**bits for a, b in zip(*both, strict=True)]
        assert (first + second).tolist() == expected


# --- the transfers of seeds ---------------------------------------------------------------------


def test_seeds_of_one_choice() -> None:
    choices = [0, 1, 1, 0, 1]
    results, _ = at_both(
        lambda link: offer_seeds(link, 5) if link.rank == 0 else choose_seeds(link, choices)
    )
    (pairs, session), (chosen, same) = results
    assert session == same
    assert chosen == [pair[c] for pair, c in zip(pairs, choices, strict=True)]
    assert len({seed for pair in pairs for seed in pair}) == 10


def test_the_key_that_was_not_chosen_is_a_hash_plus_a_random_point() -> None:
    """The sum of what is sent and the hash of the other one is the key, only for the choice."""
    _, links = at_both(
        lambda link: offer_seeds(link, 1) if link.rank == 0 else choose_seeds(link, [1])
    )
    start, points = links[1].seen[0], links[0].seen[0]
    pair = points[:ENCODED], points[ENCODED:]
    keys = [added(decoded(pair[i]), masking(start, 0, i, pair[1 - i])) for i in (0, 1)]
    assert len({encoded(key) for key in keys}) == 2


def test_sums_of_points_by_the_curve() -> None:
    """Three times the base point, as one plus two, is the public key of three."""
    one, two, three = (ec.derive_private_key(k, ec.SECP256R1()).public_key() for k in (1, 2, 3))
    assert encoded(added(one, two)) == encoded(three)
    assert encoded(added(three, negative(two))) == encoded(one)
    with pytest.raises(AbortedError):
        added(one, negative(one))
    assert encoded(point_from(b"a")) == encoded(point_from(b"a")) != encoded(point_from(b"b"))


@pytest.mark.parametrize(
    "data", [b"", b"\x02" * (ENCODED - 1), b"\x05" * ENCODED, bytes(ENCODED), b"\xff" * ENCODED]
)
def test_what_is_no_point_is_refused(data: bytes) -> None:
    with pytest.raises(AbortedError):
        decoded(data)
