"""A federation of real processes with many discrete variables, beside the search on pooled rows.

    python benchmarks/federation/wide.py [--sites 20] [--variables 500] [--rows 100000]
        [--degree 2] [--parents 2] [--folder FOLDER]

Everything is made by the commands that users type: cards, a drafted study, signatures, policies
(drafted, with ``minimum_cell = 1`` and, unless --dominance, ``largest_share = 1.0``, because that
check takes 10 CPU seconds per site), frozen cohorts. Then each site and the coordinator run as
processes of their own, over gRPC on loopback with TLS. The time is that of the coordinator's
process, from its start until it ends; CPU seconds are those of each process as a whole, with the
import of the package. With --folder, a folder of an earlier run is used again.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import isthmus as ist
from isthmus import simulate
from isthmus.cli import main as command
from isthmus.io import read_edge_list
from isthmus_joint.transport.certificates import free_port

COMMAND = [sys.executable, "-c", "from isthmus.cli import main; raise SystemExit(main())"]


def run(*words: object) -> None:
    assert command([str(word) for word in words]) == 0, words


def table(options: argparse.Namespace) -> dict[str, np.ndarray]:
    """Rows of a random network of variables with three levels."""
    edges = int(options.variables * options.degree / 2)
    dag = simulate.erdos_renyi(options.variables, edges, seed=options.seed)
    network = simulate.discrete_network(dag, cardinalities=3, seed=options.seed)
    data = simulate.discrete(network, options.rows, seed=options.seed).data
    return {name: np.asarray(column) for name, column in data.items()}


def prepare(folder: Path, data: dict[str, np.ndarray], options: argparse.Namespace) -> None:
    """Draft and sign a study, and freeze the rows of each site."""
    run("coordinator", "new", folder / "board", "--host", "127.0.0.1")
    names, cards = [f"s{i:02}" for i in range(options.sites)], list[object]()
    for i, name in enumerate(names):
        run("site", "new", folder / name, "--name", name, "--organisation", f"Org {name}")
        cards += ["--card", folder / name / "card.toml"]
        rows = np.column_stack([column[i :: options.sites] for column in data.values()])
        head = ",".join(data)
        np.savetxt(folder / f"{name}.csv", rows, "%s", ",", header=head, comments="")
    levels = sorted({level for column in data.values() for level in np.unique(column).tolist()})
    kind = f'kind = "discrete"\nlevels = {json.dumps(levels)}\n'
    text = "\n".join(f'[[variables]]\nname = "{name}"\n{kind}' for name in data)
    (folder / "variables.toml").write_text(text)
    run(
        *("coordinator", "draft", folder / "board", folder / "study", "--exact"),
        *(
            "--author",
            folder / names[0] / "identity.pem",
            "--title",
            "Wide",
            "--purpose",
            "measure",
        ),
        *("--variables", folder / "variables.toml", "--parents", options.parents, *cards),
        *("--address", f"127.0.0.1:{free_port()}"),
    )
    for name in names:
        home = folder / name
        run("site", "policy", home, folder / "study")
        policy = (home / "policy.toml").read_text()
        policy = policy.replace("minimum_cell = 5", "minimum_cell = 1")
        if not options.dominance:
            policy = policy.replace("largest_share = 0.5", "largest_share = 1.0")
        (home / "policy.toml").write_text(policy)
        run("study", "sign", home, folder / "study")
        start = time.process_time()
        run("site", "freeze", home, folder / "study", "--data", folder / f"{name}.csv")
        print(f"{name} frozen in {time.process_time() - start:.1f} CPU s", flush=True)


def started(folder: Path, name: str, *words: str) -> subprocess.Popen[bytes]:
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            [*COMMAND, *words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
            start_new_session=True,
        )


def ended(process: subprocess.Popen[bytes]) -> tuple[float, int]:
    """Wait for a process; return its CPU seconds and its peak memory in MB."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sites", type=int, default=20)
    parser.add_argument("--variables", type=int, default=500)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--degree", type=float, default=2.0)
    parser.add_argument("--parents", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dominance", action="store_true")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--pooled", action="store_true", help="compare with the pooled rows")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="wide"))
    data = table(options)
    if not (folder / "study").exists():
        folder.mkdir(exist_ok=True)
        prepare(folder, data, options)
    names = [f"s{i:02}" for i in range(options.sites)]
    sites = {n: started(folder, n, "site", "join", n, "study") for n in names}
    try:
        # A site connects when the coordinator listens; its own start is not measured.
        time.sleep(options.sites * 1.5)
        begin = time.perf_counter()
        words = ("coordinator", "run", "board", "study", "--listen", "127.0.0.1", "--restart")
        leader = started(folder, "coordinator", *words, "-o", "network.csv")
        cpu, memory = ended(leader)
        wall = time.perf_counter() - begin
    finally:
        for process in sites.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
    usage = [ended(process) for process in sites.values()]
    print((folder / "coordinator.log").read_text()[-3000:])
    assert leader.returncode == 0
    print(
        f"{options.sites} sites, {options.variables} variables, {options.rows} rows: {wall:.1f} s; "
        f"coordinator {cpu:.1f} CPU s, {memory} MB; sites {sum(u[0] for u in usage):.1f} CPU s "
        f"together, at most {max(u[1] for u in usage)} MB each; load {os.getloadavg()[0]:.1f}"
    )
    if options.pooled:
        start = time.process_time()
        search = ist.XGES(max_parents=options.parents)
        pooled = ist.learn(data, search=search, progress=False)
        spent = time.process_time() - start
        learned = read_edge_list(folder / "network.csv")
        dag = ist.DAG(pooled.dag.nodes, learned.edges)
        print(
            f"pooled: {spent:.1f} CPU s; the same CPDAG: {dag.cpdag() == pooled.cpdag} "
            f"({len(pooled.dag.edges)} edges)"
        )


if __name__ == "__main__":
    main()
