"""pyAgrum and pgmpy read what we write, and other networks are refused with advice."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isthmus import io
from isthmus.errors import FormatError, MismatchError
from isthmus.graphs import DAG
from isthmus.networks import DiscreteNetwork, GaussianNetwork, MixedNetwork, ProbabilityTable

ODD = {
    "body mass (kg/m²)": ("< 18.5", "18.5–25", "> 25"),
    "größe": ("klein", "groß"),
    "table": ("default", "type"),
    "12": ("1", "-1", "1.5"),
    "// note": ('"quoted"', "{brace}", "a, b"),
    "a_b": ("yes", "no"),
    "a b": ("50%", "*/"),
}


def odd_network() -> DiscreteNetwork:
    rng = np.random.default_rng(0)
    names = list(ODD)
    dag = DAG(names, [(names[0], names[-1]), (names[4], names[-1]), (names[2], names[3])])
    tables = {}
    for name in names:
        sizes = tuple(len(ODD[parent]) for parent in dag.parents(name))
        tables[name] = rng.dirichlet(np.ones(len(ODD[name])), size=sizes)
    return DiscreteNetwork(dag, dict(ODD), tables)


def gaussian() -> GaussianNetwork:
    dag = DAG(["x y", "z"], [("x y", "z")])
    slopes: dict[str, dict[str, float]] = {"x y": {}, "z": {"x y": 3.0}}
    return GaussianNetwork(dag, {"x y": 1.0, "z": 2.0}, slopes, {"x y": 4.0, "z": 9.0})


def test_odd_names_come_back_and_plain_names_stay() -> None:
    net = odd_network()
    text = io.to_bif(net)
    assert io.from_bif(text) == net
    assert io.from_bif(text).dag.nodes == net.dag.nodes
    plain = DiscreteNetwork(DAG(["a_b"]), {"a_b": ("yes", "1")}, {"a_b": np.array([0.5, 0.5])})
    assert "Original" not in io.to_bif(plain)
    with pytest.raises(FormatError, match=r"Line 1 .*original names is damaged"):
        io.from_bif(text.replace('{"variables"', '{"variable'))


def test_pyagrum_reads_odd_names(tmp_path: Path) -> None:
    gum: Any = pytest.importorskip("pyagrum")
    net, path = odd_network(), tmp_path / "net.bif"
    io.write_bif(net, path)
    theirs = gum.loadBN(str(path))
    assert "body_mass__kg_m__" in theirs.names()
    assert {"a_b", "a_b_2"} <= set(theirs.names())
    joint = theirs.cpt("a_b_2")[{"body_mass__kg_m__": 1, "___note": 2}]
    np.testing.assert_allclose(joint, net.tables["a b"][1, 2], atol=1e-6)
    assert len(theirs.arcs()) == 3


def test_pgmpy_reads_odd_names(tmp_path: Path) -> None:
    readwrite = pytest.importorskip("pgmpy.readwrite")
    logging.getLogger("pgmpy").setLevel(logging.ERROR)
    net, path = odd_network(), tmp_path / "net.bif"
    io.write_bif(net, path)
    back = io.from_pgmpy(readwrite.BIFReader(str(path)).get_model())
    assert isinstance(back, DiscreteNetwork)
    stored = io.from_bif("\n".join(io.to_bif(net).split("\n")[1:]))  # without the comment
    back = back.reorder(stored.dag.nodes)
    for ours, theirs in zip(net.dag.nodes, back.dag.nodes, strict=True):
        np.testing.assert_allclose(back.tables[theirs], net.tables[ours], atol=1e-9)


@pytest.mark.parametrize("suffix", ["bifxml", "xmlbif"])
def test_both_extensions_of_xmlbif(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"net.{suffix}"
    io.write_xmlbif(odd_network(), path)
    assert io.read_xmlbif(path) == odd_network()


@pytest.mark.parametrize("write", [io.to_bif, io.to_xmlbif, io.to_hugin, io.to_xdsl])
def test_other_networks_are_refused_with_advice(write: Any) -> None:
    with pytest.raises(MismatchError, match=r"GaussianNetwork was given.*write_json"):
        write(gaussian())


def test_gaussian_networks_go_to_pgmpy_and_back() -> None:
    pytest.importorskip("pgmpy")
    model = io.to_pgmpy(gaussian())
    assert io.from_pgmpy(model) == gaussian()
    mean, covariance = model.to_joint_gaussian()
    order = [list(model.nodes()).index(v) for v in gaussian().dag.nodes]
    np.testing.assert_allclose(np.asarray(mean)[order], gaussian().mean())
    np.testing.assert_allclose(
        np.asarray(covariance)[np.ix_(order, order)], gaussian().covariance()
    )
    mixed = MixedNetwork(DAG(["a"]), {"a": ProbabilityTable(("x", "y"), (), np.array([0.5, 0.5]))})
    with pytest.raises(MismatchError, match="MixedNetwork was given"):
        io.to_pgmpy(mixed)  # type: ignore[arg-type]
