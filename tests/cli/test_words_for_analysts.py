"""What an analyst saw on the command line: notes twice, unusable searches, tiers as discoveries."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import isthmus as ist
from isthmus.cli.app import main
from isthmus.cli.parsing import ExitCode
from isthmus.options import described
from isthmus.scores.gaussian import PriorMean


@pytest.fixture
def table(tmp_path: Path) -> str:
    rng = np.random.default_rng(0)
    a = rng.normal(size=200)
    g = np.where(a + rng.normal(size=200) > 0, "u", "v")
    b = a + (g == "u") + rng.normal(size=200)
    lines = [f"{x},{y},{z},p{i}" for i, (x, y, z) in enumerate(zip(a, g, b, strict=True))]
    (tmp_path / "t.csv").write_text("\n".join(["a,g,b,patient", *lines]))
    return str(tmp_path / "t.csv")


@pytest.mark.long
@pytest.mark.parametrize("command", ["learn", "bootstrap", "sample"])
def test_each_note_is_printed_once(
    command: str, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    few = {"learn": [], "bootstrap": ["--replicates", "5"], "sample": ["--draws", "10"]}[command]
    assert main([command, table, *few]) == 0
    told = capsys.readouterr()
    lines = (told.out + told.err).replace("note: ", "").splitlines()
    notes = [line for line in lines if "patient" in line]
    assert notes
    assert len(notes) == len(set(notes))


def test_searches_of_series_need_lags(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["learn", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "LaggedLeastSquares" not in text
    assert "KnownOrder(order=...)" in text.replace("- ", "-")
    assert main(["learn", table, "--search", "Dynotears"]) == ExitCode.ARGUMENT
    assert "is for time series: add --lags NUMBER" in capsys.readouterr().err
    assert main(["bootstrap", table, "--search", "Dynotears"]) == ExitCode.USAGE
    assert "is for time series: isthmus learn" in capsys.readouterr().err
    assert main(["learn", table, "--search", "KnownOrder"]) == 2
    assert "needs the option 'order': KnownOrder(order=...)" in capsys.readouterr().err
    order = "KnownOrder(order=['g','a','b'])"
    assert main(["learn", table, "--search", order]) == 0


def test_tiers_are_not_called_a_discovery(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["learn", table, "--tier", "g", "--tier", "a", "--tier", "b"]) == 0
    assert "Background knowledge decides" in capsys.readouterr().out


def test_the_bootstrap_speaks_of_shares(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "stability.csv"
    assert main(["bootstrap", table, "--replicates", "10", "-o", str(out)]) == 0
    text = capsys.readouterr().out
    assert "Share of the replicates with each edge" in text
    assert "probability" not in text
    with out.open() as file:
        assert next(csv.reader(file)) == ["from", "to", "share"]


def test_a_mixed_solution_says_how_to_query_it(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved, network = str(tmp_path / "s.isthmus"), str(tmp_path / "n.json")
    assert main(["learn", table, "-o", saved]) == 0
    assert main(["query", saved, "--target", "b", "--given", "g=u"]) == 0
    ist.Solution.load(saved).save(saved)  # from Python, by default without parameters
    assert main(["query", saved, "--target", "b"]) != 0
    assert f"isthmus fit {saved} DATA -o network.json" in capsys.readouterr().err
    assert main(["fit", saved, table, "-o", network]) == 0
    assert main(["query", network, "--target", "b", "--given", "g=u"]) == 0
    assert main(["learn", table, "-o", saved, "--score", "GP", "--drop", "g"]) == 0
    assert "has no parameters" in capsys.readouterr().out


def test_strategies_are_described_without_defaults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{x},{x + y}" for x, y in np.exp(3 * rng.normal(size=(200, 2)))]
    (tmp_path / "t.csv").write_text("\n".join(["x,y", *rows]))
    assert main(["sample", str(tmp_path / "t.csv"), "--draws", "10"]) == 0
    told = capsys.readouterr()
    assert "Score BGe (all columns are continuous); sampler ExactPosterior (2 var" in told.out
    assert "Probability of each edge, in this direction:\n" in told.out
    assert "--transform 'NormalScores()'" in told.out + told.err
    for word in ("None", "<", "transform=", "learn("):
        assert word not in told.out + told.err
    assert main(["learn", str(tmp_path / "t.csv"), "--score", "bic"]) == 14
    assert "takes discrete columns; 'x', 'y' are not. Use GaussianBIC()" in capsys.readouterr().err
    assert described(ist.BDeu(ess=10)) == "BDeu(ess=10)"
    assert described(ist.BGe(prior_mean=PriorMean.ZERO)) == "BGe(prior_mean='zero')"
    nested = ist.BossFCI(dag_search=ist.Boss(max_parents=3))
    assert described(nested) == "BossFCI(dag_search=Boss(max_parents=3))"


@pytest.mark.parametrize("command", ["learn", "bootstrap", "sample"])
def test_the_help_does_not_speak_of_python(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert "Python" not in capsys.readouterr().out
