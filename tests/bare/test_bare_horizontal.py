"""Without the extra, a federation says what is missing."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

import isthmus as ist
from isthmus.cli import main
from isthmus.errors import MissingExtraError

pytestmark = pytest.mark.skipif(
    find_spec("isthmus_joint") is not None, reason="the distribution is installed"
)


def test_names_of_the_missing_distribution_say_what_to_install() -> None:
    with pytest.raises(MissingExtraError, match=r"isthmus\[horizontal\]"):
        ist.Federation  # noqa: B018


def test_its_commands_say_what_to_install(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["site", "new", "north"]) != 0
    assert "isthmus[horizontal]" in capsys.readouterr().err
