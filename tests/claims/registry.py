"""Cross every answer about graphs with every violation, and judge what is stated."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from tests.claims.violations import Sample, Violation

import isthmus as ist

LIKELY = 0.9
"""Probability and share of replicates above which a pair counts as stated."""
MOST_FALSE = 0.05
"""False edges per pair of columns, and wrong directions per direction, that a claim may have."""
LEAST_TABLES = 0.9
"""Share of tables in which an answer must hold."""
_ALL = ("graph", "directions", "posterior", "bootstrap", "PAG")


_UNSEEN = "groups that are not in the table look like relations of the columns"
_CONFOUNDED = "a graph without hidden causes points from one effect of a hidden cause to another"
_SELECTED = "causes that decide together which rows are there depend on each other in the table"
_RARE = "the test of columns with many rare levels exceeds its level in large tables"
KNOWN_GAPS: Mapping[tuple[str, str], tuple[str, int]] = {
    **{("six sites that are not in the table", answer): (_UNSEEN, 0) for answer in _ALL},
    ("hidden cause of a cause and an effect", "directions"): (_CONFOUNDED, 0),
    **{
        ("rows selected by three columns", answer): (
            _SELECTED,
            5000 if answer == "directions" else 0,
        )
        for answer in _ALL
    },
    ("levels of one row in a hundred", "PAG"): (_RARE, 20_000),
}
"""Cells that do not hold, with the reason, and the number of rows from which they do not.
``docs/how-to/assumptions.md`` says what to do."""

Pair = frozenset[str]


def known_gap(violation: Violation, answer: str, rows: int) -> str:
    """Return why a cell does not hold; empty if it must."""
    reason, least = KNOWN_GAPS.get((violation.name, answer), ("", 0))
    return reason if rows >= least else ""


@dataclass(frozen=True)
class Stated:
    """What an answer says: pairs that are joined, or directions, and notes."""

    edges: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def graph(sample: Sample) -> Stated:
    solution: Any = ist.learn(sample.table, **sample.options)
    return Stated(solution.dag.edges, solution.notes)


def directions(sample: Sample) -> Stated:
    solution: Any = ist.learn(sample.table, **sample.options)
    return Stated(solution.directions.determined, solution.notes)


def posterior(sample: Sample) -> Stated:
    posterior = ist.sample(sample.table, draws=20, **sample.options)
    edges = np.asarray(posterior.edge_probabilities())
    return Stated(_above(posterior.nodes, edges + edges.T), posterior.notes)


def bootstrap(sample: Sample) -> Stated:
    # Replicates have no completed values; see the docs on missing values.
    if isinstance(sample.options.get("missing"), ist.ExpectationMaximisation):
        sample = Sample(sample.table, options={"missing": ist.DropRows()})
    ensemble = ist.bootstrap(sample.table, replicates=20, jobs=1, **sample.options)
    shares = np.asarray(ensemble.adjacency_probabilities())
    return Stated(_above(ensemble.nodes, shares), ensemble.notes)


def pag(sample: Sample) -> Stated:
    solution: Any = ist.learn(sample.table, search=ist.BossFCI(), **sample.options)
    return Stated(tuple((a, b) for a, _, b in solution.pag.edges), solution.notes)


def _above(nodes: Iterable[str], shares: Any) -> tuple[tuple[str, str], ...]:
    names = tuple(nodes)
    pairs = np.argwhere(np.triu(shares > LIKELY, 1)).tolist()
    return tuple((names[i], names[j]) for i, j in pairs)


ANSWERS: dict[str, Callable[[Sample], Stated]] = {
    "graph": graph,
    "directions": directions,
    "posterior": posterior,
    "bootstrap": bootstrap,
    "PAG": pag,
}


@dataclass(frozen=True)
class Verdict:
    """How one answer about one table was right.

    Attributes
    ----------
    holds
        Whether few statements are wrong, or a note excuses those.
    stated, wrong
        Numbers of statements, and of wrong ones that no note excuses.
    found
        Share of the true edges that are joined, or whose directions are stated.
    noted
        Whether there is a note about the violation.
    """

    holds: bool
    stated: int
    wrong: int
    found: float
    noted: bool


def judge(violation: Violation, answer: str, seed: int, rows: int) -> Verdict:
    """Make a table, ask for an answer, and compare it with the truth."""
    sample = violation.make(np.random.default_rng(seed), rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stated = ANSWERS[answer](sample)
    edges = [edge for edge in stated.edges if not {*edge} & {*sample.ignored}]
    true = {*sample.edges}
    if answer == "directions":
        wrong = [edge for edge in edges if edge not in true]
        found = len(true & {*edges}) / len(true)
        most = MOST_FALSE * len(edges)
    else:
        joined = {Pair(edge) for edge in true}
        allowed = joined | {Pair(pair) for pair in sample.dependent}
        wrong = [edge for edge in edges if Pair(edge) not in allowed]
        found = len(joined & {Pair(edge) for edge in edges}) / len(joined)
        columns = len(sample.table) - len(sample.ignored) - ("groups" in sample.options)
        most = MOST_FALSE * columns * (columns - 1) / 2
    noted = [n for n in stated.notes if violation.note and re.search(violation.note, n)]
    excused = [
        edge
        for edge in wrong
        if noted and (violation.rows or any(repr(end) in n for end in edge for n in noted))
    ]
    unexcused = len(wrong) - len(excused)
    return Verdict(unexcused <= most, len(edges), unexcused, found, bool(noted))
