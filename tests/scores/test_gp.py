"""Gaussian-process scores on tables, engines and federations, and odd columns."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from tests.notes import noted

import isthmus as ist
from isthmus.errors import ArgumentError, DataError, DataWarning, MismatchError
from isthmus.objectives.local import UNFINISHED
from isthmus.statistics import Rows
from isthmus.testing import check_score, enumerate_dags


def table(n: int = 200, seed: int = 0) -> dict[str, Any]:
    """A chain a → b → c of nonlinear effects, and d on its own."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    b = np.cos(1.5 * a) + 0.4 * rng.normal(size=n)
    c = np.tanh(2.0 * b) + 0.4 * rng.normal(size=n)
    return {"a": 3.0 * a + 10.0, "b": b, "c": 1e-3 * c, "d": rng.normal(size=n)}


CHAIN = ist.DAG(["a", "b", "c", "d"], [("a", "b"), ("b", "c")])


def rows(data: dict[str, Any]) -> Rows:
    return Rows(ist.Schema.continuous(data), np.stack(list(data.values()), axis=1))


def test_the_direction_of_nonlinear_effects_is_learned() -> None:
    solution = ist.learn(table(), score=ist.GP())
    assert solution.dag == CHAIN
    assert not solution.equivalent
    assert solution.score == pytest.approx(ist.score(table(), CHAIN, ist.GP()))


@pytest.mark.long
@pytest.mark.parametrize("search", [ist.Boss(), ist.HillClimb(), ist.SubsetDP(), ist.AStar()])
def test_searches_agree(search: Any) -> None:
    assert ist.learn(table(120), score=ist.GP(), search=search).dag == CHAIN


def test_score_equivalent_searches_refuse_it() -> None:
    with pytest.raises(MismatchError, match="equivalen"):
        ist.learn(table(), score=ist.GP(), search=ist.XGES())


def test_conformance() -> None:
    data = table(60)
    check_score(ist.ExactGP().bind(rows(data)))
    check_score(ist.GP().bind(ist.WithFeatures(data, ist.GP().basis).moments()))


def test_moments_and_rows_agree() -> None:
    data = table(150)
    exact = ist.ExactGP().bind(rows(data))
    fast = ist.GP().bind(ist.WithFeatures(data, ist.GP().basis).moments())
    for child in range(4):
        for parents in [(), ((child + 1) % 4,), ((child + 1) % 4, (child + 3) % 4)]:
            assert fast.local(child, parents) == pytest.approx(
                exact.local(child, parents), abs=1e-3
            )


@pytest.mark.parametrize("score", [ist.GP(), ist.ExactGP(), ist.ExactGP(interactions=True)])
def test_units_do_not_matter(score: Any) -> None:
    data = table(60)
    other = {name: 1e4 * x - 3e5 for name, x in data.items()}
    assert ist.score(other, CHAIN, score) == pytest.approx(ist.score(data, CHAIN, score), abs=1e-5)


def test_importance_sampling_is_repeatable_and_corrects_laplace() -> None:
    data = table(60)
    sampled = ist.ExactGP(integral=ist.GPIntegral.IMPORTANCE, integration_draws=500)
    value = ist.score(data, CHAIN, sampled)
    assert value == ist.score(data, CHAIN, sampled)
    difference = value - ist.score(data, CHAIN, ist.ExactGP())
    assert 0.0 < difference < 2.0


@pytest.mark.long
def test_engines_and_federations_give_the_same() -> None:
    polars = pytest.importorskip("polars")
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("cryptography")
    data, score = table(700), ist.GP(ist.Chebyshev(16, 5.0))
    frame = polars.DataFrame(data)
    here = ist.score(data, CHAIN, score)
    assert ist.score(frame.lazy(), CHAIN, score) == pytest.approx(here, abs=1e-5)
    assert ist.score(duckdb.sql("from frame"), CHAIN, score) == pytest.approx(here, abs=1e-5)
    sites = {f"s{k}": {n: x[k::3] for n, x in data.items()} for k in range(3)}
    federation = ist.Federation.simulate(sites, within_sites=False)
    assert ist.score(federation, CHAIN, score) == pytest.approx(here, abs=1e-5)
    with pytest.raises(DataError, match="rows over all sites"):
        ist.score(federation, CHAIN, ist.GP())
    with pytest.raises(MismatchError, match="rows"):
        ist.score(federation, CHAIN, ist.ExactGP())


@pytest.mark.long
@pytest.mark.parametrize("score", [ist.GP(), ist.ExactGP()])
def test_odd_columns(score: Any) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=40)
    odd = {"constant": np.full(40, 7.5), "x": x, "copy": -2.0 * x + 1.0, "binary": 1.0 * (x > 0)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        solution = ist.learn(odd, score=score)
    assert any("Constant" in note for note in solution.notes)
    assert np.isfinite(solution.score)
    assert not solution.dag.parents("constant")
    assert not solution.dag.children("constant")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in (1, 2, 3):
            few = ist.learn({"ä b": x[:n], "y": x[-n:]}, score=score)
            assert np.isfinite(few.score)
        assert not ist.learn({"ä b": x[:1], "y": x[-1:]}, score=score).dag.edges
        assert ist.learn({"x": x}, score=score).dag.edges == ()


def test_clipped_values_and_short_length_scales_are_reported() -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_t(2.5, size=600)
    with noted("standard deviations from their mean"):
        solution = ist.learn({"x": x, "y": np.tanh(x) + 0.1 * rng.normal(size=600)}, score=ist.GP())
    assert any("variance that lies beyond" in note for note in solution.notes)
    z = rng.uniform(-1.0, 1.0, size=600)
    wave = {"z": z, "w": np.sin(8.0 * z) + 0.1 * rng.normal(size=600)}
    with noted("faster than the basis"):
        ist.learn(wave, score=ist.GP(ist.Chebyshev(24, 5.0)))
    ist.learn(wave, score=ist.GP(ist.Chebyshev(128, 5.0)))  # warnings are errors


def test_knowledge_is_respected() -> None:
    knowledge = ist.Knowledge(forbidden=[("a", "b")], required=[("d", "c")])
    dag = ist.learn(table(120), score=ist.GP(), knowledge=knowledge).dag
    assert not dag.has_edge("a", "b")
    assert dag.has_edge("d", "c")


@pytest.mark.long
def test_a_solution_keeps_no_rows() -> None:
    solution = ist.learn(table(50), score=ist.ExactGP())
    with pytest.raises(MismatchError, match="does not keep"):
        solution.strengths()
    strengths = ist.learn(table(50), score=ist.GP()).strengths()
    assert all(value > 0 for value in strengths.values())


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match="draws"):
        ist.GP(integration_draws=1)
    with pytest.raises(ArgumentError, match="integral"):
        ist.GP(integral="exact")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="basis"):
        ist.GP(basis=3)  # type: ignore[arg-type]
    with pytest.raises(MismatchError, match="Chebyshev"):
        ist.GP().bind(ist.summarise(table()))  # type: ignore[arg-type]
    with pytest.raises(MismatchError):
        ist.learn({"x": ["a", "b", "a"], "y": ["u", "v", "v"]}, score=ist.GP())


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")
def test_a_posterior_from_a_federation_is_that_of_the_pooled_table() -> None:
    pytest.importorskip("cryptography")
    data, score = table(700), ist.GP(ist.Chebyshev(16, 5.0))
    sites = {f"s{k}": {n: x[k::10] for n, x in data.items()} for k in range(10)}
    pooled = ist.sample(data, score=score, sampler=ist.ExactPosterior())
    apart = ist.sample(
        ist.Federation.simulate(sites, within_sites=False),
        score=score,
        sampler=ist.ExactPosterior(),
    )
    np.testing.assert_allclose(apart.edge_probabilities(), pooled.edge_probabilities(), atol=1e-9)
    local = score.bind(ist.WithFeatures(data, score.basis).moments())
    dags = list(enumerate_dags(list(data)))
    totals = np.array([local.total(dag) for dag in dags])
    weights = np.exp(totals - totals.max()) / np.exp(totals - totals.max()).sum()
    edge = sum(w for w, dag in zip(weights, dags, strict=True) if dag.has_edge("a", "b"))
    a, b = list(data).index("a"), list(data).index("b")
    assert pooled.edge_probabilities()[a, b] == pytest.approx(edge, abs=1e-9)


@pytest.mark.parametrize("integral", [ist.GPIntegral.LAPLACE, ist.GPIntegral.IMPORTANCE])
def test_a_score_is_computed_in_pieces(
    integral: ist.GPIntegral, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One evaluation of the density at a time, so that time limits and Ctrl-C are heard."""
    import isthmus.scores.gp as module
    from isthmus.statistics.relations import regressions_from_rows

    regressions = regressions_from_rows(rows(table(40)))
    monkeypatch.setattr(module, "_SLICE", 600.0)
    whole = module._Scored(regressions, integral, 20)(1, (0, 2))
    monkeypatch.setattr(module, "_SLICE", 0.0)
    scored = module._Scored(regressions, integral, 20)
    pieces = 0
    while (value := scored(1, (0, 2))) is UNFINISHED:
        pieces += 1
    assert value == whole
    assert pieces > 10
    assert not scored._begun
