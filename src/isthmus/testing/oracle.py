"""A test of independence that knows the true graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import final

import numpy as np

from isthmus.errors import MismatchError
from isthmus.graphs import DAG
from isthmus.graphs.bits import mask_of, transpose
from isthmus.graphs.separation import connected
from isthmus.objectives import IndependenceTest, LocalScore
from isthmus.types import Floats


@final
class SeparationOracle(IndependenceTest):
    """Answers tests of independence by d-separation in a graph: the data of infinitely many rows.

    With it, a search shows whether it is correct, apart from errors of tests.

    Parameters
    ----------
    dag
        The true graph.
    hidden
        Names of the variables that are not observed; none by default.

    Examples
    --------
    >>> import numpy as np
    >>> import isthmus as ist
    >>> from isthmus.searches import Watch
    >>> from isthmus.testing import SeparationOracle
    >>> dag = ist.DAG(["a", "b", "c"], [("a", "b"), ("c", "b")])
    >>> oracle = SeparationOracle(dag)
    >>> oracle.p_values(0, [], [1, 2]), oracle.p_values(0, [1], [2])
    (array([0., 1.]), array([0.]))
    >>> knowledge = ist.Knowledge().bind(oracle.nodes)
    >>> print(ist.FCI().search(oracle, knowledge, np.random.default_rng(0), Watch()).pag)
    a o-> b
    c o-> b
    """

    def __init__(self, dag: DAG, hidden: Iterable[str] = ()) -> None:
        outside = set(hidden)
        super().__init__([name for name in dag.nodes if name not in outside])
        self._at = [dag.index(name) for name in self.nodes]
        self._parents = dag.parent_masks
        self._children = transpose(dag.parent_masks, len(dag.nodes))

    def p_values(self, x: int, given: Sequence[int], others: Sequence[int]) -> Floats:
        """Return 1 for variables that are separated from x, and 0 for the others."""
        condition = mask_of(self._at[v] for v in given)
        reached = connected(self._parents, self._children, 1 << self._at[x], condition)
        return np.array([0.0 if reached >> self._at[y] & 1 else 1.0 for y in others])

    def local_score(self) -> LocalScore:
        """Refuse: there are no data."""
        raise MismatchError("An oracle has no data to compute a score from.")
