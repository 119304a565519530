"""Bayesian networks of discrete and continuous variables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from types import MappingProxyType
from typing import Any, final, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isthmus import hooks
from isthmus.arrays import Floats
from isthmus.errors import DataError, MismatchError, SchemaError, counted
from isthmus.frames import columns_of
from isthmus.graphs import CPDAG, DAG, PDAG
from isthmus.graphs.names import listed
from isthmus.networks.column_maps import (
    NetworkMaps,
    check_maps,
    described_scores,
    observed_values,
    read_column,
    scored_nodes,
    table_values,
)
from isthmus.networks.columns import (
    LIKELIHOODS,
    Evidence,
    Level,
    Unseen,
    check_keys,
    check_simulations,
    check_size,
    checked_question,
    common_length,
    encode_columns,
    finite,
    label_array,
    likelihood_of,
    measured,
    number_column,
    number_of_rows,
    refuse_strangers,
)
from isthmus.networks.conditionals import Conditional, ConditionalGaussian, Hurdle, ProbabilityTable
from isthmus.networks.counterfactuals import (
    Counterfactual,
    affected_nodes,
    counterfactual_bounds,
    require_causal,
    unknown_nodes,
)
from isthmus.networks.discrete import code_of, unseen_nodes
from isthmus.networks.distributions import (
    Explanation,
    Nonparanormal,
    NormalMixture,
    Probabilities,
    check_class,
    in_units,
    members_to_ask,
    note_without_path,
    reason_for_range,
)
from isthmus.networks.inference import Elimination
from isthmus.networks.mixed_queries import MixedQuery, predict_rows, redrawn
from isthmus.networks.ranges import without_ranges
from isthmus.networks.sampling_error import counted_rows
from isthmus.networks.support import (
    MeanRange,
    ProbabilityRange,
    Support,
    as_column,
    kept,
    note_on_evidence,
    warn_outside,
)

# --- The most probable levels of discrete nodes of a mixed network, by elimination --------------
#
# If every number that matters is observed, the rest is a discrete network: its tables are
# computed from the distributions at these numbers, and the density of what is observed is a
# likelihood.

_CELLS = 1_000_000
"""Maximum number of cells of a table."""


def most_probable_codes(question: MixedQuery) -> tuple[dict[str, int], float] | None:
    """Return the most probable codes of the targets, jointly, and their log-probability.

    None if a number that matters is not known exactly, or a table is too large.
    """
    known, own = {**question.evidence, **question.do}, question.conditionals
    nodes = question.relevant()
    hidden = [v for v in nodes if v not in known]
    if any(not own[v].levels for v in hidden):
        return None
    tables: dict[str, Floats] = {}
    edges: list[tuple[str, str]] = []
    for name in nodes:
        if name in question.do:
            continue
        parents = [p for p in hidden if p in own[name].parents]
        sizes = [len(own[p].levels) for p in parents]
        shape = [*sizes, len(own[name].levels) if name in hidden else 1]
        if prod(shape) > _CELLS:
            return None
        places = np.indices(shape).reshape(len(shape), -1)
        columns = {v: np.full(places.shape[1], x) for v, x in known.items()}
        columns |= dict(zip(parents, places[:-1], strict=True))
        value = places[-1] if name in hidden else columns[name]
        logs = own[name].log_density(value, columns).reshape(shape)
        if name in hidden:
            tables[name] = np.exp(logs)
        else:  # an event whose probability is proportional to the density
            chance = np.exp(logs - logs.max())
            tables[name] = np.concatenate([chance, 1.0 - chance], axis=-1)
        edges += [(p, name) for p in parents]
    dag = DAG(list(tables), edges)
    order = {name: [p for p in hidden if p in own[name].parents] for name in tables}
    for name, parents in order.items():  # the axes are in the order of the graph
        axes = [parents.index(p) for p in dag.parents(name)]
        tables[name] = tables[name].transpose([*axes, len(parents)])
    codes, logarithm = Elimination(dag, tables).most_probable(
        [dag.index(v) for v in question.targets],
        {dag.index(v): 0 for v in tables if v in question.evidence},
        {dag.index(v): likelihood for v, likelihood in question.likelihoods.items()},
    )
    return {v: codes[dag.index(v)] for v in question.targets}, logarithm


def likely_codes(question: MixedQuery, simulations: int, seed: int) -> tuple[dict[str, int], float]:
    """Return the same from simulations: the best of the levels that were drawn often.

    The probability of a candidate is that of its levels given the drawn numbers, on average; levels
    are then changed one by one as long as that makes them more probable.
    """
    columns, weights = question.drawn(simulations, seed)
    targets, own = question.targets, question.conditionals
    codes = np.array([columns[v] for v in targets], np.intp).T
    distinct, place = np.unique(codes, axis=0, return_inverse=True)
    shares = np.bincount(place.ravel(), weights, len(distinct))
    some = min(len(weights), _DRAWS)
    total = question.log_weight(some, seed)

    def value(candidate: tuple[int, ...]) -> float:
        told = dict(zip(targets, map(float, candidate), strict=True))
        return question.given(told).log_weight(some, seed) - total

    starts = distinct[np.argsort(-shares)[:_STARTS]].tolist()
    known = {tuple(start): value(tuple(start)) for start in starts}
    best = max(known, key=known.__getitem__)
    while True:
        near = [
            (*best[:i], code, *best[i + 1 :])
            for i, v in enumerate(targets)
            for code in range(len(own[v].levels))
        ]
        known |= {c: value(c) for c in near if c not in known}
        better = max(known, key=known.__getitem__)
        if better == best:
            return dict(zip(targets, best, strict=True)), known[best]
        best = better


_STARTS = 20
"""Drawn combinations of levels from which the search starts."""
_DRAWS = 5000
"""Draws of the unknown numbers for the probability of each candidate."""


# --- Bayesian networks of discrete and continuous variables -------------------------------------


@final
@dataclass(frozen=True, eq=False, repr=False)
class MixedNetwork:
    """A network of discrete and continuous variables.

    Parameters
    ----------
    dag
        The graph.
    conditionals
        The distribution of each node given its parents: `ProbabilityTable`,
        `ConditionalGaussian`, `Hurdle` or `MultinomialLogit`.
    cpdag
        The equivalence class that was learned, of which `dag` is an arbitrary member. None if the
        graph is causal by assumption.
    maps
        How values of columns became what the network has: normal scores, levels, or numbers of
        dates. Tables, evidence and answers have the values of the columns. Parameters, means,
        covariances and densities are those of the scores.
    supports
        The ranges of the columns that the network was fitted to, beyond which answers say that
        they are extrapolated; empty if they are not known.
    notes
        What is said with every answer about the rows that the network was fitted to.

    Raises
    ------
    SchemaError
        If graph and distributions do not match.
    """

    dag: DAG
    conditionals: Mapping[str, Conditional]
    cpdag: CPDAG | PDAG | None = None
    maps: NetworkMaps = field(default_factory=dict)
    supports: Mapping[str, Support] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_class(self.dag, self.cpdag)
        check_keys(self.dag, self.conditionals, "conditionals")
        for name in self.dag.nodes:
            given, expected = self.conditionals[name].parents, self.dag.parents(name)
            if set(given) != set(expected):
                raise SchemaError(
                    f"Node {name!r} has the parents {listed(expected)}, but its distribution has "
                    f"{listed(given)}."
                )
        ordered = {name: self.conditionals[name] for name in self.dag.nodes}
        object.__setattr__(self, "conditionals", MappingProxyType(ordered))
        object.__setattr__(self, "maps", check_maps(self.dag.nodes, self.maps))
        object.__setattr__(self, "supports", MappingProxyType(dict(self.supports)))

    def __reduce__(self) -> tuple[Any, ...]:
        rest = self.cpdag, self.maps, dict(self.supports), self.notes
        return MixedNetwork, (self.dag, dict(self.conditionals), *rest)

    @property
    def levels(self) -> dict[str, tuple[Level, ...]]:
        """The values of each discrete node."""
        return {name: own.levels for name, own in self.conditionals.items() if own.levels}

    @property
    def parameters(self) -> int:
        """Number of free parameters."""
        return sum(own.parameters for own in self.conditionals.values())

    def sample(self, n: int, *, seed: int = 0, bounded: bool = True) -> dict[str, NDArray[Any]]:
        """Draw rows from the joint distribution.

        Parameters
        ----------
        n
            Number of rows.
        seed
            Random seed. The same seed gives the same rows.
        bounded
            Whether numbers stay within the range of the column that the network was fitted to, and
            are whole if those of the column are, where the network knows it (`supports`). Numbers
            beyond an end are put there.

        Returns
        -------
        dict
            For each node, in the order of ``dag.nodes``, an array of levels or numbers, as for
            `GaussianNetwork`.
        """
        n, rng = check_size(n), np.random.default_rng(seed)
        columns: dict[str, NDArray[Any]] = {}
        for name in self.dag.topological_order():
            drawn = self.conditionals[name].draw(columns, n, rng)
            columns[name] = kept(self.supports, name, drawn) if bounded else drawn
        levels = self.levels
        return {
            name: label_array(levels[name])[columns[name]]
            if name in levels
            else as_column(self.supports, self.maps, name, columns[name], bounded=bounded)
            for name in self.dag.nodes
        }

    def log_likelihood(self, data: Mapping[str, ArrayLike]) -> float:
        """Return the log-likelihood of rows, given as columns of levels and numbers."""
        return float(self.log_densities(data).sum())

    def log_densities(self, data: Mapping[str, ArrayLike]) -> NDArray[np.float64]:
        """Return the log-density of each row, given as columns of levels and numbers."""
        check_keys(self.dag, data, "data", extra=True)
        columns = self._columns(self.dag.nodes, data, complete=True)
        total = np.zeros(common_length(columns))
        for name, own in self.conditionals.items():
            total += own.log_density(columns[name], columns)
        return total

    @overload
    def query(
        self,
        targets: str | Iterable[str],
        evidence: Evidence | None = None,
        do: None = None,
        *,
        simulations: int = 100_000,
        seed: int = 0,
    ) -> Probabilities | NormalMixture | Nonparanormal: ...
    @overload
    def query(
        self,
        targets: str | Iterable[str],
        evidence: Evidence | None = None,
        do: Mapping[str, Level | float] | None = None,
        *,
        simulations: int = 100_000,
        seed: int = 0,
    ) -> Probabilities | NormalMixture | Nonparanormal | ProbabilityRange | MeanRange: ...
    def query(
        self,
        targets: str | Iterable[str],
        evidence: Evidence | None = None,
        do: Mapping[str, Level | float] | None = None,
        *,
        simulations: int = 100_000,
        seed: int = 0,
    ) -> Probabilities | NormalMixture | Nonparanormal | ProbabilityRange | MeanRange:
        """Return the joint distribution of some nodes, given observations and interventions.

        The answer is exact if the discrete variables on which it depends have at most 10,000
        unknown configurations, and none of them has a continuous parent of unknown value.
        Otherwise it is simulated by likelihood weighting, and the answer's `error` is its
        simulation error. If the parameters were fitted to data, the answer has a `sampling_error`,
        which takes the graph as given.

        Parameters
        ----------
        targets
            One or more nodes, all discrete or all continuous.
        evidence
            Levels and values of other nodes that are observed. If an observation is uncertain,
            map the levels to their likelihoods, or give the measured value and the standard
            deviation of its error: ``{"sex": {"f": 0.9, "m": 0.2}, "dose": (1.5, 0.2)}``. A set
            of levels says that it is one of them, and `slice(1, 2)` or `slice(1, None)` that a
            number lies in this range; the answer is then simulated.
        do
            Levels and values to which nodes are set by an intervention, which removes the
            influence of their usual causes. The answer is valid in the real world only if the
            graph is causal.
        simulations
            Number of draws if the answer is simulated.
        seed
            Random seed. The same seed gives the same answer.

        Returns
        -------
        Probabilities or NormalMixture
            For discrete or for continuous targets. `ProbabilityRange` or `MeanRange`, without
            bounds, if equivalent graphs give different answers to an intervention. For targets
            that were learned as normal scores, a `Nonparanormal`: medians and intervals.

        Raises
        ------
        DataError
            If the evidence has probability zero, or is too improbable for the number of draws.
        """
        check_simulations(simulations)
        asked, seen, forced = checked_question(self.dag, targets, evidence, do)
        seen, forced = (observed_values(self.maps, given) for given in (seen, forced))
        settings = self._coded(forced)
        if len(members_to_ask(self.dag, self.cpdag, forced, (*asked, *seen))) != 1:
            return self._unidentified(asked, forced)
        certain, ranges = without_ranges(seen, self.levels)
        values, likelihoods, errors = self._split(certain)
        question = MixedQuery(
            self.dag, dict(self.conditionals), asked, values, settings, likelihoods, errors, ranges
        )
        answer = question.answer(simulations, seed)
        notes = (
            note_without_path(self.cpdag, () if seen else forced, asked),
            note_on_evidence(self.supports, self.maps, {**values, **settings}, self.levels),
            *self.notes,
        )
        answer = replace(
            answer,
            unseen=unseen_nodes(self.dag, self._rows(), asked, values, settings),
            note=" ".join(filter(None, notes)),
        )
        final = answer if isinstance(answer, Probabilities) else in_units(answer, self.maps)
        if not counted_rows(self.conditionals):
            return final
        return replace(final, redraw=partial(redrawn, question, self.maps, simulations, seed))

    def _rows(self) -> dict[str, tuple[tuple[str, ...], NDArray[Any]]]:
        """Return the discrete parents of nodes, and the number of rows of each combination."""
        rows = {}
        for name, one in self.conditionals.items():
            own = one.elsewhere if isinstance(one, Hurdle) else one
            if isinstance(own, ProbabilityTable) and own.counts is not None:
                rows[name] = own.given, own.counts.sum(axis=-1)
            elif isinstance(own, ConditionalGaussian) and own.counts is not None:
                rows[name] = own.discrete, own.counts
        return rows

    def most_probable(
        self,
        evidence: Evidence | None = None,
        targets: Iterable[str] | None = None,
        *,
        simulations: int = 100_000,
        seed: int = 0,
    ) -> Explanation:
        """Return the most probable levels of discrete nodes, jointly.

        Continuous nodes are integrated out: which of their values is most probable jointly with
        levels would depend on their units. To explain them as well, ask for their distribution
        given the levels: ``network.query("x", evidence | explanation.values)``. The sampling error
        of fitted parameters is not included.

        The answer is exact if all numbers on which it depends are observed, and none is uncertain.
        Otherwise numbers are simulated, and the levels are found by a search that starts from the
        20 combinations drawn most often, and changes one level at a time.

        Parameters
        ----------
        evidence
            What is observed, as in `query`.
        targets
            Discrete nodes to explain; by default all that are not observed.
        simulations, seed
            Number of draws of the search, and its random seed.
        """
        check_simulations(simulations)
        rest = [v for v in self.levels if v not in (evidence or {})]
        asked = rest if targets is None else list(targets)
        numbers = [v for v in asked if v not in self.levels]
        if numbers or not asked:
            raise MismatchError(
                f"{listed(numbers)} are continuous, and a most probable value jointly with levels "
                "depends on units. Name discrete targets, and ask query for the others, given "
                "these."
                if numbers
                else "No discrete variable is left to explain. Ask query for the continuous ones."
            )
        targets, seen, _ = checked_question(self.dag, asked, evidence, None)
        exact, likelihoods, errors = self._split(observed_values(self.maps, seen))
        question = MixedQuery(
            self.dag, dict(self.conditionals), targets, exact, {}, likelihoods, errors
        )
        codes, logarithm = most_probable_codes(question) or likely_codes(
            question, simulations, seed
        )
        return Explanation({v: self.levels[v][codes[v]] for v in targets}, logarithm)

    def counterfactual(
        self, row: Mapping[str, Level | float], do: Mapping[str, Level | float], target: str
    ) -> Counterfactual:
        """Return bounds on what one row would have been if some variables had been set otherwise.

        The noise of regressions is that of the row; for levels, the answer is a range, as of a
        `DiscreteNetwork`. The graph is taken as causal. The sampling error of fitted parameters is
        not included.

        Parameters
        ----------
        row
            Observed levels and values, with those of the target and of all nodes between the
            variables that are set and the target.
        do
            What variables would have been set to; they may be in the row, too.
        target
            The variable that is asked for.
        """
        require_causal(self.cpdag)
        _, _, forced = checked_question(self.dag, target, None, do)
        if target in scored_nodes(self.maps):
            raise MismatchError(
                f"{target!r} was learned as normal scores, which have no expected value. Ask for "
                "another target, or fit the graph without them: ist.fit(data, dag)."
            )
        seen, forced = (
            self._coded(observed_values(self.maps, given)) for given in (dict(row), forced)
        )
        affected = affected_nodes(self.dag, forced, target)
        unknown = unknown_nodes(self.dag, seen, affected, target)
        if unknown:
            raise DataError(
                f"The row has no value of {listed(unknown)}, which says how much noise there was."
            )
        bounds = counterfactual_bounds(self.conditionals, seen, forced, affected, target)
        return Counterfactual(target, self.conditionals[target].levels, *bounds)

    def _unidentified(
        self, asked: tuple[str, ...], forced: Collection[str]
    ) -> ProbabilityRange | MeanRange:
        """Return an answer without bounds: conditionals along other graphs have no closed form."""
        levels = self.levels
        reason = reason_for_range(forced, 0, ", which a mixed network does not support")
        if asked[0] in levels:
            return ProbabilityRange({v: levels[v] for v in asked}, (), reason)
        return MeanRange(asked, (), reason)

    def _split(
        self, seen: Mapping[str, Any]
    ) -> tuple[dict[str, float], dict[str, Floats], dict[str, tuple[float, float]]]:
        """Return what is observed, likelihoods of levels, and values with an error."""
        likelihoods, errors = {}, {}
        for name, value in seen.items():
            if name in self.levels and isinstance(value, LIKELIHOODS):
                likelihoods[name] = likelihood_of(name, self.levels[name], value)
            elif name not in self.levels and isinstance(value, tuple | Mapping):
                errors[name] = measured(name, value)
        exact = {v: value for v, (value, error) in errors.items() if error == 0}
        certain = {v: x for v, x in seen.items() if v not in likelihoods and v not in errors}
        errors = {v: pair for v, pair in errors.items() if v not in exact}
        return self._coded(certain | exact), likelihoods, errors

    def _coded(self, given: Mapping[str, Any]) -> dict[str, float]:
        """Return levels as codes, and checked numbers."""
        levels = self.levels
        return {
            name: code_of(name, levels[name], value)
            if name in levels
            else finite(value, f"The value of {name!r}")
            for name, value in given.items()
        }

    def predict_probabilities(
        self,
        data: Any,
        target: str,
        *,
        unseen: Unseen = "missing",
        simulations: int = 10_000,
        seed: int = 0,
    ) -> Any:
        """Return the distribution of a discrete node for each row, given the available columns.

        The sampling error of fitted parameters is not included. For combinations of levels of
        the parents that no row of the data has, the answer comes from the prior; an answer of
        `query` says so.

        Parameters
        ----------
        data
            A table, or a mapping of names to columns. Nodes without a column, and cells without a
            value (None or NaN), are unknown and summed or integrated out. A column of the target is
            ignored.
        target
            Name of a discrete node.
        unseen
            A level that the network does not have counts as an unknown cell, with a warning;
            ``"error"`` refuses it.
        simulations
            Number of draws for each row whose answer has no closed form, as in `query`, which
            returns its simulation error. With the Markov blanket of the target, no row needs them.
        seed
            Random seed of the simulations.

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
        self.dag.index(target)
        if target not in self.levels:
            raise MismatchError(f"{target!r} is continuous; predict() gives its expected value.")
        columns, labelled = columns_of(data)
        found = self._predicted(columns, target, unseen, simulations, seed)
        return labelled(found, self.levels[target])

    def predict(
        self,
        data: Any,
        target: str,
        *,
        unseen: Unseen = "missing",
        simulations: int = 10_000,
        seed: int = 0,
    ) -> Any:
        """Return the most probable level, or the expected value, of a node for each row.

        Of a column of normal scores, it is the value with the expected score.
        `predict_probabilities` and `query` return the distribution around it, and the simulation
        error where there is one. The sampling error of fitted parameters is not included.

        Parameters
        ----------
        data
            A table, or a mapping of names to columns; what is missing in them is unknown, as in
            `predict_probabilities`, which also says what is returned.
        target
            Name of a node.
        unseen, simulations, seed
            As in `predict_probabilities`.
        """
        self.dag.index(target)
        columns, labelled = columns_of(data)
        found: NDArray[Any] = self._predicted(columns, target, unseen, simulations, seed)
        if target in self.levels:
            found = label_array(self.levels[target])[found.argmax(axis=1)]
        return labelled(table_values(self.maps, target, found), (target,))

    def _predicted(
        self,
        data: Mapping[str, ArrayLike],
        target: str,
        unseen: Unseen,
        simulations: int,
        seed: int,
    ) -> Floats:
        check_simulations(simulations)
        refuse_strangers(self.dag, data, target)
        names = [v for v in self.dag.nodes if v in data and v != target]
        n, columns = number_of_rows(data, names), self._columns(names, data, unseen)
        for name in self.levels.keys() & columns.keys():
            codes = columns[name]
            columns[name] = np.where(codes == len(self.levels[name]), np.nan, codes)
        warn_outside(self.supports, self.maps, columns)
        return predict_rows(self.dag, self.conditionals, columns, target, n, simulations, seed)

    def _columns(
        self,
        names: Sequence[str],
        data: Mapping[str, ArrayLike],
        unseen: Unseen = "error",
        *,
        complete: bool = False,
    ) -> dict[str, NDArray[Any]]:
        """Return columns of a table as numbers and codes; see `encode_columns`."""
        read = {v: read_column(self.maps, v, data[v]) for v in names}
        levels = {v: own for v, own in self.levels.items() if v in read}
        codes = encode_columns(levels, read, unseen, complete=complete)
        return {v: codes[v] if v in codes else number_column(v, read[v]) for v in names}

    def reorder(self, nodes: Sequence[str]) -> MixedNetwork:
        """Return the same network with its nodes in another order."""
        cpdag = None if self.cpdag is None else self.cpdag.reorder(nodes)
        rest = cpdag, self.maps, self.supports, self.notes
        return MixedNetwork(self.dag.reorder(nodes), self.conditionals, *rest)

    def _repr_html_(self) -> str | None:
        return hooks.notebook_drawing(self.dag, repr(self))

    def __repr__(self) -> str:
        continuous = sum(not own.levels for own in self.conditionals.values())
        text = (
            f"MixedNetwork({counted(len(self.dag.nodes), 'node')}, "
            f"{continuous} of them continuous, "
            f"{counted(len(self.dag.edges), 'edge')}, {counted(self.parameters, 'parameter')}"
            f"{described_scores(self.maps)})"
        )
        return "\n".join((text, *self.notes))
