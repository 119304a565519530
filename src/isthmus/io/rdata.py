"""Reader for fitted networks of R's bnlearn in the files that R saves: ``.rda`` and ``.rds``.

Only data are read: vectors, lists and their attributes. Whatever R would run or look up, such as
functions and environments, is skipped or refused.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from isthmus.arrays import Bools, Floats
from isthmus.errors import FormatError, IsthmusError
from isthmus.graphs import DAG
from isthmus.graphs.names import listed
from isthmus.networks import (
    ConditionalGaussian,
    DiscreteNetwork,
    GaussianNetwork,
    MixedNetwork,
    ProbabilityTable,
)

if TYPE_CHECKING:
    from os import PathLike

    from isthmus.networks import Network

_DECOMPRESS: Mapping[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": gzip.decompress,
    b"BZ": bz2.decompress,
    b"\xfd7": lzma.decompress,
}

# What decompression raises, and what reading raises where an item is not what it should be.
_DAMAGED = (
    *(OSError, EOFError, zlib.error, lzma.LZMAError),
    *(ValueError, LookupError, TypeError, AttributeError, OverflowError, IsthmusError),
)


def read_rdata(
    path: str | PathLike[str], name: str | None = None, *, normalise: bool = False
) -> Network:
    """Read a network of class ``bn.fit`` from a file of R's ``save`` or ``saveRDS``.

    Such are the networks of the R package bnRep, in its folder ``data``, and those that the
    bnlearn repository offers as RDS. R is not needed. Levels become text.

    Parameters
    ----------
    path
        Path of the file.
    name
        Name of the object, if ``save`` wrote several networks.
    normalise
        Scale each row of probabilities to sum to one, and use equal ones for configurations of the
        parents that no row had, which bnlearn writes as NaN. By default these are errors.

    Returns
    -------
    Network
        A `DiscreteNetwork`, a `GaussianNetwork`, or, for one that is conditionally Gaussian, a
        `MixedNetwork`.

    Raises
    ------
    FormatError
        If the file has no such network, or is not in R's binary format.
    """
    fitted = {
        key: item
        for key, item in _load(path).items()
        if "bn.fit" in _texts(item.attributes.get("class"))
    }
    if name is None and len(fitted) == 1:
        (name,) = fitted
    if name is None or name not in fitted:
        have = listed(fitted) if fitted else "none"
        raise FormatError(
            f"{fspath(path)} should have one network of class bn.fit, or one called as name= says; "
            f"its networks are {have}."
        )
    try:
        return _network(fitted[name].items(), normalise=normalise)
    except _DAMAGED as error:
        raise FormatError(f"{fspath(path)} does not hold a valid network: {error}") from None


def _load(path: str | PathLike[str]) -> Mapping[str, _Item]:
    """Return the objects of a file; that of ``saveRDS`` has the name ''."""
    raw = Path(path).read_bytes()
    try:
        if decompress := _DECOMPRESS.get(raw[:2]):
            raw = decompress(raw)
        if raw.startswith((b"RDX2\n", b"RDX3\n")):
            found = _Reader(raw[5:]).read()
            return found.items()
        if raw.startswith(b"X\n"):
            return {"": _Reader(raw).read()}
    except _DAMAGED as error:
        raise FormatError(f"{fspath(path)} is damaged: {error}.") from None
    raise FormatError(
        f"{fspath(path)} is not in R's binary format. Write it by save(network, file = ...) or "
        "saveRDS(network, ...), with ascii = FALSE."
    )


# --- R's format of serialisation ----------------------------------------------------------------


@dataclass
class _Item:
    """A value with its attributes. Lists have items, pairlists also their tags as names."""

    value: Any = None
    attributes: dict[str, Any] = field(default_factory=dict)

    def items(self) -> dict[str, _Item]:
        """Return the entries of a list by name."""
        if not isinstance(self.value, list):
            raise FormatError("a list is expected where the file has something else.")
        names = _texts(self.attributes.get("names"))
        if len(names) != len(self.value) or len(set(names)) != len(names):
            raise FormatError("a list has no names, or one of them twice.")
        return dict(zip(names, self.value, strict=True))

    def array(self) -> Floats:
        """Return a numeric vector in its shape."""
        numbers = np.asarray(self.value, dtype=np.float64)
        shape = self.attributes.get("dim")
        return numbers if shape is None else numbers.reshape(shape.value, order="F")


def _texts(item: object) -> list[str]:
    """Return the texts of a character vector; none of something else."""
    if not isinstance(item, _Item) or not isinstance(item.value, list):
        return []
    return [text for text in item.value if isinstance(text, str)]


_REFERENCE, _NIL, _ALTERNATIVE = 255, 254, 238
_PLACES = (241, 242, 247, 250, 251, 252, 253)  # environments that R has by name, missing values
_SYMBOL, _PAIRS, _FUNCTION, _ENVIRONMENT, _CALL, _TEXT = 1, 2, 3, 4, 6, 9
_LOGICAL, _INTEGER, _REAL, _CHARACTERS, _LIST, _EXPRESSION = 10, 13, 14, 16, 19, 20
_DEEPEST = 200


class _Reader:
    """Reads one object of R, written in XDR, by any version of R since 1.4."""

    def __init__(self, raw: bytes) -> None:
        if not raw.startswith(b"X\n"):
            raise ValueError("it is not in the binary form of XDR")
        self.raw = raw
        self.at = 2
        self.depth = 0
        self.references: list[Any] = []
        version, _, _ = self._integers(3)
        if version not in (2, 3):
            raise ValueError(f"version {version} of the format is unknown")
        if version == 3:
            self._take(self._length())

    def read(self) -> _Item:
        """Return the next item."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ValueError("it is nested too deeply")
        flags = self._integer()
        item = self._item(flags & 0xFF, flags)
        self.depth -= 1
        return item

    def _item(self, kind: int, flags: int) -> _Item:
        if kind == _NIL or kind in _PLACES:
            return _Item()
        if kind == _REFERENCE:
            number = (flags >> 8) or self._integer()
            if not 0 < number <= len(self.references):
                raise ValueError("it refers to what it does not have")
            return _Item(self.references[number - 1])
        if kind == _SYMBOL:
            symbol = self.read().value
            self.references.append(symbol)
            return _Item(symbol)
        if kind in (_PAIRS, _CALL, _FUNCTION):
            return self._pairs(flags)
        if kind == _ENVIRONMENT:
            self.references.append(None)
            self._integer()
            for _ in range(4):  # what encloses it, what is in it, and its attributes
                self.read()
            return _Item()
        if kind == _ALTERNATIVE:
            return self._alternative()
        if kind == _TEXT:
            length = self._integer()
            return _Item(None if length == -1 else self._take(length).decode("utf-8", "replace"))
        item = _Item(self._vector(kind))
        if flags & 0x200:
            item.attributes = self._attributes()
        return item

    def _vector(self, kind: int) -> Any:
        if kind not in (_LOGICAL, _INTEGER, _REAL, _CHARACTERS, _LIST, _EXPRESSION):
            raise ValueError(f"it has an object of type {kind}, which is no data")
        length = self._length()
        if kind == _REAL:
            return np.frombuffer(self._take(8 * length), ">f8").astype(np.float64)
        if kind in (_LOGICAL, _INTEGER):
            return np.frombuffer(self._take(4 * length), ">i4").astype(np.int64)
        if 4 * length > len(self.raw) - self.at:
            raise ValueError("it ends in the middle of a list")
        items = [self.read() for _ in range(length)]
        return [item.value for item in items] if kind == _CHARACTERS else items

    def _pairs(self, flags: int) -> _Item:
        """Read a linked list, however long, without a recursion over its cells."""
        values, names = [], []
        while True:
            if flags & 0x200:
                self.read()
            names.append(self.read().value if flags & 0x400 else None)
            values.append(self.read())
            flags = self._integer()
            kind = flags & 0xFF
            if kind not in (_PAIRS, _CALL):
                self._item(kind, flags)  # the end of the list, which is almost always nil
                return _Item(values, {"names": _Item(names)})

    def _attributes(self) -> dict[str, Any]:
        pairs = self.read()
        if not isinstance(pairs.value, list):
            return {}
        return dict(zip(pairs.attributes["names"].value, pairs.value, strict=True))

    def _alternative(self) -> _Item:
        """Read what R stores in short: sequences, and vectors in a wrapper."""
        (name, *_), state = self.read().value, self.read()
        attributes = self._attributes()
        if name.value in ("compact_intseq", "compact_realseq"):
            length, first, step = state.value.tolist()
            if not 0 <= length <= 1e6:
                raise ValueError("it has a sequence that is too long")
            state = _Item(first + step * np.arange(int(length)))
        elif str(name.value).startswith("wrap_") and isinstance(state.value, list):
            state = state.value[0]
        else:
            raise ValueError(f"it has a vector of class {name.value}, which is not supported")
        return _Item(state.value, state.attributes | attributes)

    def _length(self) -> int:
        length = self._integer()
        if length < 0:
            raise ValueError("it has a vector that is too long")
        return length

    def _integer(self) -> int:
        return self._integers(1)[0]

    def _integers(self, count: int) -> tuple[int, ...]:
        return struct.unpack(f">{count}i", self._take(4 * count))

    def _take(self, size: int) -> bytes:
        taken = self.raw[self.at : self.at + size]
        if size < 0 or len(taken) < size:
            raise ValueError("it ends too early")
        self.at += size
        return taken


# --- Networks of bnlearn ------------------------------------------------------------------------


def _network(nodes: Mapping[str, _Item], *, normalise: bool) -> Network:
    parts = {node: part.items() for node, part in nodes.items()}
    parents = {node: _texts(part["parents"]) for node, part in parts.items()}
    dag = DAG(list(parts), [(p, node) for node, own in parents.items() for p in own])
    tables = {
        node: _table(node, part["prob"], parents[node], normalise=normalise)
        for node, part in parts.items()
        if "prob" in part
    }
    levels = {node: levels for node, (levels, _) in tables.items()}
    for node, (_, table) in tables.items():
        sizes = tuple(len(levels[p]) for p in parents[node])
        if table.shape[:-1] != sizes:
            _fail(node, "a table of another size than its parents' levels")
    if len(tables) == len(parts):
        ordered = {node: _reordered(table, parents[node], dag.parents(node))
                   for node, (_, table) in tables.items()}  # fmt: skip
        return DiscreteNetwork(dag, levels, ordered)
    if not tables and all(np.ndim(part["coefficients"].array()) == 1 for part in parts.values()):
        slopes = {node: _named(node, part["coefficients"]) for node, part in parts.items()}
        intercepts = {node: own.pop("(Intercept)") for node, own in slopes.items()}
        variances = {node: float(part["sd"].array()[0]) ** 2 for node, part in parts.items()}
        return GaussianNetwork(dag, intercepts, slopes, variances)
    conditionals: dict[str, ProbabilityTable | ConditionalGaussian] = {}
    for node, part in parts.items():
        if node in tables:
            conditionals[node] = ProbabilityTable(levels[node], tuple(parents[node]),
                                                  tables[node][1])  # fmt: skip
        else:
            conditionals[node] = _regressions(node, part, parents[node], levels)
    return MixedNetwork(dag, conditionals)


def _fail(node: str, what: str) -> NoReturn:
    raise FormatError(f"{node!r} has {what}.")


def _table(
    node: str, prob: _Item, parents: list[str], *, normalise: bool
) -> tuple[tuple[str, ...], Floats]:
    """Return the levels of a node, and its table with the node as the last axis."""
    table = prob.array()
    names = prob.attributes.get("dimnames")
    if table.ndim != len(parents) + 1:
        _fail(node, f"a table with {table.ndim} axes and the parents {listed(parents)}")
    if names is None or len(names.value) != table.ndim:
        _fail(node, "a table without the names of its levels")
    axes = _texts(names.attributes.get("names"))
    if parents:  # the node comes first; its parents may be in another order than it lists them
        if sorted(axes) != sorted([node, *parents]):
            _fail(node, f"a table of {listed(axes)} and the parents {listed(parents)}")
        table = table.transpose(*map(axes.index, parents), axes.index(node))
    levels = tuple(_texts(names.value[axes.index(node) if parents else 0]))
    unknown: Bools = np.asarray(np.isnan(table).all(axis=-1))
    if unknown.any() and not normalise:
        _fail(
            node,
            "no probabilities for some configurations of its parents (NaN, if no row had them). "
            "Read it with normalise=True, which uses equal ones",
        )
    if normalise:
        table = np.where(unknown[..., np.newaxis], 1.0, table)
        table = table / table.sum(axis=-1, keepdims=True)
    return levels, np.ascontiguousarray(table)


def _reordered(table: Floats, now: list[str], wanted: tuple[str, ...]) -> Floats:
    return table.transpose(*map(now.index, wanted), len(now))


def _named(node: str, item: _Item) -> dict[str, float]:
    names = _texts(item.attributes.get("names"))
    values = item.array().tolist()
    if "(Intercept)" not in names or len(names) != len(values):
        _fail(node, "coefficients without names, or without an intercept")
    return dict(zip(names, values, strict=True))


def _regressions(
    node: str, part: Mapping[str, _Item], parents: list[str], levels: Mapping[str, tuple[str, ...]]
) -> ConditionalGaussian:
    """Return the regressions of a node: one for all, or one per configuration of its parents."""
    discrete = tuple(p for p in parents if p in levels)
    continuous = tuple(p for p in parents if p not in levels)
    shape = tuple(len(levels[p]) for p in discrete)
    found = part["coefficients"]
    matrix = found.array()
    if matrix.ndim == 1:
        names, matrix = _texts(found.attributes.get("names")), matrix[:, np.newaxis]
    else:
        names = _texts(found.attributes["dimnames"].value[0])
    if sorted(names) != sorted(["(Intercept)", *continuous]) or matrix.shape[1] != np.prod(shape):
        _fail(node, "coefficients that do not match its parents")
    if discrete and _texts(part["dlevels"].attributes.get("names")) != list(discrete):
        _fail(node, "configurations of other parents than it lists")

    def laid_out(row: Floats) -> Floats:
        return row.reshape(shape, order="F")  # the first parent changes fastest

    rows = {name: laid_out(row) for name, row in zip(names, matrix, strict=True)}
    slopes = [rows[p] for p in continuous]
    return ConditionalGaussian(
        discrete,
        continuous,
        rows["(Intercept)"],
        np.stack(slopes, axis=-1) if slopes else np.zeros((*shape, 0)),
        laid_out(part["sd"].array()) ** 2,
    )
