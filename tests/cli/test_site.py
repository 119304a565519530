"""The commands of a site and a coordinator that need no other party."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import nan
from pathlib import Path

import pytest

import isthmus_joint
from isthmus.cli import ExitCode, main
from isthmus.cli.inputs import search_from
from isthmus.errors import MissingExtraError
from isthmus.neural import perceptron
from isthmus.watch import Progress
from isthmus_joint import ADMM, ADMMModel, FileLedger, Identity, PrivateK2, Stiffness, Study
from isthmus_joint.agreement.cards import Card, Folder
from isthmus_joint.commands.described import NOT_PROMISED
from isthmus_joint.commands.run_display import RunDisplay, RunState
from isthmus_joint.transport.base import SiteState

VARIABLES = """
[[variables]]
name = "age"
kind = "continuous"
low = 0.0
high = 120.0

[[variables]]
name = "pressure"
kind = "continuous"
low = 0.0
high = 300.0
"""
LEVELS = """
[[variables]]
name = "ward"
kind = "discrete"
levels = ["a", "b"]

[[variables]]
name = "fever"
kind = "discrete"
levels = ["no", "yes"]
"""


def run(*arguments: object) -> int:
    return main([str(a) for a in arguments])


@pytest.fixture
def drafted(tmp_path: Path) -> Callable[..., Path]:
    """Makes a study of three sites and gives the folder that holds all."""

    def make(variables: str = VARIABLES, *more: object) -> Path:
        (tmp_path / "variables.toml").write_text(variables)
        cards: list[object] = []
        for name in ("north", "east", "south"):
            assert run("site", "new", tmp_path / name, "--name", name, "--organisation", name) == 0
            cards += ["--card", tmp_path / name / "card.toml"]
        assert run("coordinator", "new", tmp_path / "lead", "--host", "example.org") == 0
        draft = ["coordinator", "draft", tmp_path / "lead", tmp_path / "study"]
        draft += ["--author", tmp_path / "north" / "identity.pem"]
        texts = ["--title", "T", "--purpose", "P", "--variables", tmp_path / "variables.toml"]
        assert run(*draft, *texts, *cards, "--exact", *more) == 0
        return tmp_path

    return make


def table(path: Path, rows: int = 60, worst: str = "70") -> Path:
    lines = [f"{20 + i},{worst if i == 0 else 100 + i * i % 61}" for i in range(rows)]
    path.write_text("\n".join(["age,pressure", *lines]) + "\n")
    return path


@pytest.mark.long
def test_private_keys_are_private(drafted: Callable[..., Path]) -> None:
    folder = drafted()
    keys = [*folder.glob("*/*.pem")]
    assert len(keys) == 3 * 2 + 2
    assert {path.stat().st_mode & 0o777 for path in keys} == {0o600}
    assert run("site", "new", folder / "north", "--name", "x", "--organisation", "y") == 10
    assert run("site", "new", folder / "x", "--name", "../x", "--organisation", "y") == 16


@pytest.mark.long
def test_a_draft_is_signed_and_complete(drafted: Callable[..., Path]) -> None:
    folder = drafted()
    shared = Folder(folder / "study")
    study = shared.study()
    study.require(shared.signatures(), ["author"])
    assert shared.address() == "example.org:9092"
    assert list(shared.cards()) == ["north", "east", "south"]
    assert study.requests == {"moments"}
    other = Card.read(folder / "north" / "card.toml")
    Card(other.member, other.certificate).write(folder / "study" / "cards" / "001.toml")
    with pytest.raises(Exception, match="are not those of the study"):
        shared.cards()


@pytest.mark.long
def test_drafts_for_categories_and_for_admm(drafted: Callable[..., Path]) -> None:
    study = Study.read(drafted(LEVELS, "--parents", 1) / "study" / "study.toml")
    assert study.requests == {"moments", "counts"}
    assert study.within_sites
    assert study.plan is not None
    assert study.plan.limit == 2


@pytest.mark.long
def test_a_draft_of_pooled_sums(drafted: Callable[..., Path]) -> None:
    study = Study.read(drafted(LEVELS, "--pooled") / "study" / "study.toml")
    assert study.requests == {"counts"}
    assert not study.within_sites


@pytest.mark.long
def test_a_draft_for_admm(drafted: Callable[..., Path]) -> None:
    study = Study.read(drafted(VARIABLES, "--method", "admm") / "study" / "study.toml")
    assert study.rounds == 300
    assert study.requests == {"consensus"}


@pytest.mark.long
def test_drafts_name_the_model_of_admm(drafted: Callable[..., Path]) -> None:
    folder = drafted(VARIABLES, "--method", "admm", "--networks")
    study = Folder(folder / "study").study()
    assert study.requests == {"networks"}
    assert ADMM().allowed(study)[0] is ADMMModel.PERCEPTRON
    again = ["coordinator", "draft", folder / "lead"]
    texts = [
        "--author",
        folder / "north" / "identity.pem",
        "--title",
        "T",
        "--purpose",
        "P",
        "--variables",
        folder / "variables.toml",
    ]
    for name in ("north", "east", "south"):
        texts += ["--card", folder / name / "card.toml"]
    texts += ["--exact"]
    series = ["--method", "admm", "--lags", 2]
    assert run(*again, folder / "series", *texts, *series) == 0
    study = Folder(folder / "series").study()
    assert study.schema.names == tuple(
        f"{name}{lag}" for lag in ("", "@1", "@2") for name in ("age", "pressure")
    )
    assert study.bounds["pressure@2"] == (0.0, 300.0)
    assert ADMM().allowed(study)[0] is ADMMModel.DYNAMIC
    wrong = folder / "wrong"
    assert run(*again, wrong, *texts, *series, "--networks") == ExitCode.STUDY
    assert run(*again, wrong, *texts, "--networks") == ExitCode.FORMAT
    assert run(*again, wrong, *texts, "--method", "admm", "--rounds", 10) == ExitCode.STUDY
    assert run(*again, wrong, *texts, "--lags", -1) == ExitCode.SCHEMA
    (folder / "variables.toml").write_text(LEVELS)
    assert run(*again, wrong, *texts, "--method", "admm") == ExitCode.SCHEMA
    assert not wrong.exists()


@pytest.mark.long
def test_a_dry_run_shows_a_step_of_admm(
    drafted: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = drafted(VARIABLES, "--method", "admm", "--rounds", 50)
    home, study = folder / "east", folder / "study"
    data = table(folder / "east.csv")
    assert run("site", "policy", home, study, "--exact") == 0
    assert run("study", "sign", home, study) == 0
    assert "reveal the statistics of single sites" in capsys.readouterr().out  # before one signs
    assert run("site", "freeze", home, study, "--data", data) == 0
    assert run("site", "dry-run", home, study) == 0
    said = capsys.readouterr().out
    assert "The site would send 2 numbers" in said
    assert "number of sites and rows" in said
    assert "The site would send 4 numbers" in said
    assert "sums of age" not in said
    assert "products" not in said  # they do not leave
    assert "Up to 40 such steps" in said
    few = table(folder / "few.csv", rows=10)
    assert run("site", "freeze", home, study, "--data", few) == ExitCode.REFUSED
    assert run("site", "freeze", home, study, "--data", data, "--time", "age") == ExitCode.SCHEMA


@pytest.mark.long
def test_a_dry_run_says_what_is_not_installed(
    drafted: Callable[..., Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(*_: object) -> None:
        raise MissingExtraError("jax", "neural", "A neural network")

    folder = drafted(VARIABLES, "--method", "admm", "--networks")
    home, study = folder / "east", folder / "study"
    assert run("site", "policy", home, study, "--exact") == 0
    policy = home / "policy.toml"
    assert run("study", "sign", home, study) == ExitCode.REFUSED  # rows are persons
    assert "neural networks can single out rows" in capsys.readouterr().err
    policy.write_text(policy.read_text().replace('persons = "rows"', 'persons = "none"'))
    assert run("study", "sign", home, study) == 0
    monkeypatch.setattr(perceptron, "value_and_gradient", missing)
    data = table(folder / "east.csv")
    assert run("site", "freeze", home, study, "--data", data) == 0
    assert run("site", "dry-run", home, study) == ExitCode.REFUSED
    assert "isthmus[neural]" in capsys.readouterr().out


@pytest.mark.long
def test_a_dry_run_of_a_series(
    drafted: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = drafted(VARIABLES, "--method", "admm", "--lags", 1)
    home, study = folder / "east", folder / "study"
    assert run("site", "policy", home, study, "--exact") == 0
    lines = [f"{100 + i * i % 61},{i},x,{20 + i * 7 % 59}" for i in reversed(range(60))]
    data = folder / "east.csv"
    data.write_text("\n".join(["pressure,hour,unused,age", *lines]) + "\n")
    capsys.readouterr()
    series = ["site", "freeze", home, study, "--data", data, "--time", "hour"]
    assert run(*series) == ExitCode.REFUSED  # it is one person
    assert "fewer than 50 persons" in capsys.readouterr().err
    policy = home / "policy.toml"
    text = policy.read_text().replace('persons = "rows"', 'persons = "none"')
    policy.write_text(text.replace("largest_share = 0.5", "largest_share = 1.0"))
    assert run(*series) == 0
    assert "59 rows" in capsys.readouterr().out
    assert run("site", "dry-run", home, study) == 0
    said = capsys.readouterr().out
    assert "rows: 59" in said
    assert "The site would send 8 numbers" in said
    assert run("site", "freeze", home, study, "--data", data, "--by", "ward") == ExitCode.SCHEMA
    data.write_text(data.read_text().replace(",59,x", "0,59,x"))  # beyond the bounds
    assert run(*series) == 0
    assert "clipped    1 row" in capsys.readouterr().out


@pytest.mark.long
def test_options_that_mean_nothing_are_refused(drafted: Callable[..., Path]) -> None:
    """Before anybody waits for sites."""
    folder = drafted(VARIABLES, "--method", "admm")
    for name in ("north", "east", "south"):
        assert run("site", "policy", folder / name, folder / "study", "--exact") == 0
        assert run("study", "sign", folder / name, folder / "study") == 0
    command = ["coordinator", "run", folder / "lead", folder / "study"]
    assert run(*command, "--score", "GaussianBIC") == ExitCode.MISMATCH
    assert run(*command, "--search", "ADMM(model='perceptron')") == ExitCode.MISMATCH
    assert run(*command, "--search", "ADMM(rounds=300)") == ExitCode.STUDY
    assert run(*command, "--search", "ADMM(centring='local')") == ExitCode.USAGE
    assert run(*command, "--required", "age", "pressure") == ExitCode.MISMATCH
    found = search_from("ADMM(rounds=7, stiffness='together')", [isthmus_joint])
    assert found == ADMM(rounds=7, stiffness=Stiffness.TOGETHER)
    assert search_from("privatek2", [isthmus_joint]) == PrivateK2()


@pytest.mark.long
def test_from_policy_to_dry_run(
    drafted: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = drafted()
    home, study = folder / "east", folder / "study"
    data = table(folder / "east.csv")
    assert run("site", "freeze", home, study, "--data", data) == ExitCode.FILE  # no policy
    assert run("site", "policy", home, study, "--exact") == 0
    assert run("site", "policy", home, study, "--exact") == 0
    assert "allows the study" in capsys.readouterr().out
    assert run("site", "dry-run", home, study) == ExitCode.REFUSED  # nothing is frozen
    assert "isthmus site freeze" in capsys.readouterr().err
    assert run("site", "freeze", home, study, "--data", data) == 0
    assert run("site", "dry-run", home, study) == 0
    assert "The site would send 7 numbers" in capsys.readouterr().out
    assert not (study / "east.signature").exists()  # one looks before one signs
    assert not (home / "ledger.jsonl").exists()
    assert run("study", "sign", home, study) == 0
    Folder(study).study().require(Folder(study).signatures(), ["author", "east"])
    few = table(folder / "few.csv", rows=10)
    again = ["site", "freeze", home, study, "--data"]
    assert run(*again, few) == ExitCode.REFUSED
    assert "fewer than 50 persons" in capsys.readouterr().err
    wild = table(folder / "wild.csv", worst="-12345")
    assert run(*again, wild) == 0
    said = capsys.readouterr().out
    assert "clipped    1 row" in said
    assert "12345" not in said
    assert "wider bounds" not in said
    old = table(folder / "old.csv", rows=200)  # ages up to 219
    assert run(*again, old) == 0
    assert "wider bounds" in capsys.readouterr().out


@pytest.mark.long
def test_signing_shows_everything_that_is_signed(
    drafted: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = drafted()
    assert run("site", "policy", folder / "east", folder / "study", "--exact") == 0
    capsys.readouterr()
    assert run("study", "sign", folder / "east", folder / "study") == 0
    said = capsys.readouterr().out
    study = Folder(folder / "study").study()
    for variable in study.schema.variables:
        assert repr(variable.name) in said
        assert all(repr(level) in said for level in variable.levels)
    for low, high in study.bounds.values():
        assert f"bounds     {low!r} to {high!r}" in said
    assert study.code[0] in said
    assert " ".join(NOT_PROMISED.split()) in " ".join(said.split())


@pytest.mark.long
def test_the_last_page_says_that_enter_signs(
    drafted: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = drafted()
    signature, prompts = folder / "study" / "east.signature", list[str]()
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)

    def close(prompt: str) -> str:
        raise EOFError

    monkeypatch.setattr("builtins.input", close)
    assert run("study", "sign", folder / "east", folder / "study") == ExitCode.INTERRUPTED
    assert not signature.exists()
    monkeypatch.setattr("builtins.input", prompts.append)
    assert run("study", "sign", folder / "east", folder / "study") == 0
    assert signature.exists()
    assert "Enter to sign the study" in prompts.pop()
    assert prompts
    assert all("Enter to see the next page" in prompt for prompt in prompts)


@pytest.mark.long
def test_a_policy_stands_against_a_study(
    drafted: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = drafted()
    assert run("site", "policy", folder / "east", folder / "study", "--exact") == 0
    path = folder / "east" / "policy.toml"
    path.write_text(path.read_text().replace('"age", ', ""))
    assert run("site", "policy", folder / "east", folder / "study", "--exact") == ExitCode.REFUSED
    assert "age" in capsys.readouterr().err


@pytest.mark.long
def test_who_is_not_in_the_study_does_not_sign(drafted: Callable[..., Path]) -> None:
    folder = drafted()
    assert run("site", "new", folder / "west", "--name", "west", "--organisation", "W") == 0
    assert run("study", "sign", folder / "west", folder / "study") == ExitCode.STUDY
    Folder(folder / "study").study()
    text = (folder / "study" / "study.toml").read_bytes()
    (folder / "study" / "study.toml").write_bytes(text.replace(b"rows = 1", b"rows = 2"))
    assert run("study", "sign", folder / "east", folder / "study") == ExitCode.STUDY


@pytest.mark.long
def test_the_ledger_is_shown_and_checked(
    drafted: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    home = drafted() / "east"
    ledger = FileLedger(home / "ledger.jsonl")
    ledger.bind(Identity.load(home / "identity.pem"))
    for event in ("opened", "sent"):
        ledger.append(event, what="something")
    first = ledger.entries()[0]["hash"]
    capsys.readouterr()
    assert run("ledger", "show", home, "--head", first) == 0
    said = capsys.readouterr().out
    assert "2 entries" in said
    assert ledger.entries()[-1]["hash"] in said
    assert run("ledger", "show", home, "--head", "0" * 63 + "1") == ExitCode.LEDGER
    path = home / "ledger.jsonl"
    path.write_text(path.read_text().replace("something", "something else"))
    assert run("ledger", "show", home) == ExitCode.LEDGER


@pytest.mark.long
def test_a_coordinator_needs_all_signatures(
    drafted: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = drafted()
    assert run("coordinator", "status", folder / "lead", folder / "study") == 0
    assert "never been run" in capsys.readouterr().out
    Identity.load(folder / "lead" / "identity.pem")
    code = run("coordinator", "run", folder / "lead", folder / "study", "--listen", "127.0.0.1")
    assert code == ExitCode.STUDY
    assert "'north', 'east', 'south'" in capsys.readouterr().err
    assert run("coordinator", "status", folder / "lead", folder / "study") == 0
    assert json.loads(capsys.readouterr().out)["state"] == "failed"


def test_the_board_tells_how_a_run_stands(tmp_path: Path) -> None:
    path = tmp_path / "status.json"

    def state() -> str:
        found: str = json.loads(path.read_text())["state"]
        return found

    with RunDisplay(path, ["a", "b"]) as board:
        board.watch("a", SiteState.ANSWERED)
        assert state() == "gathering"
        board.state(RunState.RUNNING)
        board.watch("a", SiteState.ASKED)
        board.watch("b", SiteState.AWAITED)
        assert state() == "waiting for silent sites"
        board.watch("b", SiteState.ANSWERED)
        assert state() == "running"
        board.end(RunState.PAUSED, "b is gone")
    found = json.loads(path.read_text())
    assert (found["state"], found["why"]) == ("paused", "b is gone")
    assert found["answers"] == {"a": 1, "b": 1}


def test_the_board_tells_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with RunDisplay(tmp_path / "status.json", ["a"]) as board:
        board.state(RunState.RUNNING)
        board.watch("a", SiteState.ANSWERED)
        board.progress(Progress("ADMM", "round 3 of at most 40", nan, 1.0))
        board.progress(Progress("ADMM", "round 4 of at most 40", nan, 1.2))
        board.watch("a", SiteState.ASKED)
        board.watch("a", SiteState.SILENT)
    lines = [line[9:] for line in capsys.readouterr().err.splitlines()]
    assert lines == ["running", "a: answered", "round 3 of at most 40", "a: silent"]
    found = json.loads((tmp_path / "status.json").read_text())
    assert found["progress"] == "round 4 of at most 40"


def test_the_board_tells_a_step_once_and_then_that_it_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with RunDisplay(tmp_path / "status.json", []) as board:
        board.say("comparing identifiers")
        for seconds in (0.0, 5.0, 10.0, 15.0):
            board.progress(Progress("K2", "comparing identifiers", nan, seconds))
    lines = [line[9:] for line in capsys.readouterr().err.splitlines()]
    assert lines == ["comparing identifiers"] * 2


@pytest.mark.long
def test_freezing_names_the_variables_that_rows_are_dropped_because_of(
    drafted: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = drafted(LEVELS)
    home, study, data = folder / "east", folder / "study", folder / "east.csv"
    assert run("site", "policy", home, study, "--exact") == 0
    wards, fevers = ["a", "b", "B"] * 40, ["yes", "yes", "yes", "no"] * 30
    data.write_text(
        "\n".join(["ward,fever", *(f"{w},{f}" for w, f in zip(wards, fevers, strict=True))])
    )
    capsys.readouterr()
    assert run("site", "freeze", home, study, "--data", data) == ExitCode.DONE
    assert "dropped    40 rows that lack a value or have another level: 'ward' (40)" in (
        capsys.readouterr().out
    )
    data.write_text("\n".join(["ward,fever", *(f"{ward},Yes" for ward in wards)]))
    again = ["site", "freeze", home, study, "--data", data]
    assert run(*again) == ExitCode.REFUSED
    assert "120 rows of the table lacked a value" in (said := capsys.readouterr().err)
    assert "'fever' (120), 'ward' (40)" in said


@pytest.mark.long
def test_freezing_asks_for_the_unit_of_a_variable_that_is_mostly_outside(
    drafted: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = drafted()
    home, study, data = folder / "east", folder / "study", folder / "east.csv"
    assert run("site", "policy", home, study, "--exact") == 0
    rows = [f"{20 + i},{1000 * (100 + i) if i < 50 else 299}" for i in range(60)]
    data.write_text("\n".join(["age,pressure", *rows]))
    capsys.readouterr()
    assert run("site", "freeze", home, study, "--data", data) == ExitCode.DONE
    said = capsys.readouterr().out
    assert "clipped    50 rows with a value outside of the bounds: 'pressure' (50)" in said
    assert "Most values of 'pressure' are outside: check the unit" in said
    assert "wider bounds" not in said


@pytest.mark.long
def test_signing_says_that_the_installed_version_is_not_listed(
    drafted: Callable[..., Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = drafted()
    assert run("study", "sign", folder / "east", folder / "study") == ExitCode.DONE
    assert "is not one that the study lists" not in capsys.readouterr().out
    monkeypatch.setattr("isthmus_joint.agreement.study.code_hash", lambda: "sha256:other")
    assert run("study", "sign", folder / "south", folder / "study") == ExitCode.DONE
    assert "is not one that the study lists" in capsys.readouterr().out
