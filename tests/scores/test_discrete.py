"""Scores on counts against slow versions, by hand, and by their laws."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.scores import slow

from isthmus.errors import ArgumentError, UnplannedError
from isthmus.objectives import LocalScore
from isthmus.scores import AIC, BIC, K2, BDeu, Score
from isthmus.statistics import CountPlan, Counts, Schema
from isthmus.testing import enumerate_dags

NAMES = ("α", "b", "c", "d")
Codes = NDArray[np.int64]
SlowScore = Callable[[Codes, Sequence[int], int, Sequence[int]], float]

PAIRS: list[tuple[Score[Counts, LocalScore], SlowScore]] = [
    (BIC(), slow.bic),
    (AIC(), slow.aic),
    (K2(), slow.k2),
    (K2(pseudo_count=0.5), lambda x, r, c, p: slow.dirichlet(x, r, c, p, 0.5)),
    (BDeu(1.0), lambda x, r, c, p: slow.bdeu(x, r, c, p, 1.0)),
    (BDeu(12.5), lambda x, r, c, p: slow.bdeu(x, r, c, p, 12.5)),
]


def draw(seed: int, n: int, sizes: Sequence[int]) -> Codes:
    """Skewed and dependent codes, so that many configurations are never seen."""
    rng = np.random.default_rng(seed)
    columns: list[NDArray[np.int64]] = []
    for size in sizes:
        own = np.minimum(rng.geometric(0.5, n) - 1, size - 1)
        before = columns[-1] if columns else own
        columns.append(np.where(rng.random(n) < 0.6, before % size, own))
    return np.column_stack(columns)


def counts(codes: Codes, sizes: Sequence[int], plan: CountPlan | None = None) -> Counts:
    schema = Schema.discrete(
        {name: tuple(range(size)) for name, size in zip(NAMES, sizes, strict=True)}
    )
    return Counts.from_codes(schema, codes.T, plan=plan or CountPlan.everything())


def every_family(d: int) -> list[tuple[int, tuple[int, ...]]]:
    return [
        (child, parents)
        for child in range(d)
        for size in range(d)
        for parents in itertools.combinations([v for v in range(d) if v != child], size)
    ]


@pytest.mark.long
@pytest.mark.parametrize(
    "plan", [CountPlan.everything(), CountPlan.up_to(4)], ids=["joint", "planned"]
)
@pytest.mark.parametrize(
    ("n", "sizes"),
    [
        *itertools.product([1, 2, 17, 300], [(2, 2, 2, 2), (2, 3, 4, 5), (5, 4, 5, 3)]),
        (300, (1, 3, 2, 4)),
        (2_000, (2, 3, 4, 5)),
    ],
)
def test_every_score_equals_its_slow_version(
    n: int, sizes: tuple[int, ...], plan: CountPlan
) -> None:
    codes = draw(n, n, sizes)
    statistics = counts(codes, sizes, plan)
    for score, slowly in PAIRS:
        local = score.bind(statistics)
        for child, parents in every_family(4):
            expected = slowly(codes, sizes, child, parents)
            assert local.local(child, parents) == pytest.approx(expected, rel=1e-9, abs=1e-8)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 100), data=st.data())
@settings(max_examples=30, deadline=None)
def test_random_tables(seed: int, n: int, data: st.DataObject) -> None:
    sizes = data.draw(st.tuples(*[st.integers(2, 5)] * 4))
    codes = draw(seed, n, sizes)
    statistics = counts(codes, sizes)
    child = data.draw(st.integers(0, 3))
    others = [v for v in range(4) if v != child]
    parents = tuple(data.draw(st.lists(st.sampled_from(others), unique=True)))
    for score, slowly in PAIRS:
        value = score.bind(statistics).local(child, parents)
        assert value == pytest.approx(slowly(codes, sizes, child, parents), rel=1e-9, abs=1e-8)


def test_bic_by_hand() -> None:
    # Child given parent 0: 3 of level 0, 1 of level 1; given parent 1: 4 of level 1.
    codes = np.array([[0, 0]] * 3 + [[0, 1]] + [[1, 1]] * 4)
    schema = Schema.discrete({"x": (0, 1), "y": (0, 1)})
    local = BIC().bind(Counts.from_codes(schema, codes.T, plan=CountPlan.everything()))
    fit = 3 * math.log(3 / 4) + math.log(1 / 4)
    assert local.local(1, (0,)) == pytest.approx(fit - math.log(8) * 2 / 2)


def test_k2_by_hand_with_an_unseen_configuration_of_three_levels() -> None:
    # Two rows, parent level 0 only, child levels 0 and 2 of three: 2! / 4! * 1! * 1!.
    schema = Schema.discrete({"x": (0, 1), "y": (0, 1, 2)})
    codes = np.array([[0, 0], [0, 2]])
    local = K2().bind(Counts.from_codes(schema, codes.T, plan=CountPlan.everything()))
    assert local.local(1, (0,)) == pytest.approx(math.log(2 / 24))


def test_weighted_rows_are_repeated_rows() -> None:
    sizes = (2, 3, 4, 3)
    codes = draw(3, 500, sizes)
    repeated = counts(codes, sizes)
    distinct, times = np.unique(codes, axis=0, return_counts=True)
    schema = repeated.schema
    weighted = Counts.from_codes(schema, distinct.T, weights=times, plan=CountPlan.everything())
    for score, _ in PAIRS:
        one, other = score.bind(repeated), score.bind(weighted)
        for child, parents in every_family(4):
            assert one.local(child, parents) == pytest.approx(
                other.local(child, parents), rel=1e-10
            )


@pytest.mark.parametrize("score", [BIC(), AIC(), BDeu(3.0)])
def test_markov_equivalent_graphs_score_the_same(score: Score[Counts, LocalScore]) -> None:
    local = score.bind(counts(draw(1, 200, (2, 3, 4, 3)), (2, 3, 4, 3)))
    assert local.equivalent
    totals: dict[object, float] = {}
    for dag in enumerate_dags(local.nodes):
        value = local.total(dag)
        assert totals.setdefault(dag.cpdag(), value) == pytest.approx(value, rel=1e-9)
    assert len({round(v, 6) for v in totals.values()}) > 100


def test_k2_is_not_score_equivalent_and_says_so() -> None:
    local = K2().bind(counts(draw(1, 200, (2, 3, 4, 3)), (2, 3, 4, 3)))
    assert not local.equivalent
    forward = local.local(0, ()) + local.local(1, (0,))
    assert abs(forward - local.local(1, ()) - local.local(0, (1,))) > 0.01


def test_unplanned_families_are_refused() -> None:
    local = BIC().bind(counts(draw(1, 50, (2, 2, 2, 2)), (2, 2, 2, 2), CountPlan.up_to(2)))
    local.local(0, (1,))
    with pytest.raises(UnplannedError):
        local.local(0, (1, 2))


def test_bdeu_refuses_an_empty_prior() -> None:
    with pytest.raises(ArgumentError, match="above 0"):
        BDeu(0.0)
