"""Random directed acyclic graphs, with node indices independent of the topological order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats, Integers
from isthmus.errors import DataError, GraphError, MismatchError
from isthmus.graphs import DAG
from isthmus.options import as_choice
from isthmus.simulate.tables import Purpose, Simulation, stream
from isthmus.statistics import Moments


class Hubs(StrEnum):
    """Whether the hubs of a scale-free graph are causes or effects."""

    CAUSES = "causes"
    """Edges point from older to newer nodes: a few nodes have many children."""
    EFFECTS = "effects"
    """Edges point from newer to older nodes, as in the official NOTEARS code: a few nodes have many
    parents."""
    EITHER = "either"
    """Edges point along a random order of the nodes."""


def node_names(nodes: int | Sequence[str]) -> tuple[str, ...]:
    """Return the given names, or ``x0, x1, …`` for a number of nodes."""
    if isinstance(nodes, str):
        raise GraphError(
            f"nodes must be a number or a sequence of names, not the string {nodes!r}."
        )
    if isinstance(nodes, (int, np.integer)):
        if nodes < 0:
            raise GraphError(f"The number of nodes must be 0 or more; {nodes} was given.")
        return tuple(f"x{i}" for i in range(int(nodes)))
    return tuple(nodes)


def erdos_renyi(
    nodes: int | Sequence[str],
    edges: int | None = None,
    *,
    degree: float | None = None,
    seed: int = 0,
) -> DAG:
    """Draw an Erdős–Rényi graph and orient it along a random order.

    Give either ``edges`` or ``degree``. With ``edges`` the graph has exactly this number of edges,
    and each set of pairs is equally likely, as in the official NOTEARS code. With ``degree`` each
    pair is adjacent with probability ``degree / (d - 1)``, so that a node has this number of
    neighbours on average.

    Parameters
    ----------
    nodes
        Number of nodes, or their names.
    edges
        Exact number of edges, at most d(d-1)/2.
    degree
        Expected number of neighbours of a node, between 0 and d-1.
    seed
        Random seed. The same seed gives the same graph.

    Examples
    --------
    >>> from isthmus import simulate
    >>> len(simulate.erdos_renyi(10, 20, seed=1).edges)
    20
    """
    names = node_names(nodes)
    d = len(names)
    pairs = d * (d - 1) // 2
    if (edges is None) == (degree is None):
        raise GraphError("Give either edges (the exact number) or degree (the expected one).")
    rng = stream(seed, Purpose.GRAPH)
    if edges is not None:
        if not 0 <= edges <= pairs:
            raise GraphError(f"{d} nodes can have 0 to {pairs} edges; {edges} were requested.")
        ranks = rng.choice(pairs, size=edges, replace=False, shuffle=False)
    else:
        assert degree is not None
        if not 0 <= degree <= max(d - 1, 0):
            raise GraphError(f"degree must be between 0 and {max(d - 1, 0)}; {degree} was given.")
        probability = degree / (d - 1) if d > 1 else 0.0
        count = int(rng.binomial(pairs, probability))
        ranks = rng.choice(pairs, size=count, replace=False, shuffle=False)
    early, late = _unrank_pairs(np.asarray(ranks, dtype=np.int64))
    return _relabel(names, early, late, seed)


def scale_free(
    nodes: int | Sequence[str],
    attachments: int = 1,
    *,
    hubs: Hubs = Hubs.CAUSES,
    seed: int = 0,
) -> DAG:
    """Draw a Barabási–Albert graph, which grows by preferential attachment.

    The k-th node (from 0) is connected to ``min(k, attachments)`` distinct older nodes, drawn with
    probability proportional to their degree. The graph has exactly
    ``attachments * d - attachments * (attachments + 1) / 2`` edges when ``attachments < d``.

    Parameters
    ----------
    nodes
        Number of nodes, or their names.
    attachments
        Number of older nodes to which a new node is connected, at least 1.
    hubs
        Whether the nodes of high degree are causes, effects, or either.
    seed
        Random seed. The same seed gives the same graph.
    """
    hubs = as_choice(hubs, Hubs, "hubs", "scale_free")
    names = node_names(nodes)
    d = len(names)
    if attachments < 1:
        raise GraphError(f"attachments must be at least 1; {attachments} was given.")
    rng = stream(seed, Purpose.GRAPH)
    # Every end of an edge is listed once in `ends`, so a uniform draw from it is a draw by degree.
    ends: list[int] = []
    old: list[int] = []
    new: list[int] = []
    for node in range(1, d):
        neighbours: set[int] = set(range(node)) if node <= attachments else set()
        while len(neighbours) < min(node, attachments):
            neighbours.add(ends[int(rng.integers(len(ends)))])
        for other in sorted(neighbours):
            ends.extend((other, node))
            old.append(other)
            new.append(node)
    early, late = np.array(old, dtype=np.int64), np.array(new, dtype=np.int64)
    if hubs is Hubs.EFFECTS:
        early, late = late, early
    elif hubs is Hubs.EITHER:
        rank = rng.permutation(d)
        swap = rank[early] > rank[late]
        early, late = np.where(swap, late, early), np.where(swap, early, late)
    return _relabel(names, early, late, seed)


def _unrank_pairs(ranks: Integers) -> tuple[Integers, Integers]:
    """Map 0, 1, 2, 3 and so on to the pairs (0, 1), (0, 2), (1, 2), (0, 3) and so on."""
    late = ((1.0 + np.sqrt(1.0 + 8.0 * ranks)) / 2.0).astype(np.int64)
    # The square root may be off by one for large ranks; correct it in integer arithmetic.
    late -= late * (late - 1) // 2 > ranks
    late += late * (late + 1) // 2 <= ranks
    return ranks - late * (late - 1) // 2, late


def _relabel(names: tuple[str, ...], tails: Integers, heads: Integers, seed: int) -> DAG:
    label = stream(seed, Purpose.LABELS).permutation(len(names))
    parents: list[list[int]] = [[] for _ in names]
    for tail, head in zip(label[tails].tolist(), label[heads].tolist(), strict=True):
        parents[head].append(tail)
    return DAG.from_parents(names, parents)


# --- Varsortability and R²-sortability: how well variances or R² reveal the order of a graph ----

TIE = 1e-9
"""Values with a smaller relative difference count as equal."""
NEARLY_SINGULAR = 1e-10


def varsortability(data: Any, dag: DAG | None = None) -> float:
    """Return the varsortability: the fraction of directed paths along which the variance increases.

    For each length k and each ordered pair of nodes connected by a directed path of length k, count
    1 if the variance at the end is larger, 1/2 if equal, and 0 if smaller. The result is the mean
    (Reisach et al. 2021, arXiv 2102.13647). With 1, sorting by variance gives a causal order; with
    1/2, variances carry no information.

    Parameters
    ----------
    data
        A `Simulation`, `Moments`, a mapping or table of named columns, or a two-dimensional array
        with columns in the order of ``dag.nodes``.
    dag
        The true graph; optional for a `Simulation`.

    Returns
    -------
    float
        Between 0 and 1; ``nan`` for a graph without edges.
    """
    graph = _graph(data, dag)
    if isinstance(data, Moments):
        variances = np.diag(second_moments(data, graph.nodes)[0])
    else:
        # Compute the variances only: the covariance matrix of many columns would be large.
        variances = np.square(_centred(data, graph.nodes)).mean(axis=1)
    return order_alignment(variances, graph)


def r2_sortability(data: Any, dag: DAG | None = None) -> float:
    """Return the R²-sortability: the fraction of directed paths along which R² increases.

    R² of a variable is the fraction of its variance explained by a linear regression on all others.
    It does not depend on scale, so standardising does not remove it (Reisach et al. 2023, arXiv
    2303.18211). Paths are counted as in `varsortability`, which has the same parameters.
    """
    graph = _graph(data, dag)
    covariance, _ = second_moments(data, graph.nodes)
    return order_alignment(r_squared(covariance, graph.nodes), graph)


def order_alignment(values: NDArray[Any], dag: DAG) -> float:
    """Return the fraction of directed paths, one per pair and length, along which values increase.

    Parameters
    ----------
    values
        One value per node, in the order of ``dag.nodes``.
    dag
        The graph.
    """
    x = np.asarray(values, dtype=np.float64)
    if x.shape != (len(dag.nodes),):
        raise DataError(f"Expected {len(dag.nodes)} values, one per node; got shape {x.shape}.")
    # Nodes are numbered by rank, so that larger and equal values are ranges of bits in a bitset.
    order = np.argsort(x, kind="stable")
    rank = np.empty(len(x), dtype=np.int64)
    rank[order] = np.arange(len(x))
    low, high = _tied_runs(x[order])
    children: list[list[int]] = [[] for _ in range(len(x))]
    for node, above in enumerate(dag.parent_indices()):
        for parent in above:
            children[rank[parent]].append(int(rank[node]))
    reached = [sum(1 << child for child in below) for below in children]
    paths = doubled = 0
    while any(reached):  # ends, because paths of an acyclic graph are shorter than d
        for start, ends in enumerate(reached):
            if ends:
                paths += ends.bit_count()
                # Count "not smaller" and "larger", so that a tie counts one half.
                doubled += (ends >> low[start]).bit_count() + (ends >> high[start]).bit_count()
        reached = [_union(reached, below) for below in children]
    return doubled / (2 * paths) if paths else float("nan")


def _tied_runs(ascending: Floats) -> tuple[list[int], list[int]]:
    """Return for each value the range of positions of equal values."""
    below = np.where(ascending >= 0, ascending * (1 - TIE), ascending / (1 - TIE))
    above = np.where(ascending >= 0, ascending / (1 - TIE), ascending * (1 - TIE))
    low = np.searchsorted(ascending, below, side="left")
    high = np.searchsorted(ascending, above, side="right")
    return [int(k) for k in low], [int(k) for k in high]


def _union(bitsets: list[int], indices: list[int]) -> int:
    union = 0
    for k in indices:
        union |= bitsets[k]
    return union


def r_squared(covariance: Floats, names: tuple[str, ...]) -> Floats:
    """Return R² of each variable given all others, from the covariance matrix."""
    sd = np.sqrt(np.diag(covariance))
    constant = [name for name, s in zip(names, sd, strict=True) if s == 0.0]
    if constant:
        raise DataError(f"R² is not defined for constant columns; drop {constant}.")
    correlation = covariance / np.outer(sd, sd)
    values, vectors = np.linalg.eigh(correlation)
    if len(values) and values[0] > NEARLY_SINGULAR * values[-1]:
        precision = (vectors**2) @ (1.0 / values)
        return np.clip(1.0 - 1.0 / precision, 0.0, 1.0)
    # Some columns are linear combinations of others: use least squares for each column.
    result = np.empty(len(sd))
    for j in range(len(sd)):
        others = np.arange(len(sd)) != j
        cross = correlation[others, j]
        gram = correlation[np.ix_(others, others)]
        solution = np.linalg.lstsq(gram, cross, rcond=NEARLY_SINGULAR)[0]
        result[j] = cross @ solution
    return np.clip(result, 0.0, 1.0)


def second_moments(data: Any, names: tuple[str, ...]) -> tuple[Floats, int]:
    """Return the covariance matrix of columns (with divisor n), and the number of rows n."""
    if isinstance(data, Moments):
        selected = data.select(names)
        if len(selected.columns) != len(names):
            raise MismatchError("Sortability needs continuous variables with one column each.")
        return selected.covariance(), selected.n
    x = _centred(data, names)
    covariance: Floats = x @ x.T / x.shape[1]
    return covariance, x.shape[1]


def _centred(data: Any, names: tuple[str, ...]) -> Floats:
    """Return the centred columns, as the rows of an array."""
    columns = _columns(data, names)
    x = np.empty((len(columns), len(columns[0]) if columns else 0))
    for j, (name, column) in enumerate(zip(names, columns, strict=True)):
        if not (np.issubdtype(column.dtype, np.number) and column.ndim == 1):
            raise DataError(f"Column {name!r} is not numeric ({column.dtype}).")
        x[j] = column
    if x.shape[1] < 1:
        raise DataError("There are no rows.")
    if not np.isfinite(x).all():
        raise DataError("Sortability needs finite values; remove or fill missing values first.")
    x -= x.mean(axis=1, keepdims=True)
    return x


def column_names(data: Any) -> tuple[str, ...]:
    """Return the names of the columns of data."""
    if isinstance(data, Simulation):
        return data.dag.nodes
    if isinstance(data, Moments):
        return tuple(data.schema.names)
    if isinstance(data, Mapping):
        return tuple(data)
    columns = getattr(data, "columns", None)
    if columns is None:
        raise DataError(f"A {type(data).__name__} has no column names; give a mapping or a table.")
    return tuple(columns)


def _columns(data: Any, names: tuple[str, ...]) -> list[NDArray[Any]]:
    if isinstance(data, Simulation):
        data = data.data
    if isinstance(data, np.ndarray):
        if data.ndim != 2 or data.shape[1] != len(names):
            raise DataError(f"Expected an array with {len(names)} columns; got shape {data.shape}.")
        return [data[:, j] for j in range(len(names))]
    missing = sorted(set(names) - set(column_names(data)))
    if missing:
        raise DataError(f"The graph has nodes that are not columns of the data: {missing}.")
    return [np.asarray(data[name]) for name in names]


def _graph(data: Any, dag: DAG | None) -> DAG:
    if dag is not None:
        return dag
    if isinstance(data, Simulation):
        return data.dag
    raise GraphError("Give the true graph: varsortability(data, dag).")


# --- Sort-and-regress baselines -----------------------------------------------------------------

COLLINEAR = 1e-10
"""A column enters a regression only if more than this fraction of its variance is unexplained."""


class SortBy(StrEnum):
    """Key by which nodes are sorted, smallest first."""

    VARIANCE = "variance"
    R_SQUARED = "r_squared"
    RANDOM = "random"


def sort_and_regress(data: Any, *, by: SortBy = SortBy.VARIANCE, seed: int = 0) -> DAG:
    """Sort the columns and regress each column on those before it, with selection by BIC.

    A method that is not better than this baseline has learned only the scale of the columns
    (`SortBy.VARIANCE`, arXiv 2102.13647) or their explained variance (`SortBy.R_SQUARED`, arXiv
    2303.18211). The papers select regressors by an adaptive lasso tuned by BIC. This function uses
    forward–backward stepwise selection by BIC, which needs moments only.

    Parameters
    ----------
    data
        A `Simulation`, `Moments`, or a mapping or table of named numeric columns.
    by
        Sort key. `SortBy.RANDOM` is a control: a sparse graph along a random order.
    seed
        Random seed, for `SortBy.RANDOM` only.
    """
    by = as_choice(by, SortBy, "by", "sort_and_regress")
    names = column_names(data)
    covariance, n = second_moments(data, names)
    order = _order(covariance, names, by, seed)
    parents: list[list[int]] = [[] for _ in names]
    for position in range(1, len(names)):
        target, candidates = int(order[position]), order[:position]
        selected = stepwise(
            covariance[np.ix_(candidates, candidates)],
            covariance[candidates, target],
            float(covariance[target, target]),
            n,
        )
        parents[target] = [int(candidates[k]) for k in selected]
    return DAG.from_parents(names, parents)


def _order(covariance: Floats, names: tuple[str, ...], by: SortBy, seed: int) -> NDArray[np.int64]:
    if by is SortBy.RANDOM:
        return stream(seed, Purpose.SORTING).permutation(len(names))
    values = np.diag(covariance) if by is SortBy.VARIANCE else r_squared(covariance, names)
    return np.argsort(values, kind="stable").astype(np.int64)


def stepwise(gram: Floats, cross: Floats, variance: float, n: int) -> list[int]:
    """Select regressors by forward–backward stepwise selection with BIC.

    Parameters
    ----------
    gram
        Covariance matrix of the candidates.
    cross
        Covariances of the candidates with the target.
    variance
        Variance of the target.
    n
        Number of rows. A regressor costs log n and gains n log(rss before / rss after).

    Returns
    -------
    list of int
        Indices of the regressors, ascending.
    """
    if n < 2:
        raise DataError(f"Regression needs at least 2 rows; there are {n}.")
    p = len(cross)
    scale = np.diag(gram).copy()
    # After sweeping, the other entries are residual covariances given the selected candidates.
    swept = np.empty((p + 1, p + 1))
    swept[:p, :p], swept[:p, p], swept[p, :p], swept[p, p] = gram, cross, cross, variance
    selected = np.zeros(p, dtype=np.bool_)
    penalty = np.log(n)
    while selected.sum() < min(p, n - 2) and swept[p, p] > COLLINEAR * variance:
        residual = np.diag(swept)[:p]
        available = ~selected & (residual > COLLINEAR * scale)
        explained = np.zeros(p)
        explained[available] = swept[:p, p][available] ** 2 / residual[available]
        best = int(np.argmax(explained))
        fraction = min(explained[best] / swept[p, p], 1.0 - 1e-15)
        if -n * np.log1p(-fraction) <= penalty:
            break
        _sweep(swept, best)
        selected[best] = True
        _backward(swept, selected, n, penalty, keep=best)
    return [int(k) for k in np.flatnonzero(selected)]


def _backward(
    swept: Floats, selected: NDArray[np.bool_], n: int, penalty: float, *, keep: int
) -> None:
    """Remove regressors whose gain is below the penalty, the least useful first."""
    p = len(selected)
    while True:
        removable = np.flatnonzero(selected)
        removable = removable[removable != keep]
        if not len(removable):
            return
        loss = swept[removable, p] ** 2 / -np.diag(swept)[removable]
        least = int(np.argmin(loss))
        if n * np.log1p(loss[least] / swept[p, p]) >= penalty:
            return
        _sweep(swept, int(removable[least]), back=True)
        selected[removable[least]] = False


def _sweep(matrix: Floats, k: int, *, back: bool = False) -> None:
    """Sweep pivot k in or, with ``back``, out, in place."""
    pivot = matrix[k, k]
    column = matrix[:, k].copy()
    matrix -= np.outer(column, column) / pivot
    matrix[:, k] = matrix[k, :] = -column / pivot if back else column / pivot
    matrix[k, k] = -1.0 / pivot
