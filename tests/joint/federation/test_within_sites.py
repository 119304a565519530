"""Sites of different levels: each subtracts its own means before the secure sum."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tests.joint.consortium import NAMES, Consortium, table

import isthmus as ist
from isthmus.errors import RefusedError, SchemaError
from isthmus.statistics import Moments
from isthmus.tables import Frame, as_source
from isthmus_joint import Federation
from isthmus_joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus_joint.federation.requests.statistics import AskMoments
from isthmus_joint.secure_sum.terms import to_ints

Table = dict[str, Any]
TRUE = {frozenset("xy"), frozenset("zw")}


def sites(seed: int, spread: float, count: int = 6, rows: int = 150) -> list[Table]:
    """Two chains and a column on its own, whose levels differ between sites."""
    rng, tables = np.random.default_rng(seed), []
    for _ in range(count):
        x, y, z, w, u = rng.normal(size=(5, rows))
        columns = {"x": x, "y": y + 0.8 * x, "z": z, "w": w + 0.8 * z, "u": u}
        tables.append({n: v + rng.normal(scale=spread) for n, v in columns.items()})
    return tables


def in_levels(seed: int, spread: float, numbers: tuple[str, ...] = ()) -> list[Table]:
    """The same with two to three levels, at cut points that differ between sites."""
    rng, tables = np.random.default_rng(seed), []
    for columns in sites(seed, 0.0, rows=400):
        own: Table = {}
        for n, v in columns.items():
            cuts = np.sort(rng.normal(scale=max(spread, 0.1), size=2))
            own[n] = (
                v + cuts[0] if n in numbers else np.array(["a", "b", "c"])[np.digitize(v, cuts)]
            )
        tables.append(own)
    return tables


def joined(tables: list[Table]) -> Table:
    together = {n: np.concatenate([t[n] for t in tables]) for n in tables[0]}
    return together | {"site": np.repeat(np.arange(len(tables)), [len(t["x"]) for t in tables])}


def pairs(solution: Any) -> set[frozenset[str]]:
    return {frozenset(edge) for edge in solution.dag.edges}


@pytest.mark.long
@pytest.mark.parametrize("spread", [0.0, 0.3, 1.0, 30.0])
def test_levels_of_sites_cause_no_edges(spread: float) -> None:
    false = 0
    for seed in range(4):
        tables = sites(seed, spread)
        federation = Federation.simulate(tables)
        learned = ist.learn(federation)
        expected = ist.learn(joined(tables), groups="site")
        assert learned.cpdag == expected.cpdag
        assert learned.score == pytest.approx(expected.score, rel=1e-9)
        false += len(pairs(learned) - TRUE)
        assert pairs(learned) >= TRUE
    assert false <= 1


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")
@pytest.mark.parametrize("numbers", [(), ("y", "u")])
@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_levels_of_discrete_variables(numbers: tuple[str, ...], spread: float) -> None:
    false = missed = 0
    for seed in range(4):
        tables = in_levels(seed, spread, numbers)
        learned = ist.learn(Federation.simulate(tables))
        assert "DegenerateGaussian" in learned.choice
        expected = ist.learn(joined(tables), groups="site", kinds={"site": "discrete"})
        assert learned.cpdag == expected.cpdag
        false += len(pairs(learned) - TRUE)
        missed += len(TRUE - pairs(learned))
    assert false <= 1
    assert missed == 0


def test_moments_are_those_of_groups() -> None:
    tables = sites(1, 2.0, rows=40)
    tables[0] = {n: v[:1] for n, v in tables[0].items()}  # carries nothing
    moments = Federation.simulate(tables).moments()
    expected = ist.summarise(joined(tables), groups="site")
    assert isinstance(expected, Moments)
    assert (moments.n, moments.groups) == (expected.n, 6)
    np.testing.assert_allclose(moments.mean(), expected.mean(), rtol=1e-12)
    np.testing.assert_allclose(moments.scatter(), expected.scatter(), rtol=1e-9, atol=1e-9)


def test_a_study_may_pool_its_sites() -> None:
    tables = sites(2, 1.0)
    federation = Federation.simulate(tables, within_sites=False)
    assert federation.moments().groups is None
    assert not federation.study.within_sites
    assert pairs(ist.learn(federation)) - TRUE
    with pytest.raises(SchemaError, match="within_sites"):
        ist.learn(federation, groups="site")


def test_counts_of_a_study_within_sites_say_that_they_are_pooled() -> None:
    solution = ist.learn(Federation.simulate(in_levels(3, 0.0)), score=ist.BDeu())
    assert any("all sites together" in note for note in solution.notes)
    assert not ist.learn(Federation.simulate(in_levels(3, 0.0))).notes


def test_posteriors_and_fits_use_the_same_sums() -> None:
    tables = sites(4, 1.0)
    federation, together = Federation.simulate(tables), joined(tables)
    posterior = ist.sample(federation, draws=50)
    expected = ist.sample(together, groups="site", draws=50)
    ours, theirs = posterior.edge_probabilities(), expected.edge_probabilities()
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    dag = ist.DAG(list("xyzwu"), [("x", "y"), ("z", "w")])
    network = ist.fit(federation, dag)
    assert isinstance(network, ist.networks.GaussianNetwork)
    other = ist.fit(together, dag, groups="site")
    assert isinstance(other, ist.networks.GaussianNetwork)
    np.testing.assert_allclose(network.weights(), other.weights(), rtol=1e-9)
    effect = ist.effect(federation, dag, "x", "y")
    assert effect.value == pytest.approx(ist.effect(together, dag, "x", "y", groups="site").value)


def test_the_last_digits_do_not_tell_the_sizes_of_sites() -> None:
    """Products about means are multiples of 1 / n. After rounding, none of their digits is left."""
    rng = np.random.default_rng(0)
    sizes = (60, 70, 80)
    rows = [
        {"a": rng.random(n) < 0.4, "b": rng.normal(size=n), "c": 0.5 * rng.integers(0, 9, n)}
        for n in sizes
    ]
    rows[0]["c"][7] = 1.25  # one value between the others changes nothing
    study = Federation.simulate(rows).study
    grid, request = FixedPointEncoding.of(study), AskMoments(("a", "b", "c"))
    for own in rows:
        n, one, *numbers = to_ints(request.encode(Frame(own), grid))
        assert (n, one) == (len(own["a"]), 1)
        # Two levels are multiples of 1, and the scores of 1/2: so are their products, and no finer.
        for place, (i, j), step in ((0, (0, 0), 1.0), (2, (0, 2), 0.5), (5, (2, 2), 0.25)):
            product = numbers[3 + place] * 2.0 ** int(
                grid.exponents[i] + grid.exponents[j] - grid.fraction
            )
            x, y = (np.asarray(own["abc"[k]], dtype=float) for k in (i, j))
            exact = float((x - x.mean()) @ (y - y.mean()))
            assert product % step == 0
            assert abs(product - exact) <= step / 2
        # Numbers that do not repeat keep their digits.
        spread = numbers[6] * 2.0 ** int(2 * grid.exponents[1] - grid.fraction)
        assert spread == pytest.approx(float(np.asarray(own["b"], dtype=float).var()) * n, rel=1e-9)


@pytest.mark.parametrize("name", ["ward", "ill", "age"])
@pytest.mark.parametrize("within", [True, False])
def test_a_variable_that_is_constant_at_a_site_is_refused(
    tmp_path: Any, name: str, within: bool
) -> None:
    four = Consortium(tmp_path, within_sites=within)
    constant = {"ward": np.array(["a"] * 60), "ill": np.zeros(60, bool), "age": np.full(60, 40.0)}
    four.data["north"][name] = constant[name]
    with pytest.raises(RefusedError, match=f"'{name}'.*constant at this site"):
        four.extract("north")
    assert four.extract("east").number_of_persons == 60


def test_nearly_constant_variables_name_a_site_only_if_rows_are_pooled(tmp_path: Any) -> None:
    north = table(0, 240)
    north["ill"] = np.arange(240) < 9
    north["ward"][:9] = np.repeat(["a", "b", "c"], 3)
    for within in (True, False):
        (tmp_path / str(within)).mkdir()
        four = Consortium(tmp_path / str(within), within_sites=within, requests=["moments"])
        four.data["north"] = north
        if within:
            assert four.extract("north").number_of_persons == 240
        else:
            with pytest.raises(RefusedError, match="or nearly so"):
                four.extract("north")


def test_every_site_signs_whether_its_means_are_subtracted(tmp_path: Any) -> None:
    four = Consortium(tmp_path)
    assert b"within_sites = true" in four.study.text
    assert four.federation().moments().groups == len(NAMES)
    identities = [Consortium(tmp_path, within_sites=w).study.within_sites for w in (True, False)]
    assert all(a != b for a, b in pairwise(identities))


def test_basis_functions_are_about_the_means_of_sites() -> None:
    tables = sites(5, 1.0, rows=300)
    bounds = dict.fromkeys("xyzwu", (-12.0, 12.0))
    expansion = ist.Expansion.within(ist.Chebyshev(3, 3.0), bounds)
    ours = Federation.simulate(tables, bounds=bounds).with_features(expansion).moments()
    theirs = as_source(joined(tables), groups="site").with_features(expansion).moments()
    assert (ours.schema, ours.n) == (theirs.schema, theirs.n)
    np.testing.assert_allclose(ours.scatter(), theirs.scatter(), rtol=1e-9, atol=1e-6)
