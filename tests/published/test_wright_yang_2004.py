"""Private K2 as published, beside K2 on the joined table and the formula on paper."""

from __future__ import annotations

from math import factorial, log, pi
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import ArgumentError, MismatchError, SchemaError
from isthmus.published import k2_score, private_k2, stirling_score
from isthmus.published.wright_yang_2004 import Paillier


def parties(rows: int, seed: int = 1) -> tuple[dict[str, Any], dict[str, Any], ist.DAG]:
    data = ist.datasets.asia(rows=rows, seed=seed)
    first = ("asia", "smoke", "either", "dysp")
    alice = {name: data[name] for name in first}
    return alice, {name: data[name] for name in data if name not in first}, data.dag


def test_k2_is_the_ratio_of_factorials() -> None:
    counts = [[3, 1], [0, 2], [0, 0]]
    wanted = sum(log(factorial(a) * factorial(b) / factorial(a + b + 1)) for a, b in counts)
    assert k2_score(counts) == pytest.approx(wanted)


def test_stirling_is_the_printed_sum() -> None:
    def term(a: int, b: int) -> float:
        total = a + b + 1
        return 0.5 * (log(a) + log(b) - log(total)) + a * log(a) + b * log(b) - total * log(total)

    counts = [(3, 1), (40, 2)]
    assert stirling_score(counts) == pytest.approx(sum(term(*pair) for pair in counts))
    kept = stirling_score(counts, constants=True) - stirling_score(counts)
    assert kept == pytest.approx(2 * (1 + 0.5 * log(2 * pi)))
    # ln l! = ... + 1/(12 l) - ...: three factorials, whose errors partly cancel.
    assert stirling_score([[50, 70]], constants=True) == pytest.approx(
        k2_score([[50, 70]]), abs=1 / 600 + 1 / 840
    )
    for few in ([[0, 9]], [[0, 0]]):  # 0! = 1; the formula is 8 % too small for 1!
        assert stirling_score(few, constants=True) == pytest.approx(k2_score(few), abs=0.09)


@pytest.mark.parametrize("seed", range(3))
def test_with_the_exact_score_it_is_k2_on_the_joined_table(seed: int) -> None:
    alice, bob, dag = parties(1000, seed)
    found = private_k2(alice, bob, order=dag.nodes, max_parents=2, score=k2_score)
    wanted = ist.learn(
        {**alice, **bob}, score=ist.K2(), search=ist.KnownOrder(dag.nodes, max_parents=2)
    )
    assert set(found.dag.edges) == set(wanted.dag.edges)
    assert {(p, c) for c, own in found.additions.items() for p in own} == set(found.dag.edges)


def test_encryption_changes_nothing_and_costs_one_ciphertext_per_row_and_product() -> None:
    alice, bob, dag = parties(40)
    order = (
        "smoke",
        "bronc",
        "dysp",
        *(n for n in dag.nodes if n not in {"smoke", "bronc", "dysp"}),
    )
    plain = private_k2(alice, bob, order=order, max_parents=1)
    secret = private_k2(alice, bob, order=order, max_parents=1, key_bits=128)
    assert secret.additions == plain.additions
    assert secret.encryptions == plain.encryptions == 40 * plain.scalar_products > 0
    assert plain.megabytes == plain.encryptions * 512 / 1e6


def test_shares_of_a_scalar_product_add_up() -> None:
    rng = np.random.default_rng(0)
    key = Paillier(256)
    a, b = rng.random((2, 50)) < 0.5
    ours, theirs = key.scalar_product(a, b)
    assert (ours + theirs) % key.n == (a & b).sum()
    assert key.encrypt(1) != key.encrypt(1)
    assert key.decrypt(key.encrypt(7) * key.encrypt(5) % key.n**2) == 12


def test_columns_of_one_party_need_no_product() -> None:
    alice, bob, _ = parties(50)
    order = [*alice, *bob]
    result = private_k2(alice, bob, order=order, max_parents=0)
    assert result.scalar_products == 0
    assert result.dag.edges == ()


def test_what_does_not_fit_is_refused() -> None:
    alice, bob, dag = parties(30)
    with pytest.raises(MismatchError, match="every column"):
        private_k2(alice, bob, order=dag.nodes[1:], max_parents=1)
    shorter = {name: column[1:] for name, column in bob.items()}
    with pytest.raises(MismatchError, match="same rows"):
        private_k2(alice, shorter, order=dag.nodes, max_parents=1)
    with pytest.raises(SchemaError, match="PrivateK2"):
        private_k2({"x": ["u", "v", "w"]}, {"y": ["u", "v", "v"]}, order="xy", max_parents=1)
    with pytest.raises(ArgumentError, match="two columns"):
        k2_score([[1, 2, 3]])
