"""Files from the internet: downloaded once, checked, and clear sentences when that fails."""

from __future__ import annotations

import functools
import hashlib
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import isthmus as ist
from isthmus.cli import main
from isthmus.errors import ArgumentError, DownloadError

pytest.importorskip("pooch")

CONTENT = b"a,b\n1,2\n"
CHECKSUM = hashlib.sha256(CONTENT).hexdigest()


class Server:
    """A server of one folder, and the paths that it was asked for."""

    def __init__(self, folder: Path) -> None:
        self.asked: list[str] = []
        asked = self.asked

        class Handler(SimpleHTTPRequestHandler):
            def log_request(self, *_: Any) -> None:
                asked.append(self.path)

            def log_error(self, *_: Any) -> None:
                pass

        handler = functools.partial(Handler, directory=str(folder))
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "some table.csv").write_bytes(CONTENT)
    server = Server(folder)
    yield server
    server.stop()


def test_downloaded_once_then_offline(server: Server, tmp_path: Path) -> None:
    url = f"{server.url}/some%20table.csv?version=1"
    path = ist.datasets.fetch(url, sha256=CHECKSUM.upper(), folder=tmp_path / "cache")
    assert path.read_bytes() == CONTENT
    assert path.parent == (tmp_path / "cache").resolve()
    assert path.name.endswith("some_table.csv")
    assert len(server.asked) == 1
    server.stop()
    assert ist.datasets.fetch(url, sha256=CHECKSUM, folder=tmp_path / "cache") == path
    assert len(server.asked) == 1


def test_a_damaged_copy_is_replaced(server: Server, tmp_path: Path) -> None:
    url = f"{server.url}/some%20table.csv"
    path = ist.datasets.fetch(url, sha256=CHECKSUM, folder=tmp_path)
    path.write_bytes(b"damaged")
    assert ist.datasets.fetch(url, sha256=CHECKSUM, folder=tmp_path).read_bytes() == CONTENT


def test_a_wrong_checksum_keeps_nothing(server: Server, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with pytest.raises(DownloadError, match=f"{CHECKSUM}, not {'0' * 64}"):
        ist.datasets.fetch(f"{server.url}/some%20table.csv", sha256="0" * 64, folder=cache)
    assert not list(cache.iterdir())


def test_what_the_server_does_not_have(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"404.*by hand") as caught:
        ist.datasets.fetch(f"{server.url}/none.csv", sha256=CHECKSUM, folder=tmp_path / "cache")
    # The sentence names where a copy is looked for.
    path = Path(str(caught.value).rpartition("save the file as ")[2].removesuffix(" by hand."))
    path.write_bytes(CONTENT)
    again = ist.datasets.fetch(f"{server.url}/none.csv", sha256=CHECKSUM, folder=path.parent)
    assert again == path


def test_offline(server: Server, tmp_path: Path) -> None:
    server.stop()
    with pytest.raises(DownloadError, match=r"ConnectionError.*Check the connection") as caught:
        ist.datasets.fetch(f"{server.url}/some.csv", sha256=CHECKSUM, folder=tmp_path)
    assert isinstance(caught.value, OSError)
    assert "\n" not in str(caught.value)


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match="64 hexadecimal"):
        ist.datasets.fetch("https://example.org/a.csv", sha256="abc")
    with pytest.raises(ArgumentError, match="http"):
        ist.datasets.fetch("ftp://example.org/a.csv", sha256=CHECKSUM)


def test_the_command_lists_datasets_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["datasets", "list"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == ["asia", "burglary", "sprinkler", "water_level"]
