"""Reading TOML strictly, with all mistakes at once; and writing the little we write."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar, final

from isthmus.errors import StudyError

T = TypeVar("T")


@final
class Reader:
    """Takes the keys of a table one by one, and collects what is wrong.

    Parameters
    ----------
    table
        What was read.
    what
        Name of the document, for messages.
    path
        Where the table stands in it.
    wrong
        The list of mistakes of the table around it.
    """

    def __init__(
        self, table: Mapping[str, Any], what: str, path: str = "", wrong: list[str] | None = None
    ) -> None:
        self._table = dict(table)
        self._what = what
        self._path = path
        self.wrong: list[str] = [] if wrong is None else wrong

    @classmethod
    def of(cls, data: bytes, what: str) -> Reader:
        """Read a document."""
        try:
            return cls(tomllib.loads(data.decode()), what)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise StudyError(f"The {what} is not TOML: {error}.") from error

    def take(self, key: str, kind: type[T], default: T | None = None) -> T:
        """The value of a key that must be there, unless there is a default."""
        where = self._path + key
        if key not in self._table:
            if default is None:
                self.wrong.append(f"{where} is missing")
                return _empty(kind)
            return default
        value: Any = self._table.pop(key)
        if kind is float and type(value) is int:
            value = float(value)
        if type(value) is not kind:
            self.wrong.append(f"{where} is a {type(value).__name__}, not a {kind.__name__}")
            return _empty(kind)
        found: T = value
        return found

    def whole(self, key: str, least: int) -> int:
        """A whole number of at least this."""
        value = self.take(key, int)
        if value < least:
            self.wrong.append(f"{self._path}{key} is {value}; it must be at least {least}")
        return max(value, least)

    def words(self, key: str, default: list[str] | None = None) -> tuple[str, ...]:
        """A list of strings."""
        value: list[Any] = self.take(key, list, default)
        if not all(isinstance(v, str) for v in value):
            self.wrong.append(f"{self._path}{key} must hold strings only")
            return ()
        return tuple(value)

    def tried(self, key: str, make: Callable[[str], T]) -> T | None:
        """A string that stands for something else."""
        text = self.take(key, str)
        try:
            return make(text) if text else None
        except ValueError as error:
            self.wrong.append(f"{self._path}{key}: {str(error).rstrip('.')}")
            return None

    def inner(self, key: str) -> list[Reader]:
        """A list of tables."""
        value: list[Any] = self.take(key, list, None if key in self._table else [])
        if not value:
            self.wrong.append(f"{self._path}{key} is missing or empty")
        found = []
        for i, table in enumerate(value):
            path = f"{self._path}{key}[{i}]."
            if isinstance(table, Mapping):
                found.append(Reader(table, self._what, path, self.wrong))
            else:
                self.wrong.append(f"{path[:-1]} is not a table")
        return found

    def left(self, key: str) -> Any:
        """A value of any type, or ``None``."""
        return self._table.pop(key, None)

    def close(self) -> None:
        """Complain about keys that nobody took."""
        self.wrong += [f"{self._path}{key} is not known" for key in self._table]

    def finish(self) -> None:
        """Raise `StudyError` with all mistakes, if there are any."""
        self.close()
        if self.wrong:
            shown = "; ".join(self.wrong[:20]) + (" …" if len(self.wrong) > 20 else "")
            raise StudyError(f"The {self._what} cannot be used: {shown}.")


def _empty(kind: type[T]) -> T:
    made: Any = datetime.min if kind is datetime else kind()
    found: T = made
    return found


def written(value: object) -> str:
    """A value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, float) and not math.isfinite(value):
        raise StudyError("Infinite numbers are not written.")
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds").replace("+00:00", "Z")
    if isinstance(value, (list, tuple, set, frozenset)):
        return "[" + ", ".join(map(written, value)) + "]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {written(v)}" for k, v in value.items()) + " }"
    raise StudyError(f"A {type(value).__name__} is not written as TOML.")


def document(table: Mapping[str, object], lists: Mapping[str, list[dict[str, object]]]) -> str:
    """Keys and values, then lists of tables."""
    lines = [f"{_key(k)} = {written(v)}" for k, v in table.items()]
    for name, entries in lists.items():
        for entry in entries:
            lines += ["", f"[[{name}]]", *(f"{_key(k)} = {written(v)}" for k, v in entry.items())]
    return "\n".join(lines) + "\n"


def _key(name: object) -> str:
    return written(str(name)) if not str(name).replace("_", "").isalnum() else str(name)
