"""Ten tasks that must not become slower, counted in instructions, and what they find.

    python benchmarks/guard.py                 # compare with results/guard.json
    python benchmarks/guard.py --write         # make that file
    python benchmarks/guard.py --slower        # do a fifth more of every task: all must fail

Seconds differ from run to run by more than a fifth; instructions, as Valgrind counts them, do not.
Each task is done once before anything is counted and then five times, in a process of its own that
starts from the same state. Meanwhile a look at the clock costs ten microseconds of a clock
that stands still otherwise, because searches look at the clock to decide when to tell progress.

It fails only where the interpreter, the compiler, the libraries and the vector units are those of
the file; elsewhere it prints both.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RECORD = HERE / "results" / "guard.json"
SLOWER = 1.15
"""A task fails with this ratio of instructions, or if it finds anything else."""
REPEATS = 5
LIBRARIES = ("numpy", "scipy", "narwhals", "cryptography")

Found = dict[str, float]
Part = Callable[[], Found]


# --- the tasks -------------------------------------------------------------------------------
# Each returns what is repeated. That returns what it finds: a score, or how much is wrong with it.


def drawn(d: int, n: int, edges: int) -> Any:
    from isthmus import simulate

    graph = simulate.erdos_renyi(d, edges, seed=0)
    return simulate.linear(graph, n, seed=0).standardised()


def searched(score: Any, search: Any, d: int) -> Part:
    """Learn from moments that are at hand."""
    import isthmus as ist

    table = drawn(d, 500, 2 * d)
    moments = ist.summarise(table.data)

    def part() -> Found:
        found = ist.learn(moments, score=score, search=search)
        return {"score": found.score, "wrong": ist.shd(found.cpdag, table.dag.cpdag())}

    return part


def xges() -> Part:
    import isthmus as ist

    return searched(ist.GaussianBIC(), ist.XGES(), 20)


def boss() -> Part:
    import isthmus as ist

    return searched(ist.GaussianBIC(), ist.Boss(starts=2), 20)


def notears() -> Part:
    import isthmus as ist

    return searched(ist.LeastSquares(), ist.Notears(), 6)


def network(d: int) -> Any:
    from isthmus import simulate

    return simulate.discrete_network(simulate.erdos_renyi(d, 2 * d, seed=0), seed=0)


def counting() -> Part:
    import isthmus as ist
    from isthmus import simulate

    frame = ist.Frame(dict(simulate.discrete(network(9), 2000).data))

    def part() -> Found:
        counts = frame.counts(ist.CountPlan.everything())
        table = ist.parent_sets(counts, score=ist.BDeu(), max_parents=2, jobs=1)
        return {"score": ist.solve(table, search=ist.AStar()).score}

    return part


def moments() -> Part:
    import numpy as np

    import isthmus as ist

    data = dict(drawn(20, 5000, 40).data)
    exact = np.corrcoef(np.column_stack(list(data.values())), rowvar=False)

    def part() -> Found:
        own = ist.Frame(data).moments().correlation()
        return {"wrong": float(np.abs(own - exact).max() > 1e-12)}

    return part


def chain() -> Part:
    import numpy as np

    import isthmus as ist

    table = drawn(5, 300, 6)
    own, there = ist.summarise(table.data), np.asarray(table.dag.adjacency())
    sampler = ist.PartitionMCMC(warm_up=50, thin=2, jobs=1)

    def part() -> Found:
        found = ist.sample(own, score=ist.BGe(), sampler=sampler, draws=20, chains=1, seed=1)
        return {"wrong": float(np.abs(found.edge_probabilities() - there).sum())}

    return part


def secure_sum() -> Part:
    import numpy as np

    import isthmus as ist

    data = drawn(4, 200, 4).data
    sites = [{name: column[k::3] for name, column in data.items()} for k in range(3)]
    exact = ist.summarise(data).correlation()

    def part() -> Found:
        own = ist.Federation.simulate(sites, within_sites=False).moments().correlation()
        return {"wrong": float(np.abs(own - exact).max() > 1e-6)}

    return part


def query() -> Part:
    import numpy as np

    asked = network(20)
    *names, a, b = asked.dag.nodes
    known = {a: "s0", b: "s1"}

    def part() -> Found:
        answers = [asked.query(name, known).values[0] for name in names[:8]]
        return {"sum of probabilities": float(np.sum(answers))}

    return part


def mixed() -> Part:
    """`learn` as users call it: kinds, notes, challenges by curves."""
    import isthmus as ist

    data = dict(drawn(5, 300, 6).data)
    for name in list(data)[:2]:
        data[name] = (data[name] > 0).astype(str)
    return lambda: {"score": ist.learn(data).score}


def first(*, slower: bool = False) -> Part:
    """The first import of the library and the first network."""

    def part() -> Found:
        if slower:
            import scipy.stats  # noqa: F401 - as an import that crept in would
        import isthmus as ist

        return {"score": ist.learn(ist.datasets.asia(rows=200, seed=1)).score}

    return part


TASKS: dict[str, Callable[[], Part]] = {
    "xges": xges, "boss": boss, "notears": notears, "counting": counting, "moments": moments,
    "chain": chain, "secure sum": secure_sum, "query": query, "learn": mixed, "first": first,
}  # fmt: skip


# --- counting --------------------------------------------------------------------------------

MARKS = r"""
#include <time.h>
#include <valgrind/callgrind.h>
static int counted = 0;
static long long now = 1000000000000LL;
void begin_counting(void) { counted = 1; CALLGRIND_ZERO_STATS; CALLGRIND_START_INSTRUMENTATION; }
void end_counting(void) { CALLGRIND_STOP_INSTRUMENTATION; counted = 0; }
extern int __clock_gettime(clockid_t, struct timespec *);
int clock_gettime(clockid_t clock, struct timespec *time) {
  if (!counted) return __clock_gettime(clock, time);
  now += 10000;
  time->tv_sec = now / 1000000000;
  time->tv_nsec = now % 1000000000;
  return 0;
}
"""


def stamp() -> dict[str, str]:
    """What decides how many instructions the same sources take."""
    flags = Path("/proc/cpuinfo").read_text().split("flags", 1)[-1].split("\n", 1)[0].split()
    compiler = subprocess.run(
        ["g++", "-dumpfullversion"], capture_output=True, text=True, check=True
    ).stdout
    return {
        "python": f"{platform.python_version()}, {platform.python_compiler()}",
        "machine": f"{platform.machine()}{', AVX2' if 'avx2' in flags else ''}",
        "compiler": compiler.strip(),
        **{name: version(name) for name in LIBRARIES},
    }


def run(names: Sequence[str], folder: Path, *, slower: bool) -> None:
    """Do tasks, each in a process that branches off this one, under Valgrind."""
    marks = ctypes.CDLL(str(folder / "marks.so"))
    warnings.simplefilter("ignore")
    for name in names:
        part = first(slower=slower) if name == "first" else TASKS[name]()
        if os.fork():
            os.wait()
            continue
        times = 1 if name == "first" else REPEATS + slower
        if name != "first":
            part()
        marks.begin_counting()
        for _ in range(times):
            found = part()
        marks.end_counting()
        (folder / f"{os.getpid()}.json").write_text(json.dumps({"name": name, **found}))
        os._exit(0)


def measure(names: Sequence[str], *, slower: bool = False) -> dict[str, Found]:
    """Return the instructions of each task, in thousands, and what it finds."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "marks.c").write_text(MARKS)
        library = folder / "marks.so"
        subprocess.run(
            ["g++", "-x", "c", "-O1", "-shared", "-fPIC", "-o", library, folder / "marks.c"],
            check=True,
        )
        environment = os.environ | {
            "PYTHONHASHSEED": "0", "LD_PRELOAD": str(library), "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1", "OPENBLAS_CORETYPE": "Haswell", "MPLBACKEND": "Agg",
            "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "compiled"),
        }  # fmt: skip
        # Compile sources, without marks.
        todo = [sys.executable, __file__, "--run", str(folder)]
        subprocess.run([*todo, *names], env=environment, check=True)
        command = [
            *("valgrind", "-q", "--tool=callgrind", "--instr-atstart=no"),
            f"--callgrind-out-file={folder}/%p.out",
            *(*todo, *(["--slower"] * slower)),
        ]
        # The first import needs a process that has imported nothing.
        for own in (["first"], [n for n in names if n != "first"]):
            if set(own) & set(names):
                subprocess.run([*command, *own], env=environment, check=True)
        result = {}
        for path in folder.glob("*.out"):
            if not path.with_suffix(".json").exists():
                continue  # the process that tasks branch off
            found = json.loads(path.with_suffix(".json").read_text())
            name = found.pop("name")
            lines = path.read_text().splitlines()
            total = next(line for line in lines if line.startswith("totals:"))
            result[name] = {"thousands": int(total.split()[1]) // 1000, **found}
    return {name: result[name] for name in names}


def differences(own: Found, before: Found) -> list[str]:
    """Say what is worse than on file, or other."""
    others = [key for key in before if not math.isclose(own[key], before[key], rel_tol=1e-6)]
    wrong = [f"{key} was {before[key]:.8g}" for key in others if key != "thousands"]
    return wrong + ["slower"] * (own["thousands"] > SLOWER * before["thousands"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", help=", ".join(TASKS))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--slower", action="store_true")
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    names = asked.tasks or list(TASKS)
    if asked.run:
        run(names, asked.run, slower=asked.slower)
        return 0
    if shutil.which("valgrind") is None:
        print("Valgrind is missing: apt-get install valgrind")
        return 1
    found, made_with = measure(names, slower=asked.slower), stamp()
    if asked.write:
        old = json.loads(RECORD.read_text())["tasks"] if RECORD.exists() else {}
        record = {"made with": made_with, "tasks": old | found}
        RECORD.write_text(json.dumps(record, indent=1) + "\n")
        return 0
    record = json.loads(RECORD.read_text())
    alike = record["made with"] == made_with
    if not alike:
        print(f"Nothing fails here: made with {record['made with']}, here {made_with}")
    failed = []
    print("| task | instructions, millions | recorded | ratio | |\n| --- | --- | --- | --- | --- |")
    for name, own in found.items():
        before = record["tasks"][name]
        ratio = own["thousands"] / before["thousands"]
        wrong = differences(own, before)
        failed += [name] * bool(wrong and alike)
        millions = (f"{each['thousands'] / 1000:.1f}" for each in (own, before))
        print(f"| {name} | {' | '.join(millions)} | {ratio:.3f} | {', '.join(wrong)} |")
    if failed:
        print(f"Failed: {', '.join(failed)}. If it is meant so: benchmarks/guard.py --write")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
