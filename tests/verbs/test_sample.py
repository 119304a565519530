"""`sample`: the same posterior wherever the data live."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus import simulate
from isthmus.errors import ArgumentError, MismatchError, NoDrawsError
from isthmus.results import Ending
from isthmus.samplers import Draws, Sampler
from isthmus.watch import Watch

R = np.random.default_rng(0)
X = R.normal(size=(300, 5))
X[:, 1] += X[:, 0]
X[:, 2] += X[:, 1]
NUMBERS = {name: X[:, i] for i, name in enumerate("abcde")}
LEVELS = {name: (column > 0).astype(int) for name, column in NUMBERS.items()}


def test_defaults_for_numbers() -> None:
    posterior = ist.sample(NUMBERS, draws=50, chains=2)
    assert "BGe" in posterior.choice
    assert "ExactPosterior" in posterior.choice
    assert posterior.independent
    assert posterior.chains.shape == (2, 50)
    assert posterior.notes == ()
    assert posterior.probability(ist.path("a", "c")) <= 1
    assert str(posterior).startswith("100 independent draws")


def test_defaults_for_levels_and_mixed_tables() -> None:
    assert "K2(pseudo_count=0.5)" in ist.sample(LEVELS, draws=5).choice
    mixed = {**NUMBERS, "e": LEVELS["e"]}
    posterior = ist.sample(mixed, draws=5, kinds={"e": "discrete"})
    assert "DegenerateGaussian" in posterior.choice
    assert "approximates the marginal likelihood" in posterior.choice


def test_the_seed_decides() -> None:
    one, same, other = (ist.sample(NUMBERS, draws=40, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.trace(), same.trace())
    assert not np.array_equal(one.trace(), other.trace())


def test_knowledge_holds_in_every_draw() -> None:
    knowledge = ist.Knowledge(required=[("e", "a")], tiers=[["c"], ["a", "b", "d", "e"]])
    posterior = ist.sample(NUMBERS, draws=100, knowledge=knowledge)
    assert all(knowledge.allows(dag) for dag in posterior.ensemble.dags)
    assert posterior.probability(ist.edge("e", "a")) == pytest.approx(1)


def test_a_lazy_table_gives_the_same() -> None:
    pl = pytest.importorskip("polars")
    here = ist.sample(NUMBERS, draws=20)
    there = ist.sample(pl.DataFrame(NUMBERS).lazy(), draws=20)
    np.testing.assert_allclose(here.edge_probabilities(), there.edge_probabilities(), atol=1e-9)


def test_statistics_give_the_same() -> None:
    here = ist.sample(NUMBERS, draws=20)
    there = ist.sample(ist.summarise(NUMBERS), draws=20)
    np.testing.assert_array_equal(here.edge_probabilities(), there.edge_probabilities())


def test_markov_chains_are_compared() -> None:
    posterior = ist.sample(NUMBERS, sampler=ist.StructureMCMC(thin=20), draws=200, chains=2, seed=3)
    assert not posterior.independent
    assert "chains" in posterior.notes[0]
    exact = ist.sample(NUMBERS, draws=1).edge_probabilities()
    assert np.abs(posterior.edge_probabilities() - exact).max() < 0.25
    alone = ist.sample(NUMBERS, sampler=ist.StructureMCMC(thin=5), draws=20, chains=1)
    assert alone.notes == ("One chain cannot tell whether it has converged; draw several.",)
    assert alone.status.ending is Ending.NOT_CONVERGED


def test_the_status_agrees_with_the_notes() -> None:
    sampler = ist.StructureMCMC(thin=1, warm_up=0)
    posterior = ist.sample(NUMBERS, sampler=sampler, draws=12, chains=4, seed=1)
    assert posterior.agreement().edges()
    assert posterior.status.ending is Ending.NOT_CONVERGED
    assert "they disagree" in str(posterior.status)
    exact = ist.sample(NUMBERS, sampler=ist.ExactPosterior(), draws=12, chains=4)
    assert "disagree" not in str(exact.agreement())
    assert exact.status.ending is Ending.CONVERGED


@pytest.mark.parametrize(("seconds", "most"), [(1e-6, 19), (1e-5, 17), (1e-4, 14)])
def test_the_cost_of_a_family_chooses_the_sampler(seconds: float, most: int) -> None:
    from isthmus.objectives import PythonLocalScore
    from isthmus.verbs.defaults import choose_sampler

    for d in (most, most + 1):
        names = [f"v{i}" for i in range(d)]
        score = PythonLocalScore(
            names, lambda child, parents: 0.0, equivalent=True, cost=lambda _: seconds
        )
        sampler, reason = choose_sampler(score)
        assert isinstance(sampler, ist.ExactPosterior if d == most else ist.PartitionMCMC)
        assert str(d) in reason


def test_slow_scores_are_given_fewer_families() -> None:
    from isthmus.objectives import PythonLocalScore
    from isthmus.verbs.defaults import choose_sampler

    for d in (7, 9, 12, 40):
        names = [f"v{i}" for i in range(d)]
        score = PythonLocalScore(
            names, lambda child, parents: 0.0, equivalent=True, cost=lambda _: 0.01
        )
        sampler, reason = choose_sampler(score)
        if d == 7:
            assert isinstance(sampler, ist.ExactPosterior)
            continue
        assert isinstance(sampler, ist.PartitionMCMC)
        count = sampler.candidates
        assert count is not None
        assert 0.01 * d * 2**count * (d - count) <= 20 or count == 1
        assert "milliseconds" in reason


def test_no_time_at_all_is_said() -> None:
    with pytest.raises(NoDrawsError, match="before its first draw"):
        ist.sample(NUMBERS, time_limit=0)


@pytest.mark.timing
def test_a_time_limit_stops_the_exact_posterior() -> None:
    table = {f"v{i}": R.normal(size=30) for i in range(20)}
    start = time.process_time()
    with pytest.raises(NoDrawsError):
        ist.sample(table, sampler=ist.ExactPosterior(), time_limit=0.2)
    assert time.process_time() - start < 0.6


def test_a_time_limit_keeps_the_draws_so_far() -> None:
    posterior = ist.sample(
        NUMBERS,
        sampler=ist.StructureMCMC(thin=50, warm_up=0),
        draws=10**6,
        chains=2,
        time_limit=0.3,
    )
    assert posterior.status.ending.name == "TIME_LIMIT"
    assert posterior.chains.shape[1] > 0


def test_ctrl_c_before_the_first_draw_is_ctrl_c() -> None:
    class Own(Sampler[Any]):
        accepts = ist.ExactPosterior.accepts

        def sample(self, *arguments: Any, **more: Any) -> Draws:
            watch: Watch = arguments[3]
            with watch.until_stopped():
                raise KeyboardInterrupt
            return Draws.from_sequence(np.zeros((1, 0, 5, 1), np.uint64), np.zeros((1, 0)))

    with pytest.raises(KeyboardInterrupt):
        ist.sample(NUMBERS, sampler=Own())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"draws": 0}, "draws must be an integer of at least 1"),
        ({"chains": 1.5}, "chains must be an integer"),
        ({"sampler": "exact"}, "sampler must be a sampler object"),
        ({"sampler": ist.ExactPosterior}, r"Write sampler=ExactPosterior\(\)"),
        ({"sampler": ist.Boss()}, "sampler must be a sampler object"),
        ({"seed": -1}, "seed"),
        ({"draws": 10**12}, "draws must be at most 100,000,000"),
        ({"chains": 10**6}, "chains must be at most 10,000"),
    ],
)
def test_odd_arguments_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        ist.sample(NUMBERS, **arguments)


def test_numbers_of_numpy_are_numbers() -> None:
    counts: dict[str, Any] = {"draws": np.int64(7), "chains": np.int32(2)}
    assert ist.sample(NUMBERS, **counts).chains.shape == (2, 7)


def test_a_loss_has_no_posterior() -> None:
    with pytest.raises(MismatchError, match="local score"):
        ist.sample(NUMBERS, score=ist.LeastSquares())


def test_importance_weights_count() -> None:
    empty, full = np.zeros((5, 1), np.uint64), np.zeros((5, 1), np.uint64)
    full[1] = 1

    class Own(Sampler[Any]):
        accepts = ist.ExactPosterior.accepts

        def sample(self, *arguments: Any, **more: Any) -> Draws:
            return Draws(
                np.stack([empty, full]),
                np.zeros(2),
                np.array([[0, 0, 1, 0]]),
                log_weights=np.array([0.0, np.log(3.0)]),
            )

    posterior = ist.sample(NUMBERS, sampler=Own())
    assert posterior.probability(ist.edge("a", "b")) == pytest.approx(0.5)


@pytest.mark.long
def test_partition_chains_approach_the_exact_posterior() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(100, 8))
    x[:, 4:] += x[:, :4] @ rng.normal(size=(4, 4))
    table = {f"v{i}": x[:, i] for i in range(8)}
    exact = ist.sample(table, sampler=ist.ExactPosterior(), draws=1)
    chains = ist.sample(table, sampler=ist.PartitionMCMC(), draws=2000, chains=2, seed=1)
    assert np.abs(chains.edge_probabilities() - exact.edge_probabilities()).max() < 0.05
    assert np.abs(chains.path_probabilities() - exact.path_probabilities()).max() < 0.05


def sites(table: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Deal the rows of a table to ten sites."""
    return {
        f"site {k}": {name: np.asarray(column)[k::10] for name, column in table.items()}
        for k in range(10)
    }


@pytest.mark.long
@pytest.mark.parametrize("kind", ["numbers", "levels"])
def test_a_federation_gives_the_posterior_of_the_pooled_table(kind: str) -> None:
    pytest.importorskip("cryptography")
    table = {"numbers": NUMBERS, "levels": LEVELS}[kind]
    pooled = ist.sample(table, draws=20)
    joint = ist.sample(ist.Federation.simulate(sites(table), within_sites=False), draws=20)
    compared = [
        (joint.edge_probabilities(), pooled.edge_probabilities()),
        (joint.path_probabilities(), pooled.path_probabilities()),
        (joint.trace(), pooled.trace()),
    ]
    if kind == "numbers":
        compared.append((joint.mean_effects(), pooled.mean_effects()))
    for ours, theirs in compared:
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    assert {entry.site for entry in joint.disclosure.entries} == set(sites(table))
    assert all(entry.form == "secure sum" for entry in joint.disclosure.entries)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["numbers", "levels"])
def test_chains_over_a_federation_approach_the_exact_posterior(kind: str) -> None:
    pytest.importorskip("cryptography")
    table = {"numbers": NUMBERS, "levels": LEVELS}[kind]
    exact = ist.sample(table, draws=1).edge_probabilities()
    federation = ist.Federation.simulate(sites(table), within_sites=False)
    chains = ist.sample(federation, sampler=ist.PartitionMCMC(), draws=1000, chains=2)
    assert np.abs(chains.edge_probabilities() - exact).max() < 0.02


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")  # to get 5,000 of them
@pytest.mark.parametrize("kind", ["numbers", "levels"])
def test_a_duckdb_table_gives_the_same_and_keeps_its_rows(kind: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    pa = pytest.importorskip("pyarrow")
    rows = {k: np.resize(v, 5000) for k, v in {"numbers": NUMBERS, "levels": LEVELS}[kind].items()}
    connection = duckdb.connect()
    connection.register("rows", pa.table(rows))
    table = connection.sql("select * from rows")
    here, there = (ist.sample(data, draws=20) for data in (rows, table))
    np.testing.assert_allclose(here.edge_probabilities(), there.edge_probabilities(), atol=1e-9)
    np.testing.assert_allclose(here.path_probabilities(), there.path_probabilities(), atol=1e-9)
    np.testing.assert_allclose(here.trace(), there.trace(), rtol=1e-9)
    # The number of rows, five sums and fifteen products, and those of 35 functions of the columns;
    # or the counts of 32 different rows.
    assert sum(entry.size for entry in there.disclosure.entries) < 1000
    assert {entry.site for entry in there.disclosure.entries} == {"DuckDB"}


@pytest.mark.long
def test_chains_that_leave_out_parent_sets_have_not_converged() -> None:
    """Chains share their tables, so that all of them leave out the same sets, and agree."""
    data = simulate.linear(simulate.erdos_renyi(8, 14, seed=3), 40, seed=3).data
    sampler = ist.PartitionMCMC(candidates=1)
    posterior = ist.sample(data, score=ist.BGe(), sampler=sampler, draws=200, seed=3)
    assert posterior.details.left_out > 0.05
    assert posterior.status.ending is Ending.NOT_CONVERGED
    assert any("compare runs with different seeds" in note for note in posterior.notes)


def test_a_note_says_that_chains_over_orders_are_biased() -> None:
    rng = np.random.default_rng(0)
    table = {name: rng.normal(size=60) for name in "abcd"}
    orders = ist.sample(table, sampler=ist.OrderMCMC(), draws=500, seed=1)
    exact = ist.sample(table, draws=500, seed=1)
    assert orders.edge_probabilities().sum() < 0.8 * exact.edge_probabilities().sum()
    assert "Draws of OrderMCMC favour" in str(orders)
    assert "favour" not in str(ist.sample(table, sampler=ist.PartitionMCMC(), draws=50, seed=1))
