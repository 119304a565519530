"""Strict reading of TOML that reports all problems at once, and a small TOML writer."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Container, Mapping
from dataclasses import Field, dataclass, fields, is_dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, TypeVar, final, get_args, get_origin, get_type_hints

from isthmus.errors import IsthmusError, StudyError, a_type

T = TypeVar("T")

LARGEST_INTEGER = 10**300
"""From here on, an integer where a number is expected is read as infinite."""

SHOWN = 20
"""An error message lists at most this many problems."""


@final
@dataclass(frozen=True)
class Text:
    """Annotates a field of a dataclass: how its value is written as text, and read again."""

    write: Callable[[Any], str]
    read: Callable[[str], Any]


@final
@dataclass(frozen=True)
class Least:
    """Annotates a field of a dataclass: the smallest integer that a document may state."""

    minimum: int


Hex = Annotated[bytes, Text(bytes.hex, bytes.fromhex)]
"""Bytes that are written as hexadecimal digits."""


@final
class Reader:
    """Takes the keys of a table one by one and collects every problem."""

    def __init__(
        self,
        table: Mapping[str, Any],
        document: str,
        path: str = "",
        problems: list[str] | None = None,
    ) -> None:
        self._table = dict(table)
        self._document = document
        self._path = path
        self.problems: list[str] = [] if problems is None else problems

    @classmethod
    def parse(cls, data: bytes, document: str, version: str = "") -> Reader:
        """Read a document, which states the version of its format if there is one.

        `StudyError` names the document and the position of a mistake.
        """
        try:
            top = cls(tomllib.loads(data.decode()), document)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise StudyError(f"The {document} is not TOML: {error}.") from error
        if version and top.take("format", str) != version:
            top.problems.append(f"format must be {version!r}")
        return top

    def take(self, key: str, kind: type[T], default: T | None = None) -> T:
        """Return the value of a key, which is required unless there is a default."""
        where = self._path + key
        if key not in self._table:
            if default is None:
                self.problems.append(f"{where} is missing")
                return _empty(kind)
            return default
        value: Any = self._table.pop(key)
        if kind is float and type(value) is int:
            # An integer of hundreds of digits has no float.
            value = (
                float(value)
                if abs(value) < LARGEST_INTEGER
                else math.inf * (1 if value > 0 else -1)
            )
        if type(value) is not kind:
            self.problems.append(f"{where} is {a_type(value)}, not a {kind.__name__}")
            return _empty(kind)
        taken: T = value
        return taken

    def integer(self, key: str, minimum: int) -> int:
        """Return an integer that is at least ``minimum``."""
        value = self.take(key, int)
        if value < minimum:
            self.problems.append(f"{self._path}{key} is {value}; it must be at least {minimum}")
        return max(value, minimum)

    def strings(
        self,
        key: str,
        allowed: Mapping[str, Any] | tuple[str, ...] | None = None,
    ) -> tuple[str, ...]:
        """Return a list of strings, each of which must be allowed."""
        value: list[Any] = self.take(key, list)
        if not all(isinstance(v, str) for v in value):
            self.problems.append(f"{self._path}{key} must hold only strings")
            return ()
        if allowed is not None:
            self.problems += [
                f"{self._path}{key}: {v!r} is not one of {list(allowed)}"
                for v in value
                if v not in allowed
            ]
        return tuple(value)

    def convert(self, key: str, make: Callable[[str], T]) -> T | None:
        """Return the object that a string stands for, or ``None`` after a problem."""
        text = self.take(key, str)
        try:
            return make(text) if text else None
        except ValueError as error:
            self.problems.append(f"{self._path}{key}: {str(error).rstrip('.')}")
            return None

    def table(self, key: str) -> Reader:
        """Return a required table."""
        value: dict[str, Any] = self.take(key, dict)
        return Reader(value, self._document, f"{self._path}{key}.", self.problems)

    def has(self, key: str) -> bool:
        """Return whether a key is there that was not taken yet."""
        return key in self._table

    def is_text(self, key: str, text: str) -> bool:
        """Return whether a key has this text, and take it if so."""
        same = self._table.get(key) == text
        if same:
            del self._table[key]
        return same

    def tables(self, key: str, *, empty: bool = False) -> list[Reader]:
        """Return a list of tables, which must be there, and must not be empty unless allowed."""
        if empty and key not in self._table:
            self.problems.append(f"{self._path}{key} is missing")
        value: list[Any] = self.take(key, list, None if key in self._table else [])
        if not value and not empty:
            self.problems.append(f"{self._path}{key} is missing or empty")
        readers = []
        for i, table in enumerate(value):
            path = f"{self._path}{key}[{i}]."
            if isinstance(table, Mapping):
                readers.append(Reader(table, self._document, path, self.problems))
            else:
                self.problems.append(f"{path[:-1]} is not a table")
        return readers

    def optional(self, key: str) -> Any:
        """Return a value of any type, or ``None``."""
        return self._table.pop(key, None)

    def read(self, key: str, make: Callable[[Any], T]) -> T | None:
        """Return what an optional value stands for; ``None`` if there is none, or a problem."""
        value = self.optional(key)
        try:
            return None if value is None else make(value)
        except (IsthmusError, TypeError, ValueError, AttributeError, OverflowError) as error:
            self.problems.append(f"{self._path}{key}: {error}")
            return None

    def record(
        self,
        kind: type[T],
        *,
        optional: Container[str] = (),
        without: Container[str] = (),
        **known: Any,
    ) -> Callable[[], T]:
        """Take one key per field of a dataclass, and return a function that makes the object.

        Call it after `finish`, when there is no problem. Of the fields, `optional` ones have their
        defaults, and those of `without` are `known` or left to their defaults.
        """
        hints, own = get_type_hints(kind, include_extras=True), fields(kind)  # type: ignore[arg-type]
        given = {
            f.name: self._field(f, hints[f.name], is_optional=f.name in optional)
            for f in own
            if f.name not in without and f.name not in known
        }
        return lambda: kind(**given, **known)

    def _field(self, field: Field[Any], hint: Any, *, is_optional: bool) -> Any:
        """Take the value of a field, as its type says."""
        name = field.name
        if is_optional and name not in self._table:
            return field.default
        form = next(iter(getattr(hint, "__metadata__", ())), None)
        if isinstance(form, Least):
            return self.integer(name, form.minimum)
        if isinstance(form, Text):
            value = self.convert(name, form.read)
            return field.default if value is None else value  # after a problem
        if isinstance(hint, type) and issubclass(hint, StrEnum):
            text = self.take(name, str)
            if text in set(hint):
                return hint(text)
            self.problems.append(f"{self._path}{name} is {text!r}; it must be one of {list(hint)}")
            return field.default
        if get_origin(hint) is tuple:
            kind = get_args(hint)[0]
            if isinstance(kind, type) and is_dataclass(kind):
                return tuple(self.records(name, kind))
            return self.strings(name)
        return self.take(name, hint)

    def records(self, key: str, kind: type[T], *, empty: bool = False) -> list[T]:
        """Take a list of tables, one per object; of those without problems."""
        found = []
        for entry in self.tables(key, empty=empty):
            before = len(self.problems)
            make = entry.record(kind)
            entry.reject_other_keys()
            if len(self.problems) == before:
                found.append(make())
        return found

    def reject_other_keys(self) -> None:
        """Report every key that was not taken."""
        self.problems += [f"{self._path}{key} is not a known key" for key in self._table]

    def finish(self) -> None:
        """Raise `StudyError` with all problems, if there are any."""
        self.reject_other_keys()
        if self.problems:
            shown = "; ".join(self.problems[:SHOWN])
            more = " …" if len(self.problems) > SHOWN else ""
            raise StudyError(f"The {self._document} cannot be used: {shown}{more}.")


def _empty(kind: type[T]) -> T:
    made: Any = datetime.min if kind is datetime else kind()
    empty: T = made
    return empty


def to_toml(value: object) -> str:
    """Write one value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, float) and not math.isfinite(value):
        raise StudyError(f"{value} cannot be written to a file; give a finite number.")
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds").replace("+00:00", "Z")
    if isinstance(value, (list, tuple, set, frozenset)):
        return "[" + ", ".join(map(to_toml, value)) + "]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {to_toml(v)}" for k, v in value.items()) + " }"
    raise StudyError(f"A value of type {type(value).__name__} cannot be written to a file.")


def plain(value: Any, without: Container[str] = ()) -> dict[str, Any]:
    """Return the fields of a dataclass as `Reader.record` reads them."""
    hints = get_type_hints(type(value), include_extras=True)
    found = {}
    for name in (f.name for f in fields(value) if f.name not in without):
        form = next(iter(getattr(hints[name], "__metadata__", ())), None)
        own = getattr(value, name)
        if isinstance(form, Text):
            own = form.write(own)
        elif isinstance(own, tuple):
            own = [plain(item) if is_dataclass(item) else item for item in own]
        found[name] = float(own) if hints[name] is float else own
    return found


Table = Mapping[str, object]


def document(
    keys: Table,
    lists: Mapping[str, list[dict[str, object]]],
    tables: Mapping[str, Table] | None = None,
) -> str:
    """Write a document: keys and values, then tables, then lists of tables."""
    lines = _lines(keys)
    for name, table in (tables or {}).items():
        lines += ["", f"[{name}]", *_lines(table)]
    for name, entries in lists.items():
        for entry in entries:
            lines += ["", f"[[{name}]]", *_lines(entry)]
    return "\n".join(lines) + "\n"


def _lines(table: Table) -> list[str]:
    return [f"{_key(k)} = {to_toml(v)}" for k, v in table.items()]


def _key(name: object) -> str:
    return to_toml(str(name)) if not str(name).replace("_", "").isalnum() else str(name)
