"""Effects in PAGs: against enumeration of classes, and against exact linear models."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from tests.graphs.classes_with_hidden_causes import _with_hidden, orientations, signature

import isthmus as ist
from isthmus import simulate
from isthmus.graphs.identification import find_adjustment, is_visible
from isthmus.graphs.names import mask_of, reach, transpose
from isthmus.graphs.orientation import is_valid_adjustment


def members(pag: ist.PAG) -> list[list[int]]:
    """Return the parents of graphs that a PAG stands for, with a hidden node per common cause.

    These are all ancestral graphs with the same separations, and the same ones with hidden common
    causes of up to two pairs of cause and effect, as far as that does not change a separation.
    """
    size = len(pag.nodes)
    skeleton = [(pag.index(a), pag.index(b)) for a, b in pag.skeleton().edges]
    graphs = [
        (marks, _with_hidden(size, skeleton, marks)) for marks in orientations(size, skeleton)
    ]
    kinds = pag.matrix
    own = next(p for m, p in graphs if (_pag(pag.nodes, p).matrix == kinds).all())
    wanted, found = signature(own, size), []
    for marks, parents in graphs:
        if signature(parents, size) != wanted:
            continue
        found.append(parents)
        directed = [pair for pair, mark in zip(skeleton, marks, strict=True) if mark != 2]
        for chosen in [*combinations(directed, 1), *combinations(directed, 2)]:
            more = list(parents)
            for a, b in chosen:
                more[a] |= 1 << len(more)
                more[b] |= 1 << len(more)
                more.append(0)
            if signature(more, size) == wanted:
                found.append(more)
    return found


def _pag(nodes: tuple[str, ...], parents: list[int]) -> ist.PAG:
    names = (*nodes, *(f"hidden {i}" for i in range(len(parents) - len(nodes))))
    return ist.PAG.from_dag(ist.DAG.from_masks(names, parents), names[len(nodes) :])


FOUR = [
    ["ac", "bc", "cd"],
    ["ub", "uc", "ab", "dc"],
    ["ac", "bc", "cd", "ad"],
    ["ac", "bc", "ad", "bd"],
    ["ab", "bc", "cd"],
    ["ab", "bc", "cd", "ua", "ud"],
    ["ab", "ub", "uc", "bd", "cd"],
]
"""Pairs of cause and effect; u is hidden."""


@pytest.mark.parametrize("case", range(len(FOUR)))
def test_a_set_is_found_if_and_only_if_one_is_valid_in_all_members(case: int) -> None:
    """By enumeration: benchmarks/results/hidden-effects.md has all classes of four variables."""
    pag = ist.PAG.from_dag(ist.DAG([*"abcdu"], [(p[0], p[1]) for p in FOUR[case]]), ["u"])
    graphs = [(p, transpose(p, len(p))) for p in members(pag)]
    assert len(graphs) > 1
    for x, y in permutations(range(4), 2):
        answer = find_adjustment(pag, pag.nodes[x], pag.nodes[y])
        causes = [bool(reach(1 << x, children) >> y & 1) for _, children in graphs]
        assert answer.has_path or not any(causes)
        others = [v for v in range(4) if v not in (x, y)]
        sets = [mask_of(z) for k in range(3) for z in combinations(others, k)]
        valid = {z for z in sets if all(is_valid_adjustment(p, c, x, y, z) for p, c in graphs)}
        if not answer.has_path:
            continue
        if answer.variables is None:
            assert not valid
        else:
            assert mask_of(pag.index(v) for v in answer.variables) in valid


def test_sets_give_the_effect_in_linear_models() -> None:
    """The regression coefficient in the exact covariance is the sum over directed paths."""
    identified = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        dag = simulate.erdos_renyi(8, 11, seed=seed)
        hidden = [dag.nodes[i] for i in rng.choice(8, seed % 3, replace=False)]
        pag = ist.PAG.from_dag(dag, hidden)
        weights = np.zeros((8, 8))
        for a, b in dag.edges:
            weights[dag.index(a), dag.index(b)] = rng.uniform(0.4, 1.2) * rng.choice([-1, 1])
        total = np.linalg.inv(np.eye(8) - weights)
        covariance = total.T @ np.diag(rng.uniform(0.5, 2, 8)) @ total
        for x, y in permutations(pag.nodes, 2):
            answer = find_adjustment(pag, x, y)
            i, j = dag.index(x), dag.index(y)
            if not answer.has_path:
                assert total[i, j] == pytest.approx(0)
            elif answer.variables is not None:
                given = [i, *map(dag.index, answer.variables)]
                inner = covariance[np.ix_(given, given)]
                found = np.linalg.solve(inner, covariance[given, j])[0]
                assert found == pytest.approx(total[i, j])
                identified += 1
    assert identified > 25


def test_an_edge_is_visible_through_colliders_that_are_parents() -> None:
    """By hand: v o-> c <-> x, both c and x cause y, and v is not adjacent to y."""
    edges = [("v", "o->", "c"), ("c", "<->", "x"), ("c", "-->", "y"), ("x", "-->", "y")]
    pag = ist.PAG([*"vcxy"], edges)
    assert is_visible(pag, pag.index("x"), pag.index("y"))
    assert find_adjustment(pag, "x", "y").variables == ("c",)
    nearer = ist.PAG([*"vcxy"], [*edges, ("v", "o->", "y")])
    assert not is_visible(nearer, pag.index("x"), pag.index("y"))
    answer = find_adjustment(nearer, "x", "y")
    assert answer.variables is None
    assert "also have a hidden common cause" in answer.reason


def test_contradicting_marks_identify_nothing() -> None:
    edges = [("z", "o->", "a"), ("a", "-->", "b"), ("b", "-->", "c"), ("c", "<->", "a")]
    answer = find_adjustment(ist.PAG([*"zabc"], edges), "a", "b")
    assert answer.variables is None
    assert "contradict each other" in answer.reason
