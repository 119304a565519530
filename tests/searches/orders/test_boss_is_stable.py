"""The graph that Boss finds must not depend on the order of the columns or on few starts."""

import numpy as np
import pytest

import isthmus as ist
from isthmus import simulate
from isthmus.searches.boss import Starts


def linear(d: int, n: int, seed: int) -> dict[str, np.ndarray]:
    return dict(simulate.linear(simulate.erdos_renyi(d, 2 * d, seed=seed), n, seed=seed).data)


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_order_and_the_units_of_columns_do_not_matter(seed: int) -> None:
    table = linear(30, 100, seed)
    names = list(table)
    turned = np.random.default_rng(seed).permutation(names).tolist()
    first = ist.learn(table)
    other = ist.learn({name: 3.0 * table[name] for name in turned})
    assert ist.metrics.shd_cpdag(first.dag, other.dag.reorder(names)) == 0


@pytest.mark.long
def test_starts_go_on_until_they_agree() -> None:
    table = linear(30, 100, 2)
    four, default = ist.learn(table, search=ist.Boss(starts=4)), ist.learn(table)
    assert four.details.starts == 4
    assert default.details.starts > 30
    assert default.score >= four.score
    reached = default.details.reached
    assert f"{reached} of {default.details.starts} starts reached it" in str(default.status)


def test_a_graph_that_one_start_reached_is_a_matter_of_chance() -> None:
    search = ist.Boss(starts=4, independent_starts=True)
    solution = ist.learn(linear(30, 100, 2), search=search)
    assert solution.details.reached == 1
    assert any("Only one of 4 starts" in note for note in solution.notes)


@pytest.mark.long
def test_one_start_in_dense_data() -> None:
    # With grow-shrink trees, one start could end at a distance of 425 from the true CPDAG.
    for seed in range(4):
        dag = simulate.erdos_renyi(50, 200, seed=seed)
        table = simulate.linear(dag, 1000, seed=seed).data
        table = {name: x / np.std(x) for name, x in table.items()}
        one = ist.learn(table, search=ist.Boss(starts=1))
        assert ist.metrics.shd_cpdag(one.dag, dag) < 60


def test_threads_do_not_change_the_graph() -> None:
    table = linear(20, 200, 0)
    one, two = (
        ist.learn(table, search=ist.Boss(independent_starts=True, jobs=jobs)) for jobs in (1, 2)
    )
    assert one.dag == two.dag
    assert one.details == two.details


def test_the_rule() -> None:
    starts = Starts(None)
    for _ in range(4):
        starts.record(-10.0)
        assert starts.more(0.0)
    starts.record(-10.0 - 1e-12)
    assert not starts.more(0.0)
    starts.record(-9.0)
    assert starts.reached == 1
    assert starts.more(0.5)
    assert not starts.more(1.5)


def test_the_rule_for_perturbed_orders() -> None:
    starts = Starts(None, variables=30)
    starts.record(-10.0)
    for _ in range(30):
        assert starts.more(0.0)
        starts.record(-10.0 - 1e-12)
    assert not starts.more(0.0)
    starts.record(-9.0)
    assert starts.more(0.0)
    assert not starts.more(31.0)
    for _ in range(10):
        assert starts.more(2.0)
        starts.record(-9.5)
    assert not starts.more(2.0)
