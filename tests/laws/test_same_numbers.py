"""Each verb gives the same numbers wherever the rows are, or says what to do.

A table is held by pandas, by DuckDB, or by three sites whose rows were divided at random. What
needs rows in memory is refused by a sentence that says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import DataError, MismatchError

pytestmark = [
    pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning"),
    pytest.mark.filterwarnings("ignore::isthmus.errors.ModelWarning"),
]

Table = dict[str, Any]
GRAPH = ist.DAG(["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")])
CHAIN = ist.DAG(["a", "b", "c"], [("a", "b"), ("b", "c")])
LEVELS = np.array(["low", "mid", "top"])


def numbers(seed: int) -> Table:
    """Rows of a linear network, whose first variable moves with the seed."""
    r = np.random.default_rng(seed)
    a = r.normal(size=300) + 0.3 * seed
    b = 0.8 * a + r.normal(size=300)
    return {"a": a, "b": b, "c": b - 0.5 * a + r.normal(size=300)}


def categories(seed: int) -> Table:
    return {
        name: LEVELS[np.digitize(column, [-0.5, 0.5])] for name, column in numbers(seed).items()
    }


def in_pandas(table: Table) -> Any:
    return pytest.importorskip("pandas").DataFrame(table)


def in_duckdb(table: Table) -> Any:
    return pytest.importorskip("duckdb").from_df(in_pandas(table))


def at_sites(table: Table) -> Any:
    own = [{name: column[i::3] for name, column in table.items()} for i in range(3)]
    return ist.Federation.simulate(own, within_sites=False)


HOLDERS = [in_pandas, in_duckdb, at_sites]
ELSEWHERE = [in_duckdb, at_sites]


def validated(hold: Callable[[Table], Any], draw: Callable[[int], Table]) -> Any:
    answer = ist.validate(hold(draw(0)), CHAIN)
    assert answer.independences
    return [claim.p_from_sums for claim in answer.independences]


def changed(hold: Callable[[Table], Any], draw: Callable[[int], Table]) -> Any:
    level = None if draw is numbers else "top"
    pair = hold(draw(0)), hold(draw(2))
    answer = ist.changes(*pair, GRAPH, "c", level=level, draws=20)
    by_name = sorted(answer.mechanisms, key=lambda m: m.node)
    assert answer.changed
    return [answer.total, answer.others, *(x for m in by_name for x in (m.p_from_sums, m.share))]


def had_it_been_otherwise(hold: Callable[[Table], Any], draw: Callable[[int], Table]) -> Any:
    network: Any = ist.fit(hold(draw(0)), GRAPH, curves=False)
    if draw is numbers:
        return network.counterfactual({"a": 1.0, "b": 2.0, "c": 0.5}, {"a": 0.0}).mean
    row = {"a": "low", "b": "mid", "c": "top"}
    answer = network.counterfactual(row, {"a": "top"}, target="c")
    return [answer.lower, answer.upper]


def response(hold: Callable[[Table], Any], draw: Callable[[int], Table]) -> Any:
    """Answers to setting the first variable to each of several values."""
    network: Any = ist.fit(hold(draw(0)), GRAPH, curves=False)
    if draw is numbers:
        return [network.query("c", do={"a": dose}).mean[0] for dose in (-1.0, 0.0, 2.0)]
    return [network.query("c", do={"a": level})["top"] for level in LEVELS.tolist()]


def likelihood(hold: Callable[[Table], Any], draw: Callable[[int], Table]) -> Any:
    """Log-likelihoods of rows at hand, under a network that was fitted elsewhere."""
    network = ist.fit(hold(draw(0)), GRAPH, curves=False)
    return ist.log_likelihood(network, draw(1), per_row=True)


@pytest.mark.parametrize("draw", [numbers, categories])
@pytest.mark.parametrize("hold", HOLDERS)
@pytest.mark.parametrize("verb", [validated, changed, had_it_been_otherwise, response, likelihood])
def test_sums_give_the_same_answers_everywhere(verb: Any, hold: Any, draw: Any) -> None:
    expected = verb(lambda table: table, draw)
    np.testing.assert_allclose(verb(hold, draw), expected, rtol=1e-9, atol=1e-12)


def with_regimes() -> Table:
    table, other = numbers(0), numbers(3)
    joined = {name: np.concatenate([table[name], other[name]]) for name in table}
    return joined | {"regime": np.repeat(["control", "drug"], 300)}


def learned_from_regimes(table: Any) -> Any:
    data = ist.Interventions(table, {"control": [], "drug": ["a"]}, column="regime")
    return ist.learn(data, score=ist.GaussianBIC()).score


def targets(table: Any) -> Any:
    return [t.p_value for t in ist.find_targets(table, column="regime", control="control").tests]


def weighted(table: Any) -> Any:
    moments: Any = ist.summarise(ist.Weighted(table, "c"))
    return moments.covariance()


def lagged(table: Any) -> Any:
    moments: Any = ist.summarise(ist.Series(table, lags=1))
    return moments.covariance()


def rows_of(table: Any) -> Any:
    return ist.log_likelihood(ist.fit(numbers(0), GRAPH, curves=False), table, per_row=True)


@pytest.mark.parametrize(
    ("verb", "table"),
    [
        (learned_from_regimes, with_regimes()),
        (targets, with_regimes()),
        (weighted, numbers(0) | {"c": 1.0 + numbers(0)["c"] ** 2}),
        (lagged, numbers(0)),
        (rows_of, numbers(0)),
    ],
)
def test_what_needs_rows_takes_those_of_pandas_and_refuses_others(verb: Any, table: Table) -> None:
    np.testing.assert_allclose(verb(in_pandas(table)), verb(table), rtol=1e-9, atol=1e-12)
    for hold in ELSEWHERE:
        with pytest.raises((DataError, MismatchError), match=r"not in memory|not a table|stay at"):
            verb(hold(table))


def test_an_engine_that_adds_the_lags_gives_the_same_series() -> None:
    duckdb = pytest.importorskip("duckdb")
    table = numbers(0) | {"at": np.arange(300)}
    held = in_pandas(table)
    lags = ", ".join(f'lag({v}, 1) over (order by "at") as "{v}@1"' for v in "abc")
    query = f'select a, b, c, {lags} from held qualify row_number() over (order by "at") > 1'
    rows = duckdb.from_df(held).query("held", query)
    schema = ist.Schema.continuous(["a", "b", "c"]).with_lags(1)
    series: Any = ist.summarise(ist.Series(table, lags=1, time="at"))
    engine: Any = ist.summarise(ist.Lazy(rows, schema=schema))
    assert engine.n == series.n
    names = series.schema.names
    np.testing.assert_allclose(
        engine.select(names).covariance(), series.covariance(), rtol=1e-9, atol=1e-12
    )


def test_regimes_at_sites_are_refused_without_advice_about_series() -> None:
    with pytest.raises(DataError, match="Interventions") as refusal:
        learned_from_regimes(at_sites(numbers(0)))
    assert "lag" not in str(refusal.value)
