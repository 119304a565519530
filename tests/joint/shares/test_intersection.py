"""Which people both have, at a party whose engine gives back what the other one wants."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from isthmus.errors import AbortedError
from isthmus.joint.shares.alignment import intersect

HASHES = [f"{i:064x}" for i in range(60)]


class Engine:
    """Stands in for `spu.psi`: the receiver finds some of its own rows, and the sender nothing."""

    PsiProtocol = SimpleNamespace(PROTOCOL_RR22="RR22")
    PsiProtocolConfig = PsiExecuteConfig = InputParams = OutputParams = SimpleNamespace

    def __init__(self, found: Any) -> None:
        self.found = found
        self.given: list[list[str]] = []
        self.receivers: list[int] = []

    def psi_execute(self, config: Any, link: Any) -> None:
        protocol = vars(config.protocol_conf)
        assert not protocol.get("broadcast_result")  # the other party would name rows of this one
        with Path(config.input_params.path).open() as file:
            header, *rows = [row[0] for row in csv.reader(file)]
        self.given.append(rows)
        self.receivers.append(protocol["receiver_rank"])
        out = Path(config.output_params.path)
        out.unlink(missing_ok=True)
        if protocol["receiver_rank"] == link.rank:
            out.write_text("\n".join([header, *(row for row in rows if self.found(row))]) + "\n")


def found_by(engine: Engine, rank: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    monkeypatch.setitem(sys.modules, "spu", SimpleNamespace(psi=engine))
    link: Any = SimpleNamespace(rank=rank)
    return [int(i) for i in intersect(link, HASHES, folder)]


@pytest.mark.parametrize("rank", [0, 1])
def test_each_party_finds_its_own_people(
    rank: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(lambda row: row in HASHES[10:40])
    assert found_by(engine, rank, tmp_path, monkeypatch) == list(range(10, 40))
    assert engine.receivers == [0, 1]
    for given in engine.given:
        # A digest of rows in a known order would tell one unknown person to who knows the others.
        assert given[:60] != HASHES
        assert len(set(given) - set(HASHES)) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("rank", [0, 1])
def test_a_party_that_claims_to_have_everybody_is_caught(
    rank: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sends back the digest of this party's rows makes its engine find all of them."""
    with pytest.raises(AbortedError, match="whom nobody has") as caught:
        found_by(Engine(lambda _: True), rank, tmp_path, monkeypatch)
    assert caught.value.reason == "other identifiers"
