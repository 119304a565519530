"""Every test of independence gives the graph of the table from an engine and from a federation.

`test_hidden_causes` has the default tests of complete rows, `test_lingam` the test of noise, and
`tests/processes/test_horizontal_independence` the same over real processes.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from tests.verbs.test_hidden_causes import SEARCHES, TABLES, graph

import isthmus as ist
from isthmus import simulate
from isthmus.errors import MismatchError
from isthmus.searches import Search
from isthmus.tables import Missing

pytestmark = pytest.mark.skipif(
    find_spec("duckdb") is None or find_spec("pandas") is None,
    reason="duckdb or pandas is not installed",
)

pytest.importorskip("cryptography")

SIZES = [500, 1100]
LINGAM = ist.LiNGAM(hidden_causes=False)  # hidden causes show in ranks, which need rows


def curves(rows: int = 1500) -> Any:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(4)
    u, a, d, *noise = rng.normal(size=(6, rows))
    b, c = a**2 + u + noise[0], np.abs(d) + u + noise[1]
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": d, "e": np.cos(c) + 0.3 * noise[2]})


def noisy(rows: int = 1500) -> Any:
    pd = pytest.importorskip("pandas")
    dag = ist.DAG([*"abcd"], [("a", "b"), ("b", "c"), ("a", "d")])
    return pd.DataFrame(simulate.linear(dag, rows, noise=simulate.Uniform(), seed=5).data)


def with_holes(table: Any) -> Any:
    rng = np.random.default_rng(6)
    return table.mask(rng.random(table.shape) < 0.03)


def sites(table: Any, **options: Any) -> ist.Federation:
    first, second = SIZES
    parts = [table[:first], table[first:second], table[second:]]
    return ist.Federation.simulate(parts, **options, within_sites=False)


@pytest.mark.long
@pytest.mark.parametrize("search", SEARCHES, ids=lambda s: type(s).__name__)
def test_curves(search: Search[Any]) -> None:
    duckdb = pytest.importorskip("duckdb")
    table, test = curves(), ist.NonlinearLikelihoodRatio()
    expected = graph(table, search, score=test)
    assert graph(table, search) == expected  # lines do not survive, so the default sees curves
    if not isinstance(search, ist.BossFCI):  # which begins with a DAG of lines
        assert graph(table, search, score=ist.FisherZ()) != expected
    with duckdb.connect() as connection:
        assert graph(connection.from_df(table), search, score=test) == expected
    assert graph(sites(table), search, score=test) == expected


@pytest.mark.long
@pytest.mark.parametrize("search", [*SEARCHES, LINGAM], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("kind", [*TABLES, "noisy"])
@pytest.mark.parametrize(
    "missing", [ist.DropRows(), ist.ExpectationMaximisation()], ids=lambda s: type(s).__name__
)
def test_missing_values(search: Search[Any], kind: str, missing: Missing) -> None:
    """Where a federation or a test cannot do it, the error says what to do."""
    duckdb = pytest.importorskip("duckdb")
    if isinstance(search, ist.LiNGAM) != (kind == "noisy"):
        pytest.skip("LiNGAM is for the noisy table, and the others are for the other tables")
    estimated = isinstance(missing, ist.ExpectationMaximisation)
    if estimated and kind == "levels":
        pytest.skip("expectation-maximisation is for continuous columns")
    table = with_holes(noisy() if kind == "noisy" else TABLES[kind]())
    with duckdb.connect() as connection:
        relation = connection.from_df(table)
        if estimated and kind == "noisy":
            for data in (table, relation, sites(table, missing=missing)):
                with pytest.raises(MismatchError, match=r"cannot be estimated.*DropRows\(\)"):
                    graph(data, search, missing=missing)
            return
        expected = graph(table, search, missing=missing)
        assert graph(relation, search, missing=missing) == expected
    if estimated and kind == "mixed":
        with pytest.raises(MismatchError, match=r"\['b', 'e'\] are discrete.*DropRows\(\)"):
            graph(sites(table, missing=missing), search, missing=missing)
    elif estimated:
        assert graph(sites(table, missing=missing), search, missing=missing) == expected
    else:
        assert graph(sites(table, missing=missing), search) == expected


@pytest.mark.parametrize("largest", [2**22, 100], ids=["at once", "on demand"])
def test_a_search_that_nobody_named_stays_within_the_planned_tables(largest: int) -> None:
    table, plan = TABLES["levels"](), ist.CountPlan.up_to(3)
    federation = sites(table, plan=plan)
    federation.largest_round = largest
    by_test = ist.learn(federation, score=ist.ChiSquared())
    assert "search PC(max_conditioning=1)" in by_test.choice
    assert by_test.cpdag == ist.learn(table, search=ist.PC(max_conditioning=1)).cpdag
    by_score = ist.learn(federation)
    assert "XGES(max_parents=2)" in by_score.choice
    assert by_score.cpdag == ist.learn(table, search=ist.XGES(max_parents=2)).cpdag
