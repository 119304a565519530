"""A federation gives what the pooled table gives, and so do all scores and searches on it."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import isthmus as ist
from isthmus.errors import (
    AbortedError,
    ArgumentError,
    DataError,
    FederationError,
    MismatchError,
    StudyError,
    UnplannedError,
)
from isthmus.statistics import CountPlan, Kind, Moments, Schema
from isthmus.tables import Frame, Lazy
from isthmus.testing.source import check_moments, check_source
from isthmus_joint import Federation, Identity, InProcess
from isthmus_joint.federation.requests.fixed_point import LIMBS, FixedPointEncoding, encode_rows
from isthmus_joint.federation.requests.statistics import AskMoments
from isthmus_joint.secure_sum.terms import LimbAccumulator, to_ints

Table = dict[str, Any]
together = partial(Federation.simulate, within_sites=False)
"""Sites of one population that was divided: what they give is what the table of all rows gives."""


def split(data: Table, sites: int, seed: int = 0) -> dict[str, Table]:
    """Unequal sites, one of them with two rows."""
    rng = np.random.default_rng(seed)
    n = len(next(iter(data.values())))
    shares = rng.dirichlet(np.ones(sites - 1))
    labels = rng.choice(sites - 1, size=n, p=shares)
    labels[: sites - 1] = np.arange(sites - 1)  # nobody is empty
    labels[rng.permutation(np.arange(sites, n))[:2]] = sites - 1
    return {f"s{k}": {c: x[labels == k] for c, x in data.items()} for k in range(sites)}


def numbers(n: int = 900, seed: int = 1) -> Table:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    c = a - b + 0.5 * rng.normal(size=n)
    d = 0.8 * c + 0.5 * rng.normal(size=n)
    e = 1e5 + 3.0 * (a + d) + rng.normal(size=n)
    return {"a": a, "b": b, "c": c, "d": 1e-4 * d, "e": e}


def categories(n: int = 900, seed: int = 2) -> Table:
    rng = np.random.default_rng(seed)
    rain, sprinkler = rng.random((2, n)) < 0.4
    wet = np.where(rain | sprinkler, rng.random(n) < 0.9, rng.random(n) < 0.1)
    grass = np.where(wet, rng.choice(["green", "lush"], n), rng.choice(["dry", "green"], n))
    return {"rain": rain, "sprinkler": sprinkler, "wet": wet, "grass": grass}


@pytest.mark.long
@pytest.mark.parametrize("sites", [3, 10, 64])
@pytest.mark.parametrize("make", [numbers, categories])
def test_statistics_are_the_pooled_ones(sites: int, make: Any) -> None:
    data = make()
    parts = split(data, sites)
    assert min(len(next(iter(p.values()))) for p in parts.values()) <= 2
    if sites < 64:
        check_source(together(parts), Frame(data))
    else:
        check_moments(together(parts).moments(), Frame(data).moments())


def test_sums_are_exact_on_the_grid() -> None:
    """The secure sum is the sum of what the sites would have said, to the last bit."""
    parts = split(numbers(), 10)
    federation = together(parts)
    grid = FixedPointEncoding.of(federation.study)
    request = AskMoments(grid.schema.names)
    total = LimbAccumulator(request.size(grid), request.limbs)
    for part in parts.values():
        source = Frame(part)
        total.add(request.encode(source, grid))
    expected = request.decode(total.total(), grid)
    assert federation.moments() == expected


@pytest.mark.long
def test_mixed_tables() -> None:
    data = numbers() | categories()
    parts = split(data, 10)
    frame = Frame(data)
    check_source(together(parts), frame)
    ours = ist.learn(together(parts), score=ist.DegenerateGaussian())
    assert ours.cpdag == ist.learn(frame, score=ist.DegenerateGaussian()).cpdag


@pytest.fixture(scope="module", params=[3, 10, 64])
def federation(request: pytest.FixtureRequest) -> Federation:
    return together(split(numbers(), request.param))


@pytest.mark.long
@pytest.mark.parametrize(
    ("score", "search"),
    [
        (None, None),
        (ist.BGe(), ist.HillClimb()),
        (ist.GaussianBIC(), ist.Boss()),
    ],
)
def test_graphs_are_the_pooled_ones(federation: Federation, score: Any, search: Any) -> None:
    sites = len(federation.study.members)
    ours = ist.learn(federation, score=score, search=search)
    pooled = ist.learn(Frame(numbers()), score=score, search=search)
    # Members of a class have equal scores, and rounding decides between them in any table.
    assert ours.cpdag == pooled.cpdag
    assert ours.score == pytest.approx(pooled.score, rel=1e-9)
    releases = ours.disclosure.entries
    assert {r.site for r in releases} == {f"s{k}" for k in range(sites)}
    assert {r.form for r in releases} == {"secure sum"}
    # The columns once; by default also functions of them, by which the graph is challenged.
    assert len(releases) == 2 * sites if score is None else len(releases) in (sites, 2 * sites)
    assert ours.fit().dag == ours.dag


@pytest.mark.long
@pytest.mark.parametrize("score", [ist.BIC(), ist.BDeu(), ist.K2(), ist.DegenerateGaussian()])
def test_graphs_of_categories_are_the_pooled_ones(score: Any) -> None:
    data = categories()
    ours = ist.learn(together(split(data, 10)), score=score)
    pooled = ist.learn(Frame(data), score=score)
    assert ours.dag == pooled.dag
    assert ours.score == pytest.approx(pooled.score, rel=1e-12)


def test_planned_counts() -> None:
    data = categories()
    federation = together(split(data, 10), plan=CountPlan.up_to(3))
    score, search = ist.BDeu(), ist.HillClimb(max_parents=2)
    ours = ist.learn(federation, score=score, search=search)
    assert ours.dag == ist.learn(Frame(data), score=score, search=search).dag
    with pytest.raises(UnplannedError):
        federation.counts(CountPlan.everything()).table(list(data))
    assert ist.score(federation, ours.dag, score) == pytest.approx(ours.score)


def test_a_plan_beyond_the_study_is_refused_by_the_sites() -> None:
    federation = together(split(categories(), 4), plan=CountPlan.up_to(2))
    with pytest.raises(AbortedError, match="refused"):
        federation.counts(CountPlan.up_to(3))


def test_a_table_too_large_says_how_to_go_on() -> None:
    wide = {f"x{i}": np.random.default_rng(i).integers(0, 4, 50) for i in range(20)}
    on_demand = together(split(wide, 3), requests=["counts"])
    with pytest.raises(DataError, match=r"Plan\.up_to"):
        on_demand.counts(ist.CountPlan.up_to(12))
    found = ist.learn(on_demand, score=ist.BIC(), search=ist.HillClimb())
    assert found.cpdag == ist.learn(wide, score=ist.BIC(), search=ist.HillClimb()).cpdag


def test_basis_functions_that_the_study_does_not_allow_are_not_asked_for() -> None:
    data = {name: np.random.default_rng(i).uniform(size=300) for i, name in enumerate("ab")}
    federation = together(split(data, 3), requests=["moments"])
    with pytest.raises(MismatchError, match=r"Products.*study allows none.*draft --exact"):
        ist.learn(federation, search=ist.LiNGAM())
    assert federation.sums == 0


def test_basis_functions() -> None:
    rng = np.random.default_rng(4)
    a = rng.normal(size=1500)
    data = {"a": a, "b": np.sin(2 * a) + 0.3 * rng.normal(size=1500)}
    basis = ist.Chebyshev(terms=4)
    federation = together(split(data, 5))
    wide = ist.WithFeatures(federation, basis)
    check_moments(wide.moments(), ist.WithFeatures(Frame(data), wide.expansion).moments())
    # Columns and features, two rounds.
    assert len(wide.disclosure().entries) == 10
    ist.WithFeatures(federation, basis).moments()
    assert federation.sums == 2  # these are not asked for again
    again = ist.WithFeatures(together(split(data, 5)), basis)
    check_moments(again.moments(), wide.moments(), 1e-9)
    assert len(again.disclosure().entries) == 10
    found = ist.learn(wide, score=ist.AdditiveLeastSquares(basis), search=ist.NotearsAdditive())
    assert found.dag.edges == (("a", "b"),)
    small = together(split({n: x[:60] for n, x in data.items()}, 3))
    with pytest.raises(DataError, match="single rows"):
        ist.WithFeatures(small, basis)


def test_nothing_is_asked_twice() -> None:
    federation = together(split(numbers(), 3))
    federation.moments(["a", "b"])
    federation.moments(["b"])
    assert len(federation.disclosure().entries) == 3
    federation.moments()
    federation.moments(["e", "c"])
    assert len(federation.disclosure().entries) == 6


def test_rows_stay_where_they_are() -> None:
    federation = together(split(numbers(), 3))
    with pytest.raises(MismatchError, match="stay at its sites"):
        federation.rows()


def test_survivors_are_summed_and_named() -> None:
    data = numbers()
    parts = split(data, 7)
    federation = together(parts, lost=[("s2", 2)])
    rest = [p for name, p in parts.items() if name != "s2"]
    pooled = {n: np.concatenate([p[n] for p in rest]) for n in data}
    check_moments(federation.moments(["a", "b"]), Frame(pooled).moments(["a", "b"]))
    assert federation.active is not None
    assert "s2" not in federation.active
    # Later sums are over the same sites, even if the lost one is back.
    check_moments(federation.moments(), Frame(pooled).moments())
    assert {r.site for r in federation.disclosure().entries} == set(federation.active)


def test_two_sites_are_too_few() -> None:
    with pytest.raises(StudyError, match="2 sites"):
        together({"a": numbers(10), "b": numbers(20)})


def test_only_the_coordinator_of_the_study_may_ask() -> None:
    federation = together(split(numbers(), 3))
    with pytest.raises(FederationError, match="another coordinator"):
        Federation(federation.study, [], Identity.generate(), InProcess({}))


@pytest.mark.long
def test_engines_at_the_sites() -> None:
    pl = pytest.importorskip("polars")
    data = numbers(300)
    parts = {name: pl.DataFrame(p).lazy() for name, p in split(data, 3).items()}
    bounds = {n: (float(x.min()), float(x.max())) for n, x in data.items()}
    schema = Frame(data).schema()
    lazy = {name: Lazy(t, schema=schema) for name, t in parts.items()}
    federation = together(lazy, schema=schema, bounds=bounds)
    check_moments(federation.moments(), Frame(data).moments())


@st.composite
def split_tables(draw: st.DrawFn) -> tuple[Table, np.ndarray[Any, np.dtype[np.int64]]]:
    """Mixed tables with large means and constants, and a site for each row."""
    n = draw(st.integers(3, 25))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    data: Table = {}
    for i in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["real", "whole", "text", "constant"]))
        if kind == "real":
            mean = draw(st.sampled_from([0.0, 1.0, -1e6, 1e9]))
            data[f"x{i}"] = mean + rng.normal(size=n).astype(np.float32).astype(float)
        elif kind == "whole":
            data[f"x{i}"] = rng.integers(0, 3, n)
        elif kind == "text":
            data[f"x{i}"] = rng.choice(["a", "ß", "it's"], n)
        else:
            data[f"x{i}"] = np.full(n, draw(st.sampled_from([0.0, 0.1, -70.3, 1e8])))
    labels = rng.integers(0, 4, n)
    labels[:3] = (0, 1, 2)
    return data, labels


@pytest.mark.long
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(split_tables())
def test_any_split_gives_what_the_whole_gives(
    given: tuple[Table, np.ndarray[Any, np.dtype[np.int64]]],
) -> None:
    data, labels = given
    frame = Frame(data)
    parts = {f"s{k}": {n: x[labels == k] for n, x in data.items()} for k in np.unique(labels)}
    federation = together(parts, schema=frame.schema())
    check_source(federation, frame)
    assert federation.moments().constants() == frame.moments().constants()


# --- the grid --------------------------------------------------------------------------------


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_the_grid_loses_nothing(draw: st.DataObject) -> None:
    """Far from the middle of wide bounds, the pooled scatter is still that of the rows."""
    rng = np.random.default_rng(draw.draw(st.integers(0, 2**32)))
    mean = draw.draw(st.sampled_from([0.0, 1.0, -1e5, 3e8]))
    spread = draw.draw(st.sampled_from([1.0, 100.0, 1e4]))
    high = draw.draw(st.sampled_from([10.0, 30.0])) * max(abs(mean), spread)
    sites = draw.draw(st.integers(1, 6))
    schema = Schema.continuous(["x", "y"])
    grid = FixedPointEncoding(schema, dict.fromkeys("xy", (-high, high)), 2**24, sites)
    parts = [mean + spread * rng.normal(size=(int(rng.integers(1, 30)), 2)) for _ in range(sites)]
    pooled = Moments.from_array(schema, np.concatenate(parts))
    total = LimbAccumulator(grid.size, LIMBS)
    for part in parts:
        total.add(encode_rows(grid, part))
    check_moments(grid.decode(total.total()), pooled, 1e-9)


def test_the_grid_agrees_with_rational_numbers() -> None:
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(20, 2)) * [1.0, 1e-3] + [5.0, 2.0]
    grid = FixedPointEncoding(Schema.continuous(["x", "y"]), {"x": (-50, 90), "y": (0, 4)}, 1000, 3)
    n, *found = to_ints(encode_rows(grid, rows))
    assert n == 20
    unit = [Fraction(2) ** int(e) for e in grid.exponents]
    exact = [
        [(Fraction(float(v)) - Fraction(s)) / u for v in column]
        for column, s, u in zip(rows.T, grid.shift, unit, strict=True)
    ]
    one = Fraction(2) ** grid.fraction
    pairs = [(0, 0), (0, 1), (1, 1)]
    expected = [sum(c) for c in exact]
    expected += [
        sum((a * b for a, b in zip(exact[i], exact[j], strict=True)), Fraction(0)) for i, j in pairs
    ]
    for value, right in zip(found, expected, strict=True):
        assert abs(value - right * one) <= abs(right * one) * Fraction(1, 2**45)


@pytest.mark.parametrize("value", [16.1, -33.0, 1e30, 1e150])
def test_the_grid_refuses_what_could_overflow(value: float) -> None:
    grid = FixedPointEncoding(Schema.continuous(["x"]), {"x": (-10.0, 10.0)}, 100, 3)
    for rows in (np.full((4, 1), value), np.array([[0.0], [0.0], [0.0], [30 * value]])):
        with pytest.raises(DataError, match="outside of the bounds") as error:
            encode_rows(grid, rows)
        assert not set("0123456789") & set(str(error.value))


def test_no_sum_can_overflow() -> None:
    """The largest sums that a study allows, from all its sites, have bits to spare."""
    rows, sites = 2**20, 64
    grid = FixedPointEncoding(Schema.continuous(["x"]), {"x": (-1.0, 1.0)}, rows, sites)
    edge = encode_rows(grid, np.ones((rows, 1)))
    total = LimbAccumulator(grid.size, LIMBS)
    for _ in range(sites):
        total.add(edge)
    found = grid.decode(total.total())
    assert found.n == rows * sites
    assert found.mean()[0] == 1.0
    with pytest.raises(DataError, match="more rows"):
        encode_rows(grid, np.ones((rows + 1, 1)))


@pytest.mark.parametrize("bounds", [(1.0, 1.0), (2.0, 1.0), (0.0, np.inf), (np.nan, 1.0)])
def test_bounds_must_be_bounds(bounds: tuple[float, float]) -> None:
    with pytest.raises(StudyError, match="ascending"):
        FixedPointEncoding(Schema.continuous(["x"]), {"x": bounds}, 100, 3)
    with pytest.raises(StudyError, match="no bounds"):
        FixedPointEncoding(Schema.continuous(["x"]), {}, 100, 3)


def test_kinds_are_read_alike() -> None:
    whole = {"x": np.arange(30) % 3, "y": np.arange(30) % 2}
    federation = together(split(whole, 3), kinds=dict.fromkeys(whole, Kind.CONTINUOUS))
    assert federation.schema() == Schema.continuous(["x", "y"])


def test_the_sites_of_a_list_are_named_by_their_position() -> None:
    data = numbers()
    parts = split(data, 3)
    listed = together(list(parts.values()))
    assert [site.name for site in listed.study.members] == ["site1", "site2", "site3"]
    check_moments(listed.moments(), together(parts).moments())


@pytest.mark.parametrize("wrong", [{}, [], 3, np.zeros((9, 3)), numbers(), {"a": [1, 2]}])
def test_something_other_than_tables_of_sites_is_refused(wrong: Any) -> None:
    with pytest.raises(ArgumentError, match="simulate needs"):
        together(wrong)


def test_simulated_sites_may_have_their_columns_in_another_order() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    table = {
        "x": x,
        "ward": np.where(rng.random(300) < 0.5, "a", "b"),
        "y": x + rng.normal(size=300),
    }
    parts = [{n: c[k::3] for n, c in table.items()} for k in range(3)]
    parts[1] = dict(reversed(parts[1].items()))
    pooled, joint = ist.learn(table), ist.learn(together(parts))
    assert joint.dag.nodes == pooled.dag.nodes
    assert joint.cpdag == pooled.cpdag
    assert joint.score == pytest.approx(pooled.score)
