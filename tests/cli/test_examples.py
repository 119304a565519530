"""Every command has an example in its help, and every example works."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from isthmus.cli import app, main
from isthmus.cli.app import COMMANDS, leaves, parser
from isthmus.cli.schemas import FACTS
from isthmus_joint import FileLedger, Identity, commands
from isthmus_joint.commands import schemas

EXAMPLES = app.EXAMPLES | commands.EXAMPLES

LEAVES = [leaf.prog.removeprefix("isthmus ") for leaf in leaves(parser())]
WITH_OTHERS = {
    *("site enrol", "coordinator draft", "coordinator run", "site join", "ledger restore"),
    "party run",
}
"""They wait for other parties: here they are only parsed; tests/processes runs them."""


@pytest.mark.long
def test_every_command_has_an_example() -> None:
    assert sorted(EXAMPLES) == sorted(LEAVES)
    for leaf in leaves(parser()):
        assert EXAMPLES[leaf.prog.removeprefix("isthmus ")] in leaf.format_help()
        assert "--json" in leaf.format_help()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty folder, in which the examples find what other people would give them."""
    path = tmp_path_factory.mktemp("examples")
    with chdir(path):
        rows = "\n".join(f"{20 + i},{100 + i * i % 61}" for i in range(60))
        Path("pressure.csv").write_text(f"age,pressure\n{rows}\n")
        for file, name in (("bank.toml", "loan"), ("shop.toml", "returns")):
            assert main(["study", "variables", "--discrete", name, "no", "yes", "-o", file]) == 0
        people = "\n".join(f"c{i},{('no', 'yes')[i % 2]}" for i in range(60))
        Path("accounts.csv").write_text(f"customer,loan\n{people}\n")
        for name in ("east", "south"):
            assert main(["site", "new", name, "--name", name, "--organisation", name]) == 0
        shop = ["--name", "shop", "--organisation", "Shop", "--address", "shop.example.org:9300"]
        assert main(["party", "new", "shop", *shop]) == 0
        yield path


def prepare(name: str) -> None:
    """Do what the others do between the examples."""
    if name == "coordinator status":  # a draft that does not wait for sites
        words = shlex.split(EXAMPLES["coordinator draft"].partition(" --sites")[0])[1:]
        cards = [x for n in ("north", "east", "south") for x in ("--card", f"{n}/card.toml")]
        assert main([*words, *cards]) == 0
    if name == "ledger show":
        ledger = FileLedger(Path("north/ledger.jsonl"))
        ledger.bind(Identity.load(Path("north/identity.pem")))
        ledger.append("opened", what="something")
    if name == "site accept":
        assert main(["site", "policy", "east", "study"]) == 0
    if name == "party accept":
        assert main(["party", "policy", "shop", "joint"]) == 0


@pytest.mark.long
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_works(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = shlex.split(EXAMPLES[name])
    assert words[0] == "isthmus"
    if name in WITH_OTHERS:
        assert parser(words[1:]).parse_args(words[1:]).leaf.prog == f"isthmus {name}"
        return
    prepare(name)
    capsys.readouterr()
    assert main([*words[1:], "--json"]) == 0, capsys.readouterr().err
    told = json.loads(capsys.readouterr().out)
    assert told["command"] == name
    assert told["exit_code"] == 0
    check_document(told, capsys)


def check_document(told: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    """Compare a document with the schema that its command prints."""
    jsonschema = pytest.importorskip("jsonschema")
    with pytest.raises(SystemExit) as ended:
        main([*told["command"].split(), "--json-schema"])
    assert ended.value.code == 0
    schema = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(told, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(told | {"surprise": 1}, schema)


@pytest.mark.long
@pytest.mark.parametrize(
    "line",
    [
        "learn patients.csv --explain",
        "learn patients.csv --search BossFCI -o causes.isthmus",
        "compare causes.isthmus causes.isthmus",
        "compare network.bif dataset:asia --as dag",
        "query network.bif --target lung",
        "validate numbers.csv drawn.dot",
        "fit drawn.dot numbers.csv -o numbers.json",
        "query numbers.json --target height",
        "effect drawn.dot numbers.csv age height",
        "effect drawn.dot numbers.csv height age",
        "learn nothing.csv",
    ],
)
def test_answers_of_all_kinds_follow_the_schema(
    line: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not Path("patients.csv").exists():
        assert main(["datasets", "write", "asia", "-o", "patients.csv"]) == 0
        assert main(["learn", "patients.csv", "-o", "network.bif"]) == 0
    rows = "\n".join(f"{20 + i},{150 + i * i % 31},{i * 7 % 5}" for i in range(60))
    Path("numbers.csv").write_text(f"age,height,shoe\n{rows}\n")
    Path("drawn.dot").write_text("digraph { age; height; shoe; age -> height; }")
    capsys.readouterr()
    main([*shlex.split(line), "--json"])
    told = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    check_document(told, capsys)


@pytest.mark.long
def test_every_command_prints_a_schema(capsys: pytest.CaptureFixture[str]) -> None:
    for leaf in LEAVES:
        with pytest.raises(SystemExit):
            main([*leaf.split(), "--json-schema"])
        assert json.loads(capsys.readouterr().out)["title"] == f"isthmus {leaf} --json"
    assert set(FACTS) <= set(LEAVES)
    assert set(schemas.FACTS) <= set(LEAVES)


def test_the_help_lists_all_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    told = capsys.readouterr().out
    assert all(f"\n    {name}" in told for name in COMMANDS)
