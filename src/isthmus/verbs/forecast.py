"""Forecasts of several steps from a fitted dynamic network, by simulation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import ArgumentError, MismatchError, SchemaError, a_type
from isthmus.graphs.knowledge import Lag
from isthmus.networks import DiscreteNetwork, Network
from isthmus.networks.column_maps import read_column, table_values
from isthmus.networks.columns import encode_columns, label_array, number_column
from isthmus.results import Forecast
from isthmus.tables import Series
from isthmus.verbs.arguments import check_count, check_seed


def forecast(
    network: Network, series: Series, *, steps: int = 1, draws: int = 1000, seed: int = 0
) -> Forecast:
    """Simulate how a series goes on after its last row.

    Every draw continues the series step by step, so that the spread of the draws grows with the
    uncertainty of the steps before. It is that of the noise; the sampling error of the parameters
    is not included.

    Parameters
    ----------
    network
        A network that was fitted to a `Series` with the same variables and lags.
    series
        The series to continue: one realisation, without a gap in time. If it is centred, values
        are differences from its mean.
    steps
        Number of steps.
    draws
        Number of simulations.
    seed
        Random seed. The same seed gives the same draws.

    Returns
    -------
    Forecast
        A dictionary with an array of numbers or levels ``[step, draw]`` for each variable.

    Examples
    --------
    >>> import isthmus as ist
    >>> import numpy as np
    >>> rng, x = np.random.default_rng(1), [4.0]
    >>> for _ in range(500):
    ...     x.append(0.8 * x[-1] + rng.normal())
    >>> series = ist.Series({"x": np.array(x)}, lags=1)
    >>> network = ist.learn(series).fit()
    >>> ist.forecast(network, series, steps=12)["x"].std(axis=1)[[0, 11]].round(1)
    array([0.9, 1.4])
    """
    if not isinstance(network, Network):
        raise MismatchError(
            f"A Gaussian, discrete or mixed network is needed, not {a_type(network)}. "
            "Fit one with solution.fit()."
        )
    if not isinstance(series, Series):
        raise MismatchError(
            f"The past must be a Series, not {a_type(series)}: give Series(table, lags=...) with "
            "the lags that the network was learned with."
        )
    if series.realisations > 1:
        raise MismatchError(
            f"The series has {series.realisations} stretches: several realisations, or gaps in "
            "time. Give a Series of the rows to continue: those of one realisation, after its "
            "last gap."
        )
    check_count(steps, "steps", least=1, optional=False)
    check_count(draws, "draws", least=1, optional=False)
    lags = series.schema().lag_of
    lacking = [name for name in network.dag.nodes if name not in lags]
    if lacking:
        raise SchemaError(
            f"The network has {lacking[:5]}, which the series does not have. "
            "Give a Series with the variables and lags that the network was learned with."
        )
    rng = np.random.default_rng(check_seed(seed))
    past = _last_rows(series, lags, draws)
    present = [name for name in network.dag.topological_order() if lags[name].steps == 0]
    conditionals = network.conditionals
    drawn: dict[str, list[NDArray[Any]]] = {n: [] for n in network.dag.nodes if n in present}
    for _ in range(steps):
        columns = {n: past[lag] for n, lag in lags.items() if lag.steps and n in network.dag.nodes}
        columns = {n: _as_network(network, n, values) for n, values in columns.items()}
        for name in present:
            columns[name] = conditionals[name].draw(columns, draws, rng)
        now = {name: _as_table(network, name, columns[name]) for name in present}
        for name, values in now.items():
            drawn[name].append(values)
        later = {Lag(lag.variable, lag.steps + 1): own for lag, own in past.items()}
        past = later | {Lag(name, 1): values for name, values in now.items()}
    return Forecast({name: np.stack(values) for name, values in drawn.items()})


def _last_rows(series: Series, lags: Mapping[str, Lag], draws: int) -> dict[Lag, NDArray[Any]]:
    """Return the last steps of a series: values of a table, the same ones for every draw."""
    schema, last = series.schema(), series.rows()[-1]
    past = {}
    for variable, value in zip(schema.variables, last, strict=True):
        levels = variable.levels
        cell = label_array(levels)[[int(value)]] if levels else np.array([value])
        lag = lags[variable.name]
        past[Lag(lag.variable, lag.steps + 1)] = np.repeat(cell, draws)
    return past


def _as_network(network: Network, name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Convert values of a table to codes, or to numbers of the network."""
    column, levels = read_column(network.maps, name, values), network.levels.get(name, ())
    if not levels:
        return number_column(name, column)
    return encode_columns({name: levels}, {name: column}, complete=True)[name]


def _as_table(network: Network, name: str, values: NDArray[Any]) -> NDArray[Any]:
    levels = network.levels.get(name, ())
    shown: NDArray[Any] = (
        label_array(levels)[values] if levels else table_values(network.maps, name, values)
    )
    return shown


# --- Results as labelled tables: one row per probability, edge or variable ----------------------


def to_frame(result: object, like: object = None, *, node: str | None = None) -> Any:
    """Return a result as a table with names and levels, as its method ``to_frame`` does.

    ======================================= ============================================
    result                                  one row per
    ======================================= ============================================
    answer to a query                       combination of levels, or variable
    discrete network, with ``node``         cell of the probability table of this node
    Gaussian network                        edge, with its coefficient
    solution                                edge, and who decides its direction, by what margin
    posterior                               edge that occurs, with its probability
    bootstrap (ensemble)                    edge that occurs, with its share
    matrix of probabilities of edges        pair of nodes
    effect, or `effects` of a posterior     estimate
    forecast                                step and variable, or level
    cross-validation                        fold
    changes                                 mechanism
    validation                              implied independence, and edge
    reading                                 column
    ======================================= ============================================

    Parameters
    ----------
    result
        What to show. Its own documentation says which errors it has.
    like
        A table of pandas, Polars or PyArrow, such as the one that was learned from: the answer is
        one of the same library. For a dictionary of columns, it is a dictionary. By default it is a
        table of pandas; of Polars or PyArrow, if the program uses these and not pandas.
    node
        The node of a discrete network.

    Examples
    --------
    >>> import isthmus as ist
    >>> network = ist.learn(ist.datasets.asia(rows=1000, seed=1)).fit()
    >>> answer = network.query("lung", evidence={"xray": "yes"})
    >>> sorted(ist.to_frame(answer, like={}))
    ['lung', 'probability', 'sampling_error']
    """
    if isinstance(result, DiscreteNetwork):
        if node is None:
            raise ArgumentError(
                f"Name the node whose table is asked for: node={result.dag.nodes[0]!r}."
            )
        return result.to_frame(node, like)
    if node is not None:
        raise ArgumentError(f"node is for discrete networks only; the result is {a_type(result)}.")
    make = getattr(result, "to_frame", None)
    if make is None:
        raise MismatchError(
            f"There is no table for {a_type(result)}. Give an answer to a query, a discrete or "
            "Gaussian network, a solution, a posterior or a bootstrap."
        )
    return make(like)
