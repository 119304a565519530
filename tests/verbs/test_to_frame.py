"""Results as labelled tables of pandas, Polars, PyArrow, or as dictionaries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.cli import main
from isthmus.errors import ArgumentError, MismatchError

DATA = ist.datasets.asia(rows=400, seed=1)


def test_every_result_has_a_labelled_table() -> None:
    solution = ist.learn(DATA)
    network: Any = solution.fit()
    answer = network.query(["lung", "xray"], {"smoke": "yes"})
    table = ist.to_frame(answer, {})
    for lung, xray, chance, error in zip(*table.values(), strict=True):
        assert chance == answer[lung, xray]
        assert 0 < error < 0.1
    cells = ist.to_frame(network, {}, node="either")
    assert list(cells) == [*network.dag.parents("either"), "either", "probability", "count"]
    assert cells["count"].sum() == 400
    assert cells["probability"].sum() == pytest.approx(len(cells["count"]) / 2)
    edges = ist.to_frame(solution, {})
    found = dict(
        zip(
            zip(edges["from"], edges["to"], strict=True), edges["direction_determined"], strict=True
        )
    )
    directions = solution.directions
    assert found == {edge: edge in directions.determined for edge in solution.dag.edges}
    assert list(edges["decided_by"]) == [directions.decided_by(e) for e in solution.dag.edges]
    assert list(edges["margin"]) == [directions.margins[e] for e in solution.dag.edges]
    draws = ist.sample(DATA, draws=20, progress=False)
    chances = ist.to_frame(draws, {})
    matrix = draws.edge_probabilities()
    assert chances["probability"].sum() == pytest.approx(matrix.sum())
    assert chances["probability"][0] == matrix.max()
    shared = ist.to_frame(ist.bootstrap(DATA, replicates=4, progress=False), {})
    assert list(shared) == ["from", "to", "share"]
    with pytest.raises(ArgumentError, match="node='asia'"):
        ist.to_frame(network, {})
    with pytest.raises(MismatchError, match="no table"):
        ist.to_frame(solution.dag, {})


@pytest.mark.long
def test_continuous_answers_and_ranges() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    group = np.where(x + rng.normal(size=300) > 0, "a", "b")
    gaussian: Any = ist.learn({"x": x, "y": x + rng.normal(size=300)}).fit()
    edge = ist.to_frame(gaussian, {})
    assert edge["coefficient"][0] == gaussian.coefficients[edge["to"][0]][edge["from"][0]]
    answer = ist.to_frame(gaussian.query("y", {"x": 1.0}), {})
    assert answer["variable"].tolist() == ["y"]
    assert answer["standard_deviation"][0] == pytest.approx(1.0, abs=0.15)
    bounds = ist.to_frame(gaussian.query("y", do={"x": 1.0}), {})
    assert bounds["lower"][0] < bounds["upper"][0]
    tiers = ist.Knowledge(tiers=[["x"], ["g"]])
    mixed: Any = ist.learn({"x": x, "g": group}, knowledge=tiers).fit()
    assert "simulation_error" in ist.to_frame(mixed.query("g"), {})


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_the_table_is_of_the_kind_that_was_given(library: str) -> None:
    module: Any = pytest.importorskip(library)
    columns = {name: np.asarray(column).tolist() for name, column in DATA.items()}
    make = module.table if library == "pyarrow" else module.DataFrame
    table = make(columns)
    solution = ist.learn(table)
    network: Any = solution.fit()
    frame = ist.to_frame(network.query("lung"), like=table)
    assert type(frame) is type(table)
    assert [
        str(name) for name in (frame.column_names if library == "pyarrow" else frame.columns)
    ] == [
        "lung",
        "probability",
        "sampling_error",
    ]
    with pytest.raises(ArgumentError, match="Give a table"):
        ist.to_frame(solution, like=3)


def test_a_mixed_solution_in_a_file_can_be_queried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    solution = ist.learn({"x": x, "g": np.where(x + rng.normal(size=300) > 0, "a", "b")})
    solution.save(tmp_path / "mixed.isthmus", statistics=True)
    asked = ["query", str(tmp_path / "mixed.isthmus"), "--target", "g", "--given", "x=1"]
    assert main(asked) == 0
    network: Any = solution.fit()
    assert f"a: {network.query('g', {'x': 1.0})['a']:.4f}" in capsys.readouterr().out
    loaded = ist.Solution.load(tmp_path / "mixed.isthmus")
    loaded.save(tmp_path / "again.isthmus", statistics=True)
    again: Any = ist.Solution.load(tmp_path / "again.isthmus").fit()
    assert again.query("g", {"x": 1.0})["a"] == network.query("g", {"x": 1.0})["a"]
    assert again.cpdag == solution.cpdag
    with pytest.raises(MismatchError, match=r"solution\.fit\(data\)"):
        loaded.fit(pseudo_count=2.0)
