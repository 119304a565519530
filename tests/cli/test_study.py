"""From nothing to a study that all have signed, by commands alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from isthmus.cli import ExitCode, main
from isthmus.statistics import Kind
from isthmus_joint.agreement.cards import Folder
from isthmus_joint.agreement.study import read_variables

SITES = ("north", "east", "south")


def run(words: str) -> int:
    return main(words.split())


@pytest.mark.long
def test_from_nothing_to_signatures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in SITES:
        assert run(f"site new {name} --name {name} --organisation {name}") == 0
    assert run("study variables -o v.toml --continuous age 0 120 --continuous dose -1 9") == 0
    assert run("coordinator new lead --host lead.example.org") == 0
    cards = " ".join(f"--card {name}/card.toml" for name in SITES)
    draft = "coordinator draft lead study --author north/identity.pem --title T --purpose P"
    assert run(f"{draft} --variables v.toml {cards} --epsilon 2 --rows-per-person 3") == 0
    for name in SITES:
        assert run(f"site policy {name} study") == 0
        assert run(f"study sign {name} study") == 0
    folder = Folder(Path("study"))
    study = folder.study()
    study.require(folder.signatures(), SITES)
    assert study.bounds == {"age": (0.0, 120.0), "dose": (-1.0, 9.0)}
    assert study.privacy is not None
    assert (study.privacy.epsilon, study.privacy.delta) == (2.0, 1e-6)
    assert study.privacy.rows_per_person == 3


def test_variables_keep_their_order_and_the_types_of_levels(tmp_path: Path) -> None:
    file = tmp_path / "v.toml"
    words = "--discrete w a b --continuous age 0 120 --discrete code 0 1 2 --discrete f true False"
    assert run(f"study variables -o {file} {words}") == 0
    schema, bounds = read_variables(file)
    assert schema.names == ("w", "age", "code", "f")
    assert schema["age"].kind is Kind.CONTINUOUS
    assert bounds == {"age": (0.0, 120.0)}
    assert [schema[n].levels for n in ("w", "code", "f")] == [
        ("a", "b"),
        (0, 1, 2),
        (True, False),
    ]


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("", ExitCode.USAGE, "Name variables"),
        ("--continuous age old 3", ExitCode.USAGE, "'old'"),
        ("--continuous age 3 1", ExitCode.STUDY, "ascending"),
        ("--discrete ward", ExitCode.SCHEMA, "no levels"),
        ("--continuous age 0 1 --discrete age a b", ExitCode.SCHEMA, "repeated"),
        ("--continuous age 0", ExitCode.USAGE, "expected 3"),
    ],
)
def test_what_is_no_description(
    words: str, code: ExitCode, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(f"study variables -o {tmp_path / 'v.toml'} {words}") == code
    assert said in capsys.readouterr().err
    assert not (tmp_path / "v.toml").exists()
