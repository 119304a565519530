"""Moments: number of rows, sums and Gram matrix of columns, in one block per variable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isthmus.arrays import Floats, Integers
from isthmus.errors import DataError, MismatchError, SchemaError
from isthmus.statistics import archive
from isthmus.statistics.accumulator import Accumulator, row_blocks, symmetrise
from isthmus.statistics.base import (
    LARGEST_SQUARES,
    Gatherable,
    Resampler,
    Statistic,
    overflow,
    refuse_empty,
)
from isthmus.statistics.coded import same_blocks
from isthmus.statistics.resampling import IndependentRows
from isthmus.statistics.schema import Kind, Role, Schema, Variable

if TYPE_CHECKING:
    from isthmus.graphs import DAG
    from isthmus.networks import GaussianNetwork

FORMAT = "isthmus-moments/2"

_COMPLETED = (
    "Each replicate draws rows with their missing values, and estimates its moments from them."
)


def _frozen(values: ArrayLike) -> Floats:
    """Return a read-only copy in float64, or the array itself if it is one already."""
    if isinstance(values, np.ndarray) and values.dtype == np.float64:
        flags = values.flags
        if flags.owndata and flags.c_contiguous and not flags.writeable:
            return values
    array = np.array(values, dtype=np.float64, order="C")
    array.flags.writeable = False
    return array


@final
@dataclass(frozen=True, eq=False)
class Moments(Statistic):
    """First and second moments of the columns of all variables, which can be added and saved.

    Each variable has a block of columns (see `Schema`): a continuous variable has its value and its
    basis functions, and a discrete variable has one indicator per level except the first. With
    ``s`` the shift, the sums are ``Σ (x - s)`` and the Gram matrix is ``Σ (x - s)(x - s)ᵀ``. The
    shift is near the mean, so no precision is lost if the mean is large compared with the spread.

    Parameters
    ----------
    schema
        The variables.
    n
        Number of rows; fewer for moments within groups.
    shift, sums, gram
        As above.
    regime
        Label of the conditions under which the rows were seen; different ones cannot be added.
    groups
        Number of groups whose means were removed, for moments within groups; otherwise None. The
        products of r rows within K groups vary as those of ``n = r - K + 1`` rows about one mean,
        so ``n`` is that number: scores, tests and standard errors then have ``r - K`` degrees of
        freedom. The mean is that of all rows.
    pair_rows
        Shape (d, d), for moments that were estimated from rows with missing values: how many rows
        speak about each pair of variables; see `rows_about`. Otherwise None: n rows speak about
        all. Sums and products are then n times their expectation for a row.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = simulate.erdos_renyi(5, 6, seed=1)
    >>> numbers = simulate.linear(dag, 300, seed=1).data
    >>> moments = ist.summarise(numbers)
    >>> moments.n
    300
    >>> ist.learn(moments).dag == ist.learn(numbers).dag
    True
    """

    schema: Schema
    n: int
    shift: Floats
    sums: Floats
    gram: Floats
    regime: str | None = None
    groups: int | None = None
    pair_rows: Floats | None = None
    described: ClassVar[str] = "moments"

    def __post_init__(self) -> None:
        p = self.schema.width
        refuse_empty(self.n)
        for name, shape in (("shift", (p,)), ("sums", (p,)), ("gram", (p, p))):
            values = _frozen(getattr(self, name))
            if values.shape != shape:
                raise SchemaError(
                    f"{name} has the shape {values.shape}; the schema has {p} columns, "
                    f"so {shape} is needed."
                )
            if not np.isfinite(values).all():
                raise DataError(f"{name} holds values that are not finite; moments must be.")
            object.__setattr__(self, name, values)
        if self.pair_rows is not None:
            object.__setattr__(self, "pair_rows", _checked_rows(self.pair_rows, len(self.schema)))
        large = self.gram.diagonal() > LARGEST_SQUARES
        if large.any():
            names = zip(self.schema.column_names, large, strict=True)
            raise overflow(name for name, own in names if own)

    @classmethod
    def from_array(
        cls,
        schema: Schema,
        values: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        regime: str | None = None,
    ) -> Moments:
        """Compute moments of an array with one column per variable.

        Parameters
        ----------
        schema
            The variables, one for each column.
        values
            Shape (n, d). A discrete variable is given by the codes of its levels.
        weights
            How often each row was seen (integers); once if not given.
        regime
            Label of the conditions.
        """
        x = np.asarray(values)
        if x.ndim != 2 or x.shape[1] != len(schema):
            raise SchemaError(
                f"The array has the shape {x.shape}; (rows, {len(schema)}) is needed: "
                "one column for each variable of the schema."
            )
        return cls.from_columns(
            schema, [x[:, j] for j in range(x.shape[1])], weights=weights, regime=regime
        )

    @classmethod
    def from_columns(
        cls,
        schema: Schema,
        columns: Sequence[NDArray[Any]],
        *,
        weights: ArrayLike | None = None,
        regime: str | None = None,
    ) -> Moments:
        """Compute moments of columns, given one by one as in `from_array`."""
        accumulator = Accumulator(schema)
        accumulator.update(columns, None if weights is None else np.asarray(weights))
        return cls(schema, *accumulator.finish(), regime)

    @classmethod
    def gather(cls, source: Gatherable, dag: DAG | None = None) -> Moments:
        moments: Moments = source.moments(None if dag is None else dag.nodes)
        return moments

    @property
    def number_of_rows(self) -> int:
        return self.n if self.groups is None else self.n + self.groups - 1

    def rows_about(self, names: Sequence[str]) -> int:
        """Number of rows that speak about the relations of these variables.

        It is the smallest number over all pairs of them, for one variable its own. Estimates of
        moments differ between variables by this number if values were missing; otherwise it is `n`.
        """
        if self.pair_rows is None:
            return self.n
        chosen = list(self.schema.indices(names))
        rows = self.pair_rows[np.ix_(chosen, chosen)].copy()
        if len(chosen) > 1:
            np.fill_diagonal(rows, np.inf)
        return int(rows.min(initial=np.inf)) if chosen else self.n

    def _rows_of_pairs(self) -> Floats:
        """Return `pair_rows`, or the number of rows for each pair."""
        d = len(self.schema)
        return np.full((d, d), float(self.n)) if self.pair_rows is None else self.pair_rows

    def about(self, names: Sequence[str]) -> Moments:
        """Return the moments of these variables, with as many rows as speak about all of them."""
        chosen = self.select(names)
        if self.pair_rows is None:
            return chosen
        n = self.rows_about(names)
        share = n / self.n
        return replace(
            chosen, n=n, sums=share * chosen.sums, gram=share * chosen.gram, pair_rows=None
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """Printed names of the columns; `schema.columns` describes them."""
        return self.schema.column_names

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """Start and stop of the columns of each variable."""
        return self.schema.blocks

    def mean(self) -> Floats:
        """Mean of each column."""
        mean: Floats = self.shift + self.sums / self.n
        return mean

    @cached_property
    def _scatter(self) -> Floats:
        scatter = np.empty_like(self.gram)
        mean = self.sums / self.n
        for start, stop in row_blocks(len(scatter), len(scatter)):
            outer = np.outer(self.sums[start:stop], mean)
            np.subtract(self.gram[start:stop], outer, out=scatter[start:stop])
        symmetrise(scatter)
        # Rounding must not leave a negative sum of squares.
        np.fill_diagonal(scatter, np.maximum(scatter.diagonal(), 0.0))
        scatter.flags.writeable = False
        return scatter

    def scatter(self) -> Floats:
        """Centred Gram matrix: ``Σ (x - mean)(x - mean)ᵀ`` (read-only)."""
        return self._scatter

    def covariance(self, ddof: int = 0) -> Floats:
        """Return the covariance matrix: the scatter divided by ``n - ddof``."""
        if self.n <= ddof:
            raise DataError(
                f"A covariance with ddof={ddof} needs more than {ddof} rows; there are {self.n}."
            )
        return self._scatter / (self.n - ddof)

    def correlation(self) -> Floats:
        """Correlations of the columns; zero with a constant one, one with itself."""
        return correlate(self._scatter)[0]

    def shifted(self, shift: ArrayLike) -> Moments:
        """Return the same moments about another shift."""
        target = np.asarray(shift, dtype=np.float64)
        delta = self.shift - target
        cross = np.outer(self.sums, delta)
        gram = self.gram + (cross + cross.T) + self.n * np.outer(delta, delta)
        return replace(self, shift=target, sums=self.sums + self.n * delta, gram=gram)

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of both sets of rows together."""
        if not isinstance(other, Moments):
            return NotImplemented
        if self.schema != other.schema:
            raise SchemaError(
                "Moments of different schemas cannot be added: "
                f"{_difference(self.schema, other.schema)}. Select the same variables in the "
                "same order, and align levels with align_levels."
            )
        if self.regime != other.regime:
            raise SchemaError(
                f"Moments of regime {self.regime!r} and {other.regime!r} cannot be added: "
                "keep them apart, or give both the same regime if the conditions were the same."
            )
        if self.groups is not None or other.groups is not None:
            return self._with_groups_of(other)
        n = self.n + other.n
        share = other.n / n
        # About the common mean the terms are sums of squares: nothing cancels.
        between = (other.shift - self.shift) + (other.sums / other.n - self.sums / self.n)
        centre = self.shift + (self.sums / self.n + share * between)
        a, b = self.shifted(centre), other.shifted(centre)
        rows = None
        if self.pair_rows is not None or other.pair_rows is not None:
            rows = self._rows_of_pairs() + other._rows_of_pairs()
        return replace(
            self,
            n=n,
            shift=centre,
            sums=a.sums + b.sums,
            gram=a.gram + b.gram,
            pair_rows=rows,
        )

    def _with_groups_of(self, other: Moments) -> Moments:
        """Return the moments within the groups of both; equal labels are different groups."""
        if self.groups is None or other.groups is None:
            raise SchemaError(
                "Moments within groups and moments of all rows cannot be added. Compute both with "
                "groups, or both without."
            )
        share = other.number_of_rows / (self.number_of_rows + other.number_of_rows)
        return replace(
            self,
            n=self.n + other.n - 1,
            shift=self.mean() + share * (other.mean() - self.mean()),
            sums=np.zeros_like(self.sums),
            gram=self.scatter() + other.scatter(),
            groups=self.groups + other.groups,
        )

    def select(self, names: Iterable[str]) -> Moments:
        """Return the moments of some variables with all their columns, in the requested order."""
        positions = self.schema.indices(names)
        keep = np.concatenate(
            [np.arange(*self.blocks[i]) for i in positions] or [np.arange(0)]
        ).astype(np.intp)
        chosen = self._take(Schema(tuple(self.schema.variables[i] for i in positions)), keep)
        if self.pair_rows is None:
            return chosen
        return replace(chosen, pair_rows=self.pair_rows[np.ix_(positions, positions)])

    def without_features(self) -> Moments:
        """Return the moments of the same variables without their basis functions."""
        return self._values if self.schema.has_features else self

    @cached_property
    def _values(self) -> Moments:
        columns = enumerate(self.schema.columns)
        keep = np.array([i for i, c in columns if c.role is not Role.FEATURE], dtype=np.intp)
        return self._take(self.schema.without_features(), keep)

    def numeric(self, asker: object) -> Moments:
        """Moments of the values alone, for methods that read one column per variable.

        Parameters
        ----------
        asker
            Name of the caller, for the error message.

        Raises
        ------
        MismatchError
            Some variables are discrete.
        """
        discrete = self.schema.of_kind(Kind.DISCRETE)
        if discrete:
            raise MismatchError(
                f"{asker!r} needs continuous variables; {list(discrete[:5])} are discrete. "
                "Use DegenerateGaussian for mixed tables, or leave them out."
            )
        return self.without_features()

    def _take(self, schema: Schema, keep: NDArray[np.intp]) -> Moments:
        return replace(
            self,
            schema=schema,
            shift=self.shift[keep],
            sums=self.sums[keep],
            gram=self.gram[np.ix_(keep, keep)],
            pair_rows=None if len(schema) != len(self.schema) else self.pair_rows,
        )

    def with_schema(self, schema: Schema) -> Moments:
        """Recode to a schema whose discrete variables may have more levels, in another order."""
        mapping, offset = _recoding(self.schema, schema)
        centred = mapping @ self.scatter() @ mapping.T
        mean = mapping @ self.mean() + offset
        return replace(self, schema=schema, shift=mean, sums=np.zeros_like(mean), gram=centred)

    def constants(self) -> tuple[str, ...]:
        """Names of the variables that have the same value in all rows."""
        # The squares of a constant cancel up to the rounding of the sums they are taken from.
        limit = 64 * np.finfo(np.float64).eps * self.gram.diagonal()
        still = self._scatter.diagonal() <= limit
        return tuple(
            v.name
            for v, (start, stop) in zip(self.schema.variables, self.blocks, strict=True)
            if still[start:stop].all()
        )

    def duplicates(self) -> tuple[tuple[str, ...], ...]:
        """Groups of variables that are the same up to scale and offset, or up to names of levels.

        With fewer than three rows all are, so none are named. Constants are left out.
        """
        return self._duplicates

    @cached_property
    def _duplicates(self) -> tuple[tuple[str, ...], ...]:
        values = self.without_features()
        mean = None if self.groups is not None else values.mean()
        return same_blocks(values.schema, values.n, mean, values.scatter(), values.constants())

    def cells(self) -> Sequence[Integers]:
        names = self.schema.of_kind(Kind.DISCRETE)
        if not names or self.groups is not None:
            return ()
        return (_level_pairs(self.select(names)),)

    def without_rows(self) -> Moments:
        return self

    def as_moments(self) -> Moments:
        return self

    def fit(self, dag: DAG, pseudo_count: float) -> GaussianNetwork | None:
        """Estimate linear regressions; None if some variables are discrete."""
        from isthmus.statistics.fitting import fit_regressions

        if self.schema.of_kind(Kind.DISCRETE):
            return None
        mean, covariance = self.estimates()

        def estimates(family: Sequence[str]) -> tuple[Floats, Floats]:
            own = list(self.schema.indices(family))
            return mean[own], covariance[np.ix_(own, own)]

        families = ((*dag.parents(node), node) for node in dag.nodes)
        rows = min(self.rows_about(family) for family in families)
        return fit_regressions(dag, estimates, rows)

    def for_file(self, dag: DAG) -> Moments:
        """Return all moments."""
        return self

    def estimates(self) -> tuple[Floats, Floats]:
        """Return means and covariances; constants are exactly constant: rounding has no effects."""
        values = self.without_features()
        covariance = values.covariance()
        constant = list(values.schema.indices(values.constants()))
        covariance[constant, :] = covariance[:, constant] = 0.0
        return values.mean(), covariance

    def resampler(self, source: Gatherable) -> Resampler:
        estimation = source.estimation() if self.pair_rows is not None else None
        if estimation is not None:
            return Resampler(partial(_estimated, *estimation), (_COMPLETED,))
        drawing = source.rows_within_groups() if self.groups is not None else None
        if drawing is None:
            return super().resampler(source)
        note = (
            f"Each replicate draws {self.n - 1:,} rows about the means of their groups, which is "
            "what is left of the rows without the means."
        )
        return Resampler(partial(self._draw_within, *drawing), (note,))

    def _draw_within(self, rows: Floats, shares: Floats, rng: np.random.Generator) -> Moments:
        weights = rng.multinomial(self.n - 1, shares)
        seen = weights > 0
        gram = (rows[seen] * weights[seen, None]).T @ rows[seen]
        symmetrise(gram)
        return replace(self, gram=gram)

    def drawn(self, rows: Floats, chosen: Integers) -> Moments:
        weights = np.bincount(chosen, minlength=self.n)
        seen = weights > 0
        return Moments.from_array(self.schema, rows[seen], weights=weights[seen])

    def save(self, path: archive.FilePath) -> None:
        """Write to a file (see the reference on the file format)."""
        header = {
            "format": FORMAT,
            "schema": self.schema.to_dict(),
            "n": self.n,
            "regime": self.regime,
            "groups": self.groups,
        }
        arrays = {"shift": self.shift, "sums": self.sums, "gram": self.gram}
        if self.pair_rows is not None:
            arrays["pair_rows"] = self.pair_rows
        archive.write(path, header, arrays, compress=False)

    @classmethod
    def load(cls, path: archive.FilePath) -> Moments:
        """Read a file that `save` wrote.

        Raises
        ------
        FormatError
            If the file is damaged, or holds something that no rows can have.
        """
        header, arrays = archive.read(path, FORMAT)
        with archive.damage_reported(path):
            rows = arrays.get("pair_rows")
            optional = () if rows is None else ("pair_rows",)
            archive.require_arrays(arrays, ("shift", "sums", "gram", *optional))
            groups = header.get("groups")
            moments = cls(
                Schema.from_dict(header["schema"]),
                archive.whole_number(header["n"], "n"),
                archive.real(arrays["shift"], "shift"),
                archive.real(arrays["sums"], "sums"),
                archive.real(arrays["gram"], "gram"),
                archive.optional_text(header["regime"], "regime"),
                None if groups is None else archive.whole_number(groups, "groups"),
                None if rows is None else archive.real(rows, "pair_rows"),
            )
            archive.require_gram(moments.gram, moments.sums, moments.n)
            return moments

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Moments):
            return NotImplemented
        return (
            (self.schema, self.n, self.regime, self.groups)
            == (other.schema, other.n, other.regime, other.groups)
            and np.array_equal(self.shift, other.shift)
            and np.array_equal(self.sums, other.sums)
            and np.array_equal(self.gram, other.gram)
            and (self.pair_rows is None) == (other.pair_rows is None)
            and np.array_equal(self._rows_of_pairs(), other._rows_of_pairs())
        )

    def __hash__(self) -> int:
        return hash((self.schema, self.n, self.regime, self.sums.tobytes()))

    def __repr__(self) -> str:
        regime = "" if self.regime is None else f", regime={self.regime!r}"
        sizes = f"variables={len(self.schema)}, columns={self.schema.width}"
        if self.groups is not None:
            sizes = f"groups={self.groups}, {sizes}"
        return f"Moments(n={self.n}, {sizes}{regime})"


def _estimated(
    rows: Floats, estimate: Callable[[Floats], Moments], rng: np.random.Generator
) -> Moments:
    """Estimate moments from incomplete rows that are drawn with replacement."""
    return estimate(rows[IndependentRows(len(rows)).draw(rng)])


def _checked_rows(rows: ArrayLike, d: int) -> Floats:
    """Return a read-only matrix of numbers of rows, one per pair of variables."""
    values = _frozen(rows)
    if values.shape != (d, d) or not np.array_equal(values, values.T) or not (values >= 1).all():
        raise DataError(
            f"pair_rows must be a symmetric matrix of {d} x {d} numbers of rows, each at least 1."
        )
    return values


def _difference(a: Schema, b: Schema) -> str:
    if a.names != b.names:
        return f"names {list(a.names)[:10]} and {list(b.names)[:10]}"
    for u, v in zip(a.variables, b.variables, strict=True):
        if u != v:
            return (
                f"{u.name!r} is {u.kind} {_described(u)} in one and {v.kind} {_described(v)} in "
                "the other"
            )
    return "they are equal"


def _described(variable: Variable) -> str:
    """Describe the levels, lag and features of a variable, for error messages."""
    parts = [repr(variable.levels)] if variable.levels else []
    parts += [repr(part) for part in (variable.lag, variable.features) if part is not None]
    return ", ".join(parts)


def correlate(covariance: Floats) -> tuple[Floats, Floats]:
    """Split a covariance into correlations and variances; a constant gets the variance 1.

    A constant has the correlation zero with all other columns, and one with itself.
    """
    variance = np.diagonal(covariance).copy()
    constant = variance <= 0.0
    variance[constant] = 1.0
    spread = np.sqrt(variance)
    correlation: Floats = covariance / spread[:, None]
    correlation /= spread[None, :]  # in place: with 10,000 columns a copy has 800 MB
    np.clip(correlation, -1.0, 1.0, out=correlation)
    correlation[constant, :] = 0.0
    correlation[:, constant] = 0.0
    np.fill_diagonal(correlation, 1.0)
    return correlation, variance


def _recoding(old: Schema, new: Schema) -> tuple[Floats, Floats]:
    """The affine map from the columns of `old` to those of `new`."""
    if old.names != new.names or any(
        (a.kind, a.features) != (b.kind, b.features) or not set(a.levels) <= set(b.levels)
        for a, b in zip(old.variables, new.variables, strict=True)
    ):
        raise SchemaError(
            "The new schema must have the same names, kinds and basis functions, and at least the "
            "same levels."
        )
    mapping = np.zeros((new.width, old.width))
    offset = np.zeros(new.width)
    for i, (a, b) in enumerate(zip(old.variables, new.variables, strict=True)):
        at, to = old.blocks[i][0], new.blocks[i][0]
        if a.kind is Kind.CONTINUOUS:
            same = np.arange(a.width)
            mapping[to + same, at + same] = 1.0
            continue
        for j, level in enumerate(b.levels[1:]):
            if level == a.levels[0]:  # the level that had no column: one less all others
                offset[to + j] = 1.0
                mapping[to + j, at : old.blocks[i][1]] = -1.0
            elif level in a.levels:
                mapping[to + j, at + a.levels.index(level) - 1] = 1.0
    return mapping, offset


def _level_pairs(moments: Moments) -> Integers:
    """Count the rows of each level, and of each pair of levels, of discrete variables."""
    p = moments.schema.width
    unshifted = moments.shifted(np.zeros(p))
    whole = np.empty((p + 1, p + 1))
    whole[0, 0] = unshifted.n
    whole[0, 1:] = whole[1:, 0] = unshifted.sums
    whole[1:, 1:] = unshifted.gram
    # The first level of a variable has no column: its rows are those of no other level.
    levels = []
    for start, stop in moments.schema.blocks:
        first = np.zeros(p + 1)
        first[0], first[1 + start : 1 + stop] = 1.0, -1.0
        levels += [first, *np.eye(p + 1)[1 + start : 1 + stop]]
    maps = np.array(levels)
    pairs: Integers = np.rint(maps @ whole @ maps.T).astype(np.int64)
    return pairs
