"""Why a coordinator cannot be reached, in words that say where to look."""

from __future__ import annotations

import io
import socket
from pathlib import Path

import pytest

from isthmus.cli import ExitCode, main
from isthmus_joint.agreement.identity import Identity
from isthmus_joint.enrolment import Invitation, Visitor
from isthmus_joint.transport.certificates import free_port


class StoppedTryingError(Exception):
    """Ends a site that would try again for ever."""


def run(*arguments: object) -> int:
    return main([str(a) for a in arguments])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    run("site", "new", tmp_path / "home", "--name", "a", "--organisation", "A")
    run("coordinator", "new", tmp_path / "lead", "--host", "127.0.0.1", "--port", free_port())
    return tmp_path / "home"


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (None, "nothing listens there"),
        (socket.gaierror(-2, "Name or service not known"), "name of the machine is not known"),
        (TimeoutError("timed out"), "firewall"),
    ],
)
def test_a_site_that_enrols_says_why_it_waits(
    home: Path, failure: OSError | None, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        raise StoppedTryingError

    def fail(*_: object, **__: object) -> None:
        assert failure is not None
        raise failure

    if failure is not None:
        monkeypatch.setattr(socket, "create_connection", fail)
    invitation = Invitation.read(home.parent / "lead" / "invitation")
    visitor = Visitor(invitation, home / "card.toml", Identity.load(home / "identity.pem"), say)
    with pytest.raises(StoppedTryingError):
        visitor.send_card()
    assert text in said[0]
    assert invitation.address in said[0]


def test_a_passphrase_that_is_needed_says_how_to_give_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ISTHMUS_PASSPHRASE", "right")
    new = ("site", "new", tmp_path / "home", "--name", "a", "--organisation", "A")
    assert run(*new, "--passphrase") == ExitCode.DONE
    monkeypatch.delenv("ISTHMUS_PASSPHRASE")
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert run("site", "rotate", tmp_path / "home") == ExitCode.FORMAT
    assert "ISTHMUS_PASSPHRASE" in capsys.readouterr().err


def test_a_wrong_passphrase_changes_no_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ISTHMUS_PASSPHRASE", "right")
    for name in ("home", "other"):
        new = ("site", "new", tmp_path / name, "--name", name, "--organisation", "A")
        assert run(*new, "--passphrase") == ExitCode.DONE
    card = tmp_path / "home" / "card.toml"
    before = card.read_bytes()
    monkeypatch.setenv("ISTHMUS_PASSPHRASE", "wrong")
    assert run("site", "certify", tmp_path / "home") == ExitCode.FORMAT
    assert "is wrong" in capsys.readouterr().err
    assert card.read_bytes() == before
    monkeypatch.setenv("ISTHMUS_PASSPHRASE", "right")
    assert run("site", "certify", tmp_path / "home") == ExitCode.DONE
    assert card.read_bytes() != before
    card.write_bytes((tmp_path / "other" / "card.toml").read_bytes())
    assert run("site", "certify", tmp_path / "home") == ExitCode.FORMAT
    assert "the card of another key" in capsys.readouterr().err
