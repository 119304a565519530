"""The files for systemd, compose, Helm and Prometheus agree with the commands and the metrics."""

from __future__ import annotations

import json
import re
import shlex
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from isthmus.cli.app import parser
from isthmus_joint.commands.operation import Figure, SiteWatch, exposition, metrics_address
from isthmus_joint.commands.run_display import RunDisplay
from isthmus_joint.transport.base import SiteState

yaml = pytest.importorskip("yaml")
CONTAINERS = Path(__file__).parents[2] / "containers"
PAGE = CONTAINERS.parent / "docs" / "how-to" / "run-a-site.md"


def understood(arguments: list[str]) -> None:
    """The command line knows these arguments."""
    parser(arguments).parse_args(arguments)


@pytest.mark.parametrize("name", ["isthmus-site@.service", "isthmus-coordinator@.service"])
def test_units_run_commands_that_exist(name: str) -> None:
    text = (CONTAINERS / "systemd" / name).read_text()
    (command,) = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
    program, *arguments = shlex.split(command.replace("%i", "study"))
    assert program == "/opt/isthmus/bin/isthmus"
    understood(arguments)


def test_compose_runs_commands_that_exist() -> None:
    services = yaml.safe_load((CONTAINERS / "compose.yaml").read_text())["services"]
    assert len(services) == 4
    for service in services.values():
        understood(service["command"])


def test_the_chart_runs_commands_that_exist() -> None:
    text = (CONTAINERS / "chart" / "templates" / "workload.yaml").read_text()
    found = re.findall(r"args: (\[.*?\])\n", text, re.DOTALL)
    assert len(found) == 2
    for arguments in found:
        filled = re.sub(r"\{\{ .Values.study \| quote \}\}", '"study"', arguments)
        understood(json.loads(re.sub(r"\{\{.*?\}\}", "9464", filled)))
    values = yaml.safe_load((CONTAINERS / "chart" / "values.yaml").read_text())
    schema = json.loads((CONTAINERS / "chart" / "values.schema.json").read_text())
    assert values.keys() <= schema["properties"].keys()


def test_alerts_are_about_metrics_that_exist(tmp_path: Path) -> None:
    study = SimpleNamespace(expires=datetime(2099, 1, 1, tzinfo=UTC), identity=bytes(32))
    site = SiteWatch(tmp_path, study, tmp_path / "STOP", print, as_json=False)
    figures = [*site.figures(), *RunDisplay(tmp_path / "status.json", ["north"]).figures()]
    names = {figure.name for figure in figures}
    known = {
        value for f in figures for pairs in f.values for label, value in pairs if label == "state"
    }
    groups = yaml.safe_load((CONTAINERS / "alerts.yaml").read_text())["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    for rule in rules:
        assert set(re.findall(r"isthmus_\w+", rule["expr"])) <= names
        assert f"`{rule['alert']}`" in PAGE.read_text()
        for states in re.findall(r'state=~"(.*?)"', rule["expr"]):
            assert set(states.split("|")) <= known


def test_a_site_says_how_it_stands(tmp_path: Path) -> None:
    study = SimpleNamespace(expires=datetime(2099, 1, 1, tzinfo=UTC), identity=bytes(32))
    said = list[str]()
    site = SiteWatch(tmp_path, study, tmp_path / "STOP", said.append, as_json=False)
    assert site.problem() == "not connected"
    site.say("connected to a:1")
    assert site.problem() == ""
    refused = {"event": "refused", "time": "now"}
    site.entry(refused | {"why": "policy", "number": 3})
    site.entry(refused | {"why": 'a "quoted"\nline', "number": 4})
    text = exposition(site.figures())
    assert 'isthmus_site_ledger_entries_total{event="refused"} 2.0' in text
    assert 'isthmus_site_refusals_total{why="policy"} 1.0' in text
    assert r'{why="a \"quoted\"\nline"} 1.0' in text
    assert "# TYPE isthmus_site_refusals_total counter" in text
    (tmp_path / "STOP").touch()
    assert site.problem() == "stop file"
    site.say("not connected to a:1: gone; trying again")
    (tmp_path / "STOP").unlink()
    assert site.problem() == "not connected"
    study.expires = datetime(2001, 1, 1, tzinfo=UTC)
    assert site.problem() == "study expired"
    assert len(said) == 4


def test_json_logs_have_the_fields_without_data_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = SimpleNamespace(expires=datetime(2099, 1, 1, tzinfo=UTC), identity=bytes(32))
    site = SiteWatch(tmp_path, study, tmp_path / "STOP", print, as_json=True)
    entry = {"event": "sent", "time": "now", "number": 1}
    site.entry(entry | {"request": {"x": 3.25}, "what": "age", "answer": "f"})
    site.say("a line for people")
    with RunDisplay(tmp_path / "status.json", ["north"], as_json=True) as board:
        board.watch("north", SiteState.ANSWERED)
        board.say("a line for people")
        board.progress(SimpleNamespace(text="score -7.25", seconds=100.0))  # type: ignore[arg-type]
    shown = capsys.readouterr()
    assert shown.out == ""
    lines = [json.loads(line) for line in shown.err.splitlines()]
    assert [line["log"] for line in lines] == ["ledger", "site", "run"]
    assert lines[0].keys() == {"time", "log", "study", "number", "event"}
    assert all(value not in shown.err for value in ("3.25", "age", "7.25", "people"))


def test_metrics_are_for_this_machine_unless_a_host_is_named() -> None:
    assert metrics_address("9464") == ("127.0.0.1", 9464)
    assert metrics_address("0.0.0.0:9464") == ("0.0.0.0", 9464)
    assert metrics_address("[::]:9464") == ("::", 9464)
    assert exposition([Figure("a", "b", {})]) == "# HELP a b\n# TYPE a gauge\n"
