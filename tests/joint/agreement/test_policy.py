"""Policies: what a site allows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.joint.consortium import policy

from isthmus.errors import StudyError
from isthmus_joint import Policy


def test_a_policy_is_read_as_written(tmp_path: Path) -> None:
    made = policy(tmp_path)
    (tmp_path / "policy.toml").write_text(made.to_toml(), encoding="utf-8")
    assert Policy.read(tmp_path / "policy.toml") == made


def test_the_stop_file_moves_with_the_policy(tmp_path: Path) -> None:
    made = replace(policy(tmp_path), stop_file=Path("STOP"))
    for home in (tmp_path / "old", tmp_path / "new"):
        home.mkdir()
        (home / "policy.toml").write_text(made.to_toml(), encoding="utf-8")
        read = Policy.read(home / "policy.toml")
        assert read.stop_path == home.resolve() / "STOP"
        assert read.to_toml() == made.to_toml()  # not bound to this folder when written again


def test_a_stop_file_that_nobody_can_create_refuses(tmp_path: Path) -> None:
    text = replace(policy(tmp_path), stop_file=Path("/gone/home/STOP")).to_toml()
    (tmp_path / "policy.toml").write_text(text, encoding="utf-8")
    with pytest.raises(StudyError, match="nobody could stop the site"):
        Policy.read(tmp_path / "policy.toml")


@pytest.mark.parametrize("line", range(16))
def test_a_missing_key_refuses(tmp_path: Path, line: int) -> None:
    lines = replace(policy(tmp_path), exact_studies=()).to_toml().splitlines()
    assert len(lines) == 16
    gone = lines.pop(line)
    key = gone.partition(" ")[0]
    with pytest.raises(StudyError, match=key):
        Policy.parse("\n".join(lines).encode())


def test_a_policy_cannot_allow_two_organisations(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="minimum_organisations is 2"):
        replace(policy(tmp_path), minimum_organisations=2)
    text = policy(tmp_path).to_toml().replace("organisations = 3", "organisations = 2")
    with pytest.raises(StudyError, match="at least 3"):
        Policy.parse(text.encode())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('persons = "rows"', 'persons = "patients"', "persons is 'patients'"),
        ('persons = "rows"', 'persons = "column:"', "persons is 'column:'"),
        ("largest_share = 0.5", "largest_share = 1.5", "largest_share is 1.5"),
        ("columns_per_row = 0.33", "columns_per_row = -1.0", "columns_per_row is -1.0"),
    ],
)
def test_mistakes_in_the_rules_are_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = policy(tmp_path).to_toml()
    assert old in text
    with pytest.raises(StudyError, match=message):
        Policy.parse(text.replace(old, new).encode())
