"""Exact inference in discrete networks by pyAgrum's junction trees (lazy propagation)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus import interrupts
from isthmus.errors import DataError, MissingExtraError
from isthmus.graphs import DAG
from isthmus.models.questions import check_joint_size
from isthmus.types import Floats


@final
class JunctionTree:
    """A network in pyAgrum, whose variables are numbered and whose levels are codes.

    Parameters
    ----------
    dag
        The graph.
    tables
        Probabilities by node, as in `DiscreteNetwork`.
    """

    def __init__(self, dag: DAG, tables: Mapping[str, Floats]) -> None:
        self._gum = _pyagrum()
        network = self._gum.BayesNet()
        for i, name in enumerate(dag.nodes):
            size = tables[name].shape[-1]
            network.add(self._gum.LabelizedVariable(f"v{i}", "", [str(k) for k in range(size)]))
        for i, parents in enumerate(dag.parent_indices()):
            # The parent that is added first changes fastest; in our tables the last one does.
            for p in reversed(parents):
                network.addArc(f"v{p}", f"v{i}")
            table = tables[dag.nodes[i]]
            table = table / table.sum(axis=-1, keepdims=True)
            network.cpt(f"v{i}").fillWith(table.ravel().tolist())
        self._network = network
        self._sizes = [tables[name].shape[-1] for name in dag.nodes]

    def joint(self, targets: Sequence[int], evidence: Mapping[int, int]) -> NDArray[np.float64]:
        """Return the distribution of some nodes given codes of others, one axis per target."""
        check_joint_size([self._sizes[t] for t in targets])
        engine: Any = self._gum.LazyPropagation(self._network)
        engine.setEvidence({f"v{i}": code for i, code in evidence.items()})
        # pyAgrum repeats the axes of variables with one level, so they are added at the end.
        open_ones = [t for t in targets if self._sizes[t] > 1]
        names = {f"v{t}" for t in open_ones}
        engine.eraseAllTargets()
        if len(names) > 1:
            engine.addJointTarget(names)
        elif names:
            engine.addTarget(*names)
        try:
            engine.makeInference()
            possible = not evidence or engine.evidenceProbability() > 0
        except self._gum.IncompatibleEvidence:
            possible = False
        if not possible:
            raise DataError("The evidence has probability zero in this network.")
        shape = [self._sizes[t] for t in targets]
        if not names:
            return np.ones(shape)
        found = engine.jointPosterior(names) if len(names) > 1 else engine.posterior(*names)
        # The axes of an array are in reverse order of the names.
        order = [int(name[1:]) for name in reversed(found.names) if name in names]
        array = np.asarray(found.toarray(), dtype=np.float64)
        array = array.reshape([self._sizes[i] for i in order])
        return array.transpose([order.index(t) for t in open_ones]).reshape(shape)


def _pyagrum() -> Any:
    """Import pyAgrum, whose module crashes if a warning or Ctrl-C interrupts its initialisation."""
    with interrupts.held_back(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import pyagrum
        except ImportError:
            raise MissingExtraError("pyagrum", "inference", "Exact inference") from None
    return pyagrum
