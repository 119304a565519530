"""The module for Benchpress, run as Snakemake runs it."""

from __future__ import annotations

import csv
import json
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import isthmus as ist

MODULE = Path(__file__).parent.parent / "packaging/benchpress/isthmus_learn"


def run(folder: Path, table: dict[str, Any], header: list[Any], **wildcards: str) -> list[Any]:
    with (folder / "data.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows([header] if header else [])
        writer.writerows(zip(*table.values(), strict=True))
    outputs = {name: str(folder / f"{name}.txt") for name in ("adjmat", "time", "ntests")}
    called = SimpleNamespace(
        input={"data": str(folder / "data.csv")}, output=outputs, wildcards=wildcards
    )
    runpy.run_path(str(MODULE / "script.py"), {"snakemake": called})
    assert float(Path(outputs["time"]).read_text()) > 0
    assert Path(outputs["ntests"]).read_text() == "None"
    with Path(outputs["adjmat"]).open(newline="") as file:
        return list(csv.reader(file))


def test_a_class_of_discrete_data_whose_second_row_has_numbers_of_levels(tmp_path: Path) -> None:
    data = ist.datasets.asia(rows=2000)
    table = {name: [int(v == "yes") for v in column] for name, column in data.items()}
    options = {"search": "Boss", "score": "BIC", "datatype": "discrete"}
    names, *rows = run(tmp_path, table, [2] * len(table), **options, timeout="None", seed="3")
    learned = ist.learn(data, search=ist.Boss(), score=ist.BIC()).cpdag
    assert names == list(data)
    found = {(a, b) for a, row in zip(names, rows, strict=True)
             for b, v in zip(names, row, strict=True) if v == "1"}  # fmt: skip
    both = {pair for a, b in learned.undirected for pair in ((a, b), (b, a))}
    assert both
    assert found == {*learned.directed, *both}


def test_a_directed_graph_of_continuous_data(tmp_path: Path) -> None:
    dag = ist.simulate.erdos_renyi(5, 5, seed=2)
    data = ist.simulate.linear(dag, 500, seed=2).data
    table = {name: list(column) for name, column in data.items()}
    options = {"search": "Notears", "score": "default", "datatype": "continuous"}
    names, *rows = run(tmp_path, table, [], **options, timeout="100", seed="1")
    learned = ist.learn(data, search=ist.Notears()).dag
    assert names == list(table)
    found = {(names[i], names[j]) for i in range(5) for j in range(5) if rows[i][j] == "1"}
    assert found == set(learned.edges)


@pytest.mark.parametrize("option", ["search", "score"])
def test_all_choices_of_the_schema_exist(option: str) -> None:
    schema = json.loads((MODULE / "schema.json").read_text())["items"]
    names = schema["properties"][option]["enum"]
    assert all(name == "default" or hasattr(getattr(ist, name)(), "__dataclass_fields__")
               for name in names)  # fmt: skip
