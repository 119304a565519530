"""Tables of the same kind as another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isthmus.errors import ArgumentError
from isthmus.plurals import a_type


def table_like(columns: Mapping[str, Any], like: object) -> Any:
    """Return columns as a table of the same library as another table, or as a dictionary.

    Parameters
    ----------
    columns
        One-dimensional arrays of equal length, by name.
    like
        A table of pandas, Polars, PyArrow or Modin, or a mapping of names to columns.
    """
    if isinstance(like, Mapping):
        return dict(columns)
    import narwhals as nw

    try:
        library = nw.get_native_namespace(nw.from_native(like))
        plain = {name: column.tolist() for name, column in columns.items()}
        return nw.from_dict(plain, backend=library).to_native()
    except (TypeError, ValueError):
        raise ArgumentError(
            f"like is {a_type(like)}. Give a table of pandas, Polars or PyArrow, or a dictionary "
            "of columns: the answer is a table of the same kind."
        ) from None
