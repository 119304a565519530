"""The FCI algorithm: what tests of independence say about causes if some of them are hidden."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import ClassVar, final

import numpy as np

from isthmus.graphs import PAG, BoundKnowledge
from isthmus.graphs.bits import bits
from isthmus.graphs.marks import Marks
from isthmus.objectives import INDEPENDENCE_TESTS, IndependenceTest
from isthmus.options import require_integer, require_number
from isthmus.plurals import counted
from isthmus.results.details import IndependenceDetails
from isthmus.searches.base import Accepts, Run, Search, SearchResult
from isthmus.searches.constraint.pc import progress_text, required_neighbours, unfinished
from isthmus.searches.constraint.skeleton import Skeleton
from isthmus.types import Work


@dataclass(frozen=True)
class PAGResult(SearchResult):
    """The result of a search for hidden causes.

    Attributes
    ----------
    pag
        The graph. The parents are those of some DAG with its edges, which checks of the data use.
    """

    pag: PAG = PAG(())


class PAGSearch(Search[IndependenceTest]):
    """Base class of searches that allow for hidden common causes; their result is a PAG."""

    accepts: ClassVar[Accepts] = (INDEPENDENCE_TESTS,)

    @abstractmethod
    def begin(
        self, objective: IndependenceTest, knowledge: BoundKnowledge, rng: np.random.Generator
    ) -> Run[PAGResult]:
        """Start a run."""


@final
@dataclass(frozen=True)
class FCI(PAGSearch):
    """The FCI algorithm (Spirtes et al. 2000), which allows for hidden common causes.

    It begins as `PC` does. Hidden causes can make two variables dependent given any of their
    neighbours, so further sets of possible ancestors are tried ("possible d-separation"). The marks
    at the ends of edges follow from the separating sets by the complete rules of Zhang (2008). The
    result is ``solution.pag``. `BossFCI` is usually more accurate.

    Knowledge about an edge a → b becomes a mark: a required one is ``a --> b``; a forbidden one
    means that a is no cause of b, so there may be ``a <-> b``.

    Parameters
    ----------
    alpha
        Significance level: an edge is removed if the p-value of a test is above it.
    max_conditioning
        Maximum number of variables that are conditioned on; None for no limit. In the second stage
        there is a limit in any case if there are very many sets, and a note says so.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = ist.DAG(
    ...     ["u", "a", "b", "c", "d"], [("u", "b"), ("u", "c"), ("a", "b"), ("d", "c")]
    ... )
    >>> numbers = simulate.linear(dag, 2000, seed=1).data
    >>> observed = {name: numbers[name] for name in "abcd"}
    >>> print(ist.learn(observed, search=ist.FCI()).pag)
    a o-> b
    b <-> c
    d o-> c
    """

    alpha: float = 0.01
    max_conditioning: int | None = None

    def __post_init__(self) -> None:
        require_number(self, "alpha", above=0, below=1)
        require_integer(self, "max_conditioning", least=0, optional=True)

    def begin(
        self, objective: IndependenceTest, knowledge: BoundKnowledge, rng: np.random.Generator
    ) -> Run[PAGResult]:
        """Start a run; it uses no random numbers."""
        everything = (1 << len(objective.nodes)) - 1
        skeleton = Skeleton(
            objective,
            self.alpha,
            self.max_conditioning,
            [everything & ~(1 << v) for v in range(len(objective.nodes))],
            required_neighbours(knowledge),
        )
        return FCIRun(objective.nodes, skeleton, knowledge)


@final
class FCIRun(Run[PAGResult]):
    """Removes edges, then possible separators, then orients.

    Parameters
    ----------
    nodes
        Names of the variables.
    skeleton
        The edges to begin with.
    knowledge
        Background knowledge.
    """

    def __init__(
        self, nodes: tuple[str, ...], skeleton: Skeleton, knowledge: BoundKnowledge
    ) -> None:
        self._nodes = nodes
        self.skeleton = skeleton
        self._knowledge = knowledge
        self._work = self._iterate()
        self._finished = False

    def _iterate(self) -> Work[None]:
        yield from self.skeleton.prune()
        marks = Marks(self.skeleton.adjacent)
        marks.put_colliders(self.skeleton.separators)
        yield from self.skeleton.prune_within(_possible_separators(marks))

    def step(self) -> bool:
        self._finished = next(self._work, self) is self
        return self._finished

    def best(self) -> PAGResult:
        """Return the PAG that the tests so far leave."""
        skeleton = self.skeleton
        marks = Marks(skeleton.adjacent)
        _put_knowledge(marks, self._knowledge)
        marks.put_colliders(skeleton.separators)
        marks.close(skeleton.separators)
        notes = []
        if skeleton.limited is not None:
            notes.append(
                "Of the sets that may separate variables with hidden causes, only those of fewer "
                f"than {counted(skeleton.limited, 'variable')} were tried, because there are very "
                "many; some edges may be there for lack of a larger one."
            )
        if not self._finished:
            notes.append(unfinished(skeleton))
        earlier = [own & ~(-1 << v) for v, own in enumerate(skeleton.adjacent)]
        return PAGResult(
            tuple(tuple(bits(own)) for own in earlier),
            nan,
            IndependenceDetails(skeleton.tests),
            converged=self._finished,
            notes=tuple(notes),
            pag=PAG.from_marks(self._nodes, marks),
        )

    def describe(self) -> tuple[str, float, float | None]:
        return progress_text(self.skeleton), nan, None

    def conclusion(self) -> str:
        return f"{self.skeleton.tests:,} tests of independence left no edge to test."


def _put_knowledge(marks: Marks, knowledge: BoundKnowledge) -> None:
    """Mark the edges that knowledge speaks about."""
    for a, b in np.argwhere(knowledge.forbidden).tolist():
        if a != b:
            marks.put_arrow(b, a)  # a is not a cause of b
    for a, b in knowledge.required_edges:
        marks.put_tail(b, a)
        marks.put_arrow(a, b)


def _possible_separators(marks: Marks) -> Sequence[int]:
    """Return for each node those on paths of colliders and triangles that begin there.

    If two variables are not adjacent in the true graph, one of them is separated from the other by
    some of these nodes (Spirtes et al. 2000, "Possible-D-SEP").
    """
    pools = []
    for start in range(len(marks.adjacent)):
        seen = {(start, node) for node in bits(marks.adjacent[start])}
        waiting = list(seen)
        pool = marks.adjacent[start]
        while waiting:
            before, node = waiting.pop()
            after = marks.adjacent[node] & marks.adjacent[before]  # triangles
            if marks.arrows[node] >> before & 1:
                after |= marks.arrows[node]  # colliders
            for step in bits(after & ~(1 << before | 1 << start)):
                if (node, step) not in seen:
                    seen.add((node, step))
                    waiting.append((node, step))
                    pool |= 1 << step
        pools.append(pool & ~(1 << start))
    return pools
