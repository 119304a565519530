"""Score tables: what is in them, knowledge, files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isthmus.errors import FormatError, KnowledgeError, SchemaError
from isthmus.graphs import DAG, Knowledge
from isthmus.io import from_local_scores, to_local_scores
from isthmus.objectives import ScoreTable

LISTS: list[list[tuple[tuple[int, ...], float]]] = [
    [((), -3.0), ((1,), -2.0), ((1, 2), -1.5)],
    [((), -4.0), ((0,), -2.5)],
    [((), -1.0)],
]


def table() -> ScoreTable:
    return ScoreTable.from_lists(["a", "b", "c"], LISTS)


def test_sets_come_best_first() -> None:
    assert list(table().parent_sets(0)) == [((1, 2), -1.5), ((1,), -2.0), ((), -3.0)]
    assert len(table()) == 6


def test_best_among_the_allowed() -> None:
    assert table().best(0, [1]) == ((1,), -2.0)
    assert table().best(0, [2]) == ((), -3.0)
    assert table().best(0, [1, 2]) == ((1, 2), -1.5)


def test_totals() -> None:
    assert table().total(DAG(["a", "b", "c"], [("b", "a"), ("c", "a")])) == -6.5
    assert table().total(DAG(["c", "a", "b"], [("c", "b")])) == -np.inf


def test_many_variables_take_several_words() -> None:
    names = [f"v{i}" for i in range(200)]
    lists = [
        [((), -1.0), ((i - 1, 150), 0.0)] if i not in (0, 150, 151) else [((), -1.0)]
        for i in range(200)
    ]
    found = ScoreTable.from_lists(names, lists)
    assert found.words == 4
    assert found.best(199, [150, 198]) == ((150, 198), 0.0)
    assert found.best(199, [150, 197]) == ((), -1.0)
    assert found.members(int(found.starts[199])) == (150, 198)


def test_forbidden_edges_can_be_applied_later() -> None:
    known = Knowledge(forbidden=[("c", "a")]).bind(("a", "b", "c"))
    found = table().restrict(known)
    assert list(found.parent_sets(0)) == [((1,), -2.0), ((), -3.0)]
    assert list(found.parent_sets(1)) == [((0,), -2.5), ((), -4.0)]


def test_required_edges_must_be_known_from_the_start() -> None:
    known = Knowledge(required=[("c", "a")]).bind(("a", "b", "c"))
    with pytest.raises(KnowledgeError, match="c → a"):
        table().restrict(known)


def test_a_node_without_sets_is_refused() -> None:
    with pytest.raises(SchemaError, match="b"):
        ScoreTable.from_lists(["a", "b"], [[((), 0.0)], []])


@pytest.mark.parametrize("name", ["scores.jkl", "scores.jkl.gz"])
def test_written_and_read_back(tmp_path: Path, name: str) -> None:
    lists: list[list[tuple[tuple[int, ...], float]]] = [
        [((), -1 / 3), ((1,), 1e-17)],
        [((), -123456.789012345)],
    ]
    written = ScoreTable.from_lists(["one", "two"], lists)
    written.save(tmp_path / name)
    found = ScoreTable.load(tmp_path / name)
    assert found.nodes == written.nodes
    assert np.array_equal(found.scores, written.scores)
    assert np.array_equal(found.sets, written.sets)


def test_text_as_others_write_it() -> None:
    text = "META pss_version = 0.1\n# made elsewhere\n2\n0 2\n-10.5 0\n-8.25 1 1\n\n1 1\n-3 0\n"
    found = from_local_scores(text)
    assert found == {"0": [(-10.5, ()), (-8.25, ("1",))], "1": [(-3.0, ())]}
    assert from_local_scores(to_local_scores(found)) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "number of variables"),
        ("2\na 1\n-1 0\n", "declares 2"),
        ("1\na 2\n-1 0\n", "2 parent sets; the file has 1"),
        ("1\na 1\n-1 2 b\n", "Line 3"),
        ("1\na 1\n-1 1 b\n", "not among the variables"),
        ("1\na b c\n", "Line 2"),
        ("1\na x\n", "Line 2"),
    ],
)
def test_broken_texts(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        from_local_scores(text)


def test_names_with_spaces_cannot_be_written() -> None:
    with pytest.raises(FormatError, match="spaces"):
        to_local_scores({"a b": [(0.0, ())]})
