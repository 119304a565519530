"""Results as tables of pandas, Polars or PyArrow, and columns of such tables."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import ArgumentError, MissingExtraError, a_type


def table_of(columns: Mapping[str, Any], like: object = None) -> Any:
    """Return columns as a table.

    Parameters
    ----------
    columns
        One-dimensional arrays of equal length, by name.
    like
        A table of pandas, Polars, PyArrow or Modin: the answer is one of the same library. For a
        mapping of names to columns, it is a dictionary. By default it is a table of pandas; of
        Polars or PyArrow, if the program uses these and not pandas.
    """
    if isinstance(like, Mapping):
        return {name: np.asarray(column) for name, column in columns.items()}
    import narwhals as nw

    try:
        library: Any = _used() if like is None else nw.get_native_namespace(nw.from_native(like))
        plain = {name: np.asarray(column).tolist() for name, column in columns.items()}
        return nw.from_dict(plain, backend=library).to_native()
    except (TypeError, ValueError):
        raise ArgumentError(
            f"like is {a_type(like)}. Give a table of pandas, Polars or PyArrow, or a dictionary "
            "of columns: the answer is a table of the same kind."
        ) from None


def _used() -> str:
    """Return the library of tables that the program has imported, or one that is installed."""
    libraries = ("pandas", "polars", "pyarrow")
    for has in (sys.modules.get, find_spec):
        for name in libraries:
            if has(name) is not None:
                return name
    raise MissingExtraError("pandas", None, "to_frame() without `like`")


def cells_of(levels: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return one row per combination of levels; a name of a value gives way to a variable.

    Parameters
    ----------
    levels
        The levels of each variable.
    values
        Arrays with one axis per variable.
    """
    shape = tuple(len(own) for own in levels.values())
    places = np.indices(shape).reshape(len(shape), -1)
    columns: dict[str, Any] = {}
    for (name, own), place in zip(levels.items(), places, strict=True):
        column = np.empty(len(own), dtype=object)
        column[:] = list(own)
        columns[name] = column[place]
    for name, array in values.items():
        while name in columns:
            name += "_"
        columns[name] = np.asarray(array).ravel()
    return columns


def edges_of(nodes: Sequence[str], matrix: NDArray[Any], measure: str) -> dict[str, Any]:
    """Return one row per entry ``[from, to]`` that is not zero, the largest first."""
    places = np.argwhere(matrix != 0.0)
    values = np.asarray(matrix)[places[:, 0], places[:, 1]]
    order = np.argsort(-np.abs(values), kind="stable")
    names = np.array(nodes, dtype=object)
    return {
        "from": names[places[order, 0]],
        "to": names[places[order, 1]],
        measure: values[order],
    }


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

    # Networks have numbered columns of pandas as text, as `learn` reads them.
    names = [str(n) if isinstance(n, (int, np.integer)) else n for n in frame.columns]
    return {name: frame[:, i].to_numpy() for i, name in enumerate(names)}, labelled


def completed(
    data: Any, holes: Mapping[str, NDArray[np.bool_]], filled: Mapping[str, NDArray[Any]]
) -> Any:
    """Return a copy of a table of any kind, or of a mapping of columns, with values in its holes.

    Parameters
    ----------
    data
        The table.
    holes
        Which cells of a column are missing.
    filled
        The values of the missing cells of these columns, in order.
    """
    if isinstance(data, Mapping):
        return {v: _with(own, holes.get(v), filled.get(v)) for v, own in data.items()}
    import narwhals as nw

    frame = nw.from_native(data, eager_only=True)
    changed = []
    for v, values in filled.items():
        series = frame[v]
        cells = values.tolist()
        if series.dtype.is_integer():
            cells = [round(cell) if isinstance(cell, float) else cell for cell in cells]
        changed.append(series.scatter(np.flatnonzero(holes[v]).tolist(), cells))
    return frame.with_columns(*changed).to_native()


def _with(column: Any, hole: NDArray[np.bool_] | None, values: NDArray[Any] | None) -> Any:
    if hole is None or values is None:
        return list(column) if isinstance(column, list) else column
    cells = list(column) if isinstance(column, list) else np.array(column)
    for place, value in zip(np.flatnonzero(hole).tolist(), values.tolist(), strict=True):
        cells[place] = value
    return cells
