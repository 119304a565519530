"""`isthmus learn`: what it writes, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import isthmus as ist
from isthmus.cli import ExitCode, main
from isthmus.cli.output import begin
from isthmus.cli.parsing import code_of
from isthmus.errors import IsthmusError
from isthmus.io import read_bif, read_dot, read_edge_list, read_graphml, read_json
from isthmus.networks import DiscreteNetwork


@pytest.fixture
def rain(tmp_path: Path) -> Path:
    import polars as pl

    rng = np.random.default_rng(7)
    rain, sprinkler = rng.random(2_000) < 0.3, rng.random(2_000) < 0.4
    wet = (rain & (rng.random(2_000) < 0.9)) | (sprinkler & (rng.random(2_000) < 0.8))
    path = tmp_path / "rain.csv"
    table = pl.DataFrame({"rain": rain, "sprinkler": sprinkler, "wet": wet, "id": range(2_000)})
    table.write_csv(path)
    return path


EDGES = {("rain", "wet"), ("sprinkler", "wet")}


@pytest.mark.long
def test_writes_every_format(rain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["r.html", "n.bif", "n.json", "g.dot", "g.graphml", "e.csv", "p.png", "p.svg"]
    outputs = [rain.parent / name for name in names]
    flags = [flag for path in outputs for flag in ("-o", str(path))]
    assert main(["learn", str(rain), "--drop", "id", *flags]) == ExitCode.DONE
    assert "rain → wet" in capsys.readouterr().out
    network = read_json(outputs[2])
    assert isinstance(network, DiscreteNetwork)
    graphs = [
        read_bif(outputs[1]).dag,
        network.dag,
        read_dot(outputs[3]),
        read_graphml(outputs[4]),
        read_edge_list(outputs[5]),
    ]
    assert all(isinstance(g, ist.DAG) and set(g.edges) == EDGES for g in graphs)
    page = outputs[0].read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "isthmus learn" in page
    assert outputs[6].read_bytes().startswith(b"\x89PNG")
    assert "<svg" in outputs[7].read_text(encoding="utf-8")


def test_parquet_and_tsv_are_read_as_csv_is(rain: Path) -> None:
    import polars as pl

    table = pl.read_csv(rain)
    table.write_parquet(rain.with_suffix(".parquet"))
    table.write_csv(rain.with_suffix(".tsv"), separator="\t")
    found = []
    for ending in (".csv", ".parquet", ".tsv"):
        out = rain.parent / f"edges{ending}.csv"
        given = str(rain.with_suffix(ending))
        assert main(["learn", given, "-q", "--drop", "id", "-o", str(out)]) == 0
        found.append(out.read_text(encoding="utf-8"))
    assert found[0] == found[1] == found[2]


def test_options_reach_score_search_and_knowledge(
    rain: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--score", "BDeu(ess=3.5)", "--search", "HillClimb(max_parents=1)"]
    known = ["--forbidden", "rain", "wet", "--required", "sprinkler", "wet"]
    assert main(["learn", str(rain), "--drop", "id", *asked, *known]) == 0
    told = capsys.readouterr().out
    assert "BDeu(ess=3.5) " in told
    assert "max_parents=1" in told
    assert "sprinkler → wet" in told
    assert "rain → wet" not in told


def test_an_output_that_fails_does_not_stop_the_others(
    rain: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (rain.parent / "link.dot").symlink_to(rain.parent / "nowhere" / "graph.dot")
    names = ["link.dot", "edges.csv", "n.bif"]
    flags = [flag for name in names for flag in ("-o", str(rain.parent / name))]
    assert main(["learn", str(rain), "--continuous", "id", "--json", *flags]) == ExitCode.FILE
    out, err = capsys.readouterr()
    assert "link.dot was not written" in err
    assert "n.bif was not written: BIF holds discrete networks only" in err
    told = json.loads(out)
    assert (rain.parent / "edges.csv").exists()
    assert told["exit_code"] == ExitCode.FILE
    assert told["written"] == [str(rain.parent / "edges.csv")]
    assert len(told["not_written"]) == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["lern", "x.csv"], "Did you mean learn?"),
        (["learn", "x.csv", "--scor", "BIC"], "Did you mean --score?"),
        (["learn", "x.csv", "--score", "bdue"], "Did you mean BDeu?"),
        (["learn", "x.csv", "--score", "bdeu(esss=3)"], "Did you mean ess?"),
        (["learn", "x.csv", "--seed", "a"], "not a whole number"),
        (["learn"], "For instance: isthmus learn patients.csv"),
        (["learn", "x.csv", "y.csv"], "one argument too many"),
    ],
)
def test_what_cannot_be_read_is_named_with_a_suggestion(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == ExitCode.USAGE
    told = capsys.readouterr().err
    assert says in told
    assert told.count("\n") == 1


def test_names_match_without_regard_to_case(rain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["learn", str(rain), "--drop", "id", "--score", "bic", "--search", "xges"]) == 0
    told = capsys.readouterr().out
    assert "BIC" in told
    assert "XGES" in told


def test_kinds_are_read_as_told(rain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["learn", str(rain), "--continuous", "id"]) == 0
    assert "DegenerateGaussian" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["nowhere.csv"], ExitCode.FILE, "no file"),
        (["{rain}", "-o", "x.docx"], ExitCode.FORMAT, "ends in one of"),
        (["{rain}", "--drop", "what"], ExitCode.SCHEMA, "'what'"),
        (["{rain}", "--score", "GaussianBIC", "--discrete", "id"], ExitCode.MISMATCH, "continuous"),
        (["{rain}", "--forbidden", "a", "b"], ExitCode.GRAPH, "'a'"),
    ],
)
def test_errors_end_with_their_code_and_a_sentence(
    arguments: list[str],
    code: ExitCode,
    says: str,
    rain: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = [a.format(rain=rain) for a in arguments]
    assert main(["learn", *given]) == code
    told = capsys.readouterr().err
    assert f"error {int(code)}" in told
    assert says in told
    assert "Traceback" not in told


def test_dates_that_a_text_file_holds_are_read_as_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"2024-{1 + i // 28:02}-{1 + i % 28:02},{i * 0.37 % 1:.3f}" for i in range(60)]
    path = tmp_path / "visits.csv"
    path.write_text("\n".join(["day,x", *rows]))
    assert main(["learn", str(path), "--dates", "day", "days", "--explain"]) == 0
    assert "in days as requested" in capsys.readouterr().out
    assert main(["learn", str(path), "--explain"]) == 0
    assert "choose a unit: --dates 'day' days." in "".join(capsys.readouterr())
    path.write_text("\n".join(["day,x", *rows, "03/04/2024,0.5"]))
    assert main(["learn", str(path), "--dates", "day", "days"]) == ExitCode.DATA
    assert "such as '03/04/2024'" in capsys.readouterr().err


def test_missing_values_have_a_code_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "holes.csv"
    path.write_text("a,b\n1.5,2.5\n,3.5\n2.5,1.5\n", encoding="utf-8")
    assert main(["learn", str(path)]) == ExitCode.MISSING_VALUES
    assert "'a'" in capsys.readouterr().err


def test_missing_values_are_treated_as_told(rain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = rain.read_text(encoding="utf-8").splitlines()
    lines[3] = "NA" + lines[3][lines[3].index(",") :]
    rain.write_text("\n".join(lines), encoding="utf-8")
    assert main(["learn", str(rain), "--missing", "DropRows", "--drop", "id"]) == ExitCode.DONE
    printed = capsys.readouterr().out
    assert "1 of 2,000 rows" in printed
    assert "rain → wet" in printed


@pytest.mark.parametrize(
    "text",
    [
        "BDe",
        "BDeu(es=1)",
        "BDeu(10)",
        "BDeu(ess=__import__('os'))",
        "__import__('os').system('true')",
        "BDeu(",
        "Frame",
    ],
)
def test_only_known_strategies_with_constants_are_read(
    text: str, rain: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["learn", str(rain), "--score", text]) == ExitCode.USAGE
    assert "--score" in capsys.readouterr().err


def test_every_error_has_a_code_and_every_code_a_page() -> None:
    def below(kind: type[IsthmusError]) -> list[type[IsthmusError]]:
        return [kind, *(k for sub in kind.__subclasses__() for k in below(sub))]

    coded = [kind for kind in below(IsthmusError) if kind.__module__ == "isthmus.errors"]
    bare = [k.__name__ for k in coded if code_of(k.__new__(k)) is ExitCode.BUG]
    assert bare == ["IsthmusError"]
    page = Path(__file__).parents[2] / "docs" / "reference" / "exit-codes.md"
    text = page.read_text(encoding="utf-8")
    assert [c.name for c in ExitCode if f"## {int(c)}:" not in text] == []


@pytest.mark.long
def test_the_installed_command_runs() -> None:
    command = Path(sys.executable).with_name("isthmus")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("isthmus ")


@pytest.mark.long
def test_a_reader_that_has_seen_enough_is_no_error(rain: Path) -> None:
    command = Path(sys.executable).with_name("isthmus")
    out = rain.parent / "edges.csv"
    with subprocess.Popen(
        [command, "learn", rain, "--drop", "id", "-o", out],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        told = running.stderr.read()
    assert (running.returncode, told) == (0, b"")
    assert out.exists()


def test_a_column_cannot_be_continuous_and_discrete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n2,1\n")
    assert main(["learn", str(path), "--continuous", "a", "--discrete", "a"]) == ExitCode.SCHEMA
    assert "both continuous and discrete" in capsys.readouterr().err


def test_repeated_columns_are_refused_by_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,a,b\n1,2,3\n2,1,4\n")
    assert main(["learn", str(path)]) == ExitCode.SCHEMA
    assert "Column names must be unique; these occur more than once: ['a']" in (
        capsys.readouterr().err
    )


def test_a_report_shows_the_command_without_passwords() -> None:
    output = begin(["learn", "postgresql://ann:secret@host/db", "-o", "my report.html"])
    assert output.command_line == "isthmus learn postgresql://host/db -o 'my report.html'"


def test_directions_that_the_data_do_not_determine_are_no_arrows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{i % 2},{i % 2 if i % 7 else 1 - i % 2}" for i in range(200)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b", *rows]))
    assert main(["learn", str(tmp_path / "t.csv")]) == 0
    told = capsys.readouterr().out
    assert "The direction of the edge is open (shown as —): the best graph" in told
    assert {"a — b", "b — a"} & set(told.splitlines())
    assert "→" not in told


@pytest.mark.long
def test_hidden_causes_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import polars as pl

    rng = np.random.default_rng(4)
    u, a, d, e, f = rng.normal(size=(5, 1000))
    pl.DataFrame({"a": a, "b": a + u + e, "c": u + d + f, "d": d}).write_csv(tmp_path / "t.csv")
    outputs = [tmp_path / name for name in ("r.html", "s.isthmus", "s.json", "g.txt", "p.svg")]
    flags = [flag for path in outputs for flag in ("-o", str(path))]
    command = ["learn", str(tmp_path / "t.csv"), "--search", "BossFCI(alpha=0.01)"]
    assert main([*command, *flags]) == ExitCode.DONE
    said = capsys.readouterr().out
    assert "b <-> c" in said
    assert "--score" not in said
    pag = ist.PAG([*"abcd"], [("a", "o->", "b"), ("b", "<->", "c"), ("d", "o->", "c")])
    assert ist.PAGSolution.load(outputs[1]).pag == ist.io.read_tetrad(outputs[3]) == pag
    assert ["b", "<->", "c"] in json.loads(outputs[2].read_text(encoding="utf-8"))["edges"]
    assert "a ↔ b: they have a hidden common cause" in outputs[0].read_text(encoding="utf-8")
    assert main([*command, "-o", str(tmp_path / "x.bif")]) == ExitCode.FORMAT
    assert "networks and DAGs" in capsys.readouterr().err
    nested = "BossFCI(max_conditioning=2, dag_search=Boss(max_parents=2))"
    assert main([*command[:-1], nested, "--explain"]) == ExitCode.DONE
    assert "dag_search=Boss(max_parents=2)" in capsys.readouterr().out
    wrong = "BossFCI(dag_search=Bosss(max_parents=2))"
    assert main([*command[:-1], wrong, "--explain"]) == ExitCode.USAGE
    assert "Bosss" in capsys.readouterr().err

    other = tmp_path / "other.txt"
    ist.io.write_tetrad(ist.PAG([*"abcd"], [("a", "o-o", "b"), ("d", "o->", "c")]), other)
    assert main(["compare", str(outputs[1]), str(other)]) == ExitCode.DONE
    said = capsys.readouterr().out
    assert "added (1):\n  b <-> c" in said
    assert "a o-> b, not a o-o b" in said
    assert "same: 1" in said
    assert main(["compare", str(other), "dataset:asia"]) == ExitCode.MISMATCH
    assert main(["query", str(outputs[1]), "--target", "a"]) == ExitCode.MISMATCH
    assert "has a PAG" in capsys.readouterr().err


@pytest.fixture
def experiments(tmp_path: Path) -> Path:
    import polars as pl

    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal(size=300), 3 * rng.normal(size=300)])
    table = {"x": x, "y": x + rng.normal(size=600), "regime": np.repeat([0, 1], 300)}
    path = tmp_path / "experiments.csv"
    pl.DataFrame(table).write_csv(path)
    return path


@pytest.mark.long
def test_learns_from_interventions(experiments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import polars as pl

    out = experiments.parent / "x.isthmus"
    arguments = ["learn", str(experiments), "--interventions", "regime"]
    assert main([*arguments, "--targets", "1", "x", "-o", str(out)]) == ExitCode.DONE
    assert "x → y" in capsys.readouterr().out
    table = dict(pl.read_csv(experiments).to_dict())
    regimes = ist.Interventions(table, {0: [], 1: ["x"]}, column="regime")
    assert ist.Solution.load(out).cpdag == ist.learn(regimes).cpdag
    assert main(arguments) == ExitCode.ARGUMENT
    assert "--interventions needs --targets" in capsys.readouterr().err
    assert (
        main(["learn", str(experiments), "--lags", "1", "--targets", "1", "x"]) == ExitCode.ARGUMENT
    )
    assert "--targets needs --interventions" in capsys.readouterr().err
    assert main([*arguments, "--targets", "2", "x"]) == ExitCode.SCHEMA
    assert "'regime' is never '2'" in capsys.readouterr().err
    assert main(["learn", str(experiments), "--targets", "1", "x"]) == ExitCode.ARGUMENT
    assert "--targets needs --interventions" in capsys.readouterr().err
    assert main([*arguments, "--lags", "1"]) == ExitCode.ARGUMENT
    assert "no series of regimes" in capsys.readouterr().err
    assert main([*arguments, "--missing", "DropRows"]) == ExitCode.ARGUMENT
    assert "--missing is for tables without" in capsys.readouterr().err


@pytest.mark.long
def test_learns_from_series(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import polars as pl

    rng = np.random.default_rng(4)
    noise, a, b = rng.normal(size=(2, 300)), np.zeros(300), np.zeros(300)
    for t in range(1, 300):
        a[t], b[t] = 0.5 * a[t - 1] + noise[0, t], 0.8 * a[t - 1] + noise[1, t]
    table = {"day": np.arange(300), "a": a, "b": b}
    path, out = tmp_path / "days.csv", tmp_path / "days.isthmus"
    pl.DataFrame(table).sample(fraction=1.0, shuffle=True, seed=1).write_csv(path)
    arguments = ["learn", str(path), "--lags", "1", "--time", "day"]
    assert main([*arguments, "-o", str(out)]) == ExitCode.DONE
    assert "a@1 → b" in capsys.readouterr().out
    expected = ist.learn(ist.Series(table, lags=1, time="day"))
    assert ist.Solution.load(out).cpdag == expected.cpdag
    assert main([*arguments, "--search", "Dynotears"]) == ExitCode.DONE
    assert "a@1 → b" in capsys.readouterr().out
    assert main([*arguments, "--explain"]) == ExitCode.DONE
    assert "b@1" in capsys.readouterr().out
    assert main(["learn", str(path), "--by", "a"]) == ExitCode.ARGUMENT
    assert "--by needs --lags" in capsys.readouterr().err
