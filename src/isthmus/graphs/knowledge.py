"""Background knowledge about the edges of a graph."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import permutations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from isthmus.errors import GraphError, KnowledgeError, a_type
from isthmus.graphs.names import (
    bits,
    check_nodes,
    check_strings,
    checked_order,
    edges_of,
    listed,
    mask_of,
    reach,
    transpose,
)
from isthmus.graphs.orientation import Mixed
from isthmus.graphs.partial import CPDAG, PDAG
from isthmus.options import is_number

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from isthmus.graphs.dag import DAG

# --- Variables at earlier time steps, and their printed names -----------------------------------
#
# Only a `Lag` states that a variable is lagged. A name such as ``x@1`` is printed for readers and
# is never parsed.


class Lag(NamedTuple):
    """A variable of a series and the number of time steps it lies in the past; 0 is the present."""

    variable: str
    steps: int


def lagged_names(names: Sequence[str], lags: int) -> dict[str, Lag]:
    """Name every variable at every time step: the present first, then one step earlier, and so on.

    The value of ``x`` one step earlier is called ``x@1``; if a variable already has that name,
    ``x@@1``, and so on.

    Parameters
    ----------
    names
        The variables of the series.
    lags
        Number of earlier time steps.
    """
    if lags < 0:
        raise GraphError(f"The number of lags must be 0 or more; {lags} was given.")
    lag_of = {name: Lag(name, 0) for name in names}
    for steps in range(1, lags + 1):
        for name in names:
            separator = "@"
            while (printed := f"{name}{separator}{steps}") in lag_of:
                separator += "@"
            lag_of[printed] = Lag(name, steps)
    return lag_of


def temporal_tiers(lag_of: Mapping[str, Lag]) -> tuple[tuple[str, ...], ...]:
    """Group nodes by time step, earliest first; return no groups if no node is lagged.

    Given as the tiers of `Knowledge`, they forbid edges that go back in time.
    """
    steps = sorted({lag.steps for lag in lag_of.values()}, reverse=True)
    if steps in ([], [0]):
        return ()
    return tuple(tuple(n for n, lag in lag_of.items() if lag.steps == s) for s in steps)


# --- Background knowledge about the edges of a graph --------------------------------------------


class BoundKnowledge:
    """Knowledge about a fixed list of nodes, by index.

    The matrices are computed when they are first used, because with 10^5 nodes they do not fit into
    memory; `required_edges` and `permitted` do not need them.

    Attributes
    ----------
    required
        Whether an edge ``[from, to]`` must be in the graph.
    forbidden
        Whether an edge ``[from, to]`` must not be in the graph; the diagonal is True.
    """

    def __init__(
        self,
        required: NDArray[np.bool_] | None = None,
        forbidden: NDArray[np.bool_] | None = None,
        *,
        rules: _IndexedRules | None = None,
    ) -> None:
        if rules is None:
            self.__dict__.update(required=required, forbidden=forbidden)
        self._rules = rules

    @cached_property
    def required(self) -> NDArray[np.bool_]:
        assert self._rules is not None
        return self._rules.required_matrix()

    @cached_property
    def forbidden(self) -> NDArray[np.bool_]:
        assert self._rules is not None
        return self._rules.forbidden_matrix()

    @cached_property
    def required_edges(self) -> tuple[tuple[int, int], ...]:
        """The required edges as pairs ``(from, to)``."""
        if self._rules is not None:
            return self._rules.required
        return tuple((a, b) for a, b in np.argwhere(self.required).tolist())

    def permitted(self, child: int, candidates: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which candidates, other than the child itself, may be its parents."""
        if self._rules is None:
            allowed: NDArray[np.bool_] = ~self.forbidden[candidates, child]
            return allowed
        return self._rules.permitted(child, candidates)


@dataclass(frozen=True, eq=False)
class _IndexedRules:
    """Constraints by index: required and forbidden edges, the tier of each node (or -1), roots."""

    required: tuple[tuple[int, int], ...]
    forbidden: Mapping[int, frozenset[int]]  # sources by target
    level: NDArray[np.int64]
    roots: frozenset[int]

    def required_matrix(self) -> NDArray[np.bool_]:
        matrix = np.zeros((len(self.level), len(self.level)), dtype=np.bool_)
        for a, b in self.required:
            matrix[a, b] = True
        matrix.flags.writeable = False
        return matrix

    def forbidden_matrix(self) -> NDArray[np.bool_]:
        matrix = np.eye(len(self.level), dtype=np.bool_)
        for b, sources in self.forbidden.items():
            matrix[list(sources), b] = True
        matrix |= (self.level[:, None] > self.level[None, :]) & (self.level >= 0)[None, :]
        for b in self.roots:
            matrix[:, b] = True
        matrix.flags.writeable = False
        return matrix

    def permitted(self, child: int, candidates: NDArray[np.int64]) -> NDArray[np.bool_]:
        if child in self.roots:
            return np.zeros(len(candidates), dtype=np.bool_)
        own = self.level[child]
        allowed: NDArray[np.bool_] = (self.level[candidates] <= own) | (own < 0)
        if child in self.forbidden:
            allowed &= ~np.isin(candidates, list(self.forbidden[child]))
        return allowed


@dataclass(frozen=True)
class Knowledge:
    """Background knowledge: constraints that every learned graph satisfies, and prior beliefs.

    Parameters
    ----------
    required
        Pairs ``(from, to)`` that must be edges.
    forbidden
        Pairs ``(from, to)`` that must not be edges; the opposite direction stays allowed.
    tiers
        Groups of names, earliest first. There are no edges from a later tier to an earlier one.
        Nodes in no tier are unconstrained: a directed path through them may still lead from a later
        tier to an earlier one. To exclude such paths, put every node into a tier.
    roots
        Nodes that have no parents.
    probabilities
        Triples ``(a, b, probability)``: prior probability of an edge between two variables, in
        either direction. The log-odds are added to a local score, so the data can overrule them;
        0.5 changes nothing. Directions stay a matter of the other constraints and of the data.
    expected_parents
        How many of the other variables are probably parents of a variable: a prior for sparse
        graphs. Each pair that is not among ``probabilities`` has this number, divided by the number
        of other variables, as its probability. None for 0.5: all graphs are equally probable, so
        that most of them have an edge between every second pair.

    Examples
    --------
    >>> from isthmus.graphs import DAG, Knowledge
    >>> knowledge = Knowledge(tiers=[["age", "sex"], ["smoking"], ["cancer"]], roots=["sex"])
    >>> knowledge.allows(DAG(["age", "sex", "smoking", "cancer"], [("age", "smoking")]))
    True
    """

    required: Sequence[tuple[str, str]] = ()
    forbidden: Sequence[tuple[str, str]] = ()
    tiers: Sequence[Sequence[str]] = ()
    roots: Sequence[str] = ()
    probabilities: Sequence[tuple[str, str, float]] = ()
    expected_parents: float | None = None
    _tier: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "required", _pairs(self.required, "required"))
        put(self, "forbidden", _pairs(self.forbidden, "forbidden"))
        put(self, "tiers", tuple(_names(tier, "A tier") for tier in _tiers(self.tiers)))
        put(self, "roots", _names(self.roots, "roots"))
        put(self, "probabilities", _probabilities(self.probabilities))
        put(self, "expected_parents", _expected_parents(self.expected_parents))
        put(self, "_tier", {name: i for i, tier in enumerate(self.tiers) for name in tier})

    def bind(self, nodes: Sequence[str]) -> BoundKnowledge:
        """Turn the knowledge into matrices over these nodes.

        Raises
        ------
        KnowledgeError
            If a name is unknown, or the constraints contradict each other.
        """
        names, index = check_nodes(nodes)
        self._check_names(names)
        self._check_consistent()
        forbidden: dict[int, set[int]] = {}
        for a, b in self.forbidden:
            forbidden.setdefault(index[b], set()).add(index[a])
        rules = _IndexedRules(
            tuple((index[a], index[b]) for a, b in self.required),
            {b: frozenset(sources) for b, sources in forbidden.items()},
            np.array([self._tier.get(name, -1) for name in names], dtype=np.int64),
            frozenset(index[name] for name in self.roots),
        )
        return BoundKnowledge(rules=rules)

    def with_time(self, lag_of: Mapping[str, Lag]) -> Knowledge:
        """Return the same knowledge that also forbids edges back in time.

        Parameters
        ----------
        lag_of
            For each node, the variable it is and how many time steps earlier, as in
            `Schema.lag_of`. If no node is lagged, nothing changes.
        """
        tiers = temporal_tiers(lag_of)
        if not tiers or tiers == self.tiers:
            return self
        if not self.tiers:
            return replace(self, tiers=tiers)
        backwards = [
            (late, early)
            for i, earlier in enumerate(tiers)
            for later in tiers[i + 1 :]
            for late in later
            for early in earlier
        ]
        return replace(self, forbidden=(*self.forbidden, *backwards))

    def without(self, names: Collection[str]) -> Knowledge:
        """Return the knowledge about the other nodes; required edges are kept as they are."""
        if not names:
            return self
        return replace(
            self,
            forbidden=[edge for edge in self.forbidden if not set(edge) & set(names)],
            tiers=[[name for name in tier if name not in names] for tier in self.tiers],
            roots=[name for name in self.roots if name not in names],
            probabilities=[p for p in self.probabilities if not set(p[:2]) & set(names)],
        )

    @property
    def has_prior(self) -> bool:
        """Whether some edges are more or less probable than others, or than not."""
        return bool(self.probabilities) or self.expected_parents is not None

    def log_odds(self, nodes: Sequence[str]) -> NDArray[np.float64]:
        """Return the logarithm of the prior odds of an edge between two of the nodes."""
        size, index = len(nodes), {name: i for i, name in enumerate(nodes)}
        odds = np.zeros((size, size))
        if self.expected_parents is not None and size > 1:
            others = size - 1 - self.expected_parents
            if others <= 0:
                raise KnowledgeError(
                    f"expected_parents is {self.expected_parents:g}, and a variable has only "
                    f"{size - 1} others. Expect fewer: {(size - 1) / 2:g} makes all graphs equally "
                    "probable."
                )
            odds += math.log(self.expected_parents / others)
        for a, b, p in self.probabilities:
            if a in index and b in index:
                odds[index[a], index[b]] = odds[index[b], index[a]] = math.log(p) - math.log1p(-p)
        return odds

    def permits(self, a: str, b: str) -> bool:
        """Return whether the edge a -> b is not forbidden."""
        check_strings((a, b))
        late, early = self._tier.get(a), self._tier.get(b)
        backwards = late is not None and early is not None and late > early
        return not (backwards or b in self.roots or (a, b) in self.forbidden)

    def excludes_path(self, nodes: Sequence[str], start: str, end: str) -> bool:
        """Return whether no allowed graph over some nodes has a directed path between two of them.

        Parameters
        ----------
        nodes
            All nodes of the graph. A node in no tier may be on a path back to an earlier tier.
        start, end
            The first and the last node of the path.
        """
        bound = self.bind(nodes)
        size, index = len(nodes), {name: i for i, name in enumerate(nodes)}
        required = [mask_of(np.flatnonzero(row).tolist()) for row in bound.required]
        allowed = [mask_of(np.flatnonzero(~row).tolist()) for row in bound.forbidden]
        # An edge to a node that must come earlier would close a cycle.
        for later, earlier in enumerate(
            transpose([reach(1 << v, required) for v in range(size)], size)
        ):
            allowed[later] &= ~earlier
        return not reach(1 << index[start], allowed) >> index[end] & 1

    def allows(self, dag: DAG) -> bool:
        """Return whether a DAG has every required edge and no forbidden one."""
        _require_dag(dag, "allows")
        self._check_names(dag.nodes)
        forbidden, roots, tier = set(self.forbidden), set(self.roots), self._tier
        edges = dag.edges
        if not set(self.required) <= set(edges):
            return False
        return not any(
            b in roots or (a, b) in forbidden or (a in tier and b in tier and tier[a] > tier[b])
            for a, b in edges
        )

    def apply(self, pattern: CPDAG, member: DAG) -> PDAG:
        """Orient the edges of an equivalence class that the knowledge and Meek's rules determine.

        Parameters
        ----------
        pattern
            The equivalence class.
        member
            A DAG of the class that agrees with the knowledge.
        """
        if not isinstance(pattern, CPDAG):
            raise KnowledgeError(
                f"Knowledge.apply takes a CPDAG and a DAG of its class, got a "
                f"{type(pattern).__name__}."
            )
        if not self.allows(member):
            raise KnowledgeError(
                f"The graph does not agree with the knowledge: {self._violation(member)}."
            )
        graph = Mixed(pattern.parent_masks, pattern.neighbour_masks)
        names = pattern.nodes
        required = set(self.required)
        for a, b in pattern.undirected:
            for x, y in ((a, b), (b, a)):
                if (x, y) in required or not self.permits(y, x):
                    graph.orient(pattern.index(x), pattern.index(y))
                    break
        graph.close()
        return PDAG.from_masks(names, graph.parents, graph.neighbours)

    def _violation(self, dag: DAG) -> str:
        edges = set(dag.edges)
        missing = [f"{a} → {b}" for a, b in self.required if (a, b) not in edges]
        if missing:
            return f"it lacks the required {listed(missing)}"
        forbidden = (f"{a} → {b}" for a, b in dag.edges if not self.permits(a, b))
        return f"it has the forbidden {listed(forbidden)}"

    def _check_names(self, nodes: Iterable[str]) -> None:
        existing = set(nodes)
        used = [name for pair in (*self.required, *self.forbidden) for name in pair]
        used += [name for tier in self.tiers for name in tier] + list(self.roots)
        used += [name for a, b, _ in self.probabilities for name in (a, b)]
        unknown = list(dict.fromkeys(name for name in used if name not in existing))
        if unknown:
            raise KnowledgeError(
                f"The knowledge mentions {listed(unknown)}, which the graph or the data do not "
                f"have. The nodes are {listed(nodes)}."
            )

    def _check_consistent(self) -> None:
        twice = [n for i, tier in enumerate(self.tiers) for n in tier if self._tier[n] != i]
        if twice:
            raise KnowledgeError(
                f"A node can be in one tier only; {listed(twice)} is in more than one."
            )
        for a, b in self.required:
            if a == b:
                raise KnowledgeError(f"The edge {a} → {a} is required; a node cannot cause itself.")
            if (a, b) in self.forbidden:
                raise KnowledgeError(f"The edge {a} → {b} is both required and forbidden.")
            if b in self.roots:
                raise KnowledgeError(f"The edge {a} → {b} is required, but {b!r} is a root.")
            if not self.permits(a, b):
                raise KnowledgeError(
                    f"The edge {a} → {b} is required, but {a!r} is in a later tier than {b!r}."
                )
        names = tuple(dict.fromkeys(name for pair in self.required for name in pair))
        index = {name: i for i, name in enumerate(names)}
        masks = [0] * len(names)
        for a, b in self.required:
            masks[index[b]] |= 1 << index[a]
        try:
            checked_order(names, [tuple(bits(mask)) for mask in masks])
        except GraphError as error:
            raise KnowledgeError(f"The required edges contradict each other. {error}") from None


def without_others(knowledge: Knowledge, dag: DAG) -> Knowledge:
    """Return knowledge that also forbids edges between pairs that a graph does not join."""
    joined = {pair for a, b in dag.edges for pair in ((a, b), (b, a))}
    apart = [pair for pair in permutations(dag.nodes, 2) if pair not in joined]
    return replace(knowledge, forbidden=(*knowledge.forbidden, *apart))


def require_knowledge(knowledge: object) -> None:
    """Raise a KnowledgeError unless the argument is `Knowledge`."""
    if not isinstance(knowledge, Knowledge):
        raise KnowledgeError(
            f"knowledge must be Knowledge(required=…, forbidden=…, tiers=…, roots=…); a "
            f"{type(knowledge).__name__} was given."
        )


def _require_dag(dag: object, method: str) -> None:
    from isthmus.graphs.dag import DAG

    if not isinstance(dag, DAG):
        raise KnowledgeError(f"Knowledge.{method} takes a DAG, got {a_type(dag)}.")


def _pairs(pairs: Iterable[tuple[str, str]], what: str) -> tuple[tuple[str, str], ...]:
    try:
        edges = edges_of(pairs, what)
        check_strings(name for edge in edges for name in edge)
        return tuple(dict.fromkeys(edges))
    except GraphError as error:
        raise KnowledgeError(f"In {what}: {error}") from None


def _probabilities(given: Iterable[tuple[str, str, float]]) -> tuple[tuple[str, str, float], ...]:
    wrong = KnowledgeError(
        "probabilities must be a list of two different names and a number between 0 and 1, each "
        f"pair once, such as [('smoking', 'cancer', 0.9)]; {given!r} was given."
    )
    try:
        triples = [(a, b, float(p)) for a, b, p in given]
        pairs = {frozenset(check_strings((a, b))) for a, b, _ in triples}
    except (TypeError, ValueError, GraphError):
        raise wrong from None
    if len(pairs) < len(triples) or any(a == b or not 0.0 < p < 1.0 for a, b, p in triples):
        raise wrong
    return tuple(triples)


def _expected_parents(given: object) -> float | None:
    if given is None:
        return None
    if not is_number(given) or not 0 < float(given) < math.inf:
        raise KnowledgeError(
            f"expected_parents must be a positive number, such as 1; {given!r} was given."
        )
    return float(given)


def _tiers(tiers: Iterable[Iterable[str]]) -> list[Iterable[str]]:
    if isinstance(tiers, (str, Mapping)) or not isinstance(tiers, Iterable):
        raise KnowledgeError(
            "tiers must be a list of groups of names, earliest first, such as "
            f"[['a'], ['b', 'c']]; {tiers!r} was given."
        )
    return list(tiers)


def _names(names: Iterable[str], what: str) -> tuple[str, ...]:
    if isinstance(names, (str, Mapping)) or not isinstance(names, Iterable):
        raise KnowledgeError(f"{what} must be a collection of names; {names!r} was given.")
    try:
        return tuple(dict.fromkeys(check_strings(names)))
    except GraphError as error:
        raise KnowledgeError(f"{what}: {error}") from None
