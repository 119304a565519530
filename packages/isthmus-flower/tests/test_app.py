"""Both parts of the app in this process, with Flower's messages between them."""

from __future__ import annotations

import json
import threading
import time
import tomllib
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.processes.tutorial import HOSPITALS, entries, prepare

import isthmus as ist
from isthmus.errors import AbortedError, FormatError, RefusedError
from isthmus.io import read_edge_list
from isthmus_joint.commands.hosted import OPTIONS
from isthmus_joint.commands.site import site_service
from isthmus_joint.federation.over_socket import serve

if find_spec("flwr") is None:
    pytest.skip("needs Flower", allow_module_level=True)
from flwr.app import ConfigRecord, Context, Error, Message, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

import isthmus_flower.server
from isthmus_flower import client
from isthmus_flower.messages import packed, unpacked

APP = Path(isthmus_flower.server.__file__).parent / "app" / "pyproject.toml"


class OneProcess(Grid):
    """Passes messages to the ClientApp in this process; a new one for every message."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._replies: dict[str, Message] = {}
        for name in ("task_id", "run_id", "node_id"):  # Flower sets them in each of its processes
            monkeypatch.setattr(TaskIdentity, f"_{name}", 1)
        self.exchanges = 0
        monkeypatch.setenv("FLWR_HOME", str(folder))
        folders = {"home": str(folder / "lead"), "study": str(folder / "study")}
        (folder / "isthmus.json").write_text(json.dumps(folders))
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []

    def join(self, name: str) -> None:
        """Do what `isthmus site join --socket` does."""
        site = site_service(self._folder / name, self._folder / "study")
        path = self._folder / f"{name}.socket"
        self._threads.append(threading.Thread(target=serve, args=(site, path, self._over.is_set)))
        self._threads[-1].start()
        while not path.exists():
            time.sleep(0.01)

    def close(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def get_node_ids(self) -> Iterable[int]:
        return [*range(len(HOSPITALS)), 7]  # the last one is of somebody else

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        self.exchanges += 1
        numbers = []
        for i, message in enumerate(messages):
            node, number = message.metadata.dst_node_id, f"{self.exchanges}.{i}"
            message.metadata.__dict__["_message_id"] = number
            if node == 7:
                reply = Message(Error(code=1, reason="no such app"), reply_to=message)
            else:
                path = self._folder / f"{HOSPITALS[node]}.socket"
                context = Context(1, node, {"isthmus-socket": str(path)}, RecordDict(), {})
                reply = client.app(message, context)
            self._replies[number] = reply
            numbers.append(number)
        return numbers

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return [self._replies.pop(number) for number in message_ids]

    def set_run(self, run: Any) -> None:
        raise NotImplementedError

    @property
    def run(self) -> Any:
        raise NotImplementedError

    def create_message(self, *_: Any, **__: Any) -> Message:
        raise NotImplementedError

    def send_and_receive(self, *_: Any, **__: Any) -> Iterable[Message]:
        raise NotImplementedError

    def coordinate(self, **options: str | float) -> None:
        """Do what the SuperLink does."""
        defaults = tomllib.loads(APP.read_text())["tool"]["flwr"]["app"]["config"]
        config = defaults | {"outputs": "network.csv"} | options
        isthmus_flower.server.app(self, Context(5, 0, {}, RecordDict(), config))


@pytest.fixture
def grid(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OneProcess]:
    prepare(folder)
    monkeypatch.setattr("isthmus_flower.transport.LOOK", 0.0)
    made = OneProcess(folder, monkeypatch)
    yield made
    made.close()


def test_a_study_from_end_to_end(grid: OneProcess, folder: Path) -> None:
    """A site whose policy refuses takes no part; when it allows the study, all learn from it."""
    import pandas as pd

    policy = folder / "south" / "policy.toml"
    text = policy.read_text()
    policy.write_text(text.replace("minimum_cohort = 50", "minimum_cohort = 5000"))
    assert policy.read_text() != text
    grid.join("north")
    grid.join("east")
    with pytest.raises(RefusedError, match="cannot take part"):
        grid.join("south")
    with pytest.raises(AbortedError, match=r"The sites \['south'\] did not connect"):
        grid.coordinate(gather=1)
    assert [entries(folder, name) for name in HOSPITALS] == [0, 0, 0]

    policy.write_text(text)
    grid.join("south")
    before = grid.exchanges
    grid.coordinate(gather=60)
    assert grid.exchanges - before == 1 + 5 + 2  # greeting, sum, result
    tables = [pd.read_csv(folder / name / "table.csv") for name in HOSPITALS]
    within = pd.concat([table - table.mean() for table in tables])
    network = read_edge_list(folder / "lead" / "flower-5" / "network.csv", nodes=[*within])
    assert isinstance(network, ist.DAG)
    assert network.cpdag() == ist.learn(within, score=ist.GaussianEBIC()).cpdag
    assert len(network.edges) > 3
    assert [entries(folder, name) for name in HOSPITALS] == [5, 5, 5]


def test_a_run_cannot_name_files_or_other_options(grid: OneProcess) -> None:
    with pytest.raises(FormatError, match="without a folder"):
        grid.coordinate(outputs="../network.csv")
    with pytest.raises(FormatError, match=r"cannot set \['restart'\]"):
        grid.coordinate(restart=1)


def test_the_app_has_all_options() -> None:
    config = tomllib.loads(APP.read_text())["tool"]["flwr"]["app"]["config"]
    assert set(config) == {*OPTIONS, "outputs"}


def test_a_site_whose_process_is_not_there_does_not_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TaskIdentity, "_run_id", 1)
    monkeypatch.setattr(TaskIdentity, "_node_id", 1)
    monkeypatch.setattr(TaskIdentity, "_task_id", 1)
    message = Message(packed(b"data"), 1, "query")
    message.metadata.__dict__["_message_id"] = "1"
    config: dict[str, bool | float | int | str] = {"isthmus-socket": str(tmp_path / "socket")}
    reply = client.app(message, Context(1, 1, config, RecordDict(), {}))
    assert unpacked(reply.content) is None
    assert "does not answer" in caplog.text


def test_messages() -> None:
    for data in (b"", b"\x00\xff"):
        assert unpacked(packed(data)) == data
    assert unpacked(packed(None)) is None
    assert unpacked(RecordDict({"isthmus": ConfigRecord({"data": "text"})})) is None
    assert unpacked(RecordDict()) is None
