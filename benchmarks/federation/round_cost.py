"""CPU of a round over Flower: ours of five exchanges, beside a bare one that ships arrays.

Two ways, the same numbers, three sites on this machine, TLS and authenticated nodes:

    python benchmarks/federation/round_cost.py bare 5      # Flower as it is
    python benchmarks/federation/round_cost.py ours 5      # our frames

It prints CPU seconds of all processes together, from when all nodes are connected.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from isthmus.joint import (
    AskConsensus,
    Federation,
    FileJournal,
    Identity,
    Member,
    Policy,
    SecureSums,
    Signature,
    Study,
)
from isthmus.joint.extracts.extract import Extract
from isthmus.joint.federation.site_service import SiteService
from isthmus.joint.records.private_files import write_private
from isthmus.joint.transport.base import Timeouts
from isthmus.joint.transport.certificates import node_key, own_certificate
from isthmus.joint.transport.child_process import free_port
from isthmus.statistics import Schema
from isthmus_flower.flower_transport import FlowerTransport
from isthmus_flower.programs import flower_environment, flower_program
from isthmus_flower.sockets import Service
from isthmus_flower.superlink import FlowerSuperLink
from isthmus_flower.supernode import FlowerSuperNode
from isthmus_flower.supervised_process import SupervisedProcess

SITES, D = 3, 50
BARE_CLIENT = """
from flwr.app import ArrayRecord, Message, RecordDict
from flwr.clientapp import ClientApp
import numpy as np
app = ClientApp()

@app.query("frame")
def answer(message, context):
    got = message.content.array_records["a"].to_numpy_ndarrays()[0]
    record = ArrayRecord([got + 1.0])
    return Message(content=RecordDict({"a": record}), reply_to=message)
"""
BARE_SERVER = """
import os
import time
import numpy as np
from flwr.app import ArrayRecord, Message, RecordDict
from flwr.serverapp import ServerApp
app = ServerApp()

@app.main()
def main(grid, context):
    rounds, d = int(context.run_config["rounds"]), int(context.run_config["d"])
    done = str(context.run_config["done"])
    while len(list(grid.get_node_ids())) < 3:
        time.sleep(0.5)
    weights = np.zeros((d, d))
    for k in range(rounds + 1):
        if k == 1:  # the first one is for warming up
            open(done + ".ready", "w").close()
            while not os.path.exists(done + ".go"):
                time.sleep(0.2)
        content = lambda: RecordDict({"a": ArrayRecord([weights])})
        ids = [Message(content=content(), dst_node_id=n, message_type="query.frame")
               for n in grid.get_node_ids()]
        waiting, found = set(grid.push_messages(ids)), []
        while waiting:
            for reply in grid.pull_messages(list(waiting)):
                waiting.discard(reply.metadata.reply_to_message_id)
                found.append(reply.content.array_records["a"].to_numpy_ndarrays()[0])
            time.sleep(0.1)
        weights = sum(found) / len(found)
    open(done, "w").close()
"""
BARE_PROJECT = """
[project]
name = "bare"
version = "1.0.0"
license = "Apache-2.0"
dependencies = []
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[tool.hatch.build.targets.wheel]
packages = ["."]
[tool.flwr.app]
publisher = "isthmus"
[tool.flwr.app.components]
serverapp = "bare.server:app"
clientapp = "bare.client:app"
[tool.flwr.app.config]
rounds = 1
d = 50
done = ""
"""


def cpu_of_tree(root: int) -> float:
    """CPU seconds of a process and of all that it started, those that ended included."""
    ticks = os.sysconf("SC_CLK_TCK")
    parents: dict[int, list[int]] = {}
    used: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                rest = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            pid = int(entry.name)
            parents.setdefault(int(rest[1]), []).append(pid)
            used[pid] = sum(map(int, rest[11:15])) / ticks  # with those of ended children
    total, stack = 0.0, [root]
    while stack:
        pid = stack.pop()
        total += used.get(pid, 0.0)
        stack += parents.get(pid, [])
    return total


class Parties:
    """Keys, certificates, nodes: what both ways need."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.files = folder / "server.crt", folder / "server.pem"
        own = own_certificate("benchmark", ["127.0.0.1", "localhost"])
        for path, data in zip(self.files, own, strict=True):
            path.write_bytes(data)
        self.nodes: dict[str, str] = {}
        for k in range(SITES):
            home = folder / f"s{k}"
            home.mkdir()
            private, public = node_key()
            write_private(home / "node.pem", private)
            self.nodes[f"s{k}"] = public.decode()

    def node(self, name: str, socket: Path) -> FlowerSuperNode:
        """A SuperNode that runs our app only."""
        home = self.folder / name
        address, key = f"127.0.0.1:{self.port}", home / "node.pem"
        return FlowerSuperNode(home, socket, address, self.files[0], key)

    def plain_node(self, name: str) -> SupervisedProcess:
        """A SuperNode as Flower starts it."""
        home = self.folder / name
        command = [
            flower_program("flower-supernode"),
            *("--superlink", f"127.0.0.1:{self.port}", "--root-certificates", str(self.files[0])),
            *("--auth-supernode-private-key", str(home / "node.pem")),
            *("--host", "127.0.0.1", "--port", str(free_port())),
        ]
        (home / "flower").mkdir()
        return SupervisedProcess(
            command, flower_environment(home / "flower"), home / "flower.log", delay=5.0
        )


def hosted(folder: Path) -> tuple[Study, list[Signature], Identity, dict[str, SiteService]]:
    """A study of ADMM, and its sites as services."""
    rng = np.random.default_rng(0)
    names = [f"x{i}" for i in range(D)]
    keys = {f"s{k}": Identity.generate() for k in range(SITES)}
    author, boss = Identity.generate(), Identity.generate()
    study = Study.draft(
        "Cost of a round",
        purpose="benchmark",
        author=author.public,
        coordinator=boss.public,
        members=[Member(n, n, key.public) for n, key in keys.items()],
        schema=Schema.continuous(names),
        bounds=dict.fromkeys(names, (-10.0, 10.0)),
        protocol=SecureSums(),
        requests=[AskConsensus.name],
        rounds=10**4,
        exact=True,
    )
    signatures = [study.sign(author), *(study.sign(key, n) for n, key in keys.items())]
    policy = Policy(
        minimum_cohort=1,
        minimum_cell=1,
        minimum_organisations=3,
        variables=("*",),
        protocols=(SecureSums.name,),
        requests=(AskConsensus.name,),
        rounds_per_study=10**4,
        rounds_per_year=10**4,
        queries_per_year=10**4,
        stop_file=folder / "STOP",
        exact_studies=("*",),
    )
    hosts = {}
    for name, key in keys.items():
        table = dict(zip(names, rng.normal(size=(200, D)).T, strict=True))
        extract = Extract.freeze(study, table, policy)
        hosts[name] = SiteService(folder / name, study, signatures, key, extract, policy)
    return study, signatures, boss, hosts


def ours(folder: Path, rounds: int) -> tuple[float, float]:
    """CPU and wall seconds of so many steps of ADMM: masks, ledgers and journals and all."""
    parties = Parties(folder)
    study, signatures, boss, hosts = hosted(folder)
    link = FlowerSuperLink(folder / "lead", "127.0.0.1", parties.port, parties.files, parties.nodes)
    nodes = []
    for name, host in hosts.items():
        Service(host.state / "socket", host.handle, host.longest, host.reject).start()
        nodes.append(parties.node(name, host.state / "socket"))
    try:
        link.ensure_running()
        for node in nodes:
            node.ensure_running()
        transport = FlowerTransport(link, Timeouts(120.0, 300.0, 0.0))
        transport.gather(hosts)
        journal = FileJournal(folder / "lead" / "journal")
        federation = Federation(study, signatures, boss, transport, journal=journal)
        names = federation.schema().names
        federation.ask(AskConsensus(names, 0))
        cpu, wall = cpu_of_tree(os.getpid()), time.perf_counter()
        for step in range(1, rounds + 1):
            federation.ask(AskConsensus(names, step))
        return cpu_of_tree(os.getpid()) - cpu, time.perf_counter() - wall
    finally:
        for node in nodes:
            node.stop()
        link.stop()


def bare(folder: Path, rounds: int) -> tuple[float, float]:
    """CPU and wall seconds of so many rounds of Flower as it is, with plain arrays."""
    parties = Parties(folder)
    app = folder / "app"
    (app / "bare").mkdir(parents=True)
    for name, text in (
        ("pyproject.toml", BARE_PROJECT),
        ("bare/__init__.py", ""),
        ("bare/client.py", BARE_CLIENT),
        ("bare/server.py", BARE_SERVER),
    ):
        (app / name).write_text(text)
    done = folder / "done"
    link = FlowerSuperLink(folder / "lead", "127.0.0.1", parties.port, parties.files, parties.nodes)
    link._run = lambda: None  # type: ignore[method-assign]  # noqa: SLF001 - another app
    command = link._server._command  # noqa: SLF001 - Flower's own way to run an app
    at = command.index("--isolation")
    del command[at : at + 4]
    link._executor.ensure_running = lambda: False  # type: ignore[method-assign]  # noqa: SLF001
    nodes = [parties.plain_node(n) for n in parties.nodes]
    try:
        link.ensure_running()
        config = f'rounds={rounds} d={D} done="{done}"'
        link._flwr("run", str(app), "--run-config", config)  # noqa: SLF001
        for node in nodes:
            node.ensure_running()
        await_file(folder / "done.ready")
        cpu, wall = cpu_of_tree(os.getpid()), time.perf_counter()
        (folder / "done.go").touch()
        await_file(done)
        return cpu_of_tree(os.getpid()) - cpu, time.perf_counter() - wall
    finally:
        for node in nodes:
            node.stop()
        link.stop()


def await_file(path: Path, seconds: float = 600.0) -> None:
    end = time.monotonic() + seconds
    while not path.exists():
        if time.monotonic() > end:
            raise TimeoutError(str(path))
        time.sleep(0.1)


def main(way: str, rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="ist", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        if way == "bare":
            cpu, wall = bare(folder, rounds)
        else:
            cpu, wall = ours(folder, rounds)
    found = {"way": way, "sites": SITES, "numbers": D * D, "rounds": rounds}
    print(
        json.dumps(found | {"cpu a round": round(cpu / rounds, 2), "wall": round(wall / rounds, 1)})
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
