from __future__ import annotations

import csv
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from tests.io.cases import DATA, networks

from isthmus import io
from isthmus.errors import FormatError, MissingExtraError
from isthmus.graphs import DAG
from isthmus.networks import DiscreteNetwork, GaussianNetwork

GAUSSIAN = DATA / "networks_gaussian"


@given(networks())
def test_discrete_json(net: DiscreteNetwork) -> None:
    back = io.from_json(io.to_json(net))
    assert back == net


def test_json_keeps_the_types_of_levels(tmp_path: Path) -> None:
    levels = {"x": (True, "True", 2, 2.5)}
    net = DiscreteNetwork(DAG(["x"]), levels, {"x": np.full(4, 0.25)})
    io.write_json(net, tmp_path / "net.json.gz")
    back = io.read_json(tmp_path / "net.json.gz")
    assert isinstance(back, DiscreteNetwork)
    assert [type(level) for level in back.levels["x"]] == [bool, str, int, float]
    codes = DiscreteNetwork(DAG(["x"]), {"x": tuple(np.arange(4))}, {"x": np.full(4, 0.25)})
    assert io.from_json(io.to_json(codes)) == codes


def test_gaussian_json() -> None:
    dag = DAG(["a", "b"], [("a", "b")])
    net = GaussianNetwork(
        dag, {"a": 0.1, "b": 1 / 3}, {"a": {}, "b": {"a": -2e-17}}, {"a": 1, "b": 2}
    )
    assert io.from_json(io.to_json(net)) == net


@pytest.mark.skipif(not GAUSSIAN.exists(), reason="the Gaussian networks are not here")
def test_gaussian_repository_networks() -> None:
    with (DATA / "networks" / "SUMMARY.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["type"] == "gaussian"]
    assert len(rows) == 4
    for row in rows:
        net = io.read_bnlearn_json(GAUSSIAN / f"{row['network']}.json")
        assert len(net.dag.nodes) == int(row["nodes"])
        assert len(net.dag.edges) == int(row["arcs"])
        assert net.parameters == int(row["parameters"])
        assert io.from_json(io.to_json(net)) == net
    ecoli = io.read_bnlearn_json(GAUSSIAN / "ecoli70.json")
    assert ecoli.intercepts["aceB"] == 0.1324
    assert dict(ecoli.coefficients["aceB"]) == {"icdA": 1.0464}
    assert ecoli.variances["aceB"] == 0.0853


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{\n"format": }', "Line 2"),
        ("[]", "object"),
        ("{}", "isthmus-graph/1"),
        ('{"format": "isthmus-graph/2"}', "isthmus-graph/2"),
        ('{"format": "isthmus-graph/1", "type": "dag"}', "'nodes'"),
        ('{"format": "isthmus-graph/1", "type": "tree"}', "'tree'"),
        ('{"format": "isthmus-network/1", "type": "fuzzy", "nodes": [], "edges": []}', "'fuzzy'"),
        ('{"format": "isthmus-graph/1", "nodes": [NaN]}', "NaN"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_json_errors(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        io.from_json(text)


def test_json_that_does_not_fit() -> None:
    data = json.loads(io.to_json(DAG(["a", "b"], [("a", "b")])))
    for key, wrong in [
        ("directed", [["a", "b"], ["b", "a"]]),
        ("directed", [["a"]]),
        ("directed", 3),
        ("nodes", ["a", "a"]),
        ("nodes", [1, 2]),
        ("undirected", [["a", "b"]]),
    ]:
        with pytest.raises(FormatError):
            io.from_json(json.dumps({**data, key: wrong}))
    net = DiscreteNetwork(DAG(["x"]), {"x": ("a", "b")}, {"x": np.array([0.5, 0.5])})
    data = json.loads(io.to_json(net))
    for key, value in [
        ("tables", {"x": [0.5, 0.6]}),
        ("tables", {"x": [[0.5], [0.5, 0.1]]}),
        ("tables", {"x": ["a", "b"]}),
        ("levels", {}),
        ("levels", []),
    ]:
        with pytest.raises(FormatError):
            io.from_json(json.dumps({**data, key: value}))


@pytest.mark.parametrize(
    "text", ["{}", '{"nodes": ["a"], "arcs": [], "cpds": {}}', '{"nodes": 3, "arcs": []}']
)
def test_bnlearn_json_errors(text: str) -> None:
    with pytest.raises(FormatError):
        io.from_bnlearn_json(text)


def test_pgmpy_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pgmpy.factors.discrete", None)
    net = DiscreteNetwork(DAG(["x"]), {"x": ("a",)}, {"x": np.array([1.0])})
    with pytest.raises(MissingExtraError, match=r"isthmus\[io\]"):
        io.to_pgmpy(net)


def test_pgmpy_there_and_back() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("pgmpy.models")
        check_pgmpy()


def check_pgmpy() -> None:
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.models import DiscreteBayesianNetwork

    rng = np.random.default_rng(0)
    dag = DAG(["c", "a", "b", "alone"], [("a", "c"), ("b", "c")])
    levels = {"a": ("x", "y"), "b": (0, 1, 2), "c": ("p", "q", "r", "s"), "alone": (True, False)}
    tables = {
        "a": rng.dirichlet(np.ones(2)),
        "b": rng.dirichlet(np.ones(3)),
        "c": rng.dirichlet(np.ones(4), size=(2, 3)),
        "alone": rng.dirichlet(np.ones(2)),
    }
    net = DiscreteNetwork(dag, levels, tables)
    model = io.to_pgmpy(net)
    assert model.check_model()
    back = io.from_pgmpy(model)
    assert isinstance(back, DiscreteNetwork)
    assert back.close_to(net, 1e-15)
    # pgmpy's own lookup of one cell: P(c = r | a = y, b = 2)
    value = model.get_cpds("c").get_value(c="r", a="y", b=2)
    assert value == pytest.approx(float(tables["c"][1, 2, 2]))

    theirs = DiscreteBayesianNetwork([("u", "v")])
    theirs.add_cpds(
        TabularCPD("u", 2, [[0.2], [0.8]], state_names={"u": ["no", "yes"]}),
        TabularCPD(
            "v",
            2,
            [[0.9, 0.3], [0.1, 0.7]],
            evidence=["u"],
            evidence_card=[2],
            # the same states in another order than u itself has them
            state_names={"v": ["off", "on"], "u": ["yes", "no"]},
        ),
    )
    ours = io.from_pgmpy(theirs)
    assert isinstance(ours, DiscreteNetwork)
    assert ours.levels["u"] == ("no", "yes")
    assert ours.tables["v"].tolist() == [[0.3, 0.7], [0.9, 0.1]]
    bare = DiscreteBayesianNetwork([("u", "v")])
    with pytest.raises(FormatError, match="no table"):
        io.from_pgmpy(bare)


@pytest.mark.skipif(not DATA.exists(), reason="the benchmark data are not here")
def test_pgmpy_repository_network() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("pgmpy.models")
        net = io.read_bif(DATA / "networks" / "alarm.bif.gz")
        back = io.from_pgmpy(io.to_pgmpy(net))
        assert isinstance(back, DiscreteNetwork)
        assert back.close_to(net, 1e-12)
