"""What a coordinator leaves in a ledger over gRPC, and a run in a published file."""

from __future__ import annotations

import zipfile
from collections.abc import Callable

from tests.processes.hospitals import Hospitals

import isthmus as ist
from isthmus_joint import verify
from isthmus_joint.secure_sum.envelopes import COORDINATOR, EnvelopeKind, RoundRequest, pack, parse
from isthmus_joint.secure_sum.protocol import secure_sums

ROUNDS = 6
TIMES = ("--gather", "240", "--answer", "120", "--pause", "300")


def test_questions_of_a_megabyte_leave_kilobytes(hospitals: Callable[..., Hospitals]) -> None:
    world = hospitals(60, 80, 70, rounds=ROUNDS)
    world.serve("s0")
    for number in range(1, 2 * ROUNDS):
        body = RoundRequest(number, bytes(2**20), 1, 4).body()
        terms = secure_sums(world.study.protocol).terms(world.study.roster)
        frame = pack(EnvelopeKind.OPEN, terms, number, COORDINATOR, body, world.boss)
        answer = world.ask("s0", frame)
        assert answer is not None
        assert parse(answer).kind is EnvelopeKind.REFUSE
    path = world.home("s0") / "ledger.jsonl"
    assert 1 <= len(verify(path)) < 2 * ROUNDS
    assert path.stat().st_size < 2 * ROUNDS * 2500


def test_the_file_of_a_run_has_no_sums(hospitals: Callable[..., Hospitals]) -> None:
    world = hospitals(60, 80, 70)
    for name in world.names:
        world.start(name)
    out = world.folder / "network.isthmus"
    assert world.coordinate(*TIMES, "-o", str(out)).wait(300) == 0, world.log("coordinator")
    with zipfile.ZipFile(out) as archive:
        assert archive.namelist() == ["solution.json"]
    assert ist.Solution.load(out).statistics_kept is None
