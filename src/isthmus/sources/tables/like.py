"""Tables of the same kind as another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

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


def columns_of(data: Any) -> tuple[Any, Callable[[NDArray[Any], tuple[Any, ...]], Any]]:
    """Return the columns of a table, and a function that labels an array with one row per row.

    Parameters
    ----------
    data
        A table of pandas, Polars, PyArrow or Modin. For a mapping of names to columns, it is
        returned as it is, and so are arrays.

    Returns
    -------
    columns
        A mapping of names to columns.
    labelled
        Turns an array and its names into a series of the same library, or into a table if the array
        has two dimensions, with the index of the rows if there is one.
    """
    if isinstance(data, Mapping):
        return data, lambda values, _: values
    import narwhals as nw

    frame = nw.from_native(data, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return data, lambda values, _: values
    library, index = nw.get_native_namespace(frame), nw.maybe_get_index(frame)

    def labelled(values: NDArray[Any], names: tuple[Any, ...]) -> Any:
        if values.ndim == 1:
            made: Any = nw.new_series(str(names[0]), values.tolist(), backend=library)
        else:
            named = dict(zip(map(str, names), values.T.tolist(), strict=True))
            made = nw.from_dict(named, backend=library)
        native: Any = made.to_native()
        if index is not None:
            native.index = index
        return native

    return {name: frame[name].to_numpy() for name in frame.columns}, labelled
