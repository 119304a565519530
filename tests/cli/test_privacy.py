"""Differential privacy on the command line: drafts, policies, signatures, and what was spent."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from isthmus.cli import ExitCode, main
from isthmus_joint import DifferentialPrivacy, FileLedger, Identity, Policy, Study
from isthmus_joint.records.ledger_writer import LedgerWriter, NoisyAnswer, Sent
from isthmus_joint.secure_sum.protocol import SENT

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


def run(*arguments: object) -> int:
    return main([str(a) for a in arguments])


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """Three sites and a coordinator with their keys."""
    (tmp_path / "variables.toml").write_text(VARIABLES)
    for name in ("north", "east", "south"):
        assert run("site", "new", tmp_path / name, "--name", name, "--organisation", name) == 0
    assert run("coordinator", "new", tmp_path / "lead", "--host", "example.org") == 0
    return tmp_path


def draft(world: Path, *more: object, study: str = "study") -> int:
    command = ["coordinator", "draft", world / "lead", world / study, "--title", "T"]
    command += ["--purpose", "P", "--variables", world / "variables.toml"]
    command += ["--author", world / "north" / "identity.pem"]
    for name in ("north", "east", "south"):
        command += ["--card", world / name / "card.toml"]
    return run(*command, *more)


def spend(world: Path, name: str, study: str = "study") -> None:
    """Write an answer with noise into the ledger of a site, as if it had been sent."""
    text, home = Study.read(world / study / "study.toml"), world / name
    ledger = FileLedger(home / "ledger.jsonl")
    ledger.bind(Identity.load(home / "identity.pem"))
    writer = LedgerWriter(text, Policy.read(home / "policy.toml"), ledger)
    assert text.privacy is not None
    noise = NoisyAnswer("question", text.privacy.rho, writer.keep(b"answer"))
    writer.record(SENT, 1, sent=Sent(6, 100, "secure sum with noise", "data", noise=noise))


def test_a_draft_has_the_budget_of_its_options(world: Path) -> None:
    assert draft(world, "--epsilon", 2, "--delta", 1e-5, "--rows-per-person", 3) == ExitCode.DONE
    study = Study.read(world / "study" / "study.toml")
    assert study.privacy == DifferentialPrivacy(2.0, 1e-5, rows_per_person=3, honest=2)
    assert draft(world, "--epsilon", 2, study="other") == ExitCode.DONE
    other = Study.read(world / "other" / "study.toml").privacy
    assert other == DifferentialPrivacy(2.0, 1e-6, honest=2)


@pytest.mark.long
def test_noise_is_the_default_and_exact_sums_are_a_choice(
    world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert draft(world, "--expected-rows", 9000) == ExitCode.DONE
    study = Study.read(world / "study" / "study.toml")
    assert study.privacy == DifferentialPrivacy(1.0, 1e-6, honest=2, expected_rows=9000)
    said = capsys.readouterr().out
    assert "privacy    differential privacy with ε = 1, δ = 1e-06 per person" in said
    worth = re.search(r"9,000 rows with noise will be worth about ([\d,]+) without", said)
    assert worth
    assert 5_000 < int(worth[1].replace(",", "")) < 9_000
    assert draft(world, "--exact", study="exact") == ExitCode.DONE
    assert "privacy    none: the sums are exact" in capsys.readouterr().out
    assert Study.read(world / "exact" / "study.toml").privacy is None
    assert run("site", "policy", world / "north", world / "exact", "--exact") == ExitCode.DONE
    assert run("study", "sign", world / "north", world / "exact") == ExitCode.DONE
    assert "privacy    none: the sums are exact" in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--epsilon", "0"], "epsilon is 0; it must be between 1e-06 and 1000"),
        (["--epsilon", "-1"], "epsilon is -1; it must be between"),
        (["--epsilon", "inf"], "epsilon is inf; it must be between"),
        (["--epsilon", "nan"], "epsilon is nan; it must be between"),
        (["--epsilon", "1e-9"], "epsilon is 1e-09; it must be between"),
        (["--epsilon", "1e9"], "epsilon is 1e+09; it must be between"),
        (["--epsilon", "1", "--delta", "1"], "delta is 1; it must be positive, at most 0.001"),
        (["--epsilon", "1", "--rows-per-person", "0"], "rows_per_person is 0; it must be at least"),
        (["--epsilon", "1", "--rows-per-person", "9" * 400], "it must be at least 1, at most"),
        (["--epsilon", "1e-4", "--rows-per-person", "999999"], "do not fit into integers of 64"),
        (["--exact", "--epsilon", "1"], "--epsilon has no effect with --exact"),
        (["--exact", "--rows-per-person", "2"], "--rows-per-person has no effect with --exact"),
        (["--expected-rows", "-2"], "expected_rows is -2; it must not be negative"),
        (["--method", "admm"], "There is no noise for ADMM. Pass --exact"),
        (["--missing", "ExpectationMaximisation"], "There is no noise for --missing"),
        (["--exact", "--method", "admm", "--search", "LiNGAM"], "is for secure sums of complete"),
        (["--exact", "--score", "BIC", "--search", "LiNGAM"], "needs tests of independent noise"),
        (["--search", "LiNGAM"], "There is no noise for the basis functions Products(radius=30.0)"),
        (["--lags", "1"], "State how many with --rows-per-person, or pass --exact"),
    ],
)
def test_impossible_budgets_are_not_drafted(
    world: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    capsys.readouterr()
    assert draft(world, *options) != ExitCode.DONE
    assert message in capsys.readouterr().err
    assert not (world / "study" / "study.toml").exists()


@pytest.mark.long
def test_a_drafted_policy_allows_this_study_and_no_second_one(
    world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = world / "north"
    assert draft(world, "--epsilon", 1) == ExitCode.DONE
    assert run("site", "policy", home, world / "study") == ExitCode.DONE
    policy = Policy.read(home / "policy.toml")
    assert (policy.maximum_epsilon, policy.epsilon_per_study, policy.maximum_delta) == (1, 1, 1e-6)
    assert run("study", "sign", home, world / "study") == ExitCode.DONE
    spend(world, "north")
    assert run("study", "sign", home, world / "study") == ExitCode.DONE  # paid for already
    assert draft(world, "--epsilon", 0.5, study="second") == ExitCode.DONE
    capsys.readouterr()
    for command in (["study", "check"], ["study", "sign"], ["site", "policy"]):
        assert run(*command, home, world / "second") == ExitCode.REFUSED
        said = capsys.readouterr().err
        assert "the ε = 1 that earlier studies have used are ε = 1.14 together" in said
        assert "ε = 1 at δ = 1e-06 is allowed over all studies" in said
    assert not (world / "second" / "north.signature").exists()


@pytest.mark.long
def test_a_policy_that_states_no_budget_is_not_signed_over(
    world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = world / "north"
    assert draft(world, "--exact", study="exact") == ExitCode.DONE
    assert run("site", "policy", home, world / "exact", "--exact") == ExitCode.DONE
    assert "maximum_epsilon" not in (home / "policy.toml").read_text()
    assert draft(world, "--epsilon", 1) == ExitCode.DONE
    capsys.readouterr()
    assert run("study", "sign", home, world / "study") == ExitCode.REFUSED
    assert "its budget of ε = 1 at δ = 1e-06 is more than ε = 0" in capsys.readouterr().err


@pytest.mark.long
def test_a_dry_run_says_that_the_noise_is_not_installed(
    world: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, study = world / "north", world / "study"
    assert draft(world) == ExitCode.DONE
    assert run("site", "policy", home, study) == ExitCode.DONE
    rows = [f"{40 + i % 41},{100 + i % 67}" for i in range(300)]
    (world / "north.csv").write_text("\n".join(["age,pressure", *rows]) + "\n")
    assert run("site", "freeze", home, study, "--data", world / "north.csv") == ExitCode.DONE
    capsys.readouterr()
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    assert run("site", "dry-run", home, study) == ExitCode.REFUSED
    said = capsys.readouterr().out
    assert "pip install 'isthmus[privacy]'" in said
    assert "age: how many rows have a value in each interval of its range" in said


@pytest.mark.long
def test_the_ledger_tells_what_was_spent(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = world / "north"
    assert draft(world, "--epsilon", 1) == ExitCode.DONE
    assert run("site", "policy", home, world / "study") == ExitCode.DONE
    rules = (home / "policy.toml").read_text().replace("maximum_epsilon = 1.0", "maximum_epsilon=3")
    (home / "policy.toml").write_text(rules)
    spend(world, "north")
    capsys.readouterr()
    assert run("ledger", "show", home) == ExitCode.DONE
    first = Study.read(world / "study" / "study.toml").identity.hex()[:16]
    assert (
        f"Differential privacy, per person and at δ = 1e-06: ε = 1 in the study {first}…. The "
        "policy allows ε = 3 in total, over the life of this ledger."
    ) in capsys.readouterr().out
    assert draft(world, "--epsilon", 0.5, study="second") == ExitCode.DONE
    spend(world, "north", "second")
    capsys.readouterr()
    assert run("ledger", "show", home) == ExitCode.DONE
    said = capsys.readouterr().out
    assert "ε = 0.5 in the study" in said
    assert "ε = 1.14 in all 2 studies together" in said


@pytest.mark.parametrize("exact", [False, True])
def test_an_impact_assessment_says_what_the_study_says(
    world: Path, capsys: pytest.CaptureFixture[str], *, exact: bool
) -> None:
    assert draft(world, *(["--exact"] if exact else ["--epsilon", 2])) == ExitCode.DONE
    study = Study.read(world / "study" / "study.toml")
    assert run("study", "assess", world / "study", "-o", world / "dpia.md") == ExitCode.DONE
    text = (world / "dpia.md").read_text("utf-8")
    assert study.identity.hex() in text
    assert "| age | 0 to 120 |" in text
    assert "| pressure | 0 to 300 |" in text
    assert all(f"| {m.name} | {m.organisation} |" in text for m in study.members)
    assert all(f"- `{name}`" in text for name in study.requests)
    assert f"{study.expires:%Y-%m-%d}" in text
    assert ("ε = 2, δ = 1e-06" in text) is not exact
    assert ("no person from an analyst" in text) is exact
    left = text.count("**To be completed:**")
    assert f"{left} entries are left" in capsys.readouterr().out
