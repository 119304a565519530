"""How each column of a table was read, and why."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import date
from enum import Enum, StrEnum
from functools import cache
from math import isfinite
from typing import TYPE_CHECKING, Any, final

import numpy as np

from isthmus.errors import FormatError, IsthmusError, counted
from isthmus.frames import table_of
from isthmus.graphs import CPDAG, DAG, PDAG
from isthmus.networks import DiscreteNetwork, Network
from isthmus.networks.column_maps import ColumnMap, TimeMap
from isthmus.results.directions import Edges
from isthmus.watch import Status

if TYPE_CHECKING:
    from isthmus.report.page import RunAgain
    from isthmus.results.solution import Solution


class ReadAs(StrEnum):
    """How a column was read."""

    CONTINUOUS = "continuous"
    DISCRETE = "discrete"
    DATE = "date"
    CONSTANT = "constant"
    IDENTIFIER = "identifier"
    FREE_TEXT = "free text"
    LEFT_OUT = "left out"


LEFT_OUT = frozenset({ReadAs.IDENTIFIER, ReadAs.FREE_TEXT, ReadAs.LEFT_OUT})
"""Columns read like this are not part of the graph."""

NO_VALUES = "it has no values"
"""Why a column without values is left out; there is no way to keep it."""

FEW_VALUES = "whole numbers with 5 to 20 different values, such as counts or answers on a scale"
"""Why whole numbers that could also be codes are continuous."""

ORDERED = "ordered categories, as numbers by their position"
"""Why ordered categories are continuous."""

_NAMED = 5
"""Number of columns that a note names."""


@final
@dataclass(frozen=True)
class ColumnReading:
    """How one column was read.

    Attributes
    ----------
    name
        Name of the column.
    read_as
        How the column was read.
    reason
        Why it was read in this way.
    caution
        A sentence about something to check, or None.
    unit
        What the numbers of dates or durations count, such as ``"days since 1970"``; None for
        other columns.
    """

    name: str
    read_as: ReadAs
    reason: str
    caution: str | None = None
    unit: str | None = None

    @property
    def used(self) -> bool:
        """Whether the column is a variable of the graph."""
        return self.read_as not in LEFT_OUT

    def __str__(self) -> str:
        if self.read_as is ReadAs.LEFT_OUT:
            return f"{self.name} ({self.reason})"
        return f"{self.name}: {self.read_as} ({self.reason})"

    __repr__ = __str__


@final
@dataclass(frozen=True)
class Reading:
    """How the columns of a table were read, in their order.

    Attributes
    ----------
    columns
        One record per column.
    remarks
        Sentences about the table as a whole, such as how many rows were dropped.
    read_by
        The call that takes ``kinds``, if it is not the one that a note is about.
    maps
        What a transform did to the numbers of some columns before.
    """

    columns: tuple[ColumnReading, ...] = ()
    remarks: tuple[str, ...] = ()
    read_by: str = ""
    maps: Mapping[str, ColumnMap] = field(default_factory=dict)

    def __iter__(self) -> Iterator[ColumnReading]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, name: str) -> ColumnReading:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Names of the columns that are not part of the graph."""
        return tuple(c.name for c in self.columns if not c.used)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the reading of columns: columns left out, and cautions."""
        out = [c for c in self.columns if not c.used]
        notes: list[str] = []
        if out:
            shown = "; ".join(str(c) for c in out[:10])
            more = f"; and {len(out) - 10} more" if len(out) > 10 else ""
            columns = "Column" if len(out) == 1 else "Columns"
            keepable = [c for c in out if c.reason != NO_VALUES and c.caution is None]
            advice = ""
            if keepable:
                example = keepable[0]
                continuous = " or 'continuous'" if "whole numbers" in example.reason else ""
                advice = (
                    " To keep a column, say how to read it: "
                    f"{self._kinds(example.name)}{continuous}."
                )
            notes.append(f"{columns} left out: {shown}{more}.{advice}")
        few = [c.name for c in self.columns if c.reason in (FEW_VALUES, ORDERED)]
        notes += _few_values(few, self._kinds(few[0])) if few else []
        cautions = (c.caution for c in self.columns if c.caution is not None)
        return (*notes, *cautions, *self.remarks)

    @property
    def cautions(self) -> tuple[str, ...]:
        """The notes that nobody asked for, as a strategy for missing values asks for remarks."""
        return tuple(note for note in self.notes if note not in self.remarks)

    def _kinds(self, name: str) -> str:
        """How to say that a column is discrete."""
        kinds = f"kinds={{{name!r}: 'discrete'}}"
        return f"{self.read_by}(..., {kinds})" if self.read_by else kinds

    def network_maps(self, nodes: Collection[str]) -> dict[str, ColumnMap | TimeMap]:
        """Return what a network of these nodes needs to know about their columns."""
        own: dict[str, ColumnMap | TimeMap] = {
            c.name: TimeMap(c.unit) for c in self.columns if c.unit is not None
        }
        own |= self.maps
        return {v: own[v] for v in own if v in nodes}

    def with_maps(self, maps: Mapping[str, ColumnMap]) -> Reading:
        """The same reading of a table whose numbers were transformed before."""
        columns = tuple(
            replace(c, reason=maps[c.name].described) if c.name in maps and c.used else c
            for c in self.columns
        )
        return replace(self, columns=columns, maps=maps)

    def with_constants(
        self, names: Collection[str], reason: str = "all rows have the same value"
    ) -> Reading:
        """The same reading, with these columns named as constant."""
        return replace(
            self,
            columns=tuple(
                replace(c, read_as=ReadAs.CONSTANT, reason=reason)
                if c.name in names and c.used
                else c
                for c in self.columns
            ),
        )

    def to_frame(self, like: object = None) -> Any:
        """Return one row per column: how it was read, and why; see :func:`isthmus.to_frame`."""
        columns = {
            "column": [column.name for column in self.columns],
            "read_as": [str(column.read_as) for column in self.columns],
            "reason": [column.reason for column in self.columns],
        }
        return table_of(columns, like)

    def __str__(self) -> str:
        wide = max((len(c.name) for c in self.columns), default=0)
        return "\n".join(f"{c.name:<{wide}}  {c.read_as:<10}  {c.reason}" for c in self.columns)

    __repr__ = __str__


def _few_values(names: list[str], kinds: str) -> list[str]:
    """Say which whole numbers and ordered categories became numbers, and how to change that."""
    shown = ", ".join(repr(name) for name in names[:_NAMED])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    columns, have, were = "Columns", "have", "were"
    if len(names) == 1:
        columns, have, were = "Column", "has", "was"
    note = (
        f"{columns} {shown}{more} {have} whole numbers with 5 to 20 different values, or ordered "
        f"categories, and {were} read as numbers. To read codes as categories, say so: "
        f"{kinds}."
    )
    return [note]


# --- Whether a learned graph depends on the scales of the columns -------------------------------


@final
@dataclass(frozen=True)
class Refit:
    """A comparison of a learned graph with the one learned from standardised columns.

    Edges that are reversed or missing depend on the scales of the columns. If the scales carry
    information, for example because all columns have the same unit, so do these edges; if the
    units are arbitrary, they are artefacts.

    Attributes
    ----------
    dag
        The graph learned first.
    standardised
        The solution on standardised columns.
    """

    dag: DAG
    standardised: Solution

    @property
    def kept(self) -> Edges:
        """Edges of both graphs."""
        return tuple(e for e in self.dag.edges if self.standardised.dag.has_edge(*e))

    @property
    def turned(self) -> Edges:
        """Edges that point the other way on standardised columns."""
        return tuple((a, b) for a, b in self.dag.edges if self.standardised.dag.has_edge(b, a))

    @property
    def gone(self) -> Edges:
        """Edges between nodes that are not adjacent on standardised columns."""
        other = self.standardised.dag
        return tuple(
            (a, b) for a, b in self.dag.edges if not (other.has_edge(a, b) or other.has_edge(b, a))
        )

    @property
    def new(self) -> Edges:
        """Edges of the standardised graph between nodes that were not adjacent."""
        return tuple(
            (a, b)
            for a, b in self.standardised.dag.edges
            if not (self.dag.has_edge(a, b) or self.dag.has_edge(b, a))
        )

    def __str__(self) -> str:
        return (
            f"On standardised columns {len(self.kept)} of {counted(len(self.dag.edges), 'edge')} "
            f"stay the same, {len(self.turned)} point the other way, {len(self.gone)} are gone, "
            f"{len(self.new)} are new."
        )

    __repr__ = __str__


# --- What is needed to reproduce a result -------------------------------------------------------

_LIBRARIES = ("isthmus", "numpy", "scipy", "narwhals")


@final
@dataclass(frozen=True)
class Provenance:
    """Code, seed and versions that reproduce a result from the same data.

    Attributes
    ----------
    code
        Python code, with the score and the search that were used; empty if not known.
    seed
        Random seed; None if not known.
    versions
        Versions of Python and the libraries that numbers depend on.
    """

    code: str = ""
    seed: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_call(cls, function: str, seed: int, **arguments: object) -> Provenance:
        """Describe a call of a function of ``isthmus`` with a table called ``data``.

        Parameters
        ----------
        function
            Name of the function.
        seed
            Random seed.
        **arguments
            Other arguments; those that are None are left out.
        """
        given = {name: value for name, value in arguments.items() if value is not None}
        imports: set[str] = set()
        call = ", ".join(
            f"{name}={_text(v, imports)}" for name, v in (given | {"seed": seed}).items()
        )
        lines = "\n".join(("from isthmus import *", *sorted(imports)))
        return cls(f"{lines}\n\nresult = {function}(data, {call})", seed, _versions())


def read_provenance(content: object) -> Provenance:
    """Return the provenance in the header of a file."""
    match content:
        case {"code": str(code), "seed": int() | None as seed, "versions": dict(versions)}:
            numbers = {str(name): str(number) for name, number in versions.items()}
            return Provenance(code, seed, numbers)
    raise FormatError(f"provenance is {content!r}.")


def _text(value: object, imports: set[str]) -> str:
    """Return a value as Python code, and add the import lines that the code needs.

    Enumerations become their values, which every option accepts, and NumPy scalars numbers.
    """
    match value:
        case Enum():
            return _text(value.value, imports)
        case np.generic():
            return _text(value.item(), imports)
        case float() if not isfinite(value):
            return f"float('{value}')"
        case Mapping():
            pairs = (f"{_text(k, imports)}: {_text(v, imports)}" for k, v in value.items())
            return "{" + ", ".join(pairs) + "}"
        case list() | tuple() if type(value) in (list, tuple):
            return _sequence(value, imports)
    if is_dataclass(value) and not isinstance(value, type):
        own = type(value)
        imports.update(_import_lines(own))
        options = (f for f in fields(value) if f.init and f.repr)
        given = (f"{f.name}={_text(getattr(value, f.name), imports)}" for f in options)
        return f"{own.__name__}({', '.join(given)})"
    return repr(value)


def _sequence(value: list[object] | tuple[object, ...], imports: set[str]) -> str:
    items = ", ".join(_text(v, imports) for v in value)
    if isinstance(value, list):
        return f"[{items}]"
    return f"({items},)" if len(value) == 1 else f"({items})"


def _import_lines(own: type) -> tuple[str, ...]:
    """Return the line that imports a class, from the shortest module that offers it."""
    parts = own.__module__.split(".")
    if parts[0] == "__main__":
        return ()  # defined in a notebook or a script, where the code would be pasted
    for n in range(1, len(parts) + 1):
        name = ".".join(parts[:n])
        module = sys.modules.get(name)
        public = getattr(module, "__all__", None) or (vars(module) if n == len(parts) else ())
        if own.__name__ in public and getattr(module, own.__name__) is own:
            return () if name == "isthmus" else (f"from {name} import {own.__name__}",)
    return ()


@cache
def _versions() -> Mapping[str, str]:
    from importlib.metadata import PackageNotFoundError, version  # slow, so not with the package

    versions = {"Python": ".".join(map(str, sys.version_info[:3]))}
    for name in _LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


# --- What the reports of all results share: how to run again, and the files to download ---------


def header_facts(table: str | None, rows: int | None = None) -> tuple[str, ...]:
    """Return what stands beside the title: name of the table, number of rows, and the date."""
    today = date.today()
    size = None if rows is None else f"{rows:,} {'row' if rows == 1 else 'rows'}"
    return tuple(fact for fact in (table, size, f"{today.day} {today:%B %Y}") if fact)


def run_again(provenance: Provenance, status: Status | None, command: str | None) -> RunAgain:
    """Return how to compute a result again."""
    from isthmus.report.page import RunAgain

    return RunAgain(
        provenance.code or None,
        command,
        provenance.seed,
        None if status is None else status.seconds,
        provenance.versions,
    )


def write_exports(thing: DAG | CPDAG | PDAG | Network) -> Mapping[str, str]:
    """Return a graph or a network as texts, by file name extension: JSON, and BIF if possible."""
    from isthmus.io import to_bif, to_json

    texts: dict[str, str] = {}
    if isinstance(thing, DiscreteNetwork):
        with suppress(IsthmusError):  # BIF has no way to write some levels
            texts["bif"] = to_bif(thing)
    with suppress(IsthmusError):
        texts["json"] = to_json(thing)
    return texts


# --- The data that sites released for a result, and in which form -------------------------------

EXACT_FORMS = ("secure sum", "to both")
"""Forms of sums over several organisations that have no noise."""


@dataclass(frozen=True)
class Release:
    """One item of data that one site released.

    Attributes
    ----------
    site
        Name of the site.
    what
        Description of the data, for a data protection officer.
    form
        How it was sent: ``"plain"``, ``"secure sum"`` and so on.
    size
        How many numbers were in it.
    """

    site: str
    what: str
    form: str
    size: int


@dataclass(frozen=True)
class Disclosure:
    """All releases for one result, in chronological order.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = simulate.erdos_renyi(5, 6, seed=1)
    >>> numbers = simulate.linear(dag, 300, seed=1).data
    >>> sites = {f"site {i}": {k: v[i::3] for k, v in numbers.items()} for i in range(3)}
    >>> federation = ist.Federation.simulate(sites)
    >>> print(ist.learn(federation).disclosure.entries[0].form)
    secure sum
    """

    entries: tuple[Release, ...] = ()

    @classmethod
    def none(cls) -> Disclosure:
        """Return a disclosure without any release."""
        return cls()

    @property
    def has_exact_sums(self) -> bool:
        """Whether organisations have released sums without noise for it."""
        return any(entry.form in EXACT_FORMS for entry in self.entries)

    def __add__(self, other: Disclosure) -> Disclosure:
        return Disclosure(self.entries + other.entries)

    def __str__(self) -> str:
        if not self.entries:
            return "No data were released: nothing left this process."
        lines = [f"{e.site}: {e.what} ({e.form}, {e.size} numbers)" for e in self.entries]
        return "\n".join(lines)

    __repr__ = __str__
