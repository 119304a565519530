"""The help of a command offers what the command can do."""

from __future__ import annotations

import pytest

from isthmus.cli import main


def help_of(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit):
        main([*words, "--help"])
    return " ".join(capsys.readouterr().out.split())


def test_each_joint_command_offers_its_own_searches(capsys: pytest.CaptureFixture[str]) -> None:
    coordinator = help_of(["coordinator", "run"], capsys)
    assert "as for isthmus learn, or ADMM if" in coordinator
    assert "PrivateK2" not in coordinator
    party = help_of(["party", "run"], capsys)
    assert "or PrivateK2 or StructureOnly if" in party
    assert "ADMM" not in party


def test_the_seed_of_a_query_is_that_of_its_simulations(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "random seed of the simulations" in help_of(["query"], capsys)
