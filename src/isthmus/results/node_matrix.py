"""A matrix of numbers for pairs of nodes, such as the probabilities of edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.frames import edges_of, table_of
from isthmus.results.features import positions

_SHOWN = 12
"""Number of nodes up to which the print has all numbers."""


@final
class NodeMatrix(np.ndarray[tuple[int, ...], np.dtype[np.float64]]):
    """An array with one row and one column per node, which knows their names.

    It is an array of NumPy in every other respect; results of computations with it are plain
    arrays.

    Attributes
    ----------
    nodes
        Names of the nodes, in the order of rows and columns.
    measure
        What the numbers are, in one word.

    Examples
    --------
    >>> import isthmus as ist
    >>> a, b = ist.DAG(["a", "b"], [("a", "b")]), ist.DAG(["a", "b"])
    >>> edges = ist.results.Ensemble.from_dags([a, b], [3, 1]).edge_probabilities()
    >>> float(edges["a", "b"]), float(edges[0, 1])
    (0.75, 0.75)
    >>> edges
    from / to     a     b
    a          0.00  0.75
    b          0.00  0.00
    """

    nodes: tuple[str, ...]
    measure: str

    @classmethod
    def of(cls, nodes: Sequence[str], values: NDArray[Any], measure: str) -> NodeMatrix:
        """Return numbers with the names of their rows and columns."""
        made = np.array(values, np.float64).view(cls)
        made.nodes, made.measure = tuple(nodes), measure
        return made

    def __array_finalize__(self, _: object) -> None:
        self.nodes, self.measure = (), ""  # of a part or a transpose

    def to_frame(self, like: object = None) -> Any:
        """Return one row per pair whose number is not zero, the largest first.

        A pair is one row if the order of its nodes makes no difference.

        Parameters
        ----------
        like
            As for :func:`isthmus.to_frame`.
        """
        values = np.asarray(self)
        if np.array_equal(values, values.T):
            values = np.triu(values)
        return table_of(edges_of(self.nodes, values, self.measure), like)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, tuple) and place and all(isinstance(name, str) for name in place):
            place = tuple(positions(self.nodes, *place))
        return np.asarray(self)[place]

    def __array_wrap__(self, array: NDArray[Any], *_: Any) -> Any:
        return array[()]

    def __reduce__(self) -> Any:
        return NodeMatrix.of, (self.nodes, np.asarray(self), self.measure)

    def __str__(self) -> str:
        if not 0 < len(self.nodes) <= _SHOWN:
            return str(np.asarray(self))
        wide = max(len("from / to"), *map(len, self.nodes))
        columns = [max(len(name), 5) for name in self.nodes]
        rows = [("from / to", self.nodes)]
        shape = ".2f" if np.abs(self).max() <= 1.0 else ".3g"
        rows += [
            (name, tuple(f"{value:{shape}}" for value in row))
            for name, row in zip(self.nodes, np.asarray(self).tolist(), strict=True)
        ]
        return "\n".join(
            f"{name:<{wide}}"
            + "".join(f" {cell:>{w}}" for cell, w in zip(cells, columns, strict=True))
            for name, cells in rows
        )

    __repr__ = __str__
