"""Tests of conditional independence, as searches see them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from isthmus.objectives.base import Capabilities, Capability, Objective, Sense
from isthmus.objectives.local import LocalScore
from isthmus.types import Floats

INDEPENDENCE_TESTS: Capability[IndependenceTest] = Capability("tests of independence")
"""p-values of conditional independences; see `IndependenceTest`."""


class IndependenceTest(Objective):
    """Base class of tests of conditional independence, bound to statistics.

    Parameters
    ----------
    nodes
        Names of the variables; an index means a position in this tuple.
    """

    sense: ClassVar[Sense] = Sense.MAXIMISE
    capabilities: Capabilities = frozenset({INDEPENDENCE_TESTS})
    equivalent = True

    def __init__(self, nodes: Sequence[str]) -> None:
        self.nodes = tuple(nodes)

    @abstractmethod
    def p_values(self, x: int, given: Sequence[int], others: Sequence[int]) -> Floats:
        """Test whether a variable is independent of each of some others, given a set.

        The p-value is NaN if the set determines one of the two: they are independent given it,
        whether or not they are neighbours in the graph.

        Parameters
        ----------
        x
            The variable.
        given
            Variables that are conditioned on, in ascending order.
        others
            The variables that x is tested against, none of them in ``given``.
        """

    @abstractmethod
    def local_score(self) -> LocalScore:
        """Return the score of the same data that hybrid searches begin with."""
