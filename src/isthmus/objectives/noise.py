"""Tests of the noise of linear regressions, as searches see them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from isthmus.objectives.base import Capabilities, Capability, Objective, Sense
from isthmus.objectives.local import LocalScore

INDEPENDENT_NOISE: Capability[NoiseTest] = Capability("tests of independent noise")
"""p-values of linear regressions with independent noise; see `NoiseTest`."""


class NoiseTest(Objective):
    """Base class of tests whether the noise of a linear regression is independent of the parents.

    Parameters
    ----------
    nodes
        Names of the variables; an index means a position in this tuple.
    """

    sense: ClassVar[Sense] = Sense.MAXIMISE
    capabilities: Capabilities = frozenset({INDEPENDENT_NOISE})
    equivalent = True

    def __init__(self, nodes: Sequence[str]) -> None:
        self.nodes = tuple(nodes)

    @abstractmethod
    def p_value(self, child: int, parents: Sequence[int]) -> float:
        """Test whether a variable is linear in its parents with noise that is independent of them.

        It is 1 if nothing can be tested, as for a variable without parents.

        Parameters
        ----------
        child
            The variable.
        parents
            Its parents, in ascending order.
        """

    @abstractmethod
    def local_score(self) -> LocalScore:
        """Return the score of the same data that a search begins with."""

    @abstractmethod
    def noise_score(self) -> LocalScore | None:
        """Return that score with a model of the noise, which tells directions; None if it cannot.

        Graphs of one equivalence class differ in it, unless all noise is normal.
        """
