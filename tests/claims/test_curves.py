"""Graphs of lines, challenged by curves."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus import simulate
from isthmus.claims.curves import challenge_by_curves, doubts_of_other_scale, looks_normal
from isthmus.networks import Nonparanormal

SHAPES: dict[str, Callable[[Any, Any, np.random.Generator], Any]] = {
    "straight": lambda z, e, rng: z + e,
    "curve": lambda z, e, rng: z + 0.25 * z**2 + e,
    "counts": lambda z, e, rng: rng.poisson(np.exp(2 + 0.5 * z)),
    "censored": lambda z, e, rng: np.maximum(0, z + e),
    "levels": lambda z, e, rng: np.array(list("abc"))[np.digitize(1.5 * z + e, [-1, 1])],
    "rare": lambda z, e, rng: np.where(1.2 * z + e > 2, "y", "n"),
    "log-normal": lambda z, e, rng: np.exp(0.4 * z + 0.4 * e),
    "saturating": lambda z, e, rng: np.tanh(z) + 0.5 * e,
}


def effects_of_one_cause(shape: str, n: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    make = SHAPES[shape]
    return {"z": z} | {f"y{i}": make(z, rng.normal(size=n), rng) for i in range(5)}


def learned(data: object, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ist.learn(data, **options)


def false_and_true(dag: ist.DAG) -> tuple[int, int]:
    false = sum("z" not in edge for edge in dag.edges)
    return false, len(dag.edges) - false


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [1000, 5000])
def test_effects_of_one_cause_are_not_joined(shape: str, n: int) -> None:
    """At most one pair in ten on average; ``benchmarks/curves/shapes.py`` has more tables."""
    counts = [
        false_and_true(learned(effects_of_one_cause(shape, n, seed)).dag) for seed in range(3)
    ]
    false, true = np.mean(counts, axis=0)
    assert false <= 1.0
    assert true == 5.0


def test_skewed_columns_of_one_scale_are_named() -> None:
    """A federation has no ranks; of a table, both scales are compared, and nothing is joined."""
    for shape, expected in (("log-normal", True), ("saturating", False)):
        table = effects_of_one_cause(shape, 20_000, 1)
        parts = [{name: x[k::3] for name, x in table.items()} for k in range(3)]
        solution = learned(ist.Federation.simulate(parts))
        noted = [note for note in solution.notes if "logarithms or normal scores" in note]
        assert bool(noted) == (false_and_true(solution.dag)[0] > 0) == expected
        assert all(repr(f"y{i}") in note for note in noted for i in range(5))


@pytest.mark.parametrize("n", [500, 3000])
def test_effects_that_rise_and_fall_are_found(n: int) -> None:
    """In the direction of the cause, nothing is gained, and nothing is explained."""
    counts = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=n)
        table = {"z": z} | {f"y{i}": z**2 + rng.normal(size=n) for i in range(3)}
        table |= {"y3": np.abs(z) + 0.5 * rng.normal(size=n), "y4": z + rng.normal(size=n)}
        counts.append(false_and_true(learned(table).dag))
        pag = learned(table, search=ist.BossFCI()).pag
        assert sum("z" in (a, b) for a, _, b in pag.edges) >= 4
    assert counts == [(0, 5)] * 2


def test_lines_alone_join_them() -> None:
    """So the tests above can fail."""
    table = effects_of_one_cause("curve", 5000, 0)
    assert false_and_true(learned(table, score=ist.GaussianEBIC()).dag) == (10, 5)


@pytest.mark.long
@pytest.mark.parametrize("shape", ["curve", "counts", "levels", "log-normal"])
def test_the_posterior_and_the_bootstrap_do_not_join_them(shape: str) -> None:
    table = effects_of_one_cause(shape, 2000, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = ist.sample(table, draws=20, seed=1)
        ensemble = ist.bootstrap(table, replicates=10, jobs=1)
    for said in (posterior.choice, ensemble.notes[0]):
        assert "learned again with `AdditiveEBIC`" in said
        assert "curved=" not in said  # the curves are counted there, not listed
    edges = np.asarray(posterior.edge_probabilities())
    either = edges + edges.T
    assert either[1:, 1:].max() < 0.9
    assert either[0, 1:].min() > 0.99
    shares = np.asarray(ensemble.adjacency_probabilities())
    assert shares[1:, 1:].max() <= 0.8
    assert shares[0, 1:].min() == pytest.approx(1.0)


def test_pairs_that_hold_on_one_scale_only_have_no_high_probability() -> None:
    rng = np.random.default_rng(9)
    z = rng.normal(size=20_000)
    table = {"z": z} | {f"y{i}": rng.poisson(np.exp(2 + 0.5 * z)) for i in range(3)}

    def highest(score: ist.AdditiveEBIC | None) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            edges = np.asarray(ist.sample(table, score=score, draws=5).edge_probabilities())
        return float((edges + edges.T)[1:, 1:].max())

    assert highest(ist.AdditiveEBIC()) > 0.99
    assert highest(None) < 0.1


def test_doubts_are_what_a_pair_gains_less_on_the_other_scale() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=1000)
    table = {"z": z, "a": z + rng.normal(size=1000)}
    table["b"] = z + 0.3 * table["a"] + rng.normal(size=1000)
    other = table | {"b": z + rng.normal(size=1000)}
    here, there = (
        ist.AdditiveEBIC().bind(ist.WithFeatures(each, ist.Chebyshev(6, 3.0)).moments())
        for each in (table, other)
    )
    dag = ist.DAG([*table], [("z", "a"), ("z", "b")])
    ((first, second, doubt),) = doubts_of_other_scale(here, there, dag)
    assert {first, second} == {"a", "b"}
    differences = [there.gain(c, [0], p) - here.gain(c, [0], p) for c, p in ((1, 2), (2, 1))]
    assert doubt == pytest.approx(min(differences))
    assert doubt < -10.0
    assert doubts_of_other_scale(there, here, dag) == ()


def test_hidden_causes_are_searched_with_curves() -> None:
    table = effects_of_one_cause("curve", 2000, 0)
    pag = learned(table, search=ist.BossFCI()).pag
    assert all("z" in edge[:2] for edge in pag.edges)


@pytest.mark.long
@pytest.mark.parametrize("shape", ["curve", "levels", "rare"])
def test_engines_and_federations_give_the_same(shape: str) -> None:
    duckdb, pd = pytest.importorskip("duckdb"), pytest.importorskip("pandas")
    frame = pd.DataFrame(effects_of_one_cause(shape, 3000, 0))
    expected = learned(frame, transform=None).dag
    with duckdb.connect() as connection:
        assert learned(connection.from_df(frame)).dag == expected
    sites = [frame[i::3].reset_index(drop=True) for i in range(3)]
    assert false_and_true(learned(ist.Federation.simulate(sites)).dag) == (0, 5)


@pytest.mark.long
@pytest.mark.parametrize(
    "noise",
    [simulate.Gaussian(), simulate.Exponential(), simulate.Gumbel(), simulate.Uniform()],
    ids=lambda noise: type(noise).__name__,
)
def test_straight_effects_keep_their_graph(noise: simulate.Noise) -> None:
    same = []
    for seed in range(12):
        dag = simulate.erdos_renyi(8, 10, seed=seed)
        table = simulate.linear(dag, 1000, noise=noise, seed=seed).data
        lines = learned(table, score=ist.GaussianEBIC()).dag.cpdag()
        same.append(learned(table).dag.cpdag() == lines)
    assert np.mean(same) == 1.0 if isinstance(noise, simulate.Gaussian) else np.mean(same) >= 0.75


def test_names_order_and_units_do_not_matter() -> None:
    table = effects_of_one_cause("curve", 1000, 3)
    skeleton = {frozenset(edge) for edge in learned(table).dag.edges}
    turned = {name: -50.0 * column + 3.0 for name, column in reversed(table.items())}
    assert {frozenset(edge) for edge in learned(turned).dag.edges} == skeleton


def test_required_edges_stay_and_forbidden_ones_are_not_missing() -> None:
    table = effects_of_one_cause("curve", 3000, 0)
    knowledge = ist.Knowledge(required=[("y0", "y1")], forbidden=[("z", "y2"), ("y2", "z")])
    dag = learned(table, knowledge=knowledge).dag
    assert ("y0", "y1") in dag.edges
    assert not {("z", "y2"), ("y2", "z")} & {*dag.edges}


def test_what_the_challenge_finds() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=1000)
    table = {
        "x": x,
        "square": x**2 + 0.5 * rng.normal(size=1000),
        "bent": x + 0.5 * x**2 + rng.normal(size=1000),
        "line": x + rng.normal(size=1000),
    }
    score = ist.AdditiveEBIC().bind(ist.WithFeatures(table, ist.Chebyshev(6, 3.0)).moments())
    names = [*table]
    knowledge = ist.Knowledge()
    dag = ist.DAG(names, [("x", "bent"), ("x", "line"), ("bent", "square")])
    found = challenge_by_curves(score, dag, knowledge)
    assert ("x", "bent") in found.bent
    assert ("x", "line") not in found.bent
    assert ("x", "square") in found.missing
    right = ist.DAG(names, [("x", "line")])
    lines = {name: table[name] for name in ("x", "line")}
    straight = ist.AdditiveEBIC().bind(ist.WithFeatures(lines, ist.Chebyshev(6, 3.0)).moments())
    assert challenge_by_curves(straight, ist.DAG([*lines], right.edges), knowledge).survives


def test_a_normal_column_looks_normal_and_a_skewed_one_does_not() -> None:
    rng = np.random.default_rng(0)

    def powers(x: np.ndarray) -> tuple[float, float, float, float]:
        z = np.clip((x - x.mean()) / x.std(), -3, 3)
        first, second, third, fourth = (float(np.mean(z**k)) for k in (1, 2, 3, 4))
        return first, second, third, fourth

    normal = [looks_normal(powers(rng.normal(size=1000)), 1000) for _ in range(200)]
    skewed = [looks_normal(powers(rng.exponential(size=1000)), 1000) for _ in range(20)]
    assert np.mean(normal) >= 0.97
    assert not any(skewed)


def test_what_was_done_is_said() -> None:
    straight = effects_of_one_cause("straight", 1000, 0)
    assert "Challenged by curves, which find nothing" in learned(straight).choice
    assert "Challenged" not in learned(straight, score=ist.GaussianEBIC()).choice
    curved = learned(effects_of_one_cause("curve", 1000, 0))
    assert "lines did not survive" in curved.choice
    assert "have curves" in curved.choice
    assert "Not challenged by curves" in learned(ist.summarise(straight)).choice


def test_a_dense_graph_is_challenged_and_not_learned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Edges that curves explain are left out, and margins are of graphs without them."""
    monkeypatch.setattr("isthmus.verbs.curves._CLIMBED", 3)
    monkeypatch.setattr("isthmus.verbs.curves._DENSE", 1)
    table = effects_of_one_cause("curve", 5000, 0)
    w = np.random.default_rng(1).normal(size=5000)
    table |= {"w": w, "y5": table["y4"] + w + np.random.default_rng(2).normal(size=5000)}
    lines, solution = learned(table, score=ist.GaussianEBIC()), learned(table)
    assert len(lines.dag.edges) >= 12
    assert {*map(frozenset, solution.dag.edges)} < {*map(frozenset, lines.dag.edges)}
    assert "too dense" in solution.choice
    assert "explain 1 edge, which is left out" in solution.choice
    assert solution.status.ending == "converged"  # not optimal by the score
    assert ("w", "y5") in solution.directions.determined
    assert solution.directions.margins["w", "y5"] > 100.0


def test_a_graph_with_curves_is_not_called_optimal_and_tails_are_not_noted() -> None:
    """The search for lines found the best graph of lines, and another one is the answer."""
    solution = learned(effects_of_one_cause("log-normal", 1000, 0))
    assert solution.status.ending == "converged"
    assert not any("NormalScores" in note for note in solution.notes)


def test_a_search_over_classes_is_replaced_where_the_score_tells_directions() -> None:
    rng = np.random.default_rng(0)
    cause = rng.normal(size=500)
    table = {"a": cause, "b": np.tanh(2 * cause) + 0.3 * rng.normal(size=500)}
    table["c"] = table["b"] ** 2 + 0.5 * rng.normal(size=500)
    solution = ist.learn(table, search=ist.XGES())
    assert "the default search, as XGES takes no score" in solution.choice
    assert solution.dag == ist.learn(table).dag
    ensemble = ist.bootstrap(table, search=ist.XGES(), replicates=3, progress=False)
    assert "the default search, as XGES" in ensemble.notes[0]
    with pytest.raises(ist.errors.MismatchError, match="XGES"):
        ist.learn(table, score=ist.AdditiveEBIC(), search=ist.XGES())


@pytest.mark.parametrize("shape", [np.square, np.exp, np.abs])
@pytest.mark.parametrize(
    ("n", "least", "most"), [(11, 0, 0), pytest.param(12, 15, 20, marks=pytest.mark.long)]
)
def test_tables_that_are_too_short_for_curves_are_not_called_challenged(
    shape: Callable[[Any], Any], n: int, least: int, most: int
) -> None:
    choices = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=n)
        y = shape(x) + 0.1 * rng.normal(size=n)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ist.errors.DataWarning)
            choices.append(ist.learn({"x": x, "y": y, "z": rng.normal(size=n)}).choice)
    assert least <= sum("did not survive" in choice for choice in choices) <= most
    assert all("fewer than 12 rows" in choice for choice in choices) == (n < 12)


@pytest.mark.long
def test_the_network_of_a_graph_of_normal_scores_says_whose_values_it_has() -> None:
    """Its mean of a log-normal variable is 19.9 where the rows have 5.6."""
    rng = np.random.default_rng(0)
    a, e, f, g = rng.normal(size=(4, 300))
    table = {"a": a, "b": a + e, "c": a + e + f, "s": np.exp(a + e + f + g)}
    solution = ist.learn(table)
    assert "on normal scores" in solution.choice
    answer = solution.fit().query("s", evidence={"b": 1.0})
    assert "transform=NormalScores()" in str(answer)
    asked = ist.learn(table, transform=ist.NormalScores()).fit()
    medians = asked.query("s", evidence={"b": 1.0})
    assert isinstance(medians, Nonparanormal)
    assert 1.5 < medians.median[0] < 4.5  # e, by how the table was made
    assert "transform=" not in str(asked.query("s", evidence={"b": 1.0}))
