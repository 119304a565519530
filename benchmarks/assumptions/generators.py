"""Tables that keep the assumptions of `learn`, and tables that violate one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Table = dict[str, NDArray[Any]]
Rng = np.random.Generator


def named(values: NDArray[Any]) -> Table:
    return {f"v{j}": np.ascontiguousarray(values[:, j]) for j in range(values.shape[1])}


def random_graph(d: int, rng: Rng) -> tuple[list[int], dict[int, list[int]]]:
    """Return an order and the parents of each node, 1.2 per node on average."""
    order = rng.permutation(d).tolist()
    pairs = [(order[i], order[j]) for i in range(d) for j in range(i + 1, d)]
    chosen = rng.choice(len(pairs), min(len(pairs), round(1.2 * d)), replace=False)
    parents: dict[int, list[int]] = {j: [] for j in range(d)}
    for k in chosen:
        parents[pairs[k][1]].append(pairs[k][0])
    return order, parents


def linear(n: int, d: int, rng: Rng, noise: Callable[[int], Any] | None = None) -> Table:
    order, parents = random_graph(d, rng)
    x = np.zeros((n, d))
    for j in order:
        x[:, j] = rng.normal(size=n) if noise is None else noise(n)
        for p in parents[j]:
            weight = rng.choice([-1, 1]) * rng.uniform(0.4, 1.2)
            x[:, j] += weight * x[:, p] / max(float(x[:, p].std()), 1e-9)
    return named(x)


def independent(n: int, d: int, rng: Rng) -> Table:
    return named(rng.normal(size=(n, d)))


def discrete(n: int, d: int, rng: Rng) -> Table:
    order, parents = random_graph(d, rng)
    sizes = rng.integers(2, 5, size=d)
    x = np.zeros((n, d), dtype=int)
    for j in order:
        code = np.zeros(n, dtype=int)
        for p in parents[j]:
            code = code * sizes[p] + x[:, p]
        table = rng.dirichlet(np.full(sizes[j], 0.5), size=int(code.max()) + 1)
        x[:, j] = (rng.random(n)[:, None] > table[code].cumsum(axis=1)[:, :-1]).sum(axis=1)
    words = np.array(["low", "middle", "high", "top"])
    return named(words[x])


def mixed(n: int, d: int, rng: Rng) -> Table:
    order, parents = random_graph(d, rng)
    discrete_columns = rng.random(d) < 0.5
    x = np.zeros((n, d))
    for j in order:
        x[:, j] = rng.normal(size=n)
        for p in parents[j]:
            x[:, j] += rng.choice([-1, 1]) * rng.uniform(0.4, 1.2) * x[:, p]
        if discrete_columns[j]:
            x[:, j] = np.digitize(x[:, j], [-0.8, 0.8][: rng.integers(1, 3)])
    words = np.array(["low", "middle", "high"])
    return {
        f"v{j}": words[x[:, j].astype(int)] if discrete_columns[j] else x[:, j] for j in range(d)
    }


def likert(n: int, d: int, rng: Rng) -> Table:
    """Answers from 1 to 7, as numbers: thresholds on a linear model."""
    x = np.stack(list(linear(n, d, rng).values()), axis=1)
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    shift = rng.normal(scale=0.5, size=d)
    return named(np.clip(np.round(4 + 1.3 * z + shift), 1, 7))


def counts(n: int, d: int, rng: Rng) -> Table:
    """Independent counts with means from 0.5 to 20, as numbers."""
    return named(rng.poisson(np.exp(rng.uniform(-0.7, 3.0, size=d)), size=(n, d)).astype(float))


def rounded(n: int, d: int, rng: Rng) -> Table:
    return {name: np.round(x, 1) for name, x in linear(n, d, rng).items()}


def ordered(n: int, d: int, rng: Rng) -> Table:
    """A linear model whose rows were sorted by one column."""
    table = linear(n, d, rng)
    rows = np.argsort(table[f"v{rng.integers(d)}"])
    return {name: x[rows] for name, x in table.items()}


def ordered_twice(n: int, d: int, rng: Rng) -> Table:
    """A mixed table whose rows were sorted by two columns."""
    table = mixed(n, d, rng)
    first, second = rng.choice(d, 2, replace=False)
    rows = np.lexsort((table[f"v{second}"], table[f"v{first}"]))
    return {name: x[rows] for name, x in table.items()}


CLEAN: Mapping[str, Callable[[int, int, Rng], Table]] = {
    "linear Gaussian": linear,
    "independent Gaussian": independent,
    "rounded to one decimal": rounded,
    "sorted by a column": ordered,
    "mixed, sorted by two columns": ordered_twice,
    "discrete": discrete,
    "mixed": mixed,
    "Likert items as numbers": likert,
    "Poisson counts as numbers": counts,
}


def outlier(n: int, rng: Rng) -> Table:
    x = rng.normal(size=(n, 5))
    x[0] = 1e4
    return named(x)


def three_outliers(n: int, rng: Rng) -> Table:
    x = rng.normal(size=(n, 5))
    x[rng.choice(n, 3, replace=False)] += 30
    return named(x)


def copies(n: int, rng: Rng) -> Table:
    return named(np.repeat(rng.normal(size=(n // 20, 8)), 20, axis=0))


def shuffled_copies(n: int, rng: Rng) -> Table:
    """A table from which rows were drawn with replacement."""
    return named(rng.normal(size=(n // 3, 8))[rng.integers(0, n // 3, n)])


def discrete_copies(n: int, rng: Rng) -> Table:
    x = np.repeat(rng.integers(0, 3, size=(n // 20, 8)), 20, axis=0)
    return named(np.array(["a", "b", "c"])[x])


def walks(n: int, rng: Rng) -> Table:
    return named(rng.normal(size=(n, 6)).cumsum(axis=0))


def trends(n: int, rng: Rng) -> Table:
    return named(np.linspace(0, 10, n)[:, None] * np.arange(1, 5) + rng.normal(size=(n, 4)))


def autoregressive(n: int, rng: Rng) -> Table:
    """Independent autoregressive series with coefficient 0.8, and a column of time."""
    x = np.zeros((n, 5))
    for t in range(1, n):
        x[t] = 0.8 * x[t - 1] + rng.normal(size=5)
    return {"time": np.arange(n) + 0.5, **named(x)}


def volatility(n: int, rng: Rng) -> Table:
    return named(rng.normal(size=(n, 6)) * np.exp(1.5 * rng.normal(size=(n, 1))))


def mild_volatility(n: int, rng: Rng) -> Table:
    """Multivariate t with four degrees of freedom."""
    return named(rng.normal(size=(n, 6)) / np.sqrt(rng.chisquare(4, size=(n, 1)) / 4))


def cauchy(n: int, rng: Rng) -> Table:
    return named(rng.standard_cauchy((n, 20)))


def lognormal(n: int, rng: Rng) -> Table:
    return named(np.exp(rng.normal(size=(n, 20))))


def cosine(n: int, rng: Rng) -> Table:
    x = rng.normal(size=n)
    y = np.cos(2 * x) + 0.1 * rng.normal(size=n)
    return {"x": x, "y": y, "z": y**2 + 0.1 * rng.normal(size=n)}


def nonlinear(n: int, rng: Rng) -> Table:
    order, parents = random_graph(10, rng)
    x = np.zeros((n, 10))
    for j in order:
        x[:, j] = 0.5 * rng.normal(size=n)
        for p in parents[j]:
            z = x[:, p] / max(float(x[:, p].std()), 1e-9)
            shapes = (np.sin(2 * z), z**2 - 1, 1.2 * np.tanh(2 * z), 1.2 * np.abs(z))
            x[:, j] += shapes[rng.choice(4)]
    return named(x)


def patients(n: int, rng: Rng) -> Table:
    effects = np.repeat(rng.normal(size=(n // 5, 3)), 5, axis=0)
    number = np.repeat(np.arange(n // 5), 5)
    return {"patient": number, **named(effects + 0.1 * rng.normal(size=(len(number), 3)))}


def scattered_patients(n: int, rng: Rng) -> Table:
    """Patients with different numbers of rows in no order, and half of the variance within."""
    number = rng.integers(1000, 1000 + n // 6, n)
    effects = rng.normal(size=(n // 6, 4))[number - 1000]
    return {"patient": number, **named(effects + 0.7 * rng.normal(size=(n, 4)))}


VIOLATED: Mapping[str, tuple[Callable[[int, Rng], Table], str]] = {
    "one row of 1e4": (outlier, "of the variance"),
    "three rows shifted by 30 deviations": (three_outliers, "of the variance"),
    "50 rows, each 20 times (n = 1,000)": (copies, "copied rows"),
    "rows drawn with replacement from n/3": (shuffled_copies, "copied rows"),
    "60 discrete rows, each 20 times": (discrete_copies, "copied rows"),
    "random walks": (walks, "neighbouring rows"),
    "trends": (trends, "neighbouring rows"),
    "autoregressive series with time": (autoregressive, "neighbouring rows"),
    "common volatility (log-scale deviation 1.5)": (volatility, "same rows"),
    "multivariate t, 4 degrees of freedom": (mild_volatility, "same rows"),
    "20 Cauchy columns": (cauchy, "heavy tails"),
    "20 lognormal columns": (lognormal, "heavy tails"),
    "y = cos 2x, z = y²": (cosine, "curved"),
    "nonlinear network, 10 columns": (nonlinear, "curved"),
    "patients of 5 rows": (patients, "rows of each"),
    "patients of about 6 rows, scattered": (scattered_patients, "rows of each"),
}
