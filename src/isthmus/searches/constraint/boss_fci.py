"""Hybrid search for hidden causes: the best DAG by a score, corrected by tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from isthmus.graphs import BoundKnowledge
from isthmus.graphs.bits import bits, mask_of
from isthmus.graphs.order import topological
from isthmus.objectives import IndependenceTest
from isthmus.options import require_instance, require_integer, require_number
from isthmus.searches.base import Run
from isthmus.searches.constraint.fci import FCIRun, PAGResult, PAGSearch
from isthmus.searches.constraint.pc import required_neighbours
from isthmus.searches.constraint.skeleton import Skeleton
from isthmus.searches.orders.boss import Boss
from isthmus.types import Work


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

    def begin(
        self, objective: IndependenceTest, knowledge: BoundKnowledge, rng: np.random.Generator
    ) -> Run[PAGResult]:
        """Start a run; it uses the random numbers of `Boss`."""
        return _BossFCIRun(self, objective, knowledge, rng)


@final
class _BossFCIRun(Run[PAGResult]):
    def __init__(
        self,
        options: BossFCI,
        test: IndependenceTest,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
    ) -> None:
        self._options = options
        self._test = test
        self._knowledge = knowledge
        # A hidden cause of two variables is an edge of the DAG, also if neither causes the other.
        neither = knowledge.forbidden & knowledge.forbidden.T & ~np.eye(len(test.nodes), dtype=bool)
        possible = BoundKnowledge(knowledge.required, knowledge.forbidden & ~neither)
        self._dag = options.dag_search.begin(test.local_score(), possible, rng)
        self._tests: FCIRun | None = None
        self._work = self._iterate()

    def _iterate(self) -> Work[None]:
        while not self._dag.step():
            yield
        self._tests = self._corrected()
        while not self._tests.step():
            yield

    def _corrected(self) -> FCIRun:
        """Return a run that begins with the edges and separators of the DAG."""
        parents = [mask_of(own) for own in self._dag.best().parents]
        adjacent = list(parents)
        for child, own in enumerate(parents):
            for parent in bits(own):
                adjacent[parent] |= 1 << child
        fixed = required_neighbours(self._knowledge)
        for a, own in enumerate(adjacent):
            # A hidden cause never adds the only edge between two neighbourhoods.
            for b in bits(own):
                if not own & adjacent[b]:
                    fixed[a] |= 1 << b
        options = self._options
        skeleton = Skeleton(self._test, options.alpha, options.max_conditioning, adjacent, fixed)
        order = topological([tuple(bits(own)) for own in parents])
        assert order is not None
        for later, b in enumerate(order):
            for a in order[:later]:
                if not adjacent[b] >> a & 1:
                    # The parents of a node separate it from all others that come before.
                    skeleton.separators[min(a, b), max(a, b)] = parents[b]
        return FCIRun(self._test.nodes, skeleton, self._knowledge)

    def step(self) -> bool:
        return next(self._work, self) is self

    def best(self) -> PAGResult:
        """Return the PAG so far; before the tests, that of the best DAG as if all edges stay."""
        return (self._tests or self._corrected()).best()

    def describe(self) -> tuple[str, float, float | None]:
        return self._dag.describe() if self._tests is None else self._tests.describe()

    def conclusion(self) -> str:
        assert self._tests is not None
        return f"a DAG of a high score, and then {self._tests.conclusion()}"
