"""Tests of the noise of linear regressions, as searches see them."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from isthmus.objectives.base import Capabilities, Capability, Objective, Sense
from isthmus.objectives.local import LocalScore

INDEPENDENT_NOISE: Capability[NoiseTest] = Capability("tests of independent noise")
"""p-values of linear regressions with independent noise; see `NoiseTest`."""


class NoiseFit(NamedTuple):
    """How well a regression with independent noise fits.

    Attributes
    ----------
    p_value
        The p-value of the test.
    misfit
        The statistic: it grows with the rows and with the squared distance from the model.
    possible
        Upper limit of the distance that these rows allow for, in the unit of `misfit`: with a
        larger one, the statistic would have been larger in 95% of tables.
    """

    p_value: float
    misfit: float = 0.0
    possible: float = math.inf


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
    def fit(self, child: int, parents: Sequence[int]) -> NoiseFit:
        """Test whether a variable is linear in its parents with noise that is independent of them.

        The p-value is 1 if nothing can be tested, as for a variable without parents.

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
