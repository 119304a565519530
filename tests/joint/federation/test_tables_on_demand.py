"""Tables on demand: batches, pieces, estimates, and the same result as from pooled rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest

import isthmus as ist
from isthmus import simulate
from isthmus.arrays import Integers
from isthmus.errors import AbortedError, DataError, UnplannedError
from isthmus.statistics.on_demand import Core, TablesOnDemand, indicator_products
from isthmus_joint import AskCounts, Federation, MemoryLedger
from isthmus_joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus_joint.federation.requests.statistics import in_pieces
from isthmus_joint.request_catalogue import read_sum_request
from isthmus_joint.secure_sum.terms import from_int64, to_int64

SITES = 3


def made(d: int, rows: int, seed: int, levels: tuple[int, int] = (2, 4)) -> dict[str, np.ndarray]:
    dag = simulate.erdos_renyi(d, d + d // 4, seed=seed)
    network = simulate.discrete_network(dag, cardinalities=levels, seed=seed)
    return {n: np.asarray(v) for n, v in simulate.discrete(network, rows, seed=seed).data.items()}


def split(data: dict[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    return {f"s{i}": {n: v[i::SITES] for n, v in data.items()} for i in range(SITES)}


def on_demand(data: dict[str, np.ndarray], limit: int, largest: int = 2000) -> Federation:
    """Sites that sum so few numbers per round that the planned tables do not fit into one."""
    federation = Federation.simulate(
        split(data), plan=ist.CountPlan.up_to(limit), within_sites=False
    )
    federation.largest_round = largest
    return federation


@pytest.mark.long
@pytest.mark.parametrize(("score", "parents"), [(ist.BDeu(gamma=0.75), 2), (ist.BIC(), 3)])
def test_a_search_in_pieces_equals_that_of_pooled_rows(score: ist.BDeu, parents: int) -> None:
    data = made(9, 2000, parents)
    federation = on_demand(data, parents + 1, 64)
    learned = ist.learn(federation, score=score, search=ist.XGES(max_parents=parents))
    pooled = ist.learn(data, score=score, search=ist.XGES(max_parents=parents))
    assert learned.cpdag == pooled.cpdag
    assert len(pooled.dag.edges) >= 4
    assert learned.score == pytest.approx(pooled.score, rel=1e-12)
    assert learned.strengths() == pytest.approx(pooled.strengths(), rel=1e-6, abs=1e-6)
    sizes = [release.size for release in learned.disclosure.entries if release.site == "s0"]
    assert federation.sums > 9  # few cores per round
    assert sum(sizes) > 64
    assert ist.fit(federation, pooled.dag) == ist.fit(data, pooled.dag)


def test_any_search_uses_tables_on_demand() -> None:
    data = made(10, 800, 5)
    for search in (ist.HillClimb(max_parents=2), ist.Boss(starts=1, max_parents=2)):
        federation = on_demand(data, 3)
        learned = ist.learn(federation, score=ist.BIC(), search=search, seed=3)
        assert learned.cpdag == ist.learn(data, score=ist.BIC(), search=search, seed=3).cpdag
        assert federation.sums > 1


def test_the_default_search_keeps_to_the_planned_tables() -> None:
    data = made(12, 900, 7)
    learned = ist.learn(on_demand(data, 3))
    assert "max_parents=2" in learned.choice
    assert learned.cpdag == ist.learn(data, search=ist.XGES(max_parents=2)).cpdag
    with pytest.raises(UnplannedError, match="max_parents=2"):
        ist.learn(on_demand(data, 3), search=ist.HillClimb(max_parents=4), score=ist.AIC())


def test_tables_follow_from_products_of_indicators() -> None:
    """Every table of at most four variables, against the count of the rows."""
    data = made(6, 300, 1)
    counts = ist.summarise(data, plan=ist.CountPlan.everything())
    assert isinstance(counts, ist.Counts)
    rows, sizes = counts.joint, counts.schema.cardinalities.tolist()
    assert rows is not None

    def ask(cores: Sequence[Core]) -> dict[Core, Integers]:
        return dict(zip(cores, indicator_products(rows, sizes, cores), strict=True))

    tables = TablesOnDemand(sizes, 4, ask)
    assert tables.n == 300
    assert tables.table((0, 1, 2)) is None
    for core in ((0, 2, 4), (1, 3)):
        tables.fetch([core])
        for x in set(range(6)) - set(core):
            for size in range(len(core) + 1):
                for part in combinations(core, size):
                    asked = (x, *part)
                    expected = counts.table([counts.schema.names[i] for i in asked])
                    np.testing.assert_array_equal(tables.table(asked), expected)


def test_estimates_are_exact_without_interactions_and_keep_known_margins() -> None:
    """x0 and x2 are independent given x1, so that pairs determine the table."""
    a, b, c = np.meshgrid(range(2), range(3), range(2), indexing="ij")
    first, last = np.array([[1, 3, 2], [4, 2, 2]]), np.array([[5, 1], [2, 4], [3, 3]])
    weights = first[a, b] * last[b, c] * 10
    counts = ist.Counts.from_codes(
        ist.statistics.Schema.discrete({"a": (0, 1), "b": (0, 1, 2), "c": (0, 1)}),
        np.stack([a.ravel(), b.ravel(), c.ravel()]),
        weights.ravel(),
    )
    rows = counts.joint
    assert rows is not None

    def ask(cores: Sequence[Core]) -> dict[Core, Integers]:
        return dict(zip(cores, indicator_products(rows, (2, 3, 2), cores), strict=True))

    tables = TablesOnDemand((2, 3, 2), None, ask)
    members, estimate, is_counted = tables.extensions((0, 1), 2)
    assert not is_counted
    np.testing.assert_allclose(estimate[members.tolist().index(2)], weights, rtol=1e-3)
    tables.fetch([(0, 1)])
    members, counted, is_counted = tables.extensions((0, 1), 2)
    assert is_counted
    np.testing.assert_array_equal(counted[members.tolist().index(2)], weights)


def test_what_a_site_refuses_and_writes_down() -> None:
    data = made(8, 400, 2)
    ledgers = {f"s{i}": MemoryLedger() for i in range(SITES)}
    plan = ist.CountPlan.up_to(3)
    federation = Federation.simulate(split(data), plan=plan, ledgers=ledgers)
    names = federation.schema().names
    request = AskCounts(plan, (names[:2],))
    federation.ask(request)
    (entry,) = [e for e in ledgers["s1"].entries() if e["event"] == "opened"]
    assert entry["request"] == {"counts": {"up_to": 3}, "cores": [list(names[:2])]}
    assert entry["what"] == "tables on demand of at most 3 variables"
    large = AskCounts(plan, (names[:3],))
    assert large.violations(federation.study) == ["the study does not plan these tables"]
    with pytest.raises(AbortedError, match="refused"):
        federation.ask(large)
    grid = FixedPointEncoding.of(federation.study)
    for wrong in (((names[1], names[0]),), ((names[0], names[0]),), (("other",),)):
        with pytest.raises(ist.errors.FormatError):
            read_sum_request(AskCounts(plan, wrong).to_bytes(), federation.study, grid)
    others = Federation.simulate(split(data), plan=ist.CountPlan.sets([names[:3]]))
    for asked in (request, AskCounts(ist.CountPlan.sets([names[:3]]), (names[:2],))):
        assert asked.violations(others.study) == ["the study does not plan these tables"]


def test_sums_that_are_no_counts_are_discarded() -> None:
    data = made(5, 300, 3)
    plan = ist.CountPlan.up_to(3)
    federation = Federation.simulate(split(data), plan=plan)
    request = AskCounts(plan, (federation.schema().names[:2],))
    grid = FixedPointEncoding.of(federation.study)
    total = request.encode(ist.Frame(data), grid)
    request.require_plausible(total, grid)
    for change in (-10_000, 10_000):
        wrong = to_int64(total).copy()
        wrong[-2] += change
        with pytest.raises(DataError, match="not those of any tables"):
            request.require_plausible(from_int64(wrong), grid)


def test_pieces_hold_at_most_so_many_numbers() -> None:
    schema = ist.statistics.Schema.discrete({f"x{i}": (0, 1, 2) for i in range(9)})
    cores = [(i,) for i in range(9)] + list(combinations(range(9), 2))
    plan = ist.CountPlan.up_to(3)
    study = Federation.simulate(
        split({f"x{i}": np.arange(60) // (i + 1) % 3 for i in range(9)}), schema=schema, plan=plan
    ).study
    grid = FixedPointEncoding.of(study)
    asked = list(in_pieces(schema, plan, cores, 300))
    assert [core for _, some in asked for core in some] == cores
    assert len(asked) > 5
    assert max(request.size(grid) for request, _ in asked) <= 300


def test_counts_in_one_round_where_they_fit() -> None:
    data = made(8, 400, 2)
    federation = Federation.simulate(split(data), plan=ist.CountPlan.up_to(3))
    ist.learn(federation, search=ist.XGES(max_parents=2))
    assert federation.sums == 1
