"""The variables of several tables that are simulated as sites."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError, MismatchError, MissingValuesError, SchemaError
from isthmus.results.reading import Disclosure, Reading
from isthmus.statistics import CountPlan, Counts, Expansion, Kind, Moments, Schema
from isthmus.statistics.base import with_advice
from isthmus.statistics.incomplete import Estimated
from isthmus.statistics.schema import union_levels
from isthmus.tables.base import Source, countable
from isthmus.tables.dispatch import as_source
from isthmus.tables.engines.find import is_lazy
from isthmus.tables.frame import Frame
from isthmus.tables.infer_kinds import NUMBERS, stated
from isthmus.tables.missing import ExpectationMaximisation, Missing, moments_are_estimated
from isthmus.tables.names import as_narwhals
from isthmus.tables.series import Series
from isthmus_joint.agreement.study import Variables
from isthmus_joint.federation.requests.expectation import AskExpectation, ExpectationRun
from isthmus_joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus_joint.federation.requests.statistics import AskFeatures, AskMoments

if TYPE_CHECKING:
    from isthmus_joint.federation.federation import Federation


def common_reading(
    tables: Sequence[object],
    kinds: Mapping[str, Kind | str] | None,
    missing: Missing | None,
) -> tuple[Schema, Reading]:
    """Return the variables of all tables together, and how their columns were read.

    Tables in memory are read as one table of all rows is: what that leaves out is left out. Sources
    and tables of an engine keep all columns, and so do tables that cannot be joined.
    """
    whole = _joined(tables)
    try:
        if whole is None:
            schema = _united(tables, kinds, missing)
            return schema, stated(schema)
        frame = Frame(whole, kinds=kinds, missing=missing)
        return frame.schema(), replace(frame.reading(), read_by="Federation.simulate")
    except MissingValuesError as error:
        estimated = "ExpectationMaximisation()" in str(error)  # offered for continuous variables
        methods = "DropRows()" + (" or ExpectationMaximisation()" if estimated else "")
        advice = (
            f"Say what to do: Federation.simulate(..., missing=...) with {methods}; or leave the "
            "columns out."
        )
        raise with_advice(error, advice) from None


def _joined(tables: Sequence[object]) -> object | None:
    """Return one table of all rows; None if the tables differ in their columns or their type."""
    first = tables[0]
    if isinstance(first, Mapping):
        return _joined_columns(tables)
    if any(type(table) is not type(first) for table in tables) or isinstance(first, Source):
        return None
    if isinstance(first, np.ndarray):
        arrays = [table for table in tables if isinstance(table, np.ndarray)]
        alike = len({(a.dtype.names, a.shape[1:]) for a in arrays}) == 1
        return np.concatenate(arrays) if alike else None
    if is_lazy(first):
        return None
    import narwhals as nw

    frames = [as_narwhals(table) for table in tables]
    if not all(isinstance(f, nw.DataFrame) and f.schema == frames[0].schema for f in frames):
        return None
    whole: object = nw.concat(frames, how="vertical")
    return whole


def _joined_columns(tables: Sequence[object]) -> dict[Any, Any] | None:
    """Join dictionaries of arrays and lists; None if there are others."""
    joined: dict[Any, Any] = {}
    parts = [table for table in tables if isinstance(table, Mapping)]
    if len(parts) < len(tables) or any(list(part) != list(parts[0]) for part in parts):
        return None
    for name in parts[0]:
        columns = [part[name] for part in parts]
        if all(isinstance(column, list | tuple) for column in columns):
            joined[name] = [cell for column in columns for cell in column]
        elif all(type(column) is np.ndarray for column in columns):
            if len({"f" if c.dtype.kind in "iuf" else c.dtype.kind for c in columns}) > 1:
                return None
            joined[name] = np.concatenate(columns)
        else:
            return None
    return joined


def _united(
    tables: Sequence[object],
    kinds: Mapping[str, Kind | str] | None,
    missing: Missing | None,
) -> Schema:
    """Return the variables of tables that are read one by one, with the levels of all of them.

    Whole numbers are read as they would be in one table of all rows: five or more different values
    in all tables together are numbers.
    """

    def read(table: object, numbers: Sequence[str]) -> Schema:
        own = kinds
        if numbers and not isinstance(table, Source):  # a source has decided already
            own = {**dict.fromkeys(numbers, Kind.CONTINUOUS), **(kinds or {})}
        return as_source(table, kinds=own, keep=None, missing=missing).schema()

    schemas = [read(table, ()) for table in tables]
    numbers = _numbers(schemas)
    if numbers:
        schemas = [read(table, numbers) for table in tables]
    names = schemas[0].names
    ordered = [
        # Tables are read by name, so the order of their columns is that of the first.
        schema.subset(names)
        if not isinstance(table, Source) and {*schema.names} == {*names}
        else schema
        for table, schema in zip(tables, schemas, strict=True)
    ]
    return reduce(union_levels, ordered)


def _numbers(schemas: Sequence[Schema]) -> list[str]:
    """Whole numbers that some table reads as codes, and all rows together would not."""
    found = []
    for name in schemas[0].names:
        variables = [schema[name] for schema in schemas if name in schema]
        levels = {level for v in variables for level in v.levels}
        are_whole = bool(levels) and all(type(level) is int for level in levels)
        continuous = any(v.kind is Kind.CONTINUOUS for v in variables)
        if are_whole and (continuous or len(levels) >= NUMBERS):
            found.append(name)
    return found


# --- A federation with basis functions of its variables -----------------------------------------


@final
class FederatedFeatures(Source):
    """A federation with basis functions of its variables, which the sites compute."""

    def __init__(self, federation: Federation, expansion: Expansion) -> None:
        self._federation = federation
        self._expansion = expansion
        self._moments: Moments | None = None

    def schema(self) -> Schema:
        return self._expansion.widen(self._federation.schema())

    def moments(self, names: Sequence[str] | None = None) -> Moments:
        """Compute moments of these variables with their basis functions, by default of all."""
        if self._moments is None:
            self._moments = self._federation.ask(AskFeatures(self._expansion))
        return self._moments if names is None else self._moments.select(names)

    def counts(self, plan: CountPlan) -> Counts:
        countable(self.schema(), plan)
        raise MismatchError(
            "Basis functions are continuous and cannot be counted. Use a score that needs moments."
        )

    def rows(self) -> NDArray[np.float64]:
        return self._federation.rows()

    def with_features(self, expansion: Expansion) -> Source:
        expansion.widen(self.schema())
        return self

    def disclosure(self) -> Disclosure:
        """Return what was released for the standardisation and for the features."""
        return self._federation.disclosure()

    def __repr__(self) -> str:
        return f"{self._federation!r} with {self._expansion.basis!r}"


# --- Studies of time series: their variables, and how a site's table becomes a series -----------


def lagged_variables(variables: Variables, lags: int) -> Variables:
    """Return the variables at the present step, then one step earlier, and so on."""
    if lags < 0:
        raise SchemaError(f"The number of lags must be 0 or more; {lags} was given.")
    variables.schema.require(Kind.CONTINUOUS, "A study of time series needs")
    lagged = variables.schema.with_lags(lags)
    now = {name: lag.variable for name, lag in lagged.lag_of.items()}
    return Variables(lagged, {name: variables.bounds[own] for name, own in now.items()})


def as_studied(
    table: object, schema: Schema, *, by: str | None = None, time: str | None = None
) -> object:
    """Return the table, with lagged columns if the study has lagged variables.

    Parameters
    ----------
    table
        A table in memory. If it already has the lagged columns, it is returned unchanged.
    schema
        The variables of the study, some of which may be of earlier time steps.
    by, time
        As for `Series`.
    """
    import narwhals as nw

    lags = schema.lags
    if not lags and (by or time):
        raise SchemaError(
            "The study is not about time series: no variable is of an earlier time step. Leave "
            "out the columns for time and realisation."
        )
    frame: Any = nw.from_native(table, eager_only=True)
    if not lags or all(name in frame.columns for name in schema.names):
        return table
    now = [name for name, lag in schema.lag_of.items() if lag.steps == 0]
    wanted = [*now, *(key for key in (by, time) if key is not None)]
    lacking = [name for name in wanted if name not in frame.columns]
    if lacking:
        raise SchemaError(
            f"The table has no column {lacking}. Its columns are {frame.columns[:20]}."
        )
    return Series(frame.select(wanted).to_native(), lags=lags, by=by, time=time)


# --- A federation whose sites have missing values: moments by expectation-maximisation ----------


@final
class IncompleteFederation(Source):
    """Sites with missing values. Each step of the estimation is one secure sum over all sites.

    Parameters
    ----------
    federation
        The sites. Their study must allow requests for ``expectation``.
    missing
        When to stop. The study bounds the number of steps, too.
    """

    def __init__(self, federation: Federation, missing: ExpectationMaximisation) -> None:
        study = federation.study
        if AskExpectation.name not in study.requests:
            raise MismatchError(
                f"{missing!r} needs a study that allows requests for {AskExpectation.name!r}, and "
                f"this one allows {sorted(study.requests)}. Draft a study with this request."
            )
        discrete = study.schema.of_kind(Kind.DISCRETE)
        if discrete:
            raise MismatchError(
                f"{missing!r} is for continuous variables in a federation, and {[*discrete[:5]]} "
                "are discrete. Let each site drop its incomplete rows, or make missing a level, "
                "before it takes part: Frame(table, missing=DropRows())."
            )
        self._federation = federation
        self._missing = missing
        self._until = math.inf
        self._remarks: tuple[str, ...] = ()

    def schema(self) -> Schema:
        return self._federation.schema()

    def moments(self, names: Sequence[str] | None = None) -> Moments:
        """Estimate moments over all sites, with one secure sum per step."""
        return self._moments if names is None else self._moments.select(names)

    @cached_property
    def _moments(self) -> Moments:
        study, schema = self._federation.study, self.schema()
        run = ExpectationRun(FixedPointEncoding.of(study))
        rounds = study.rounds - 1 - self._federation.sums  # step 0 takes one, too
        steps = min(self._missing.max_iterations, AskExpectation.steps_allowed(study), rounds)
        if steps < 1:
            raise DataError(
                f"The study allows {study.rounds} rounds, and expectation-maximisation needs at "
                "least two: available values, and one step. Draft a study with more."
            )
        self._ask(run, 0)
        available = run.available
        assert available is not None
        if not available.has_missing and AskMoments.name in study.requests:
            return self._federation.moments()
        pairs = available.pair_counts(schema.names)
        pairs.refuse_apart()
        iteration = run.maximisation
        while not iteration.converged(self._missing.tolerance) and iteration.steps < steps:
            if iteration.steps and time.monotonic() >= self._until:
                break
            self._ask(run, iteration.steps + 1)
        moments = iteration.moments(schema, pairs, available.centre, available.scale)
        converged = iteration.converged(self._missing.tolerance)
        lost = int((available.n - available.pairs.diagonal()).sum())
        remark = moments_are_estimated(lost, available.n * len(schema))
        estimated = Estimated(moments, iteration.steps, converged, pairs)
        self._remarks = (remark, *estimated.remarks())
        return moments

    def _ask(self, run: ExpectationRun, step: int) -> None:
        """Ask for one step."""
        run.take(self._federation.ask(AskExpectation(self.schema().names, step)))

    def limit_estimation(self, until: float) -> None:
        """Start no further step after this time of ``time.monotonic()``."""
        self._until = until

    def estimation_remarks(self) -> tuple[str, ...]:
        return self._remarks

    def counts(self, plan: CountPlan) -> Counts:
        return self._federation.counts(plan)

    def rows(self) -> NDArray[np.float64]:
        return self._federation.rows()

    def with_features(self, expansion: Expansion) -> Source:
        raise MismatchError(
            "Basis functions of missing values cannot be estimated. Let each site drop the rows "
            "that lack a value: Frame(table, missing=DropRows())."
        )

    def disclosure(self) -> Disclosure:
        return self._federation.disclosure()

    def reading(self) -> Reading:
        return self._federation.reading()

    def notes(self) -> tuple[str, ...]:
        note = (
            "Moments were estimated from the rows of all sites together, so sites of different "
            "levels can cause edges. Use complete rows (DropRows) for relations within sites."
        )
        return (*self._federation.notes(), note)

    def __repr__(self) -> str:
        return f"{self._federation!r} with {self._missing!r}"
