"""Searches that allow for hidden causes, by tests of independence: `FCI` and `BossFCI`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import ClassVar, final

import numpy as np

from isthmus.errors import counted
from isthmus.graphs import PAG, BoundKnowledge
from isthmus.graphs.names import bits, mask_of, topological
from isthmus.graphs.pag import Marks
from isthmus.objectives import INDEPENDENCE_TESTS, IndependenceTest
from isthmus.options import require_instance, require_integer, require_number
from isthmus.results.details import IndependenceDetails
from isthmus.searches.base import Accepts, Search, SearchResult
from isthmus.searches.boss import Boss
from isthmus.searches.pc import Skeleton, required_neighbours
from isthmus.watch import Watch


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
    def search(
        self,
        objective: IndependenceTest,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
    ) -> PAGResult:
        """Return the best PAG found until the end, or until it is time to stop."""


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

    def search(
        self,
        objective: IndependenceTest,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
    ) -> PAGResult:
        """Return the PAG that the tests leave; no random numbers are used."""
        everything = (1 << len(objective.nodes)) - 1
        skeleton = Skeleton(
            objective,
            self.alpha,
            self.max_conditioning,
            [everything & ~(1 << v) for v in range(len(objective.nodes))],
            required_neighbours(knowledge),
            watch,
        )
        return _pruned(objective.nodes, skeleton, knowledge, watch)


@final
@dataclass(frozen=True)
class BossFCI(PAGSearch):
    """Allow for hidden common causes, beginning with the DAG of the best score.

    The default for hidden causes. `Boss` finds a DAG of the observed variables. Hidden causes show
    in it as additional edges, never as missing ones, so tests are needed for its edges only: those
    that are part of a triangle, and are independent given some of their neighbours, are removed.
    Then it goes on as `FCI` does, with the separating sets that the DAG implies. This is GFCI
    (Ogarrio, Spirtes and Ramsey 2016) with a better search over DAGs. It makes far fewer tests than
    `FCI`, and fewer errors.

    Parameters
    ----------
    alpha
        Significance level: an edge is removed if the p-value of a test is above it. The edges to
        test have been found by a score, so the level can be larger than that of `FCI`.
    max_conditioning
        Maximum number of variables that are conditioned on; None for no limit. In the second stage
        there is a limit in any case if there are very many sets, and a note says so.
    dag_search
        Search for the DAG. Its score is that of the test, such as ``FisherZ(score=GaussianBIC())``.
        With a fixed number of starts, the graph does not depend on where the data are.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = ist.DAG(
    ...     ["u", "a", "b", "c", "d"], [("u", "b"), ("u", "c"), ("a", "b"), ("d", "c")]
    ... )
    >>> numbers = simulate.linear(dag, 2000, seed=1).data
    >>> observed = {name: numbers[name] for name in "abcd"}
    >>> print(ist.learn(observed, search=ist.BossFCI()).pag)
    a o-> b
    b <-> c
    d o-> c
    """

    alpha: float = 0.05
    max_conditioning: int | None = None
    dag_search: Boss = Boss(starts=4)

    def __post_init__(self) -> None:
        require_number(self, "alpha", above=0, below=1)
        require_integer(self, "max_conditioning", least=0, optional=True)
        require_instance(self, "dag_search", Boss, "Boss()")

    def search(
        self,
        objective: IndependenceTest,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
    ) -> PAGResult:
        """Return the PAG so far: until the tests, that of the best DAG as if all edges stay."""
        # A hidden cause of two variables is an edge of the DAG, also if neither causes the other.
        diagonal = np.eye(len(objective.nodes), dtype=bool)
        neither = knowledge.forbidden & knowledge.forbidden.T & ~diagonal
        possible = BoundKnowledge(knowledge.required, knowledge.forbidden & ~neither)
        found = self.dag_search.search(objective.local_score(), possible, rng, watch)
        skeleton = self._skeleton(objective, knowledge, found, watch)
        result = _pruned(objective.nodes, skeleton, knowledge, watch)
        return replace(result, conclusion=f"a DAG of a high score, and then {result.conclusion}")

    def _skeleton(
        self,
        test: IndependenceTest,
        knowledge: BoundKnowledge,
        found: SearchResult,
        watch: Watch,
    ) -> Skeleton:
        """Return the edges and separators of the DAG."""
        parents = [mask_of(own) for own in found.parents]
        adjacent = list(parents)
        for child, own in enumerate(parents):
            for parent in bits(own):
                adjacent[parent] |= 1 << child
        fixed = required_neighbours(knowledge)
        for a, own in enumerate(adjacent):
            # A hidden cause never adds the only edge between two neighbourhoods.
            for b in bits(own):
                if not own & adjacent[b]:
                    fixed[a] |= 1 << b
        skeleton = Skeleton(test, self.alpha, self.max_conditioning, adjacent, fixed, watch)
        order = topological([tuple(bits(own)) for own in parents])
        assert order is not None
        for later, b in enumerate(order):
            for a in order[:later]:
                if not adjacent[b] >> a & 1:
                    # The parents of a node separate it from all others that come before.
                    skeleton.separators[min(a, b), max(a, b)] = parents[b]
        return skeleton


def _pruned(
    nodes: tuple[str, ...], skeleton: Skeleton, knowledge: BoundKnowledge, watch: Watch
) -> PAGResult:
    """Remove edges, then those with other separators, and orient what is left."""
    finished = False
    with watch.until_stopped():
        skeleton.prune()
        marks = Marks(skeleton.adjacent)
        marks.put_colliders(skeleton.separators)
        skeleton.prune_within(_possible_separators(marks))
        finished = not watch.stopped  # the DAG may be one of a search that was stopped
    marks = Marks(skeleton.adjacent)
    _put_knowledge(marks, knowledge)
    marks.put_colliders(skeleton.separators)
    marks.close(skeleton.separators)
    notes = []
    if skeleton.limited is not None:
        notes.append(
            "Of the sets that may separate variables with hidden causes, only those of fewer than "
            f"{counted(skeleton.limited, 'variable')} were tried, because there are very many; "
            "some edges may be there for lack of a larger one."
        )
    if not finished:
        notes.append(skeleton.unfinished())
    earlier = [own & ~(-1 << v) for v, own in enumerate(skeleton.adjacent)]
    return PAGResult(
        tuple(tuple(bits(own)) for own in earlier),
        nan,
        IndependenceDetails(skeleton.tests),
        converged=finished,
        notes=tuple(notes),
        conclusion=skeleton.conclusion(),
        pag=PAG.from_marks(nodes, marks),
    )


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
