"""Graphs and networks with awkward names, for every format."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from isthmus.graphs import CPDAG, DAG, PDAG
from isthmus.networks import DiscreteNetwork

DATA = Path(os.environ.get("ISTHMUS_DATA", Path(__file__).parents[3] / "shared" / "data"))

AWKWARD = [
    'a "quoted" name',
    "back\\slash\\",
    "comma, semi; {brace} (round) [square] | bar",
    "line\nbreak",
    "größe",
    "体重 🦋",
    "<&>'",
    "// no comment",
    "table",
    " lead and trail ",
    "->",
    "cr\rlf\r\n",
    "tab\t",
]


def awkward_graphs() -> list[DAG | CPDAG | PDAG]:
    """Return one graph of each type over the awkward names, some of them without edges."""
    rng = np.random.default_rng(0)
    upper = np.triu(rng.random((len(AWKWARD), len(AWKWARD))) < 0.2, 1)
    upper[:, -2:] = False
    upper[0, 1] = True
    dag = DAG.from_adjacency(AWKWARD, upper)
    pattern = dag.cpdag()
    assert pattern.undirected
    assert pattern.directed
    return [dag, pattern, PDAG(dag.nodes, dag.edges[:4], dag.edges[4:]), DAG([]), DAG(["only"])]


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1)


@st.composite
def networks(draw: st.DrawFn, levels: st.SearchStrategy[str] = NAMES) -> DiscreteNetwork:
    """Draw a small network with drawn names and levels."""
    nodes = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    size = len(nodes)
    matrix = np.zeros((size, size), dtype=bool)
    for j in range(size):
        for i in range(j):
            matrix[i, j] = draw(st.booleans())
    order = draw(st.permutations(range(size)))
    dag = DAG.from_adjacency(nodes, matrix[np.ix_(order, order)])
    own = {v: tuple(draw(st.lists(levels, min_size=1, max_size=3, unique=True))) for v in nodes}
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    tables = {
        v: rng.dirichlet(np.ones(len(own[v])), size=tuple(len(own[p]) for p in dag.parents(v)))
        for v in nodes
    }
    return DiscreteNetwork(dag, own, tables)
