"""The engines of two processes: pinned certificates, and the people whom both have."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from isthmus_joint.records.private_files import write_private
from isthmus_joint.transport.certificates import free_port, own_certificate

ROOT = Path(__file__).parents[2]


def ends(folder: Path, sides: list[tuple[str, str]], people: list[list[str]]) -> list[Any]:
    for name in ("bank", "shop", "thief"):
        certificate, key = own_certificate(name)
        (folder / f"{name}.crt").write_bytes(certificate)
        write_private(folder / f"{name}.pem", key)
    port = str(free_port())
    started = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.processes.link_end", str(folder), str(rank)),
                *(*sides[rank], port, ",".join(people[rank]), str(len(people[1 - rank]))),
            ],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for rank in (0, 1)
    ]
    for process in started:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors.decode(errors="replace")[-2000:]
    return [json.loads((folder / f"found{rank}.json").read_text()) for rank in (0, 1)]


def test_the_people_of_both(folder: Path) -> None:
    people = [["d", "b", "x", "a"], ["a", "q", "d", "r", "b"]]
    sides = [("bank", "shop"), ("shop", "bank")]
    rows, others = ends(folder, sides, people)
    names = [people[0][i] for i in rows]
    assert names == [people[1][i] for i in others]
    assert sorted(names) == ["a", "b", "d"]


def test_nobody_in_common(folder: Path) -> None:
    sides = [("bank", "shop"), ("shop", "bank")]
    assert ends(folder, sides, [["a", "b"], ["c"]]) == [[], []]


@pytest.mark.parametrize(
    "sides",
    [
        [("bank", "shop"), ("thief", "bank")],
        [("thief", "shop"), ("shop", "bank")],
    ],
)
def test_the_engines_refuse_a_foreign_certificate(
    folder: Path, sides: list[tuple[str, str]]
) -> None:
    assert ends(folder, sides, [["a"], ["a"]]) == ["no engine"] * 2
