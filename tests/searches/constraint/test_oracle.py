"""PC and FCI with d-separation as the test: exactly the CPDAG, and exactly the PAG.

All graphs of five nodes and a thousand of eight: ``benchmarks/hidden/oracle.py``.
"""

from __future__ import annotations

from functools import partial
from itertools import combinations

import numpy as np
import pytest
from tests.graphs.classes_with_hidden_causes import observed_first, signature

import isthmus as ist
from isthmus import simulate
from isthmus.searches import PAGSearch, Watch, drive
from isthmus.searches.pc import Skeleton
from isthmus.testing import SeparationOracle, enumerate_dags

EMPTY = ist.Knowledge()


def cpdag(dag: ist.DAG, knowledge: ist.Knowledge = EMPTY) -> ist.CPDAG | ist.PDAG:
    oracle = SeparationOracle(dag)
    run = partial(ist.PC().search, oracle, knowledge.bind(dag.nodes), np.random.default_rng(0))
    result, status = drive(run, "PC")
    assert status.finished
    assert result.notes == ()
    found = ist.DAG.from_parents(dag.nodes, result.parents)
    return found.cpdag() if knowledge == EMPTY else found.cpdag(knowledge)


def pag(
    dag: ist.DAG,
    hidden: tuple[str, ...] = (),
    search: PAGSearch = ist.FCI(),
    knowledge: ist.Knowledge = EMPTY,
) -> ist.PAG:
    oracle = SeparationOracle(dag, hidden)
    run = partial(search.search, oracle, knowledge.bind(oracle.nodes), np.random.default_rng(0))
    result, status = drive(run, "FCI")
    assert status.finished
    assert result.notes == ()
    return result.pag


@pytest.mark.long
@pytest.mark.parametrize("size", [2, 3, 4])
def test_all_small_graphs(size: int) -> None:
    names, seen = list("abcd"[:size]), set()
    for dag in enumerate_dags(names):
        for hidden in (h for k in range(3) for h in combinations(names, k)):
            shown, parents = observed_first(dag, hidden)
            key = hidden, signature(parents, len(shown))
            if key in seen:
                continue
            seen.add(key)
            assert pag(dag, hidden) == ist.PAG.from_dag(dag, hidden)
            if not hidden:
                assert cpdag(dag) == dag.cpdag()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_with_eight_nodes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dag = simulate.erdos_renyi(8, int(rng.integers(6, 16)), seed=seed)
    hidden = tuple(dag.nodes[i] for i in rng.choice(8, 2, replace=False))
    assert cpdag(dag) == dag.cpdag()
    assert pag(dag, hidden) == ist.PAG.from_dag(dag, hidden)


def test_the_second_stage_is_needed() -> None:
    """A graph in which no neighbours separate two variables, but other possible ancestors do."""
    edges = ["01", "04", "13", "45"]
    common = ["12", "23", "34", "15"]  # each pair has a hidden cause of its own
    names = [f"x{i}" for i in range(6)]
    causes = [(f"h{k}", f"x{x}") for k, pair in enumerate(common) for x in pair]
    hidden = tuple(f"h{k}" for k in range(4))
    dag = ist.DAG([*names, *hidden], [(f"x{e[0]}", f"x{e[1]}") for e in edges] + causes)
    oracle = SeparationOracle(dag, hidden)
    everything = [0b111111 & ~(1 << v) for v in range(6)]
    skeleton = Skeleton(oracle, 0.05, None, everything, [0] * 6, Watch())
    skeleton.prune()
    truth = ist.PAG.from_dag(dag, hidden)
    assert sum(own.bit_count() for own in skeleton.adjacent) // 2 == len(truth.edges) + 1
    assert pag(dag, hidden) == truth


def test_knowledge_becomes_marks() -> None:
    dag = ist.DAG([*"abc"], [("a", "b"), ("b", "c")])
    forward = ist.Knowledge(tiers=[["a"], ["b"], ["c"]])
    # No cause lies in a later tier; what else is a cause stays open for the first pair only.
    assert pag(dag, knowledge=forward).edges == (("a", "o->", "b"), ("b", "-->", "c"))
    required = ist.Knowledge(required=[("a", "b")])
    assert pag(dag, knowledge=required).edges == (("a", "-->", "b"), ("b", "-->", "c"))
    neither = ist.Knowledge(forbidden=[("a", "b"), ("b", "a")])
    assert ("a", "<->", "b") in pag(dag, knowledge=neither).edges
    assert cpdag(dag, required).directed == (("a", "b"), ("b", "c"))


def test_pc_with_knowledge_that_excludes_an_edge() -> None:
    dag = ist.DAG([*"abc"], [("a", "b"), ("b", "c")])
    oracle = SeparationOracle(dag)
    knowledge = ist.Knowledge(forbidden=[("a", "b"), ("b", "a")], required=[("c", "a")])
    run = partial(ist.PC().search, oracle, knowledge.bind(dag.nodes), np.random.default_rng(0))
    result = drive(run, "PC")[0]
    assert knowledge.allows(ist.DAG.from_parents(dag.nodes, result.parents))


def test_an_interrupted_run_has_a_graph() -> None:
    dag = simulate.erdos_renyi(12, 20, seed=1)
    for search in (ist.PC(), ist.FCI()):
        oracle = SeparationOracle(dag)
        run = partial(search.search, oracle, EMPTY.bind(dag.nodes), np.random.default_rng(0))
        result, status = drive(run, "any", time_limit=0.0)
        assert not status.finished
        assert "tests that were not made" in result.notes[-1]
