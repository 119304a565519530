"""Tables in databases: DuckDB files, and URLs that Ibis connects to. Rows stay there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from isthmus.errors import DataError, MissingExtraError, SchemaError

_URL = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*)://")
_SECRET = re.compile(r"://[^@/]*@")
_WEB = ("ftp", "gs", "http", "https", "s3")
_EXTRAS = {"postgres": "postgres", "postgresql": "postgres"}


def is_url(given: str) -> bool:
    """Whether this is the URL of a database and not the name of a file."""
    return _URL.match(given) is not None


def without_secret(url: str) -> str:
    """The URL without user and password, for messages."""
    return _SECRET.sub("://", url)


def duckdb_table(path: Path, table: str | None) -> tuple[Any, str]:
    """Return a table of a DuckDB file, and its name."""
    try:
        import duckdb
    except ImportError:
        raise MissingExtraError("duckdb", "duckdb", f"Reading {path.name!r}") from None
    try:
        connection = duckdb.connect(str(path), read_only=True)
    except duckdb.Error as error:
        first = str(error).partition("\n")[0]
        if "lock" in first:
            raise DataError(
                f"Another program has {path.name!r} open for writing. Close it, or copy the file."
            ) from None
        raise DataError(
            f"{path.name!r} cannot be read as a DuckDB file ({first}). Check its extension, or "
            "write it again."
        ) from None
    names = [row[0] for row in connection.execute("SHOW TABLES").fetchall()]
    name = _chosen(names, table, path.name)
    return connection.table(f'"{name}"'), name


def url_table(url: str, table: str | None) -> tuple[Any, str]:
    """Return a table of a database, and its name; ``schema.table`` names one of a schema."""
    shown = without_secret(url)
    scheme = url.partition("://")[0].lower()
    extra = _EXTRAS.get(scheme, "ibis")
    if scheme in _WEB:
        raise DataError(f"{shown} is a file on the web. Download it, and name the file.")
    file = Path(url.partition("://")[2].partition("?")[0])
    if scheme in ("duckdb", "sqlite") and file.name and not file.is_file():
        # Connecting would create it.
        raise FileNotFoundError(
            f"There is no file {str(file)!r}. Check the name; an absolute one begins with "
            f"{scheme}:/// and a relative one with {scheme}://"
        )
    try:
        import ibis
    except ImportError:
        raise MissingExtraError("ibis-framework", extra, f"Reading {shown}") from None
    try:
        connection = ibis.connect(url)
    except ImportError:
        own = _EXTRAS.get(scheme)
        raise MissingExtraError(f"ibis-framework[{scheme}]", own, f"Reading {shown}") from None
    except Exception as error:  # noqa: BLE001 - each database has its own; none may show a password
        reason = without_secret(str(error).partition("\n")[0])
        raise DataError(f"Connecting to {shown} failed: {reason}. Check the URL.") from None
    schema, _, name = (table or "").rpartition(".")
    if name:
        try:
            return connection.table(name, database=schema or None), name
        except ibis.common.exceptions.TableNotFound:
            pass  # the message lists the tables
    chosen = _chosen(list(connection.list_tables(database=schema or None)), name or None, shown)
    return connection.table(chosen, database=schema or None), chosen


def _chosen(names: list[str], given: str | None, where: str) -> str:
    shown = ", ".join(sorted(names)[:20]) or "none"
    if given is None:
        if len(names) == 1:
            return names[0]
        if not names:
            raise SchemaError(f"{where!r} has no tables. Check that it is the right database.")
        raise SchemaError(f"{where!r} has several tables: {shown}. Name one.")
    if given not in names:
        raise SchemaError(f"{where!r} has no table {given!r}. Its tables: {shown}.")
    return given
