"""Annotated matrices of cells and genes, as the package anndata has them, read as tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeGuard, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError, SchemaError

_ATTRIBUTES = ("X", "obs", "obs_names", "var_names", "layers")


def is_annotated(data: object) -> TypeGuard[Any]:
    """Return whether an object has the attributes of an ``AnnData``, of which it may be no one."""
    return all(hasattr(data, name) for name in _ATTRIBUTES)


@final
class AnnotatedTable(Mapping[str, NDArray[Any]]):
    """A table of the variables of an annotated matrix (``AnnData``), and of some annotations.

    `learn`, `Interventions` and the other functions read an ``AnnData`` by themselves: its
    variables are the columns, and ``groups="batch"`` or ``column="guide"`` names a column of
    ``obs``. This class is for the rest: a layer, a part of the variables, or annotations as
    variables. It needs no package but NumPy; a sparse matrix becomes a column when it is read.

    Parameters
    ----------
    data
        An object with ``X``, ``obs``, ``var_names`` and ``layers``, such as an ``AnnData``.
    layer
        Name of the layer to read instead of ``X``.
    variables
        Names of the variables to read; by default all.
    obs
        Names of columns of ``obs`` to add.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import isthmus as ist
    >>> import numpy as np
    >>> cells = SimpleNamespace(  # an AnnData has the same attributes
    ...     X=np.eye(3), var_names=["a", "b", "c"], layers={}, obs_names=list("xyz"),
    ...     obs={"batch": ["1", "1", "2"]},
    ... )
    >>> list(ist.AnnotatedTable(cells, variables=["a", "b"], obs=["batch"]))
    ['a', 'b', 'batch']
    """

    def __init__(
        self,
        data: object,
        *,
        layer: str | None = None,
        variables: Iterable[str] | None = None,
        obs: Iterable[str] = (),
    ) -> None:
        if not is_annotated(data):
            raise DataError(
                f"A {type(data).__name__} is not an annotated matrix, which has X, obs, var_names "
                "and layers."
            )
        names = [str(name) for name in data.var_names]
        if len(set(names)) < len(names):
            raise SchemaError(
                "Some variables have the same name. Call var_names_make_unique() of the data first."
            )
        place = {name: i for i, name in enumerate(names)}
        chosen = names if variables is None else list(variables)
        annotations = list(obs)
        unknown = [name for name in chosen if name not in place]
        unknown += [name for name in annotations if name not in data.obs]
        if unknown:
            raise SchemaError(
                f"There are no {unknown[:10]}. The variables are {names[:10]}, and the columns of "
                f"obs {list(data.obs)[:10]}."
            )
        twice = sorted(set(chosen) & set(annotations))
        if twice:
            raise SchemaError(f"{twice} are names of variables and of columns of obs.")
        if layer is not None and layer not in data.layers:
            raise SchemaError(f"There is no layer {layer!r}. There are: {list(data.layers)}.")
        self._place = {name: place[name] for name in chosen}
        self._obs = {name: np.asarray(data.obs[name]) for name in annotations}
        self._matrix = _by_columns(data.X if layer is None else data.layers[layer])

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name in self._obs:
            return self._obs[name]
        column = self._matrix[:, [self._place[name]]]
        if hasattr(column, "toarray"):
            column = column.toarray()
        return np.asarray(column).ravel()

    def __iter__(self) -> Iterator[str]:
        yield from self._place
        yield from self._obs

    def __len__(self) -> int:
        return len(self._place) + len(self._obs)

    def __repr__(self) -> str:
        rows = self._matrix.shape[0]
        return f"AnnotatedTable({rows:,} rows, {len(self._place):,} variables, {list(self._obs)})"


def _by_columns(matrix: Any) -> Any:
    """Return a matrix in memory from which columns are taken quickly."""
    if hasattr(matrix, "tocsc"):  # of scipy
        return matrix.tocsc()
    if isinstance(matrix, np.ndarray):
        return np.asarray(matrix)
    raise DataError(
        f"The matrix is a {type(matrix).__name__}, which is not in memory. Call to_memory() of the "
        "data first."
    )
