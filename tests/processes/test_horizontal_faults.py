"""Faults of a federation whose sites are real processes, over gRPC.

Sites and coordinators are killed and stopped, disks are full, clocks differ.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count, product
from pathlib import Path

import numpy as np
import pytest
from tests.processes.hospitals import (
    COMMAND,
    NAMES,
    PATIENCE,
    RECONNECT,
    Hospitals,
    environment,
    require_pooled,
    write_csv,
)

import isthmus as ist
from isthmus.cli import ExitCode, main
from isthmus.errors import AbortedError
from isthmus.tables import Frame
from isthmus.testing.source import check_moments
from isthmus_joint import ADMM, AskMoments, Federation, Transport, verify
from isthmus_joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus_joint.secure_sum.envelopes import RoundRequest
from isthmus_joint.secure_sum.protocol import secure_sums
from isthmus_joint.secure_sum.sides import Coordinator, run_round
from isthmus_joint.transport.base import PING, SiteState, Timeouts

STAGES = ("keys", "shares", "masked", "consent", "reveal")


class Killer(Transport):
    """Kills a site with SIGKILL at one exchange: before it gets the frame, or after it answered."""

    def __init__(self, world: Hospitals, name: str, at: int, *, after: bool) -> None:
        self._world = world
        self._inner = world.transport()
        self._name = name
        self._at = at
        self._after = after
        self._count = count()

    def exchange(self, outgoing: Mapping[str, bytes]) -> Iterable[bytes]:
        if next(self._count) != self._at:
            return self._inner.exchange(outgoing)
        rest = {n: f for n, f in outgoing.items() if n != self._name}
        if self._after:  # it answers, and dies before the answer arrives
            list(self._inner.exchange({self._name: outgoing[self._name]}))
        self._world.kill(self._name)
        return self._inner.exchange(rest)


def test_a_site_killed_at_any_stage(hospitals: Callable[..., Hospitals]) -> None:
    """At every stage, and with ISTHMUS_LONG every site: the exact sum of the survivors.

    All sums of a study are over the same sites, so that every fault has a study of its own.
    """
    names = [f"s{i}" for i in range(4)]
    request = AskMoments(NAMES)
    faults = list(product(names, range(len(STAGES))))
    if "ISTHMUS_LONG" not in os.environ:
        # Every stage, and every site at least once.
        faults = [(names[stage % 4], stage) for stage in range(len(STAGES))]
    for i, (name, stage) in enumerate(faults):
        world = hospitals(30, 40, 2, 50)
        world.serve(*names)
        study, boss = world.study, world.boss
        opening = RoundRequest(
            1,
            request.to_bytes(),
            request.size(FixedPointEncoding.of(study)),
            request.limbs,
        )
        led = Coordinator(secure_sums(study.protocol).terms(study.roster), boss, opening)
        words = run_round(led, Killer(world, name, stage, after=bool(i % 2)))
        summed = stage > STAGES.index("masked")  # its numbers had arrived
        survivors = [n for n in names if summed or n != name]
        assert list(led.active) == survivors, (name, STAGES[stage])
        pooled = Frame(world.pooled(survivors), names=NAMES).moments()
        check_moments(request.decode(words, FixedPointEncoding.of(study)), pooled, 1e-9)
        world.serve(name)
        for each in names:
            verify(world.home(each) / "ledger.jsonl")
        world.close()


def test_too_few_survivors_reveal_nothing(hospitals: Callable[..., Hospitals]) -> None:
    world = hospitals(30, 40, 20)
    world.serve(*world.names)
    study = world.study
    request = AskMoments(NAMES)
    for number, stage in enumerate(range(len(STAGES)), start=1):
        opening = RoundRequest(
            number, request.to_bytes(), request.size(FixedPointEncoding.of(study)), request.limbs
        )
        led = Coordinator(secure_sums(study.protocol).terms(study.roster), world.boss, opening)
        with pytest.raises(AbortedError, match=r"Silent: \['s1'\]") as caught:
            run_round(led, Killer(world, "s1", stage, after=False))
        assert caught.value.silent == ("s1",)
        with pytest.raises(AbortedError, match="no sum"):
            _ = led.total
        world.serve("s1")
    unmasked = [e for e in verify(world.home("s1") / "ledger.jsonl") if e["event"] == "unmasked"]
    assert unmasked == []


class Reviver(Transport):
    """Kills a site around an exchange of ADMM, and starts it again when it is waited for."""

    def __init__(self, world: Hospitals) -> None:
        self._world = world
        self._inner = world.transport()
        self._count = count()
        self.waited: list[tuple[str, ...]] = []

    def exchange(self, outgoing: Mapping[str, bytes]) -> Iterable[bytes]:
        at = next(self._count)
        name = self._world.names[at % 3]
        if at % 7 != 6 or name not in outgoing or name not in self._alive():
            return self._inner.exchange(outgoing)
        if at % 2:  # killed while it works: it may or may not have answered
            threading.Timer(0.002 * (at % 5), self._world.kill, [name]).start()
        else:
            self._world.kill(name)
        return list(self._inner.exchange(outgoing))

    def _alive(self) -> list[str]:
        return [n for n, p in self._world.processes.items() if p.poll() is None]

    def wait(self, silent: tuple[str, ...]) -> bool:
        self.waited.append(silent)
        time.sleep(0.1)
        gone = set(self._world.names) - set(self._alive())
        self._world.serve(*gone)
        return True


def test_sites_killed_during_admm_go_on(hospitals: Callable[..., Hospitals]) -> None:
    """Every site is killed at every exchange, and the weights are the same to the bit."""
    world = hospitals(60, 80, 70, method="admm")
    options = ADMM(rounds=5)
    expected = ist.learn(world.inside(), search=options).details.weights.tobytes()
    world.serve(*world.names)
    transport = Reviver(world)
    federation = Federation(world.study, world.signatures, world.boss, transport)
    assert ist.learn(federation, search=options).details.weights.tobytes() == expected
    assert {name for names in transport.waited for name in names} >= {"s0", "s2"}
    for name in world.names:
        verify(world.home(name) / "ledger.jsonl")


def test_a_coordinator_killed_after_every_write(hospitals: Callable[..., Hospitals]) -> None:
    world = hospitals(60, 80, 70, method="admm")
    expected = ist.learn(world.inside(), search=ADMM(rounds=3)).details.weights.tobytes()
    world.serve(*world.names)
    world.stop_listening()  # the coordinator is another process
    output, kills = world.folder / "weights", world.folder / "kills"
    script = [sys.executable, str(Path(__file__).parent / "lead.py")]
    deaths = 0
    while not output.exists():
        done = subprocess.run(
            [*script, str(world.folder), str(output), str(kills)],
            env=environment(),
            capture_output=True,
            timeout=300,
            check=False,
        )
        assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
        deaths += done.returncode != 0
        assert deaths <= 20
    # four sums: opened, asked to unmask, summed
    assert deaths == len(kills.read_text().splitlines()) == 12
    assert output.read_bytes() == expected


def test_a_stopped_site_is_left_out_and_comes_back(hospitals: Callable[..., Hospitals]) -> None:
    world = hospitals(30, 40, 20, 50)
    world.serve(*world.names)
    federation = Federation(
        world.study,
        world.signatures,
        world.boss,
        world.transport(Timeouts(4.0, 4.0, 0.0, 4.0)),
        without=None,
    )
    world.kill("s2", signal.SIGSTOP)
    survivors = ["s0", "s1", "s3"]
    found = federation.moments()
    assert federation.active == tuple(survivors)
    check_moments(found, Frame(world.pooled(survivors), names=NAMES).moments(), 1e-9)
    world.kill("s2", signal.SIGCONT)
    world.await_site("s2")
    assert federation.moments(["a"]) is not None
    assert federation.active == tuple(survivors)  # as all further sums of this study
    again = Federation(world.study, world.signatures, world.boss, world.transport(), first_round=10)
    with pytest.raises(AbortedError):
        again.moments()


def test_a_stopped_site_pauses_admm_and_is_named(hospitals: Callable[..., Hospitals]) -> None:
    world = hospitals(60, 80, 70, method="admm")
    expected = ist.learn(world.inside(), search=ADMM(rounds=3)).details.weights.tobytes()
    world.serve(*world.names)
    told: list[tuple[str, SiteState]] = []

    def watch(site: str, state: SiteState) -> None:
        told.append((site, state))
        answers = [s for _, s in told].count(SiteState.ANSWERED)
        if state is SiteState.ANSWERED and answers == 3 * 10:  # the first step is done
            world.kill("s1", signal.SIGSTOP)
            threading.Timer(4.0, world.kill, ["s1", signal.SIGCONT]).start()

    transport = world.transport(Timeouts(2.0, 5.0, 300.0), watch)
    federation = Federation(world.study, world.signatures, world.boss, transport)
    assert ist.learn(federation, search=ADMM(rounds=3)).details.weights.tobytes() == expected
    assert ("s1", SiteState.SILENT) in told
    assert ("s1", SiteState.AWAITED) in told


def test_a_pause_ends_with_the_site_named(hospitals: Callable[..., Hospitals]) -> None:
    world = hospitals(30, 40, 20)
    world.serve("s0", "s1", "s2")
    transport = world.transport(Timeouts(4.0, 4.0, 3.0, RECONNECT))
    world.kill("s2", signal.SIGSTOP)
    federation = Federation(world.study, world.signatures, world.boss, transport)
    start = time.monotonic()
    with pytest.raises(AbortedError, match=r"Silent: \['s2'\]"):
        federation.moments()
    assert time.monotonic() - start < 30
    world.kill("s2", signal.SIGCONT)


def test_a_study_is_answered_from_one_extract(hospitals: Callable[..., Hospitals]) -> None:
    world = hospitals(30, 40, 20)
    world.serve(*world.names)
    first = Federation(world.study, world.signatures, world.boss, world.transport()).moments()
    world.kill("s1")
    write_csv(world.data("s1"), world.tables["s1"][:-1])  # one row less, which is not frozen
    world.serve("s1")
    again = Federation(world.study, world.signatures, world.boss, world.transport(), first_round=2)
    assert again.moments() == first
    world.kill("s1")
    again_frozen = ["site", "freeze", str(world.home("s1")), str(world.study_folder), "--data"]
    assert main([*again_frozen, str(world.data("s1"))]) == ExitCode.REFUSED


def test_one_process_a_site(hospitals: Callable[..., Hospitals]) -> None:
    world = hospitals(30, 40, 20)
    world.serve("s0")
    first = world.processes["s0"]
    second = world.start("s0")
    assert second.wait(PATIENCE) == 20
    log = world.log("s0")
    assert "Another process uses the folder" in log
    assert f"process {first.pid} on" in log
    assert "the service of the site, since" in log
    assert world.ask("s0", PING) == PING
    world.processes["s0"] = first


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of 256 KiB."""
    path = Path(tempfile.mkdtemp(prefix="ist"))
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(path)]
    if os.getuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        path.rmdir()
        pytest.skip("mounting a small file system is not permitted here")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)
    path.rmdir()


def fill(disk: Path) -> Path:
    """Fill a disk with a file."""
    filler = disk / "filler"
    handle = os.open(filler, os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while os.write(handle, bytes(256)):
            pass
    os.close(handle)
    return filler


def test_a_full_disk(hospitals: Callable[..., Hospitals], small_disk: Path) -> None:
    """Nothing is sent that cannot be written down; with room again, the site goes on."""
    world = hospitals(60, 80, 70, method="admm")
    home = small_disk / "s1"
    shutil.copytree(world.home("s1"), home)
    shutil.rmtree(world.home("s1"))
    world.home("s1").symlink_to(home)
    world.serve(*world.names)
    federation = Federation(world.study, world.signatures, world.boss, world.transport())
    filler = fill(small_disk)
    size = (home / "ledger.jsonl").stat().st_size
    with pytest.raises(AbortedError, match="'s1': 'refused'"):
        ist.learn(federation, search=ADMM(rounds=2))
    assert (home / "ledger.jsonl").stat().st_size == size
    filler.unlink()
    expected = ist.learn(world.inside(), search=ADMM(rounds=2)).details.weights.tobytes()
    again = Federation(world.study, world.signatures, world.boss, world.transport(), first_round=2)
    assert ist.learn(again, search=ADMM(rounds=2)).details.weights.tobytes() == expected
    verify(home / "ledger.jsonl")


def test_a_full_disk_of_the_coordinator(
    hospitals: Callable[..., Hospitals], small_disk: Path
) -> None:
    """The run ends and says why; with room again, the same command ends with the result."""
    world = hospitals(30, 40, 20)
    board = world.folder / "board"
    shutil.copytree(board, small_disk / "board")
    shutil.rmtree(board)
    board.symlink_to(small_disk / "board")
    filler = fill(small_disk)
    for name in world.names:
        world.start(name)
    command = ("--gather", "100", "--answer", "60", "-o", "network.csv")
    code = world.coordinate(*command).wait(200)
    assert code not in (0, 1), world.log("coordinator")
    assert "the disk is full" in world.log("coordinator")
    assert "Traceback" not in world.log("coordinator")
    filler.unlink()
    assert world.coordinate(*command).wait(200) == 0, world.log("coordinator")
    require_pooled(world)


SHIFTED = """
import sys
from datetime import UTC, datetime, timedelta
from isthmus_joint.federation.site_controller import SiteController
shift = timedelta(hours=float(sys.argv.pop(1)))
SiteController.__init__.__kwdefaults__["clock"] = lambda: datetime.now(UTC) + shift
from isthmus.cli import main
from isthmus_joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus_joint.secure_sum.protocol import secure_sums
raise SystemExit(main())
"""


def test_clocks_an_hour_apart(
    hospitals: Callable[..., Hospitals], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = hospitals(30, 40, 20)
    for name, hours in (("s0", "-1"), ("s1", "1"), ("s2", "0")):
        monkeypatch.setattr("tests.processes.hospitals.COMMAND", [*COMMAND[:2], SHIFTED, hours])
        world.serve(name)
    federation = Federation(world.study, world.signatures, world.boss, world.transport())
    found = federation.moments()
    check_moments(found, Frame(world.pooled(), names=NAMES).moments(), 1e-9)
    assert np.isfinite(found.gram).all()
