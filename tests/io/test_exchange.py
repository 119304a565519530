"""Formats of other programs: round trips with awkward names, and what peers write and read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from tests.io.cases import AWKWARD, awkward_graphs, networks

from isthmus import io
from isthmus.errors import FormatError
from isthmus.graphs import DAG
from isthmus.networks import DiscreteNetwork

FORMATS: dict[str, tuple[Callable[..., str], Callable[..., DiscreteNetwork]]] = {
    "xmlbif": (io.to_xmlbif, io.from_xmlbif),
    "xdsl": (io.to_xdsl, io.from_xdsl),
    "hugin": (io.to_hugin, io.from_hugin),
}


def plain_network() -> DiscreteNetwork:
    rng = np.random.default_rng(0)
    dag = DAG(list("cab"), [("a", "c"), ("b", "c"), ("a", "b")])
    levels: Any = {"a": ("x", "y", "z"), "b": ("u", "v"), "c": ("p", "q")}
    tables = {}
    for v in dag.nodes:
        shape = tuple(len(levels[p]) for p in dag.parents(v))
        tables[v] = rng.dirichlet(np.ones(len(levels[v])), size=shape)
    return DiscreteNetwork(dag, levels, tables)


@pytest.mark.parametrize("name", FORMATS)
def test_any_network_comes_back(name: str) -> None:
    write, read = FORMATS[name]

    @settings(max_examples=40, deadline=None)
    @given(networks())
    def check(net: DiscreteNetwork) -> None:
        text = write(net)
        back = read(text)
        assert back == net
        assert write(back.reorder(net.dag.nodes)) == text

    check()


@pytest.mark.parametrize("name", FORMATS)
def test_awkward_names_and_levels(name: str, tmp_path: Path) -> None:
    write, read = FORMATS[name]
    dag = DAG(AWKWARD, [(AWKWARD[0], AWKWARD[3]), (AWKWARD[5], AWKWARD[3])])
    levels = {v: tuple(AWKWARD[i : i + 2]) for i, v in enumerate(reversed(AWKWARD[:-1]))}
    levels[AWKWARD[-1]] = ("0", "1.5")
    sizes = {v: len(own) for v, own in levels.items()}
    tables = {}
    for v in AWKWARD:
        shape = tuple(sizes[p] for p in (*dag.parents(v), v))
        tables[v] = np.full(shape, 1 / sizes[v])
    net = DiscreteNetwork(dag, levels, tables)
    assert read(write(net)) == net
    path = tmp_path / "net.gz"
    getattr(io, f"write_{name}")(net, path)
    assert getattr(io, f"read_{name}")(path) == net


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_texts_are_reported(name: str) -> None:
    write, read = FORMATS[name]
    text = write(plain_network())
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(150):
        i, j = sorted(rng.integers(len(text), size=2))
        bad = text[:i] if rng.random() < 0.5 else text[:i] + text[min(j, i + 5) :]
        try:
            read(bad)
        except FormatError:
            refused += 1
    assert refused > 75
    for bad in ("", "net", "<BIF", text + text):
        with pytest.raises(FormatError):
            read(bad)


def test_entities_are_refused() -> None:
    for root in ("BIF", "smile"):
        bomb = f'<!DOCTYPE {root} [<!ENTITY a "aaaa">]><{root}>&a;</{root}>'
        with pytest.raises(FormatError, match="entities"):
            (io.from_xmlbif if root == "BIF" else io.from_xdsl)(bomb)
    declared = io.to_xmlbif(plain_network()).replace(
        '<BIF VERSION="0.3">', '<!DOCTYPE BIF [<!ELEMENT BIF (NETWORK)*>]><BIF VERSION="0.3">'
    )
    assert io.from_xmlbif(declared) == plain_network()


def test_levels_that_look_alike_and_other_nodes() -> None:
    net = DiscreteNetwork(DAG(["x"]), {"x": (1, "1")}, {"x": np.array([0.5, 0.5])})
    for write, _ in FORMATS.values():
        with pytest.raises(FormatError, match="unique"):
            write(net)
    with pytest.raises(FormatError, match="utility"):
        io.from_hugin("net {} utility u {}")
    with pytest.raises(FormatError, match="only <cpt>"):
        io.from_xdsl('<smile><nodes><decision id="d"/></nodes></smile>')
    with pytest.raises(FormatError, match="no table"):
        io.from_hugin('net {} node a { states = ("x" "y"); }')


def close(one: DiscreteNetwork, other: DiscreteNetwork, tolerance: float) -> bool:
    return one.reorder(sorted(one.dag.nodes)).close_to(
        other.reorder(sorted(other.dag.nodes)), tolerance
    )


@pytest.mark.parametrize(("name", "suffix"), [("xmlbif", "bifxml"), ("hugin", "net")])
def test_pyagrum_reads_and_writes_the_same(name: str, suffix: str, tmp_path: Path) -> None:
    gum: Any = pytest.importorskip("pyagrum")
    net = plain_network()
    path = tmp_path / f"ours.{suffix}"
    getattr(io, f"write_{name}")(net, path)
    theirs = gum.loadBN(str(path))
    for v in net.dag.nodes:
        assert set(theirs.variable(v).labels()) == set(net.levels[v])
    row = theirs.cpt("c")[{"a": "y", "b": "v"}]
    np.testing.assert_allclose(row, net.tables["c"][1, 1], atol=1e-6)
    back = tmp_path / f"theirs.{suffix}"
    gum.saveBN(theirs, str(back))
    assert close(getattr(io, f"read_{name}")(back, normalise=True), net, 1e-5)


@pytest.mark.parametrize(
    ("name", "kind"), [("xmlbif", "XMLBIF"), ("hugin", "NET"), ("xdsl", "XDSL")]
)
def test_pgmpy_reads_the_same(name: str, kind: str, tmp_path: Path) -> None:
    readwrite = pytest.importorskip("pgmpy.readwrite")
    net = plain_network()
    path = tmp_path / f"ours.{name}"
    getattr(io, f"write_{name}")(net, path)
    model = getattr(readwrite, f"{kind}Reader")(str(path)).get_model()
    back = io.from_pgmpy(model)
    assert isinstance(back, DiscreteNetwork)
    assert close(back, net, 1e-9)


def test_graphs_in_gml(tmp_path: Path) -> None:
    for graph in awkward_graphs():
        assert io.from_gml(io.to_gml(graph)) == graph
    nx = pytest.importorskip("networkx")
    dag = DAG(["größe", 'b "q"', "c&d"], [("größe", "c&d"), ('b "q"', "c&d")])
    io.write_gml(dag, tmp_path / "g.gml")
    theirs = nx.read_gml(tmp_path / "g.gml")
    assert set(theirs.edges) == set(dag.edges)
    nx.write_gml(theirs, tmp_path / "h.gml")
    assert io.read_gml(tmp_path / "h.gml") == dag


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "graph [",
        "graph [ node [ id 1 ] edge [ source 1 target 2 ] ]",
        "graph [ ] graph [ ]",
        'graph [ node [ label "a" ] ]',
        "graph ] [",
        "] graph",
        'graph [ node [ id "1 ] ]',
    ],
)
def test_damaged_gml(bad: str) -> None:
    with pytest.raises(FormatError):
        io.from_gml(bad)


def test_model_strings() -> None:
    dag = DAG(list("abc"), [("a", "c"), ("b", "c")])
    assert io.to_model_string(dag) == "[a][b][c|a:b]"
    assert io.from_model_string(" [a][b][c|a:b]\n") == dag
    for graph in awkward_graphs():
        if isinstance(graph, DAG) and "only" in graph.nodes:
            assert io.from_model_string(io.to_model_string(graph)) == graph
    with pytest.raises(FormatError, match="rename"):
        io.to_model_string(DAG(["a:b"]))
    for bad in ("a|b", "[a][b|c]", "[a|b][b|a]", "[a", "[]"):
        with pytest.raises(FormatError):
            io.from_model_string(bad)
