"""One file of a site, stolen years later, removed the masks from recorded steps of ADMM.

Every round has its own keys now, which are in memory only. What is in the files of a site does not
help to read what it sent.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from tests.attacks.malicious import Attacked

from isthmus.statistics import Schema
from isthmus_joint import Federation, FileJournal, FileLedger, InProcess
from isthmus_joint.agreement.identity import KEY, Agreement, Secret
from isthmus_joint.methods.admm import AskConsensus
from isthmus_joint.secure_sum.envelopes import EnvelopeKind, parse
from isthmus_joint.secure_sum.round import RoundSecrets

NAMES = ("age", "weight")


@pytest.mark.long
def test_no_file_of_a_site_contains_a_key_of_a_round(tmp_path: Path) -> None:
    rng = np.random.default_rng(18)
    tables = {n: {k: rng.normal(50, 9, 300) for k in NAMES} for n in ("north", "east", "south")}
    bounds = dict.fromkeys(NAMES, (-100, 300))
    attacked = Attacked(
        tables, Schema.continuous(NAMES), bounds, requests=("consensus",), rounds=50
    )
    homes = {name: tmp_path / name for name in tables}
    for name, home in homes.items():
        home.mkdir()
        attacked.ledgers[name] = FileLedger(home / "ledger.jsonl")
    attacked.join()
    drawn: list[Secret] = []
    fresh = RoundSecrets.fresh

    def noted() -> RoundSecrets:
        secrets = fresh()
        drawn.extend([secrets.channel, secrets.mask, secrets.seed, secrets.polynomials])
        return secrets

    RoundSecrets.fresh = staticmethod(noted)  # type: ignore[method-assign]
    try:
        tape: list[bytes] = []
        handlers = {}
        for name, controller in attacked.controllers.items():
            site = controller.site(journal=FileJournal(homes[name] / "study"))

            def recorded(message: bytes, handle=site.handle) -> bytes:  # type: ignore[no-untyped-def]
                answer: bytes = handle(message)
                tape.append(answer)
                return answer

            handlers[name] = recorded
        federation = Federation(
            attacked.study, attacked.signatures, attacked.boss, InProcess(handlers)
        )
        for step in range(4):
            federation.ask(AskConsensus(NAMES, step))
    finally:
        RoundSecrets.fresh = fresh  # type: ignore[method-assign]
    assert len(drawn) == 4 * 3 * 4
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert any(path.name == "study" for path in files)
    for secret, data in itertools.product(drawn, files.values()):
        assert secret.reveal() not in data
        assert secret.reveal().hex().encode() not in data
    # All keys are used for one round only, so that no later theft helps.
    adverts = [parse(a).body for a in tape if parse(a).kind is EnvelopeKind.ADVERT]
    publics = [b[k : k + KEY] for b in adverts for k in (KEY, 2 * KEY)]
    assert len(set(publics)) == len(publics) == 4 * 3 * 2
    assert {Agreement.from_secret(s).public for s in drawn} >= set(publics)
