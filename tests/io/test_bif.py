from __future__ import annotations

import csv
import os
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from tests.io.cases import AWKWARD, DATA, networks

from isthmus.errors import FormatError
from isthmus.graphs import DAG
from isthmus.io import from_bif, read_bif, to_bif, write_bif
from isthmus.networks import DiscreteNetwork

NETWORKS = DATA / "networks"

DOG = """
// the example of the format's own description
network "Dog-Problem" { //5 variables
    property "see http://example.org; \\"here\\"" ;
    property version 1.0 ;
}
variable "light-on" { type discrete[2] { "true" "false" }; property "position = (1, 2)" ; }
variable  bowel-problem { /* two
   lines */ type discrete [ 2 ] { "true", "false" }; }
variable "dog-out" { type discrete[2] { "true" "false" }; }
variable "family-out" { type discrete[2] { "true" "false" }; }
probability ( "light-on" "family-out" ) { (true) 0.6 0.4; (false) 0.05 0.95; }
probability ( bowel-problem ) { table 0.01 0.99; }
probability ( "dog-out" | bowel-problem, "family-out" ) {
    table 0.99 0.97 0.9 0.3 0.01 0.03 0.1 0.7; }
probability ( "family-out" ) { table 0.15 0.85; property done; }
"""


def test_the_formats_own_example() -> None:
    net = from_bif(DOG)
    assert net.dag.nodes == ("light-on", "bowel-problem", "dog-out", "family-out")
    assert net.dag.parents("dog-out") == ("bowel-problem", "family-out")
    assert net.tables["dog-out"].tolist() == [
        [[0.99, 0.01], [0.97, 0.03]],
        [[0.9, 0.1], [0.3, 0.7]],
    ]
    assert net.tables["light-on"].tolist() == [[0.6, 0.4], [0.05, 0.95]]
    assert net.levels["bowel-problem"] == ("true", "false")
    assert from_bif(to_bif(net)) == net


LARGE = 10**9 if "ISTHMUS_LONG" in os.environ else 20_000
"""Parameters; larger networks take seconds each."""


def summary() -> list[dict[str, str]]:
    path = NETWORKS / "SUMMARY.csv"
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["type"] == "discrete"]


@pytest.mark.long
@pytest.mark.skipif(not NETWORKS.exists(), reason="the repository networks are not here")
def test_all_repository_networks(tmp_path: Path) -> None:
    """Read all of them; write and read again those of moderate size: equal to the last bit."""
    rows = summary()
    assert len(rows) == 24
    for row in rows:
        begin = time.process_time()
        net = read_bif(NETWORKS / f"{row['network']}.bif.gz")
        assert time.process_time() - begin < 10, row["network"]  # at most 0.6 s on an idle core
        assert len(net.dag.nodes) == int(row["nodes"])
        assert len(net.dag.edges) == int(row["arcs"])
        assert net.parameters == int(row["parameters"])
        assert max(map(len, net.dag.parent_indices())) == int(row["max_in_degree"])
        assert max(net.cardinalities.values()) == int(row["max_states"])
        if net.parameters > LARGE:
            continue
        write_bif(net, tmp_path / "net.bif")
        again = read_bif(tmp_path / "net.bif")
        assert again.dag.nodes == net.dag.nodes
        assert again.dag == net.dag
        assert dict(again.levels) == dict(net.levels)
        for node, table in net.tables.items():
            assert table.tobytes() == again.tables[node].tobytes()


@pytest.mark.skipif(not NETWORKS.exists(), reason="the repository networks are not here")
def test_unusual_labels_and_order_of_parents() -> None:
    child = read_bif(NETWORKS / "child.bif.gz")
    assert child.levels["CO2Report"] == ("<7.5", ">=7.5")
    assert child.levels["ChestXray"][-1] == "Asy/Patch"
    asia = read_bif(NETWORKS / "asia.bif.gz")
    # the file names lung first, the nodes come as tub, lung
    assert asia.dag.parents("either") == ("tub", "lung")
    dysp = asia.tables["dysp"]
    assert asia.dag.parents("dysp") == ("bronc", "either")
    assert dysp[1, 0].tolist() == [0.7, 0.3]
    assert dysp[0, 1].tolist() == [0.8, 0.2]


@given(networks())
def test_any_names_and_labels(net: DiscreteNetwork) -> None:
    again = from_bif(to_bif(net))
    assert again == net
    assert again.dag.nodes == net.dag.nodes


def test_awkward_names(tmp_path: Path) -> None:
    tables = {v: [0.25, 0.75] for v in AWKWARD}
    levels = dict.fromkeys(AWKWARD, (AWKWARD[0], AWKWARD[1]))
    net = DiscreteNetwork(DAG(AWKWARD), levels, {v: np.array(t) for v, t in tables.items()})
    write_bif(net, tmp_path / "x.bif.gz")
    assert (tmp_path / "x.bif.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert read_bif(tmp_path / "x.bif.gz") == net


def test_other_levels_become_text() -> None:
    net = DiscreteNetwork(DAG(["x"]), {"x": (True, 2.5)}, {"x": np.array([0.5, 0.5])})
    assert from_bif(to_bif(net)).levels["x"] == ("True", "2.5")
    clash = DiscreteNetwork(DAG(["x"]), {"x": ("2", 2)}, {"x": np.array([0.5, 0.5])})
    with pytest.raises(FormatError, match="not unique as text"):
        to_bif(clash)


HEAD = """network n {
}
variable a { type discrete [ 2 ] { y, n }; }
variable b { type discrete [ 2 ] { y, n }; }
probability ( a ) { table 0.5, 0.5; }
"""


def test_default_fills_what_is_not_given() -> None:
    net = from_bif(HEAD + "probability ( b | a ) { default 0.1, 0.9; (n) 0.3, 0.7; }")
    assert net.tables["b"].tolist() == [[0.1, 0.9], [0.3, 0.7]]
    late = from_bif(HEAD + "probability ( b | a ) { (n) 0.3, 0.7; default 0.1, 0.9; }")
    assert late == net


def test_normalise() -> None:
    text = HEAD + "probability ( b ) { table 0.33, 0.66; }"
    with pytest.raises(FormatError, match=r"differs from one by 0.01"):
        from_bif(text)
    assert from_bif(text, normalise=True).tables["b"].tolist() == pytest.approx([1 / 3, 2 / 3])
    with pytest.raises(FormatError, match="not probabilities"):
        from_bif(HEAD + "probability ( b ) { table 0, 0; }", normalise=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Line 1 .*no variable"),
        ("network n {\n}\nvarable a {\n}", "Line 3 .*'varable'"),
        ("variable a {\n type continuous;\n}", "Line 2 .*type discrete.*'continuous'"),
        ("variable a {\n type discrete [ 3 ] { y, n };\n}", "Line 2 .*declares 3.*lists 2"),
        ("variable a {\n type discrete [ 2 ] { y, y };\n}", "Line 2 .*twice"),
        ("variable a {\n}", "Line 2 .*no type"),
        ("variable a {\n type discrete [ 2 ] { y, n };", "Line 2 .*end of the text"),
        ("variable a {\n nonsense here;\n}", "Line 2 .*'nonsense'"),
        (HEAD, "Line 6 .*'b' has no probability block"),
        (HEAD + "variable a { type discrete [1] { x }; }", "Line 6 .*'a' is defined twice"),
        (HEAD + "probability ( a ) { table 0.5, 0.5; }", "Line 6 .*two probability blocks"),
        (HEAD + "probability ( b | c ) {\n}", "Line 6 .*'c' is not a variable"),
        (HEAD + "probability ( b | a, a ) {\n}", "Line 6 .*twice"),
        (HEAD + "probability ( b | a ) {\n (x) 0.5, 0.5;\n}", "Line 7 .*'x' is not a level of 'a'"),
        (HEAD + "probability ( b | a ) {\n (y) 0.5;\n}", "Line 7 .*expected 2 numbers, found 1"),
        (HEAD + "probability ( b | a ) {\n (y) 0.5 0.2 0.3;\n}", "Line 7 .*';' after 2 numbers"),
        (HEAD + "probability ( b | a ) {\n (y) 0.5 half;\n}", "Line 7 .*'half'"),
        (HEAD + "probability ( b | a ) {\n (y) 1 0;\n}", r"Line 8 .*no probabilities for \(n\)"),
        (HEAD + "probability ( b | a ) {\n (y) 1 0;\n (y) 1 0;\n}", "Line 8 .*given twice"),
        (HEAD + "probability ( b ) {\n}", "Line 7 .*no probabilities"),
        (HEAD + "probability ( b ) { table 1.5 -0.5; }", "not probabilities"),
        (HEAD + "probability ( b ) { table nan 0.5; }", "not probabilities"),
        (HEAD + "probability ( b ) { table 1 0;", "Line 6 .*end of the text"),
        ('variable "a', "Line 1 "),
        (
            "variable a { type discrete [1] { y }; }\nprobability ( a ) {\n // table 1;\n}",
            "Line 4",
        ),
    ],
)
def test_errors_name_the_line(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        from_bif(text)


def test_a_cycle_in_the_file() -> None:
    text = """variable a { type discrete [ 1 ] { y }; } variable b { type discrete [ 1 ] { y }; }
    probability ( a | b ) { (y) 1; } probability ( b | a ) { (y) 1; }"""
    with pytest.raises(FormatError, match="cycle"):
        from_bif(text)


def test_files_that_are_not_text(tmp_path: Path) -> None:
    path = tmp_path / "x.bif"
    path.write_bytes(b"network n {\n}\nvariable \xff")
    with pytest.raises(FormatError, match="line 3"):
        read_bif(path)
    path.write_bytes(b"\x1f\x8bnonsense")
    with pytest.raises(FormatError, match="decompressed"):
        read_bif(path)
    with pytest.raises(FileNotFoundError):
        read_bif(tmp_path / "missing.bif")
