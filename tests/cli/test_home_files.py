"""`files` and `erase`: what a private folder contains, and what may be deleted when."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.test_site import drafted, run, table

from isthmus.cli import ExitCode
from isthmus_joint import FileJournal, FileLedger, Identity, verify
from isthmus_joint.agreement.cards import Folder
from isthmus_joint.records.journal import FolderLock

__all__ = ["drafted"]

OTHER = "0" * 16


def used(home: Path, study: str) -> list[str]:
    """Leave in a folder what a study leaves; return the names of two answers with noise."""
    ledger = FileLedger(home / "ledger.jsonl")
    ledger.bind(Identity.load(home / "identity.pem"))
    ledger.secret()
    answers = [ledger.keep(b"an answer"), ledger.keep(b"of another study")]
    ledger.append("sent", study=study, round=1, answer=answers[0], asked="a", rho=0.1)
    ledger.append("sent", study=OTHER * 4, round=1, answer=answers[1], asked="a", rho=0.1)
    for name in (study[:16], OTHER):
        (home / f"study-{name}").write_bytes(b"state")
        (home / f"result-{name}.json").write_bytes(b"{}")
        (home / f"result-{name}.signature").write_bytes(b"s")
    return answers


@pytest.mark.long
def test_files_are_listed_with_content_and_age(
    drafted: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = drafted()
    home = folder / "north"
    used(home, Folder(folder / "study").study().identity.hex())
    (home / "notes.txt").write_text("mine")
    capsys.readouterr()
    assert run("site", "files", home, "--json") == 0
    said = json.loads(capsys.readouterr().out)
    content = {f["name"]: f["content"] for f in said["files"]}
    assert set(content) == {path.name for path in home.iterdir()}
    assert [name for name, text in content.items() if "not written by" in text] == ["notes.txt"]
    assert said["mode"] == "700"
    home.chmod(0o755)
    assert run("site", "files", home) == 0
    assert "chmod 700" in capsys.readouterr().out
    for whose in ("coordinator", "party"):
        assert run(whose, "files", folder / "lead") == 0


@pytest.mark.long
def test_a_study_is_erased_and_the_rest_stays(
    drafted: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = drafted()
    home, study = folder / "north", Folder(folder / "study").study()
    own, other = used(home, study.identity.hex())
    before = {path.name for path in home.iterdir()}
    assert run("site", "erase", home, "--study", folder / "study") == 0
    assert "The ledger stays" in capsys.readouterr().out
    name = study.identity.hex()[:16]
    gone = {f"study-{name}", f"result-{name}.json", f"result-{name}.signature"}
    assert {path.name for path in home.iterdir()} == (before - gone) | {"lock"}
    kept = {path.name for path in (home / "ledger.jsonl.kept").iterdir()}
    assert kept == {"key", other}
    assert own != other
    assert len(verify(home / "ledger.jsonl")) == 2


@pytest.mark.long
def test_all_studies_are_erased_and_the_ledger_stays(drafted: Callable[..., Path]) -> None:
    folder = drafted()
    home = folder / "north"
    used(home, "1" * 64)
    (home / "identity-0123.pem").write_bytes(b"an earlier key")
    ledger = hashlib.sha256((home / "ledger.jsonl").read_bytes()).digest()
    assert run("site", "erase", home, "--all") == 0
    left = {path.name for path in home.iterdir()}
    assert left == {
        *("identity.pem", "connection.pem", "card.toml", "lock"),
        *("ledger.jsonl", "ledger.jsonl.kept"),
    }
    assert [path.name for path in (home / "ledger.jsonl.kept").iterdir()] == ["key"]
    assert hashlib.sha256((home / "ledger.jsonl").read_bytes()).digest() == ledger


@pytest.mark.long
def test_the_extract_of_a_study_is_erased_with_it(drafted: Callable[..., Path]) -> None:
    folder = drafted()
    home, study = folder / "north", folder / "study"
    assert run("site", "policy", home, study, "--exact") == 0
    assert run("site", "freeze", home, study, "--data", table(folder / "table.csv")) == 0
    assert len([*home.glob("extract-*/rows.npy")]) == 1
    assert run("site", "erase", home, "--study", study) == 0
    assert not [*home.glob("extract-*")]


@pytest.mark.long
def test_nothing_is_erased_while_it_is_used(drafted: Callable[..., Path]) -> None:
    folder = drafted()
    home, lead = folder / "north", folder / "lead"
    used(home, "1" * 64)
    with FolderLock(home, "the service of the site"):
        assert run("site", "erase", home, "--all") == ExitCode.FEDERATION
    state = Folder(folder / "study").study().state_folder(lead)
    state.mkdir()
    journal = FileJournal(state / "journal")
    assert run("coordinator", "erase", lead, "--all") == ExitCode.LEDGER
    assert (state / "journal").exists()
    journal.close()
    assert run("coordinator", "erase", lead, "--study", folder / "study") == 0
    assert not state.exists()
    assert len([*home.glob("study-*")]) == 2
