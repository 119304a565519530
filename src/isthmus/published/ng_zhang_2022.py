"""NOTEARS-ADMM (Ng and Zhang 2022), and the baselines of the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from isthmus.arrays import Floats
from isthmus.errors import ArgumentError, GraphError, MismatchError, MissingExtraError
from isthmus.graphs import DAG
from isthmus.published.weighted_graph import WeightedGraph
from isthmus.statistics import Kind
from isthmus.tables import as_source
from isthmus.verbs.learn import learn

if TYPE_CHECKING:
    from isthmus_joint import ADMMModel, Federation
    from isthmus_joint.methods.admm_models import ADMMOptions, ConsensusModel

_GROWTH = 1.75, 1.25
"""γ1 and γ2 of Appendix B."""
_ITERATIONS = 15_000
"""SciPy's own limit on the iterations of L-BFGS in a step of a network."""


def notears_admm(
    sites: Sequence[object] | Mapping[str, object] | Federation,
    *,
    model: ADMMModel | str = "linear",
    penalty: float | None = None,
    rho: float | None = None,
    iterations: int = 200,
    threshold: float = 0.3,
    hidden: int = 10,
    seed: int = 0,
) -> WeightedGraph:
    """Learn one network from the rows of many sites, as published (NOTEARS-ADMM).

    Algorithm 1: each site fits parameters of its own near common ones, and the coordinator's step
    makes the common ones acyclic. All iterations are done, and the graph can have cycles. For
    linear models we recommend ``learn(federation, search=Notears())``: one secure sum of moments
    reveals less about a site and learns more.

    The step of the coordinator is solved exactly, where the paper follows a subgradient of the ℓ1
    norm; it is never larger on the diagonal than zero. Everything else is as printed.

    Parameters
    ----------
    sites
        The table of each site, for a simulation with plain sums; or a `Federation` whose study
        allows ADMM, for the same computation with secure sums.
    model
        ``"linear"``, or ``"perceptron"`` for one neural network per variable (NOTEARS-MLP-ADMM),
        which needs the extra ``neural``.
    penalty
        λ, the coefficient of the ℓ1 norm; by default 0.01, for networks 0.001.
    rho
        Initial ρ1 and ρ2; by default 0.001, for networks 0.1.
    iterations
        Number of iterations.
    threshold
        Weights of at most this are dropped.
    hidden
        Units of the hidden layer of each network.
    seed
        Seed of the initial parameters of networks.

    References
    ----------
    I. Ng and K. Zhang. Towards Federated Bayesian Network Structure Learning with Continuous
    Optimization. AISTATS 2022. arXiv:2110.09356.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import published, simulate
    >>> truth = ist.DAG(["a", "b", "c"], [("a", "b"), ("b", "c")])
    >>> table = simulate.linear(truth, 240, seed=1).data
    >>> sites = [{name: v[k::4] for name, v in table.items()} for k in range(4)]
    >>> published.notears_admm(sites).edges
    (('a', 'b'), ('b', 'c'))
    """
    try:
        from isthmus_joint import ADMM, ADMMModel, Federation, Stiffness
        from isthmus_joint.methods.admm import ADMMDetails
        from isthmus_joint.methods.admm_models import (
            ADMMOptions,
            LinearConsensus,
            PerceptronConsensus,
        )
    except ModuleNotFoundError:
        raise MissingExtraError("isthmus_joint", "horizontal", "notears_admm") from None
    kind = ADMMModel(model)
    if kind is ADMMModel.DYNAMIC:
        raise ArgumentError(
            "The paper has no experiment with time series. Use learn(federation, search=ADMM()) "
            "with a Series for each site."
        )
    networks = kind is ADMMModel.PERCEPTRON
    penalty = penalty if penalty is not None else 0.001 if networks else 0.01
    rho = rho if rho is not None else 0.1 if networks else 0.001
    if isinstance(sites, Federation):
        search = ADMM(
            kind, penalty, threshold=threshold, hidden=hidden, rho1=rho, rho2=rho,
            growth1=_GROWTH[0], growth2=_GROWTH[1], rounds=iterations, tolerance=0.0,
            stiffness=Stiffness.EACH,
        )  # fmt: skip
        solution = learn(sites, search=search, seed=seed)
        details = solution.details
        assert isinstance(details, ADMMDetails)
        return WeightedGraph(solution.dag.nodes, details.weights, threshold, strict=True)
    sources = [as_source(table) for table in _tables(sites)]
    schema = sources[0].schema()
    for source in sources:
        source.schema().require(Kind.CONTINUOUS, "NOTEARS-ADMM needs")
        if source.schema().names != schema.names:
            raise MismatchError(
                f"The sites have the columns {list(schema.names[:5])} and "
                f"{list(source.schema().names[:5])}. Give the same columns in the same order."
            )
    parts = [rows - rows.mean(axis=0) for rows in (source.rows() for source in sources)]
    options = ADMMOptions(
        penalty=penalty, rho1=rho, rho2=rho, growth1=_GROWTH[0], growth2=_GROWTH[1],
        hidden=hidden, seed=seed,
    )  # fmt: skip
    consensus = (PerceptronConsensus if networks else LinearConsensus)(schema, options)
    weights = _consensus(parts, consensus, options, iterations, networks=networks)
    return WeightedGraph(schema.names, weights, threshold, strict=True)


def _consensus(
    parts: Sequence[Floats],
    model: ConsensusModel,
    options: ADMMOptions,
    iterations: int,
    *,
    networks: bool,
) -> Floats:
    """Do all iterations with plain sums; return the common weights."""
    from isthmus_joint.methods.admm import ADMMCourse, LinearClient, NetworkClient

    n = sum(map(len, parts))
    clients = [
        NetworkClient(rows, options.hidden, n, _ITERATIONS)
        if networks
        else LinearClient(rows.T @ rows / n)
        for rows in parts
    ]
    course = ADMMCourse(model, options)
    course.take(np.array([len(parts), n], dtype=np.float64))
    for _ in range(iterations):
        answers = [client.answer(course.common, course.rho) for client in clients]
        course.take(np.sum(answers, axis=0))
    return model.weights(course.common)


def _tables(sites: Sequence[object] | Mapping[str, object]) -> list[object]:
    tables = list(sites.values() if isinstance(sites, Mapping) else sites)
    if not tables or any(np.ndim(table) == 1 for table in tables):  # type: ignore[arg-type]
        raise ArgumentError(
            "notears_admm needs one table per site. Give a list of tables, such as "
            "[table[:100], table[100:]], or a Federation."
        )
    return tables


def vote(graphs: Sequence[DAG | WeightedGraph]) -> WeightedGraph:
    """Return the edges that more than half of the sites found, as published. Cycles stay.

    The weight of an edge is the share of the sites that found it (Na and Yang 2010).

    Parameters
    ----------
    graphs
        The graph of each site, over the same nodes.

    Raises
    ------
    GraphError
        The graphs have different nodes, there are none, or some of their edges have no direction.

    Examples
    --------
    >>> from isthmus import DAG, published
    >>> nodes = ["a", "b", "c"]
    >>> ring = [DAG(nodes, [(p, c), (c, g)]) for p, c, g in ("abc", "bca", "cab")]
    >>> published.vote(ring).edges
    (('a', 'b'), ('b', 'c'), ('c', 'a'))
    """
    for graph in graphs:
        if not isinstance(graph, (DAG, WeightedGraph)):
            raise GraphError(
                f"Votes count directed edges; a {type(graph).__name__} was given, which can have "
                "edges without a direction. Give a DAG for each site, such as solution.dag."
            )
    _require_same_nodes(graphs)
    adjacency = [
        g.adjacency() if isinstance(g, DAG) else g.weights != 0.0  # the edges alone
        for g in graphs
    ]
    return WeightedGraph(graphs[0].nodes, np.mean(adjacency, axis=0), 0.5, strict=True)


def average(graphs: Sequence[WeightedGraph], threshold: float = 0.3) -> WeightedGraph:
    """Return the edges whose mean weight over the sites is above a threshold. Cycles stay.

    The means are over the weights before the threshold of each site.

    Parameters
    ----------
    graphs
        What :func:`notears` returned at each site.
    threshold
        Weights of at most this are dropped.

    Raises
    ------
    GraphError
        The graphs have different nodes, or there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from isthmus.published import WeightedGraph, average
    >>> north = WeightedGraph(("a", "b"), np.array([[0.0, 0.9], [0.0, 0.0]]), 0.3)
    >>> south = WeightedGraph(("a", "b"), np.array([[0.0, 0.1], [0.4, 0.0]]), 0.3)
    >>> average([north, south]).edges
    (('a', 'b'),)
    """
    _require_same_nodes(graphs)
    mean = np.mean([g.weights_before_threshold for g in graphs], axis=0)
    return WeightedGraph(graphs[0].nodes, mean, threshold, strict=True)


def _require_same_nodes(graphs: Sequence[DAG | WeightedGraph]) -> None:
    if not graphs or any(g.nodes != graphs[0].nodes for g in graphs):
        raise GraphError(
            "Give at least one graph; all graphs must have the same nodes in the same order."
        )
