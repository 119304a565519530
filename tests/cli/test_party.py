"""The commands of two parties that need no other party, and no engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from isthmus.cli import ExitCode, main
from isthmus_joint import Study
from isthmus_joint.agreement.cards import Card, Folder
from isthmus_joint.shares.protocol import two_parties

CARDS = {"bank": "income", "shop": "visits"}
TABLE = "person,income\n" + "".join(f"{i:04},{'low' if i % 3 else 'high'}\n" for i in range(60))


def run(*arguments: object) -> int:
    return main([str(a) for a in arguments])


@pytest.fixture
def drafted(tmp_path: Path) -> Callable[..., Path]:
    """Makes a study of two parties and gives the folder that holds all."""

    def make(*more: object, kind: str = 'kind = "discrete"\nlevels = ["low", "high"]') -> Path:
        parties: list[object] = []
        for i, (name, variable) in enumerate(CARDS.items()):
            new = ("party", "new", tmp_path / name, "--name", name, "--organisation", name)
            assert run(*new, "--address", f"127.0.0.1:{9300 + 10 * i}") == 0
            variables = tmp_path / f"{name}.toml"
            variables.write_text(f'[[variables]]\nname = "{variable}"\n{kind}\n')
            parties += ["--party", tmp_path / name / "card.toml", variables]
        arguments = ["party", "draft", tmp_path / "bank", tmp_path / "study", "--title", "T"]
        given = ["--purpose", "p", *parties, "--identifier", "person", "--people", 100, 100]
        code = run(*arguments, *given, *more)
        (tmp_path / "code").write_text(str(code))
        (tmp_path / "table.csv").write_text(TABLE)
        return tmp_path

    return make


def code(folder: Path) -> int:
    return int((folder / "code").read_text())


@pytest.mark.long
def test_from_keys_to_signatures(
    drafted: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = drafted("--order", "visits", "income", "--score", "BDeu", "--ess", 5, "--runs", 2)
    assert code(folder) == 0
    study = Study.read(folder / "study" / "study.toml")
    terms = two_parties(study.protocol)
    assert (terms.order, terms.score, terms.ess) == (("visits", "income"), "BDeu", 5.0)
    assert study.rounds == 2
    assert Card.read(folder / "bank" / "card.toml").address == "127.0.0.1:9300"
    assert (folder / "bank" / "connection.pem").stat().st_mode & 0o077 == 0
    for name in CARDS:
        assert run("party", "policy", folder / name, folder / "study") == 0
        assert run("party", "policy", folder / name, folder / "study") == 0
        capsys.readouterr()
        assert run("study", "sign", folder / name, folder / "study") == 0
        signed = capsys.readouterr().out
        assert "can choose what the bits that are opened tell it" in signed
        assert "who is the party bank" in signed
    study.require(Folder(folder / "study").signatures(), ["author", "bank", "shop"])
    capsys.readouterr()
    assert run("party", "status", folder / "bank", folder / "study") == 0
    assert "never been run" in capsys.readouterr().out
    dry = ("party", "dry-run", folder / "bank", folder / "study", "--data", folder / "table.csv")
    assert run(*dry) == 0
    shown = capsys.readouterr().out
    assert "bank has 60 people, and the columns income." in shown
    assert "Both parties learn: network of 2 variables by private K2" in shown
    assert "An estimate for private k2 of 60 rows" in shown


@pytest.mark.long
@pytest.mark.parametrize(
    ("old", "new", "expected", "message"),
    [
        ("0007,", "0006,", ExitCode.DATA, "more than once, for instance in rows 7, 8"),
        ("0007,", ",", ExitCode.MISSING_VALUES, "row 8"),
        ("0007,", "0007\N{ZERO WIDTH SPACE},", ExitCode.DATA, "row 8"),
        ("person,", "customer,", ExitCode.SCHEMA, "lacks the identifier 'person'"),
        ("0007,low", "0007,medium", ExitCode.SCHEMA, "medium"),
        ("person,income", "person,visits", ExitCode.SCHEMA, "the HOME of this party"),
    ],
)
def test_wrong_tables_end_in_a_sentence(
    drafted: Callable[..., Path],
    capsys: pytest.CaptureFixture[str],
    old: str,
    new: str,
    expected: ExitCode,
    message: str,
) -> None:
    folder = drafted()
    run("party", "policy", folder / "bank", folder / "study")
    assert old in TABLE
    (folder / "table.csv").write_text(TABLE.replace(old, new))
    dry = ("party", "dry-run", folder / "bank", folder / "study", "--data", folder / "table.csv")
    assert run(*dry) == expected
    shown = capsys.readouterr().err
    assert message in shown
    assert "0007" not in shown


@pytest.mark.long
def test_integers_with_leading_zeros(
    drafted: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = drafted("--identifier-kind", "integer")
    run("party", "policy", folder / "bank", folder / "study")
    (folder / "table.csv").write_text(TABLE.replace("0007,", "A007,"))
    dry = ("party", "dry-run", folder / "bank", folder / "study", "--data", folder / "table.csv")
    assert run(*dry) == ExitCode.DATA
    assert "identifiers are integers" in capsys.readouterr().err


def test_drafts_that_cannot_work(
    drafted: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert code(drafted("--request", "cross moments")) == ExitCode.MISMATCH
    assert "cross moments needs variables that are all continuous" in capsys.readouterr().err


@pytest.mark.long
def test_a_draft_with_fewer_people_than_a_run_needs(
    drafted: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert code(drafted("--minimum-cohort", 101)) == ExitCode.STUDY
    assert "'bank' may bring 100 people; it needs at least" in capsys.readouterr().err


def test_a_draft_with_one_party(
    drafted: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    bank = drafted() / "bank"
    draft = ("party", "draft", bank, bank / "study", "--title", "T", "--purpose", "p")
    party = ("--party", bank / "card.toml", bank.parent / "bank.toml")
    people = ("--identifier", "person", "--people", 100, 100)
    assert run(*draft, *party, *people) == ExitCode.ARGUMENT
    assert "--party was given 1 time. Give it twice" in capsys.readouterr().err


@pytest.mark.long
def test_a_card_with_another_certificate(
    drafted: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = drafted()
    run("party", "policy", folder / "bank", folder / "study")
    other = Card.read(folder / "shop" / "card.toml").certificate
    path = folder / "study" / "cards" / "000.toml"
    card = Card.read(path)
    Card(card.member, certificate=other, address=card.address).write(path)
    dry = ("party", "dry-run", folder / "bank", folder / "study", "--data", folder / "table.csv")
    assert run(*dry) == ExitCode.STUDY
    assert "certificate on the card of 'bank'" in capsys.readouterr().err


@pytest.mark.long
def test_a_dry_run_says_what_a_run_would_refuse(
    drafted: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = drafted("--tables", "--minimum-cell", 2)
    bank = folder / "bank"
    run("party", "policy", bank, folder / "study")
    policy = (bank / "policy.toml").read_text()
    (bank / "policy.toml").write_text(policy.replace("minimum_cell = 2", "minimum_cell = 5"))
    (bank / "STOP").touch()
    rows = "".join(f"{i},low\n" for i in range(1000, 1101))
    (folder / "table.csv").write_text("person,income\n" + rows)
    capsys.readouterr()
    dry = ("party", "dry-run", bank, folder / "study", "--data", folder / "table.csv")
    assert run(*dry) == 0
    shown = capsys.readouterr().out
    assert "It would refuse: bank comes with 101 people; the study allows 50 to 100." in shown
    assert "tables with cells of 2 people; the policy needs at least 5" in shown
    assert f"{bank / 'STOP'} exists" in shown
    assert not (bank / "ledger.jsonl").exists()


@pytest.mark.long
def test_nobody_answers(drafted: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    folder = drafted()
    for name in CARDS:
        run("party", "policy", folder / name, folder / "study")
        run("study", "sign", folder / name, folder / "study")
    start = ("party", "run", folder / "bank", folder / "study", "--data", folder / "table.csv")
    assert run(*start, "--gather", "0.5") == ExitCode.PAUSED
    assert "reachable at the ports 9300 and 9301" in capsys.readouterr().err
    assert run("party", "status", folder / "bank", folder / "study") == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["state"], status["reason"]) == ("paused", "silent")
    assert run(*start, "--gather", "0.5", "--listen", "192.0.2.1:9300") == ExitCode.FEDERATION
    assert "cannot listen at 192.0.2.1:9301" in capsys.readouterr().err
    (folder / "study" / "shop.signature").unlink()
    assert run(*start, "--gather", "0.5") == ExitCode.STUDY
    assert "no valid signature of ['shop']" in capsys.readouterr().err
    assert run(*start, "--listen", "nowhere") == ExitCode.USAGE
