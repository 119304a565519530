from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from tests.graphs.slow import dags
from tests.io.cases import DATA, awkward_graphs

from isthmus import io
from isthmus.errors import FormatError, GraphError
from isthmus.graphs import CPDAG, DAG, PDAG

GRAPHS = awkward_graphs()


@pytest.mark.parametrize("graph", GRAPHS, ids=repr)
@pytest.mark.parametrize("form", ["dot", "graphml", "json"])
def test_there_and_back(graph: Any, form: str, tmp_path: Path) -> None:
    back = getattr(io, f"from_{form}")(getattr(io, f"to_{form}")(graph))
    assert type(back) is type(graph)
    assert back == graph
    assert back.nodes == graph.nodes
    path = tmp_path / "graph.gz"
    getattr(io, f"write_{form}")(graph, path)
    assert getattr(io, f"read_{form}")(path) == graph


@pytest.mark.parametrize("graph", GRAPHS, ids=repr)
def test_edge_list_there_and_back(graph: Any, tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    io.write_edge_list(graph, path)
    back = io.read_edge_list(path, type(graph))
    assert back == graph
    assert io.read_edge_list(path, type(graph), nodes=graph.nodes).nodes == graph.nodes
    if isinstance(graph, CPDAG):
        assert isinstance(io.read_edge_list(path), PDAG)


@given(dags(5))
def test_any_dag_and_its_class(dag: DAG) -> None:
    for graph in (dag, dag.cpdag()):
        assert io.from_dot(io.to_dot(graph)) == graph
        assert io.from_graphml(io.to_graphml(graph)) == graph
        assert io.from_json(io.to_json(graph)) == graph
        assert io.from_edge_list(io.to_edge_list(graph), type(graph)) == graph


@pytest.mark.skipif(not DATA.exists(), reason="the benchmark data are not here")
def test_published_edge_list() -> None:
    dag = io.read_edge_list(DATA / "sachs" / "sachs_dag_17edges.csv")
    assert isinstance(dag, DAG)
    assert len(dag.edges) == 17
    assert dag == io.read_bif(DATA / "networks" / "sachs.bif.gz").dag


def test_dot_is_plain() -> None:
    assert io.to_dot(PDAG(["a", "b", "c"], [("a", "b")], [("b", "c")])) == (
        'digraph pdag {\n  "a";\n  "b";\n  "c";\n  "a" -> "b";\n  "b" -> "c" [dir=none];\n}\n'
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("graph { a -- b }", "digraph dag"),
        ('digraph dag {\n "a" -> "b";\n a -> b;\n}', "Line 3"),
        ('digraph dag {\n "a" -> "b";\n', "Line 3"),
        ('digraph dag {\n "a" -> "b" [dir=none];\n}', "no undirected edges"),
    ],
)
def test_dot_errors(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        io.from_dot(text)


def graphml(body: str, attributes: str = 'edgedefault="directed"') -> str:
    return (
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
        f"<graph {attributes}>\n{body}\n</graph></graphml>"
    )


NODES = '<node id="a"/><node id="b"/>'


def test_foreign_graphml() -> None:
    plain = graphml(NODES + '<edge source="a" target="b"><data key="w">2</data></edge>')
    assert io.from_graphml(plain) == DAG(["a", "b"], [("a", "b")])
    loose = graphml(NODES + '<edge source="a" target="b"/>', 'edgedefault="undirected"')
    assert io.from_graphml(loose) == PDAG(["a", "b"], [], [("a", "b")])
    assert io.from_graphml(loose, CPDAG) == CPDAG(["a", "b"], [], [("a", "b")])
    mixed = loose.replace("<edge ", '<edge directed="true" ')
    assert io.from_graphml(mixed) == DAG(["a", "b"], [("a", "b")])
    bare = plain.replace(' xmlns="http://graphml.graphdrawing.org/xmlns"', "")
    assert io.from_graphml(bare) == DAG(["a", "b"], [("a", "b")])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<graphml><graph>", "Line 1"),
        ("<svg/>", "<graphml> is needed"),
        ("<graphml/>", "must have one graph"),
        (graphml("<node/>"), "line 3 .*'id'"),
        (graphml(NODES + '\n<node id="a"/>'), "Line 4 .*defined twice"),
        (graphml('<node id="a"><graph/></node>'), "<graph> within <node>"),
        (graphml(NODES + '<edge source="a"/>'), "'target'"),
        (graphml(NODES + "<hyperedge/>"), "hyperedge"),
        (graphml('<data key="isthmus-type">tree</data>'), "'tree'"),
    ],
)
def test_graphml_errors(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        io.from_graphml(text)


def test_xml_is_text_whatever_encoding_it_declares() -> None:
    named = graphml('<node id="é"/>')
    for encoding in ("ISO-8859-1", "UTF-16", "nonsense"):
        body = named.split("?>")[-1]
        declared = f'<?xml version="1.0" encoding="{encoding}"?>{body}'
        assert io.from_graphml(declared) == DAG(["é"], [])


@pytest.mark.parametrize("text", ["graph [ node 1 ]", 'graph [ edge "a" ]'])
def test_gml_with_a_value_for_a_list_is_refused(text: str) -> None:
    with pytest.raises(FormatError, match="no list"):
        io.from_gml(text)


def test_graphml_is_safe_from_entities() -> None:
    laughs = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10 if i else "ha"}">' for i in range(12))
    bomb = f"<?xml version='1.0'?><!DOCTYPE g [{laughs}]><graphml><graph id='&l11;'/></graphml>"
    with pytest.raises(FormatError, match="entities are not supported"):
        io.from_graphml(bomb)
    outside = '<!DOCTYPE g [<!ENTITY x SYSTEM "file:///etc/hostname">]><graphml><graph/></graphml>'
    with pytest.raises(FormatError, match="entities are not supported"):
        io.from_graphml(outside)


def test_names_that_a_format_cannot_carry() -> None:
    with pytest.raises(FormatError, match="not allowed in XML"):
        io.to_graphml(DAG(["nul\x00"]))
    with pytest.raises(FormatError, match="empty name"):
        io.to_edge_list(DAG([""]))
    with pytest.raises(GraphError, match="Expected a DAG"):
        io.to_dot(DAG(["a"]).skeleton())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "header"),
        ("source,target\na,b\n", "source,target"),
        ("from,to\na,b,c\n", "Line 2 .*expected 2 cells, got 3"),
        ("from,to\na,b\n,b\n", "Line 3 .*'from' is empty"),
        ("from,to,type\na,b,maybe\n", "Line 2 .*'maybe'"),
        ('from,to\n"a,b\n', "Line 2"),
    ],
)
def test_edge_list_errors(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        io.from_edge_list(text)
    with pytest.raises(GraphError, match="cycle"):
        io.from_edge_list("from,to\na,b\nb,a\n")


def test_networkx_there_and_back() -> None:
    nx = pytest.importorskip("networkx")
    for graph in GRAPHS:
        there = io.to_networkx(graph)
        back = io.from_networkx(there)
        assert type(back) is type(graph)
        assert back == graph
        assert back.nodes == graph.nodes
        skeleton = graph.skeleton()
        assert io.from_networkx(io.to_networkx(skeleton)) == skeleton
    pair = nx.DiGraph([("a", "b"), ("b", "a")])
    with pytest.raises(GraphError, match="cycle"):
        io.from_networkx(pair)
    assert io.from_networkx(pair, CPDAG) == CPDAG(["a", "b"], [], [("a", "b")])
    assert io.from_networkx(nx.MultiDiGraph([("a", "b"), ("a", "b")])) == DAG(
        ["a", "b"], [("a", "b")]
    )
    with pytest.raises(GraphError, match="strings"):
        io.from_networkx(nx.DiGraph([(0, 1)]))
    with pytest.raises(GraphError, match="undirected networkx graph"):
        io.from_networkx(nx.Graph([("a", "b")]), DAG)


def test_networkx_reads_our_graphml_and_we_read_its(tmp_path: Path) -> None:
    nx = pytest.importorskip("networkx")
    dag = GRAPHS[0]
    assert isinstance(dag, DAG)
    io.write_graphml(dag, tmp_path / "ours.graphml")
    theirs = nx.read_graphml(tmp_path / "ours.graphml")
    assert set(theirs.edges) == set(dag.edges)
    nx.write_graphml(io.to_networkx(dag), tmp_path / "theirs.graphml")
    assert io.read_graphml(tmp_path / "theirs.graphml") == dag


def test_networkx_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from isthmus.errors import MissingExtraError

    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(MissingExtraError, match=r"isthmus\[io\]"):
        io.to_networkx(GRAPHS[0])
