"""`isthmus validate` says what the function says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import isthmus as ist
from isthmus.cli import main
from isthmus.tables.read_table import read_table


def test_a_missing_edge_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = ist.datasets.asia().network.dag
    drawn = ist.DAG(graph.nodes, [edge for edge in graph.edges if edge != ("smoke", "bronc")])
    table, dot = str(tmp_path / "asia.csv"), str(tmp_path / "drawn.dot")
    ist.io.write_dot(drawn, dot)
    assert main(["datasets", "write", "asia", "-o", table]) == 0
    capsys.readouterr()
    assert main(["validate", table, dot, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    answer = ist.validate(read_table(table), drawn)
    first = told["objections"][0]
    assert not told["agrees"]
    assert {first["x"], first["y"]} == {"smoke", "bronc"}
    assert first["adjusted"] == answer.objections[0].adjusted
    assert len(told["objections"]) == len(answer.objections)
    assert [(e["cause"], e["effect"]) for e in told["unsupported"]] == [
        (e.cause, e.effect) for e in answer.unsupported
    ]


def test_a_level_must_be_a_probability(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = str(tmp_path / "asia.csv")
    assert main(["datasets", "write", "asia", "-o", table]) == 0
    assert main(["validate", table, "dataset:asia", "--alpha", "2"]) != 0
    assert "alpha" in capsys.readouterr().err


def test_knowledge_is_compared_with_the_graph_or_tested_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, stated = str(tmp_path / "asia.csv"), tmp_path / "stated.toml"
    assert main(["datasets", "write", "asia", "-o", table]) == 0
    stated.write_text('forbidden = [["smoke", "lung"]]\n')
    capsys.readouterr()
    assert main(["validate", table, "dataset:asia", "--knowledge", str(stated), "--json"]) == 0
    assert any("smoke → lung" in r for r in json.loads(capsys.readouterr().out)["violated"])
    stated.write_text('forbidden = [["smoke", "bronc"], ["bronc", "smoke"]]\n')
    assert main(["validate", table, "--knowledge", str(stated), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {told["objections"][0][end] for end in "xy"} == {"smoke", "bronc"}
    assert main(["validate", table]) != 0
    assert "--knowledge" in capsys.readouterr().err
