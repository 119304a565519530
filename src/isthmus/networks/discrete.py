"""Bayesian networks of discrete variables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, TypeAlias, final, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isthmus import hooks
from isthmus.arrays import Floats
from isthmus.errors import DataError, MismatchError, SchemaError, counted
from isthmus.frames import cells_of, columns_of, table_of
from isthmus.graphs import CPDAG, DAG, PDAG
from isthmus.graphs.names import listed
from isthmus.networks.column_maps import NetworkMaps, check_maps, observed_values, read_column
from isthmus.networks.columns import (
    LIKELIHOODS,
    Codes,
    Evidence,
    Level,
    Unseen,
    check_keys,
    check_levels,
    check_probabilities,
    check_size,
    checked_question,
    code_type,
    common_length,
    encode_columns,
    label_array,
    likelihood_of,
    number_of_rows,
    refuse_strangers,
    shares,
    unknown_level,
)
from isthmus.networks.conditionals import ProbabilityTable
from isthmus.networks.counterfactuals import (
    Counterfactual,
    affected_nodes,
    counterfactual_bounds,
    require_causal,
    unknown_nodes,
)
from isthmus.networks.distributions import (
    Explanation,
    Probabilities,
    check_class,
    members_to_ask,
    note_without_path,
    reason_for_range,
)
from isthmus.networks.inference import Elimination
from isthmus.networks.sampling_error import MOST_REDRAWN, drawn_tables
from isthmus.networks.support import ProbabilityRange

# --- Queries and predictions of discrete networks -----------------------------------------------

Levels: TypeAlias = Mapping[str, tuple[Level, ...]]


def code_of(name: str, levels: tuple[Level, ...], value: object) -> int:
    """Return the code of a level of a node."""
    plain: Any = value.item() if isinstance(value, np.generic) else value
    if plain not in levels:
        raise unknown_level(name, plain, levels)
    return levels.index(plain)


def mutilated(
    dag: DAG, tables: Mapping[str, Floats], do: Mapping[str, int]
) -> tuple[DAG, dict[str, Floats]]:
    """Return graph and tables after nodes are set to levels from outside."""
    changed = dict(tables)
    for name, code in do.items():
        changed[name] = np.zeros(tables[name].shape[-1])
        changed[name][code] = 1.0
    return DAG(dag.nodes, [(a, b) for a, b in dag.edges if b not in do]), changed


def after(
    own: DAG,
    tables: Mapping[str, Floats],
    dag: DAG,
    do: Mapping[str, int],
    engine: Elimination | None = None,
) -> Elimination:
    """Return the network of an equivalent graph after nodes are set to levels.

    Parameters
    ----------
    own, tables
        The network. Tables may have draws as their first axis.
    do
        Codes of the nodes that are set.
    engine
        What answers questions to the network; a new one by default.
    """
    engine = engine or Elimination(own, tables)
    if not do:
        return engine
    if dag == own:
        return Elimination(*mutilated(own, tables, do))
    along, turned = dag.reorder(own.nodes), dict(tables)
    for name in own.nodes:
        if dag.parents(name) == own.parents(name):
            continue
        family = [own.index(v) for v in (*along.parents(name), name)]
        joint = engine.joints(family, {})
        total = joint.sum(axis=-1, keepdims=True)
        uniform = np.full(joint.shape, 1.0 / joint.shape[-1])
        turned[name] = np.divide(joint, total, out=uniform, where=total > 0)
    return Elimination(*mutilated(along, turned, do))


def ancestors_of(dag: DAG, nodes: Iterable[str]) -> set[str]:
    """Return some nodes and all their ancestors."""
    found: set[str] = set()
    stack = [*nodes]
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack += dag.parents(node)
    return found


def split_evidence(
    dag: DAG, levels: Levels, seen: Mapping[str, Any]
) -> tuple[dict[int, int], dict[int, Floats]]:
    """Return codes of observed nodes, and likelihoods of those observed with uncertainty."""
    codes, likelihoods = {}, {}
    for name, value in seen.items():
        if isinstance(value, LIKELIHOODS):
            likelihoods[dag.index(name)] = likelihood_of(name, levels[name], value)
        else:
            codes[dag.index(name)] = code_of(name, levels[name], value)
    return codes, likelihoods


def unseen_nodes(
    dag: DAG,
    rows: Mapping[str, tuple[tuple[str, ...], NDArray[Any]]],
    targets: Collection[str],
    evidence: Mapping[str, Any],
    do: Mapping[str, Any],
) -> tuple[str, ...]:
    """Return the nodes in an answer whose distribution comes from the prior alone.

    Parameters
    ----------
    rows
        For nodes with counts, their discrete parents and the number of rows with each combination.
    evidence, do
        Codes of nodes that are seen, or set from outside.
    """
    known = {**evidence, **do}
    waiting = [v for v in targets if v not in known] if rows else []
    found: dict[str, bool] = {}
    while waiting:
        node = waiting.pop()
        if node in found:
            continue
        parents, counts = rows.get(node, ((), np.ones(())))
        place = tuple(int(known[p]) if p in known else slice(None) for p in parents)
        found[node] = any(p in known for p in parents) and not counts[place].any()
        waiting += [p for p in dag.parents(node) if p not in known]
    return tuple(v for v in dag.nodes if found.get(v, False))


# --- Bayesian networks of discrete variables ----------------------------------------------------

_MOST_ROWS = 4096
"""Maximum number of combinations of unknown levels of a row, each of which has bounds."""
_SAME = 1e-9
"""Difference of probabilities of equivalent graphs that counts as rounding."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class DiscreteNetwork:
    """A Bayesian network of discrete variables: a DAG with a probability table for each node.

    Parameters
    ----------
    dag
        The graph.
    levels
        The values of each node, in the order of the codes 0, 1, …
    tables
        For each node an array with one axis per parent, in the order of ``dag.parents(node)``, and
        a last axis for the node itself, over which it sums to one.
    counts
        For each node the number of rows in each cell of its table, if the network was fitted to
        data; see `unseen`.
    cpdag
        The equivalence class that was learned, of which `dag` is an arbitrary member; interventions
        are then answered for all members. None if the graph is causal by assumption.
    maps
        How numbers of columns became levels. Rows and evidence can have numbers or levels.
    notes
        What is said with every answer about the rows that the network was fitted to.

    Raises
    ------
    SchemaError
        If nodes, levels and tables do not match.
    DataError
        If a table does not contain probabilities.
    """

    dag: DAG
    levels: Mapping[str, tuple[Level, ...]]
    tables: Mapping[str, NDArray[np.float64]]
    counts: Mapping[str, NDArray[np.int64]] | None = None
    cpdag: CPDAG | PDAG | None = None
    maps: NetworkMaps = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_class(self.dag, self.cpdag)
        check_keys(self.dag, self.levels, "levels")
        check_keys(self.dag, self.tables, "tables")
        levels = {name: check_levels(name, self.levels[name]) for name in self.dag.nodes}
        tables = {}
        for name in self.dag.nodes:
            shape = tuple(len(levels[v]) for v in (*self.dag.parents(name), name))
            tables[name] = _checked_table(name, self.dag.parents(name), self.tables[name], shape)
        object.__setattr__(self, "levels", MappingProxyType(levels))
        object.__setattr__(self, "tables", MappingProxyType(tables))
        object.__setattr__(self, "maps", check_maps(self.dag.nodes, self.maps))
        if self.counts is not None:
            check_keys(self.dag, self.counts, "counts")
            counts = {v: _checked_counts(v, self.counts[v], tables[v].shape) for v in tables}
            object.__setattr__(self, "counts", MappingProxyType(counts))

    def __reduce__(self) -> tuple[Any, ...]:
        counts = None if self.counts is None else dict(self.counts)
        parameters = (dict(self.levels), dict(self.tables), counts)
        return DiscreteNetwork, (self.dag, *parameters, self.cpdag, self.maps, self.notes)

    @cached_property
    def conditionals(self) -> Mapping[str, ProbabilityTable]:
        """The distribution of each node given its parents."""
        counts = self.counts or {}
        tables = {
            v: ProbabilityTable(self.levels[v], self.dag.parents(v), table, counts.get(v))
            for v, table in self.tables.items()
        }
        return MappingProxyType(tables)

    @property
    def cardinalities(self) -> dict[str, int]:
        """Number of levels of each node."""
        return {name: len(levels) for name, levels in self.levels.items()}

    @property
    def parameters(self) -> int:
        """Number of free parameters."""
        return sum(t.size - t.size // t.shape[-1] for t in self.tables.values())

    def unseen(self, node: str) -> tuple[tuple[Level, ...], ...]:
        """Return the combinations of levels of the parents that do not occur in the data.

        The probabilities of the node given such a combination come from the prior alone.

        Parameters
        ----------
        node
            The node whose table is inspected. Each entry has one level per parent, in the order
            of ``dag.parents(node)``.
        """
        if self.counts is None:
            raise MismatchError("This network was not fitted to data, so it has no counts.")
        parents = self.dag.parents(node)
        never = np.argwhere(self.counts[node].sum(axis=-1) == 0)
        levels = [self.levels[p] for p in parents]
        return tuple(tuple(own[i] for own, i in zip(levels, row, strict=True)) for row in never)

    def sample_codes(self, n: int, *, seed: int = 0) -> dict[str, Codes]:
        """Draw rows from the joint distribution, as the codes of their levels.

        `learn` reads a column of more than a few codes as numbers: learn from `sample` instead.

        Parameters
        ----------
        n
            Number of rows.
        seed
            Random seed. The same seed gives the same rows.

        Returns
        -------
        dict
            For each node, in the order of ``dag.nodes``, an array of codes, in the smallest
            unsigned integer type that can represent them.
        """
        n, rng = check_size(n), np.random.default_rng(seed)
        columns: dict[str, Codes] = {}
        for name in self.dag.topological_order():
            table = self.tables[name]
            cumulative = np.cumsum(table.reshape(-1, table.shape[-1]), axis=1)
            # With a last entry of exactly one, a level of probability zero is never drawn.
            cumulative /= cumulative[:, -1:]
            row = self._rows(name, columns, n)
            uniform = rng.random(n)
            codes = np.zeros(n, dtype=code_type(table.shape[-1]))
            for level in range(table.shape[-1] - 1):
                codes += uniform >= cumulative[:, level][row]
            columns[name] = codes
        return {name: columns[name] for name in self.dag.nodes}

    def sample(self, n: int, *, seed: int = 0) -> dict[str, NDArray[Any]]:
        """Draw rows from the joint distribution, as levels; `sample_codes` is quicker.

        Parameters
        ----------
        n
            Number of rows.
        seed
            Random seed. The same seed gives the same rows.
        """
        return {
            name: label_array(self.levels[name])[codes]
            for name, codes in self.sample_codes(n, seed=seed).items()
        }

    def encode(self, rows: Mapping[str, Sequence[Level] | NDArray[Any]]) -> dict[str, Codes]:
        """Convert columns of levels to columns of codes.

        Raises
        ------
        SchemaError
            If a column is missing or contains a value that is not a level.
        """
        check_keys(self.dag, rows, "rows", extra=True)
        columns = {v: read_column(self.maps, v, rows[v]) for v in self.dag.nodes}
        coded = encode_columns(self.levels, columns, complete=True)
        return {v: own.astype(code_type(len(self.levels[v]))) for v, own in coded.items()}

    def log_likelihood(self, codes: Mapping[str, ArrayLike]) -> float:
        """Return the log-likelihood of rows, given as columns of codes."""
        return float(self.log_densities(codes).sum())

    def log_densities(self, codes: Mapping[str, ArrayLike]) -> Floats:
        """Return the log-probability of each row, given as columns of codes."""
        check_keys(self.dag, codes, "codes", extra=True)
        columns = {name: np.asarray(codes[name]) for name in self.dag.nodes}
        n = common_length(columns)
        for name, column in columns.items():
            size = len(self.levels[name])
            if n and (column.dtype.kind not in "iub" or column.min() < 0 or column.max() >= size):
                raise DataError(
                    f"Codes of {name!r} must be integers from 0 to {size - 1}; "
                    "convert levels to codes with encode()."
                )
        total: Floats = np.zeros(n)
        for name in self.dag.nodes:
            table = self.tables[name]
            row = self._rows(name, columns, n)
            with np.errstate(divide="ignore"):
                logs = np.log(table.reshape(-1, table.shape[-1]))
            total += logs[row, columns[name].astype(np.intp)]
        return total

    @overload
    def query(
        self,
        targets: str | Iterable[str],
        evidence: Evidence | None = None,
        do: None = None,
    ) -> Probabilities: ...
    @overload
    def query(
        self,
        targets: str | Iterable[str],
        evidence: Evidence | None = None,
        do: Mapping[str, Level] | None = None,
    ) -> Probabilities | ProbabilityRange: ...
    def query(
        self,
        targets: str | Iterable[str],
        evidence: Evidence | None = None,
        do: Mapping[str, Level] | None = None,
    ) -> Probabilities | ProbabilityRange:
        """Return the joint distribution of some nodes, given observations and interventions.

        It is exact for these parameters, by variable elimination. If they were fitted to data, the
        answer has a `sampling_error`, which takes the graph as given.

        Parameters
        ----------
        targets
            One or more nodes.
        evidence
            Levels of other nodes that are observed. If an observation is uncertain, map the levels
            to their likelihoods, the probabilities of the observation given each level (up to a
            common factor): ``{"smoke": {"yes": 0.8, "no": 0.1}}``. A set of levels says that it is
            one of them: ``{"age": {"young", "old"}}``.
        do
            Levels to which nodes are set by an intervention, which removes the influence of
            their usual causes. The answer is valid in the real world only if the graph is causal.

        Returns
        -------
        Probabilities or ProbabilityRange
            A range if equivalent graphs give different answers to an intervention.

        Raises
        ------
        DataError
            If the evidence has probability zero, or an exact answer needs too much memory.
        """
        asked, seen, forced = checked_question(self.dag, targets, evidence, do)
        seen, forced = (observed_values(self.maps, given) for given in (seen, forced))
        changed = {v: code_of(v, self.levels[v], level) for v, level in forced.items()}
        known = split_evidence(self.dag, self.levels, seen)
        levels = {v: self.levels[v] for v in asked}
        graphs = members_to_ask(self.dag, self.cpdag, forced, (*asked, *seen))
        places = [self.dag.index(v) for v in asked]
        own = self.dag, self.tables
        answers = [
            after(*own, dag, changed, self._elimination).joint(places, *known) for dag in graphs
        ]
        redraw: list[Callable[[], Floats] | None] = [None] * len(graphs)
        if self.counts is not None and len(graphs) <= MOST_REDRAWN:
            redraw = [partial(self._redrawn, dag, places, known, changed) for dag in graphs]
        if not answers:
            return ProbabilityRange(levels, (), reason_for_range(forced, 0))
        if np.ptp(answers, axis=0).max(initial=0.0) <= _SAME:
            seen_codes = {self.dag.nodes[i]: code for i, code in known[0].items()}
            rows = {v: (self.dag.parents(v), own.sum(axis=-1)) for v, own in self._counted()}
            unseen = unseen_nodes(self.dag, rows, asked, seen_codes, changed)
            path = note_without_path(self.cpdag, () if seen else forced, asked)
            note = " ".join(filter(None, (path, *self.notes)))
            return Probabilities(levels, answers[0], None, unseen, note, redraw[0])
        each = tuple(
            Probabilities(levels, values, redraw=again)
            for values, again in zip(answers, redraw, strict=True)
        )
        reason = " ".join((*self.notes, reason_for_range(forced, len(each))))
        return ProbabilityRange(levels, each, reason)

    def most_probable(
        self,
        evidence: Evidence | None = None,
        targets: Iterable[str] | None = None,
    ) -> Explanation:
        """Return the most probable levels of all other nodes, jointly (MPE).

        These need not be the most probable levels of the single nodes. Its probability is exact for
        these parameters; their sampling error is not included.

        Parameters
        ----------
        evidence
            What is observed, as in `query`.
        targets
            Nodes to explain, if not all; the other ones are summed out (MAP).

        Raises
        ------
        DataError
            If the evidence has probability zero, or an exact answer needs too much memory.
        """
        rest = tuple(v for v in self.dag.nodes if v not in (evidence or {}))
        asked, seen, _ = checked_question(
            self.dag, rest if targets is None else targets, evidence, None
        )
        codes, logarithm = self._elimination.most_probable(
            [self.dag.index(v) for v in asked],
            *split_evidence(self.dag, self.levels, observed_values(self.maps, seen)),
        )
        values = {v: self.levels[v][codes[self.dag.index(v)]] for v in asked}
        return Explanation(values, logarithm)

    def counterfactual(
        self, row: Mapping[str, Level], do: Mapping[str, Level], target: str
    ) -> Counterfactual:
        """Return bounds on what one row would have been if some variables had been set otherwise.

        Probabilities do not say what the same unit would have done under other conditions, so that
        the answer is a range. The graph is taken as causal. The sampling error of fitted parameters
        is not included.

        Parameters
        ----------
        row
            Observed levels; some may be unknown.
        do
            Levels to which variables would have been set; they may be in the row, too.
        target
            The variable that is asked for.

        Examples
        --------
        Would this smoker have bronchitis without smoking?

        >>> import isthmus as ist
        >>> data = ist.datasets.asia(rows=5000, seed=1)
        >>> network = ist.fit(data, data.dag)
        >>> answer = network.counterfactual(
        ...     {"smoke": "yes", "bronc": "yes"}, do={"smoke": "no"}, target="bronc"
        ... )
        >>> low, high = answer["no"]
        >>> round(low, 2), round(high, 2)
        (0.5, 1.0)
        """
        require_causal(self.cpdag)
        _, _, forced = checked_question(self.dag, target, None, do)
        seen, forced = (
            {v: code_of(v, self.levels[v], x) for v, x in observed_values(self.maps, g).items()}
            for g in (dict(row), forced)
        )
        affected = affected_nodes(self.dag, forced, target)
        unknown = unknown_nodes(self.dag, seen, affected, target)
        codes = {self.dag.index(v): code for v, code in seen.items()}
        weights = np.ones(())
        if unknown:
            weights = self._elimination.joint([self.dag.index(v) for v in unknown], codes)
        if weights.size > _MOST_ROWS:
            raise DataError(
                f"{weights.size:,} combinations of the unknown {listed(unknown)} are too many. "
                "Give more of their levels in the row."
            )
        ends = np.zeros((2, len(self.levels[target])))
        for place in np.argwhere(weights > 0.0).tolist():
            known = {**seen, **dict(zip(unknown, place, strict=True))}
            bounds = counterfactual_bounds(self.conditionals, known, forced, affected, target)
            ends += weights[tuple(place)] * np.array(bounds)
        return Counterfactual(target, tuple(self.levels[target]), ends[0], ends[1])

    def _counted(self) -> Iterable[tuple[str, NDArray[np.int64]]]:
        return () if self.counts is None else self.counts.items()

    def _redrawn(
        self,
        dag: DAG,
        places: list[int],
        known: tuple[dict[int, int], dict[int, Floats]],
        changed: Mapping[str, int],
    ) -> Floats:
        """Return the answer of an equivalent graph for draws of the parameters."""
        assert self.counts is not None
        asked = [self.dag.nodes[i] for i in (*places, *known[0], *known[1])]
        needed = set(self.dag.nodes) if changed else ancestors_of(self.dag, asked)
        own = {v: table for v, table in self.tables.items() if v in needed}
        tables = {**self.tables, **drawn_tables(own, self.counts)}
        return after(self.dag, tables, dag, changed).joints(places, *known)

    def predict_probabilities(self, data: Any, target: str, *, unseen: Unseen = "missing") -> Any:
        """Return the distribution of a node for each row, given the available columns.

        The sampling error of fitted parameters is not included. For combinations of levels of
        the parents that no row of the data has, which `unseen` lists, the answer comes from the
        prior; an answer of `query` says so.

        Parameters
        ----------
        data
            A table, or a mapping of names to columns. Nodes without a column, and cells without a
            value (None or NaN), are unknown and summed out. A column of the target is ignored.
        target
            Name of a node.
        unseen
            A level that the network does not have counts as an unknown cell, with a warning;
            ``"error"`` refuses it.

        Returns
        -------
        array or table
            Probabilities, one row per row and one column per level. For a table of pandas, Polars
            or PyArrow, a table of the same kind with the same index.

        Raises
        ------
        DataError
            If the evidence in a row has probability zero.
        """
        found, labelled = self._predicted(data, target, unseen)
        return labelled(found, self.levels[target])

    def predict(self, data: Any, target: str, *, unseen: Unseen = "missing") -> Any:
        """Return the most probable level of a node for each row; see `predict_probabilities`."""
        likely, labelled = self._predicted(data, target, unseen)
        return labelled(label_array(self.levels[target])[likely.argmax(axis=1)], (target,))

    def _predicted(self, data: Any, target: str, unseen: Unseen) -> tuple[Floats, Any]:
        """Return probabilities for each row, and a function that labels them as the table is."""
        columns, labelled = columns_of(data)
        cut = {v: own.read(v, columns[v]) for v, own in self.maps.items() if v in columns}
        if cut:
            columns = {v: columns[v] for v in columns} | cut
        place = self.dag.index(target)
        refuse_strangers(self.dag, columns, target)
        given = [v for v in self.dag.nodes if v in columns and v != target]
        known = encode_columns({v: self.levels[v] for v in given}, columns, unseen)
        codes = {self.dag.index(v): own for v, own in known.items()}
        found = self._elimination.rows(place, codes, number_of_rows(columns, given))
        return shares(found), labelled

    @cached_property
    def _elimination(self) -> Elimination:
        return Elimination(self.dag, self.tables)

    def _rows(self, name: str, columns: Mapping[str, NDArray[Any]], n: int) -> NDArray[np.intp]:
        """Return for each row of data the corresponding row of the flattened table."""
        row = np.zeros(n, dtype=np.intp)
        for parent in self.dag.parents(name):
            row *= len(self.levels[parent])
            row += columns[parent]
        return row

    def to_frame(self, node: str, like: object = None) -> Any:
        """Return one row per cell of the probability table of a node.

        Parameters
        ----------
        node
            Name of the node.
        like
            As for :func:`isthmus.to_frame`.
        """
        levels = {v: self.levels[v] for v in (*self.dag.parents(node), node)}
        counts = {} if self.counts is None else {"count": self.counts[node]}
        return table_of(cells_of(levels, {"probability": self.tables[node], **counts}), like)

    def reorder(self, nodes: Sequence[str]) -> DiscreteNetwork:
        """Return the same network with its nodes in another order."""
        dag = self.dag.reorder(nodes)
        tables, counts = {}, {}
        for name in nodes:
            old = self.dag.parents(name)
            axes = [old.index(parent) for parent in dag.parents(name)]
            tables[name] = self.tables[name].transpose(*axes, len(axes))
            if self.counts is not None:
                counts[name] = self.counts[name].transpose(*axes, len(axes))
        cpdag = None if self.cpdag is None else self.cpdag.reorder(nodes)
        rest = counts or None, cpdag, self.maps, self.notes
        return DiscreteNetwork(dag, self.levels, tables, *rest)

    def close_to(self, other: DiscreteNetwork, tolerance: float = 1e-9) -> bool:
        """Return whether two networks are equal up to a tolerance in their tables."""
        if self.dag != other.dag or dict(self.levels) != dict(other.levels):
            return False
        same = other.reorder(self.dag.nodes)
        return all(
            bool(np.abs(table - same.tables[name]).max() <= tolerance)
            for name, table in self.tables.items()
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DiscreteNetwork):
            return NotImplemented
        return self.close_to(other, tolerance=0.0)

    __hash__ = None  # type: ignore[assignment]

    def _repr_html_(self) -> str | None:
        return hooks.notebook_drawing(self.dag, repr(self))

    def __repr__(self) -> str:
        nodes, edges = counted(len(self.dag.nodes), "node"), counted(len(self.dag.edges), "edge")
        text = f"DiscreteNetwork({nodes}, {edges}, {counted(self.parameters, 'parameter')})"
        return "\n".join((text, *self.notes))


def _checked_table(
    name: str, parents: tuple[str, ...], table: ArrayLike, shape: tuple[int, ...]
) -> NDArray[np.float64]:
    array = np.array(table, dtype=np.float64, order="C")
    if array.shape != shape:
        raise SchemaError(
            f"The table of {name!r} must have shape {shape}, with one axis each for "
            f"{listed((*parents, name))} in that order; got {array.shape}."
        )
    check_probabilities(repr(name), array)
    array.flags.writeable = False
    return array


def _checked_counts(name: str, counts: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.int64]:
    given = np.asarray(counts)
    if given.shape != shape or given.dtype.kind not in "iu" or (given.size and given.min() < 0):
        raise DataError(f"The counts of {name!r} must be whole numbers in the shape {shape}.")
    array = given.astype(np.int64)
    array.flags.writeable = False
    return array
