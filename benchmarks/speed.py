"""Speed and memory beside other packages and the bounds of the machine, in one script.

    python benchmarks/speed.py                   # what is missing, then results/speed.md
    python benchmarks/speed.py --again 'task=moments|queries andes'

Each task has a process of its own. Seconds are processor seconds, with one thread; what is compared
alternates, and the best of several is taken. Memory is how far the process grew, at its largest,
beyond what it held when the call began. Networks and tables are read from ``$ISTHMUS_DATA``.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runner import Experiment

import isthmus as ist

DATA = Path(os.environ.get("ISTHMUS_DATA", "../shared/data"))
Values = dict[str, Any]


def best(*calls: Callable[[], object], times: int = 3) -> list[float]:
    """Return the fewest CPU seconds of each call; they alternate."""
    found = [float("inf")] * len(calls)
    for _ in range(times):
        for k, call in enumerate(calls):
            begin = time.process_time()
            call()
            found[k] = min(found[k], time.process_time() - begin)
    return found


def once(call: Callable[[], Any]) -> tuple[Any, float]:
    begin = time.process_time()
    result = call()
    return result, round(time.process_time() - begin, 2)


def grown(call: Callable[[], object]) -> float:
    """Return the bytes by which the process grew during a call, at its largest."""
    status = Path("/proc/self/status")
    Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten

    def kilobytes(key: str) -> int:
        return int(status.read_text().split(f"{key}:")[1].split()[0])

    before = kilobytes("VmRSS")
    call()
    return 1024.0 * (kilobytes("VmHWM") - before)


# --- the tasks -------------------------------------------------------------------------------


def categories(kind: str) -> Values:
    """Extra bytes per cell of `learn` from 3,000,000 rows of ten columns of three categories."""
    import numpy as np

    ist.learn({"a": ["x", "y"] * 20, "b": ["x", "y", "y", "x"] * 10})
    rows, columns = 3_000_000, 10
    rng = np.random.default_rng(1)
    codes = {f"v{j}": rng.integers(0, 3, rows, dtype=np.int8) for j in range(columns)}
    names = ["a", "b", "c"]
    table: Any
    if kind in ("pandas", "pandas text"):
        import pandas as pd

        table = pd.DataFrame({k: pd.Categorical.from_codes(v, names) for k, v in codes.items()})
        table = table.astype("str") if kind == "pandas text" else table
    else:
        import pyarrow as pa

        table = pa.table({k: pa.DictionaryArray.from_arrays(v, names) for k, v in codes.items()})
        if kind == "Arrow text":
            table = pa.table({k: table[k].cast(pa.string()) for k in codes})
        if kind == "Polars":
            import polars as pl

            table = pl.from_arrow(table)
    del codes
    begin = time.process_time()
    size = grown(lambda: ist.learn(table, search=ist.XGES()))
    return {
        "bytes per cell": round(size / rows / columns, 2),
        "seconds": time.process_time() - begin,
    }


def wide() -> Values:
    """`ScreenedBoss` on 200 columns of average degree 8, 1,000 rows."""
    from isthmus import simulate

    graph = simulate.erdos_renyi(200, 800, seed=1)
    table = simulate.linear(graph, 1000, seed=1).standardised()
    found, seconds = once(lambda: ist.learn(table.data, search=ist.ScreenedBoss(), seed=1))
    other, beside = once(lambda: ist.learn(table.data, search=ist.Boss(starts=1), seed=1))
    truth = table.dag.cpdag()
    return {
        "seconds": seconds, "SHD": ist.shd(found.cpdag, truth),
        "Boss(starts=1), seconds": beside, "its SHD": ist.shd(other.cpdag, truth),
    }  # fmt: skip


def gas(seconds: float = 100.0) -> Values:
    """`learn` by default on gas drift, 131 columns, stopped after some time."""
    import pandas as pd

    table = pd.read_csv(DATA / "uci" / "gas_drift_raw_8of10batches.csv.gz")
    found, cpu = once(lambda: ist.learn(table, time_limit=seconds))
    return {"rows": len(table), "columns": table.shape[1], "seconds": cpu,
            "score": found.score, "status": str(found.status)[:120]}  # fmt: skip


def link(seconds: float = 100.0) -> Values:
    """How far the best graph of 5,000 rows of link is above its true one."""
    network = ist.io.read_bif(DATA / "networks" / "link.bif.gz")
    table = network.sample(5000, seed=1)
    found, cpu = once(lambda: ist.learn(table, score=ist.BDeu(), time_limit=seconds))
    true = ist.score(table, network.dag, ist.BDeu())
    return {"seconds": cpu, "above the true graph": round(found.score - float(true), 1)}


def queries(name: str) -> Values:
    """Five questions with five known values each, first calls, beside pyAgrum's propagation."""
    import numpy as np
    import pyagrum

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.bif"
        path.write_bytes(gzip.decompress((DATA / "networks" / f"{name}.bif.gz").read_bytes()))
        theirs = pyagrum.loadBN(str(path))
        own = ist.io.read_bif(path)
        fresh = [ist.io.read_bif(path) for _ in range(3)]
    rows, names = own.sample(5, seed=4), list(own.dag.nodes)
    rng = np.random.default_rng(4)
    asked = []
    for k in range(5):
        first, *known = (names[i] for i in rng.choice(len(names), 6, replace=False))
        asked.append((first, {name: str(np.asarray(rows[name])[k]) for name in known}))

    def ask_theirs() -> list[Any]:
        answers = []
        for name, known in asked:
            engine = pyagrum.LazyPropagation(theirs)
            engine.setNumberOfThreads(1)
            engine.setEvidence(known)
            engine.addTarget(name)
            engine.makeInference()
            answers.append(engine.posterior(name).tolist())
        return answers

    def ask(network: Any) -> list[Any]:
        return [np.asarray(network.query(name, known)).ravel().tolist() for name, known in asked]

    ask_theirs(), ask(own)  # both have been imported
    pairs = zip(ask_theirs(), ask(own), strict=True)
    apart = max(abs(a - b) for left, right in pairs for a, b in zip(left, right, strict=True))
    ours, other = best(lambda: ask(fresh.pop()), ask_theirs)
    return {"seconds": ours, "pyAgrum": other, "ratio": ours / other, "apart": apart}


def adult() -> Values:
    """`fit` of the learned network, and `effect` of two pairs."""
    import pandas as pd

    path = DATA / "uci" / "adult.names"
    lines = [line for line in path.read_text().splitlines() if re.match("[a-z-]+:", line)]
    names = [*(line.split(":")[0].replace("-", "_") for line in lines), "income"]
    path = DATA / "uci" / "adult.data.gz"
    table = pd.read_csv(path, header=None, names=names, skipinitialspace=True)
    found, learned = once(lambda: ist.learn(table))
    return {
        "learn": learned, "fit": once(found.fit)[1],
        "effect of sex on income": once(lambda: found.effect("sex", "income"))[1],
        "effect of age on hours_per_week":
            once(lambda: found.effect("age", "hours_per_week"))[1],
    }  # fmt: skip


def engine(rows: int = 50_000, columns: int = 500) -> Values:
    """Moments of 500 columns in Parquet through DuckDB, beside DuckDB's scan and ``dsyrk``."""
    import duckdb
    import numpy as np
    import pyarrow as pa
    from scipy.linalg.blas import dsyrk

    rng = np.random.default_rng(1)
    values = np.asfortranarray(rng.standard_normal((rows, columns)))
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/table.parquet"
        reader = pa.table({f"v{j}": values[:, j] for j in range(columns)})
        duckdb.from_arrow(reader).write_parquet(path)
        del reader
        duckdb.sql("set threads = 1")

        def scan() -> None:
            for _ in duckdb.sql(f"from '{path}'").to_arrow_reader(10_000):
                pass

        def ours() -> object:
            return ist.summarise(duckdb.sql(f"from '{path}'"))

        scan()
        memory = grown(ours)
        own, scanned, product = best(ours, scan, lambda: dsyrk(1.0, values, trans=1), times=2)
    return {"rows": rows, "seconds": own, "scan": scanned, "dsyrk": product,
            "above the scan, dsyrk": (own - scanned) / product, "GB": memory / 1e9}  # fmt: skip


def moments() -> Values:
    """Moments of 100,000 rows of 50 columns beside ``dsyrk`` of a matrix that is at hand."""
    import numpy as np
    from scipy.linalg.blas import dsyrk

    values = np.asfortranarray(np.random.default_rng(1).standard_normal((100_000, 50)))
    table = {f"v{j}": values[:, j].copy() for j in range(50)}
    ours, theirs = best(lambda: ist.summarise(table), lambda: dsyrk(1.0, values, trans=1), times=7)
    return {"seconds": ours, "dsyrk": theirs, "ratio": ours / theirs}


def first() -> Values:
    """Import and learn from a file of 1,000 rows in new processes, beside pyAgrum.

    All have run once before: their modules are compiled, as after an installation.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/table.csv"
        import pandas as pd

        pd.DataFrame(dict(ist.datasets.asia(rows=1000, seed=1))).to_csv(path, index=False)
        read = f"import pandas as pd; t = pd.read_csv({path!r})"
        own = f"import isthmus as ist; {read}; ist.learn(t)"
        other = f"import pyagrum as gum; {read}; gum.BNLearner(t).learnBN()"
        found = []
        env = os.environ | {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": f"{folder}/pyc"}

        def run(code: str) -> None:
            subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, env=env)

        def children() -> float:
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            return used.ru_utime + used.ru_stime

        for code in (own, other, read):
            run(code)
        for _ in range(5):
            for code in (own, other, read):
                begin = children()
                run(code)
                found.append(children() - begin)
    ours, theirs, pandas = (min(found[k::3]) for k in range(3))
    return {"seconds": ours, "pyAgrum": theirs, "pandas alone": pandas, "ratio": ours / theirs}


KINDS = ("pandas", "Polars", "Arrow", "pandas text", "Arrow text")
TASKS: dict[str, Callable[[], Values]] = {
    **{f"categories, {kind}": lambda kind=kind: categories(kind) for kind in KINDS},  # type: ignore[misc]
    "ScreenedBoss, 200 columns": wide,
    **{f"queries {name}": lambda name=name: queries(name) for name in ("andes", "munin1", "link")},  # type: ignore[misc]
    "adult": adult, "moments": moments, "first learn": first, "500 columns, DuckDB": engine,
    "gas drift": gas, "link, 5,000 rows": link,
}  # fmt: skip


def measure(task: str) -> Values:
    """Run a task in a new process."""
    single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", __file__, "--one", task]
    done = subprocess.run(
        command, env=os.environ | single, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    found: Values = json.loads(done.stdout.splitlines()[-1])
    return found


def table(rows: list[Values]) -> str:
    lines = ["| task | measured |", "| --- | --- |"]
    found = {row["case"]["task"]: row["found"] for row in rows}
    for task in TASKS:
        values = {k: v for k, v in found.get(task, {}).items() if k != "cpu"}
        texts = (f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in values.items())
        lines += [f"| {task} | {'; '.join(texts)} |"] * bool(values)
    return "\n".join(lines)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        warnings.simplefilter("ignore")
        print(json.dumps(TASKS[sys.argv[2]]()))
    else:
        code = ("src/isthmus", "src/native", "benchmarks/speed.py")
        packages = ("numpy", "scipy", "pandas", "polars", "pyarrow", "duckdb", "pyagrum")
        Experiment("speed", measure, ({"task": task} for task in TASKS), code, packages).main(table)
