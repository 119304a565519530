"""Names of columns, checked in one place: every source refuses the same in the same words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from isthmus.errors import SchemaError

T = TypeVar("T")


def check_names(names: Iterable[object]) -> tuple[str, ...]:
    """Return the names of the columns; integers become text, as pandas numbers its columns.

    Empty and repeated names are refused, and so are those of other types.
    """
    given = tuple(as_name(name) for name in names)
    for name in given:
        if not isinstance(name, str) or not name:
            texts = '["_".join(map(str, c)) for c in df.columns]'
            texts = texts if isinstance(name, tuple) else "df.columns.astype(str)"
            texts = texts if name != "" else '[c or "unnamed" for c in df.columns]'
            raise SchemaError(
                f"A column is named {name!r}. Column names are non-empty strings: rename it, in "
                f"pandas for instance with df.columns = {texts}."
            )
        try:
            name.encode()
        except UnicodeEncodeError:
            raise SchemaError(
                f"The column name {name!r} has half a character and cannot be written to a file. "
                "Rename the column."
            ) from None
    check_unique(given)
    return tuple(str(name) for name in given)


def as_name(name: object) -> object:
    """Return an integer as text, and anything else as it is."""
    from isthmus.options import is_integer  # with NumPy, which the command line does without

    return str(name) if is_integer(name) else name


def check_unique(names: Iterable[object]) -> None:
    """Refuse names that occur more than once."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise SchemaError(
            f"Column names must be unique; these occur more than once: {repeated[:10]}. "
            "Rename the columns, or leave the copies out."
        )


def chosen(columns: Mapping[str, T], names: Collection[str] | None) -> dict[str, T]:
    """Return the columns of these names, all if none are given.

    Also all if none of the names is there, for whoever has asked to say that they are missing.
    """
    found = {name: columns[name] for name in columns if names is None or name in names}
    return found or dict(columns)


def as_narwhals(data: Any) -> Any:
    """Return a narwhals frame of a dataframe, a lazy table or a series; anything else as it is."""
    import narwhals as nw

    with repeated_names_refused():
        return nw.from_native(data, pass_through=True)


@contextmanager
def repeated_names_refused() -> Iterator[None]:
    """Raise the library's own error where narwhals or Polars refuse repeated names."""
    try:
        yield
    except Exception as error:
        if type(error).__name__ != "DuplicateError":
            raise
        # Narwhals writes "'a' 2 times", Polars "column with name 'a' has more than one occurrence".
        names = re.findall(r"'(.+)' (?:\d+ times|has more than one)", str(error))
        check_unique([name for name in names for _ in range(2)])
        raise SchemaError(f"Column names must be unique: {error}") from error
