"""Bayesian networks of continuous variables with linear Gaussian conditionals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import log, pi, sqrt
from types import MappingProxyType
from typing import Any, final, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isthmus import hooks
from isthmus.arrays import Floats
from isthmus.errors import DataError, SchemaError, counted
from isthmus.frames import columns_of, edges_of, table_of
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
    Level,
    check_keys,
    check_size,
    checked_question,
    common_length,
    finite,
    is_uncertain,
    measured,
    number_column,
    number_of_rows,
    refuse_strangers,
)
from isthmus.networks.conditionals import ConditionalGaussian, spectrum
from isthmus.networks.counterfactuals import require_causal
from isthmus.networks.discrete import ancestors_of
from isthmus.networks.distributions import (
    Explanation,
    Nonparanormal,
    Normal,
    NormalMixture,
    centre,
    check_class,
    in_units,
    members_to_ask,
    note_without_path,
    reason_for_range,
)
from isthmus.networks.inference import distinct_columns
from isthmus.networks.ranges import within, without_ranges
from isthmus.networks.sampling_error import MOST_REDRAWN, drawn_regressions
from isthmus.networks.support import (
    MeanRange,
    Support,
    as_column,
    kept,
    note_on_evidence,
    warn_outside,
)

# --- Conditional normal distributions -----------------------------------------------------------

_IMPOSSIBLE = 1e-6
"""Tolerance, in standard deviations, for evidence that other evidence determines."""


def regression_on(
    covariance: Floats,
    targets: NDArray[np.intp],
    given: NDArray[np.intp],
    errors: Floats | float = 0.0,
) -> tuple[Floats, Floats]:
    """Return the regression of targets on measurements, and a basis of what is impossible.

    Measurements have errors with the given standard deviations.
    The first array has the shape (targets, given). The columns of the second are combinations of
    the given variables, in units of their standard deviations, whose variance is zero.
    """
    seen = covariance[np.ix_(given, given)]
    seen[np.diag_indices(len(given))] += np.square(errors)
    parts = spectrum(seen)
    cross = covariance[np.ix_(given, targets)] / parts.spread[:, None]
    weights = parts.solve(cross) / parts.spread[:, None]
    return weights.T, parts.vectors[:, ~parts.free] / parts.spread[:, None]


def condition(
    mean: Floats,
    covariance: Floats,
    targets: NDArray[np.intp],
    given: NDArray[np.intp],
    values: Floats,
    errors: Floats,
) -> tuple[Floats, Floats]:
    """Return mean and covariance of the targets given measurements of variables."""
    if not len(given):
        return mean[targets], covariance[np.ix_(targets, targets)]
    weights, fixed = regression_on(covariance, targets, given, errors)
    surprise = values - mean[given]
    if fixed.size and np.abs(surprise @ fixed).max() > _IMPOSSIBLE:
        raise DataError(
            "The evidence is impossible in this network: some of its values are determined by "
            "the others, and differ from them."
        )
    rest = covariance[np.ix_(targets, targets)] - weights @ covariance[np.ix_(given, targets)]
    rest = (rest + rest.T) / 2
    np.fill_diagonal(rest, np.maximum(rest.diagonal(), 0.0))
    return mean[targets] + weights @ surprise, rest


# --- Bayesian networks of continuous variables with linear Gaussian conditionals ----------------

_SAME = 1e-9
"""Relative difference of answers of equivalent graphs that counts as rounding."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class GaussianNetwork:
    """A linear Gaussian network: a DAG with a linear regression of each node on its parents.

    Parameters
    ----------
    dag
        The graph.
    intercepts
        Intercept of each node.
    coefficients
        For each node, the coefficient of each parent.
    variances
        Residual variance of each node; zero if its parents determine it.
    cpdag
        The equivalence class that was learned, of which `dag` is an arbitrary member; interventions
        are then answered for all members. None if the graph is causal by assumption.
    maps
        How values of columns became what the network has: normal scores, levels, or numbers of
        dates. Tables, evidence and answers have the values of the columns. Parameters, means,
        covariances and densities are those of the scores.
    rows
        Number of rows that the network was fitted to, from which answers get their sampling
        errors. None if it is not known, or differs between the nodes.
    covariances
        For each node, the covariance matrix of the sampling errors of its intercept and of its
        coefficients, in the order of `coefficients`, for noise of any variance. None if the
        network was not fitted to rows; the noise of a node then counts as equally spread.
    supports
        The ranges of the columns that the network was fitted to, beyond which answers say that
        they are extrapolated; empty if they are not known.
    notes
        What is said with every answer about the rows that the network was fitted to.

    Raises
    ------
    SchemaError
        If nodes and parameters do not match.
    DataError
        If a parameter is not finite or a variance is negative.
    """

    dag: DAG
    intercepts: Mapping[str, float]
    coefficients: Mapping[str, Mapping[str, float]]
    variances: Mapping[str, float]
    cpdag: CPDAG | PDAG | None = None
    maps: NetworkMaps = field(default_factory=dict)
    rows: int | None = None
    covariances: Mapping[str, Floats] | None = None
    supports: Mapping[str, Support] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        nodes = self.dag.nodes
        check_class(self.dag, self.cpdag)
        check_keys(self.dag, self.intercepts, "intercepts")
        check_keys(self.dag, self.coefficients, "coefficients")
        check_keys(self.dag, self.variances, "variances")
        intercepts = {v: finite(self.intercepts[v], f"The intercept of {v!r}") for v in nodes}
        variances = {v: finite(self.variances[v], f"The variance of {v!r}") for v in nodes}
        coefficients = {}
        for name in nodes:
            own, parents = self.coefficients[name], self.dag.parents(name)
            if set(own) != set(parents):
                raise SchemaError(
                    f"Node {name!r} has the parents {listed(parents)}, but coefficients for "
                    f"{listed(own)} were given."
                )
            coefficients[name] = MappingProxyType(
                {p: finite(own[p], f"The coefficient of {p!r} for {name!r}") for p in parents}
            )
            if variances[name] < 0:
                raise DataError(f"The variance of {name!r} is negative: {variances[name]}.")
        if self.covariances is not None:
            check_keys(self.dag, self.covariances, "covariances")
            for name, matrix in self.covariances.items():
                size = 1 + len(coefficients[name])
                if matrix.shape != (size, size):
                    raise SchemaError(
                        f"The covariances of {name!r} have the shape {matrix.shape}; "
                        f"{(size, size)} is needed."
                    )
            object.__setattr__(self, "covariances", MappingProxyType(dict(self.covariances)))
        object.__setattr__(self, "intercepts", MappingProxyType(intercepts))
        object.__setattr__(self, "coefficients", MappingProxyType(coefficients))
        object.__setattr__(self, "variances", MappingProxyType(variances))
        object.__setattr__(self, "maps", check_maps(nodes, self.maps))
        object.__setattr__(self, "supports", MappingProxyType(dict(self.supports)))

    def __reduce__(self) -> tuple[Any, ...]:
        plain = {name: dict(own) for name, own in self.coefficients.items()}
        parameters = (dict(self.intercepts), plain, dict(self.variances))
        robust = None if self.covariances is None else dict(self.covariances)
        rest = self.cpdag, self.maps, self.rows, robust, dict(self.supports), self.notes
        return GaussianNetwork, (self.dag, *parameters, *rest)

    @property
    def levels(self) -> dict[str, tuple[Level, ...]]:
        """The values of each discrete node, of which there are none."""
        return {}

    @property
    def conditionals(self) -> dict[str, ConditionalGaussian]:
        """The distribution of each node given its parents."""
        return {
            name: ConditionalGaussian(
                (),
                tuple(slopes),
                np.array(self.intercepts[name]),
                np.array(list(slopes.values())),
                np.array(self.variances[name]),
            )
            for name, slopes in self.coefficients.items()
        }

    @property
    def parameters(self) -> int:
        """Number of free parameters: intercepts, coefficients and variances."""
        return 2 * len(self.dag.nodes) + len(self.dag.edges)

    def weights(self) -> NDArray[np.float64]:
        """Return the matrix of coefficients ``[from, to]``, in the order of ``dag.nodes``.

        The sampling error of fitted parameters is not included. `Solution.effect` has it.
        """
        matrix = np.zeros((len(self.dag.nodes), len(self.dag.nodes)))
        for name, own in self.coefficients.items():
            for parent, value in own.items():
                matrix[self.dag.index(parent), self.dag.index(name)] = value
        return matrix

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
            One column per node, in the order of ``dag.nodes``. Dates are numbers in the unit that
            was learned. Columns of normal scores have their own values, those beyond the outermost
            knots of the map at the last knot.
        """
        n, rng = check_size(n), np.random.default_rng(seed)
        columns: dict[str, NDArray[np.float64]] = {}
        for name in self.dag.topological_order():
            column = rng.standard_normal(n)
            column *= sqrt(self.variances[name])
            column += self.intercepts[name]
            for parent, value in self.coefficients[name].items():
                column += value * columns[parent]
            columns[name] = kept(self.supports, name, column) if bounded else column
        return {
            name: as_column(self.supports, self.maps, name, columns[name], bounded=bounded)
            for name in self.dag.nodes
        }

    def mean(self) -> NDArray[np.float64]:
        """Return the means, in the order of ``dag.nodes``.

        The sampling error of fitted parameters is not included.
        """
        means: dict[str, float] = {}
        for name in self.dag.topological_order():
            own = self.coefficients[name]
            means[name] = self.intercepts[name] + sum(v * means[p] for p, v in own.items())
        return np.array([means[name] for name in self.dag.nodes])

    def covariance(self) -> NDArray[np.float64]:
        """Return the covariance matrix, in the order of ``dag.nodes``.

        The sampling error of fitted parameters is not included.
        """
        size = len(self.dag.nodes)
        order = [self.dag.index(name) for name in self.dag.topological_order()]
        # Entry [u, v] is the total effect of the noise of node u on node v.
        effect = np.zeros((size, size))
        for v in order:
            name = self.dag.nodes[v]
            effect[v, v] = 1.0
            for parent, value in self.coefficients[name].items():
                effect[:, v] += value * effect[:, self.dag.index(parent)]
        noise = np.array([self.variances[name] for name in self.dag.nodes])
        covariance = effect.T @ (noise[:, None] * effect)
        return np.asarray((covariance + covariance.T) / 2)

    def log_likelihood(self, data: Mapping[str, ArrayLike]) -> float:
        """Return the log-likelihood of rows, given as columns; for normal scores, of the scores."""
        return float(self.log_densities(data).sum())

    def log_densities(self, data: Mapping[str, ArrayLike]) -> Floats:
        """Return the log-density of each row; for normal scores, that of the scores."""
        check_keys(self.dag, data, "data", extra=True)
        columns = {v: self._numbers(v, data[v]) for v in self.dag.nodes}
        total: Floats = np.zeros(common_length(columns))
        for name, column in columns.items():
            variance = self.variances[name]
            if variance == 0:
                raise DataError(
                    f"Node {name!r} has variance zero, so the network has no density and no "
                    "log-likelihood."
                )
            residual = column - self.intercepts[name]
            for parent, value in self.coefficients[name].items():
                residual = residual - value * columns[parent]
            total -= 0.5 * (log(2 * pi * variance) + residual**2 / variance)
        return total

    @overload
    def query(
        self,
        targets: str | Iterable[str],
        evidence: Mapping[str, float | tuple[float, float] | slice] | None = None,
        do: None = None,
    ) -> Normal | NormalMixture | Nonparanormal: ...
    @overload
    def query(
        self,
        targets: str | Iterable[str],
        evidence: Mapping[str, float | tuple[float, float] | slice] | None = None,
        do: Mapping[str, float] | None = None,
    ) -> Normal | NormalMixture | Nonparanormal | MeanRange: ...
    def query(
        self,
        targets: str | Iterable[str],
        evidence: Mapping[str, float | tuple[float, float] | slice] | None = None,
        do: Mapping[str, float] | None = None,
    ) -> Normal | NormalMixture | Nonparanormal | MeanRange:
        """Return the joint distribution of some nodes, given observations and interventions.

        If the parameters were fitted to data, the means have a `sampling_error`, which takes the
        graph as given.

        Parameters
        ----------
        targets
            One or more nodes.
        evidence
            Values of other nodes that are observed. If an observation is uncertain, give the
            measured value and the standard deviation of its error: ``{"dose": (1.5, 0.2)}``. If
            only a range is known, give its ends: ``{"dose": slice(1, 2)}``, or `slice(1, None)`.
        do
            Values to which nodes are set by an intervention, which removes the influence of
            their usual causes. The answer is valid in the real world only if the graph is causal.

        Returns
        -------
        Normal or MeanRange
            A range if equivalent graphs give different answers to an intervention. Given ranges, a
            `NormalMixture`: of quadrature for one of them, and of 20,000 weighted draws for
            several. For targets that were learned as normal scores, a `Nonparanormal`.

        Raises
        ------
        DataError
            If the evidence is impossible because nodes without noise determine it otherwise.
        """
        asked, seen, forced = checked_question(self.dag, targets, evidence, do)
        found, known = self._answers(asked, seen, forced), {**seen, **forced}
        own = self.supports.keys() - set(scored_nodes(self.maps))
        certain = {v: x for v, x in known.items() if v in own and not is_uncertain(x)}
        numbers = observed_values(self.maps, certain)
        outside = note_on_evidence(self.supports, self.maps, numbers, {})
        about = " ".join(filter(None, (outside, *self.notes)))
        answers = tuple(
            in_units(replace(each, note=" ".join(filter(None, (each.note, about)))), self.maps)
            for each in found
        )
        if self.rows is not None and len(answers) <= MOST_REDRAWN:
            answers = tuple(
                replace(answer, redraw=partial(self._redrawn, asked, seen, forced, place))
                for place, answer in enumerate(answers)
            )
        if len(answers) == 1:
            return answers[0]
        reason = reason_for_range(forced, len(answers))
        return MeanRange(asked, answers, f"{about} {reason}".strip())

    def _redrawn(
        self, asked: tuple[str, ...], seen: dict[str, Any], forced: dict[str, Any], place: int
    ) -> Floats:
        """Return the means or medians of an answer for draws of the parameters."""
        assert self.rows is not None
        needed = set(self.dag.nodes) if forced else ancestors_of(self.dag, (*asked, *seen))
        dag = DAG(
            [v for v in self.dag.nodes if v in needed],
            [(a, b) for a, b in self.dag.edges if b in needed],
        )
        cpdag = self.cpdag if forced else None
        maps = {v: own for v, own in self.maps.items() if v in needed}
        families = {v: [self.dag.index(u) for u in (v, *self.coefficients[v])] for v in dag.nodes}
        moments, drawn = (self.mean(), self.covariance()), []
        for parameters in drawn_regressions(families, *moments, self.rows, self.covariances):
            network = GaussianNetwork(dag, *parameters, cpdag, maps)
            answer = network._answers(asked, seen, forced)[place]
            drawn.append(centre(in_units(answer, self.maps)))
        return np.array(drawn)

    def _answers(
        self, asked: tuple[str, ...], seen: dict[str, Any], forced: dict[str, Any]
    ) -> list[Normal | NormalMixture]:
        """Return one distribution if equivalent graphs agree, else one per possible graph."""
        seen, forced = (observed_values(self.maps, given) for given in (seen, forced))
        graphs = members_to_ask(self.dag, self.cpdag, forced, (*asked, *seen))
        seen, ranges = without_ranges(seen)
        jointly = tuple(dict.fromkeys((*asked, *ranges)))
        values = np.array([measured(v, x) for v, x in seen.items()]).reshape(len(seen), 2).T
        settings = {v: finite(x, f"The value of {v!r}") for v, x in forced.items()}
        targets_at = np.array([self.dag.index(v) for v in jointly], np.intp)
        seen_at = np.array([self.dag.index(v) for v in seen], np.intp)
        answers = []
        for dag in graphs:
            network = self._along(dag, settings)
            moments = network.mean(), network.covariance()
            answers.append(Normal(jointly, *condition(*moments, targets_at, seen_at, *values)))
        if answers and all(_agree(answers[0], answer) for answer in answers):
            note = note_without_path(self.cpdag, () if seen or ranges else forced, asked)
            answers = [replace(answers[0], note=note)]
        if not ranges:
            return [*answers]
        return [replace(within(own, asked, ranges), note=own.note) for own in answers]

    def most_probable(
        self,
        evidence: Mapping[str, float | tuple[float, float]] | None = None,
        targets: Iterable[str] | None = None,
    ) -> Explanation:
        """Return the most probable values of all other nodes, jointly: their conditional means.

        Of normal scores, the values with the most probable scores: their conditional medians.
        The sampling error of fitted parameters is not included.

        Parameters
        ----------
        evidence
            What is observed, as in `query`.
        targets
            Nodes to explain, if not all.
        """
        rest = [v for v in self.dag.nodes if v not in (evidence or {})]
        asked = checked_question(self.dag, rest if targets is None else targets, evidence, None)
        (answer,) = self._answers(*asked)
        eigenvalues = np.linalg.eigvalsh(answer.covariance)
        with np.errstate(divide="ignore"):
            density = -0.5 * float(np.log(2 * pi * np.maximum(eigenvalues, 0.0)).sum())
        pairs = zip(answer.names, answer.mean.tolist(), strict=True)
        values = {v: float(table_values(self.maps, v, x)) for v, x in pairs}
        return Explanation(values, density, {v: own for v, own in self.maps.items() if v in values})

    def counterfactual(
        self,
        row: Mapping[str, float],
        do: Mapping[str, float],
        targets: str | Iterable[str] | None = None,
    ) -> Normal | Nonparanormal:
        """Return what one row would have been if some variables had been set to other values.

        The noise of each regression is that of the row. If the row is complete, everything is
        determined, and the deviations are zero. The graph is taken as causal. The sampling error of
        fitted parameters is not included.

        Parameters
        ----------
        row
            Observed values; some may be unknown.
        do
            Values to which variables would have been set; they may be in the row, too.
        targets
            The variables that are asked for; by default all that are not set.

        Examples
        --------
        >>> import isthmus as ist
        >>> from isthmus.networks import GaussianNetwork
        >>> dag = ist.DAG(["dose", "effect"], [("dose", "effect")])
        >>> weights = {"dose": {}, "effect": {"dose": 2.0}}
        >>> ones = {"dose": 1.0, "effect": 1.0}
        >>> network = GaussianNetwork(dag, {"dose": 0.0, "effect": 0.0}, weights, ones)
        >>> network.counterfactual({"dose": 1.0, "effect": 3.5}, do={"dose": 0.0}).mean
        array([1.5])
        """
        require_causal(self.cpdag)
        rest = [v for v in self.dag.nodes if v not in do]
        _, _, forced = checked_question(self.dag, rest, None, do)
        asked, seen, _ = checked_question(self.dag, rest if targets is None else targets, None, {})
        seen = observed_values(self.maps, dict(row))
        forced = observed_values(self.maps, forced)
        nodes, size = self.dag.nodes, len(self.dag.nodes)
        settings = {v: finite(x, f"The value of {v!r}") for v, x in forced.items()}
        other = self._after(settings)
        worlds = (other, self)
        effects = [np.linalg.inv(np.eye(size) - each.weights().T) for each in worlds]
        noise = np.array([self.variances[v] for v in nodes])
        kept_noise = np.array([0.0 if v in settings else self.variances[v] for v in nodes])
        # Both worlds have the same noise, except that of variables that are set.
        cross = (effects[0] * kept_noise) @ effects[1].T
        covariance = np.block(
            [
                [(effects[0] * kept_noise) @ effects[0].T, cross],
                [cross.T, (effects[1] * noise) @ effects[1].T],
            ]
        )
        mean = np.concatenate([each.mean() for each in worlds])
        at = np.array([self.dag.index(v) for v in asked], np.intp)
        given = np.array([size + self.dag.index(v) for v in seen], np.intp)
        values = np.array([finite(x, f"The value of {v!r}") for v, x in seen.items()])
        answer = condition(mean, covariance, at, given, values, np.zeros(len(values)))
        return in_units(Normal(asked, *answer), self.maps)

    def _along(self, dag: DAG, do: Mapping[str, float]) -> GaussianNetwork:
        """Return the network of an equivalent graph after nodes are set from outside."""
        if dag == self.dag:
            return self._after(do)
        mean, covariance = self.mean(), self.covariance()
        intercepts, coefficients, variances = {}, {}, {}
        for name in self.dag.nodes:
            own = np.array([self.dag.index(name)], np.intp)
            given = np.array([self.dag.index(p) for p in dag.parents(name)], np.intp)
            weights = regression_on(covariance, own, given)[0][0]
            rest = covariance[own[0], own[0]] - weights @ covariance[given, own[0]]
            intercepts[name] = float(mean[own[0]] - weights @ mean[given])
            coefficients[name] = dict(zip(dag.parents(name), weights.tolist(), strict=True))
            variances[name] = max(float(rest), 0.0)
        dag = dag.reorder(self.dag.nodes)
        return GaussianNetwork(dag, intercepts, coefficients, variances)._after(do)  # noqa: SLF001 - own class

    def _after(self, do: Mapping[str, float]) -> GaussianNetwork:
        """Return the network after nodes are set to values from outside."""
        if not do:
            return self
        return GaussianNetwork(
            DAG(self.dag.nodes, [(a, b) for a, b in self.dag.edges if b not in do]),
            {**self.intercepts, **do},
            {v: {} if v in do else own for v, own in self.coefficients.items()},
            {v: 0.0 if v in do else own for v, own in self.variances.items()},
        )

    def predict(self, data: Any, target: str) -> Any:
        """Return the expected value of a node for each row, given the available columns.

        Of a column of normal scores, it is the median: the value with the expected score.
        `query` also returns the standard deviation of a single row around it.
        The sampling error of fitted parameters is not included.

        Parameters
        ----------
        data
            A table, or a mapping of names to columns. Nodes without a column, and cells without a
            value (None or NaN), are unknown and integrated out. A column of the target is ignored.
        target
            Name of a node.

        Returns
        -------
        array or series
            For a table of pandas, Polars or PyArrow, a series of the same kind with the same index.
        """
        data, labelled = columns_of(data)
        own = np.array([self.dag.index(target)], np.intp)
        refuse_strangers(self.dag, data, target)
        names = [v for v in self.dag.nodes if v in data and v != target]
        n, mean, covariance = number_of_rows(data, names), self.mean(), self.covariance()
        rows = np.array([self._numbers(v, data[v]) for v in names]).reshape(len(names), n)
        warn_outside(self.supports, self.maps, dict(zip(names, rows, strict=True)))
        given = np.array([self.dag.index(v) for v in names], np.intp)
        patterns, places = distinct_columns(np.isnan(rows))
        predicted = np.full(n, mean[own[0]])
        for k in range(patterns.shape[1]):
            known, members = ~patterns[:, k], np.flatnonzero(places == k)
            weights, _ = regression_on(covariance, own, given[known])
            predicted[members] += weights[0] @ (rows[:, members][known].T - mean[given[known]]).T
        return labelled(table_values(self.maps, target, predicted), (target,))

    def _numbers(self, name: str, column: object) -> Floats:
        """Return a column of a table as numbers of the network."""
        return number_column(name, read_column(self.maps, name, column))

    def to_frame(self, like: object = None) -> Any:
        """Return one row per edge, with its coefficient; see :func:`isthmus.to_frame`."""
        return table_of(edges_of(self.dag.nodes, self.weights(), "coefficient"), like)

    def reorder(self, nodes: Sequence[str]) -> GaussianNetwork:
        """Return the same network with its nodes in another order."""
        dag = self.dag.reorder(nodes)
        cpdag = None if self.cpdag is None else self.cpdag.reorder(nodes)
        parameters = self.intercepts, self.coefficients, self.variances
        robust = None
        if self.covariances is not None:
            robust = {}
            for name, own in self.covariances.items():
                old = self.dag.parents(name)
                order = [0, *(1 + old.index(p) for p in dag.parents(name))]
                robust[name] = own[np.ix_(order, order)]
        rest = robust, self.supports, self.notes
        return GaussianNetwork(dag, *parameters, cpdag, self.maps, self.rows, *rest)

    def close_to(self, other: GaussianNetwork, tolerance: float = 1e-9) -> bool:
        """Return whether two networks are equal up to a tolerance in their parameters."""
        if self.dag != other.dag or self.maps != other.maps:
            return False
        pairs = [(self.intercepts[v], other.intercepts[v]) for v in self.dag.nodes]
        pairs += [(self.variances[v], other.variances[v]) for v in self.dag.nodes]
        for name, own in self.coefficients.items():
            pairs += [(value, other.coefficients[name][p]) for p, value in own.items()]
        return all(abs(a - b) <= tolerance for a, b in pairs)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GaussianNetwork):
            return NotImplemented
        return self.close_to(other, tolerance=0.0)

    __hash__ = None  # type: ignore[assignment]

    def _repr_html_(self) -> str | None:
        return hooks.notebook_drawing(self.dag, repr(self))

    def __repr__(self) -> str:
        nodes, edges = counted(len(self.dag.nodes), "node"), counted(len(self.dag.edges), "edge")
        text = f"{nodes}, {edges}, {counted(self.parameters, 'parameter')}"
        text = f"GaussianNetwork({text}{described_scores(self.maps)})"
        return "\n".join((text, *self.notes))


def _agree(one: Normal, other: Normal) -> bool:
    """Return whether two distributions differ by rounding only."""
    spread = np.sqrt(np.maximum(one.covariance.diagonal(), other.covariance.diagonal()))
    scale = np.maximum(np.maximum(np.abs(one.mean), spread), 1e-300)
    means = bool((np.abs(one.mean - other.mean) <= _SAME * scale).all())
    away = np.abs(one.covariance - other.covariance)
    return means and bool((away <= _SAME * np.outer(scale, scale)).all())
