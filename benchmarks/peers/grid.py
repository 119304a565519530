"""Five kinds of tables, learned by Isthmus as it comes and by other packages as they come.

    python -m venv peers && peers/bin/pip install -r benchmarks/peers/requirements.txt
    peers/bin/pip install -e .
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 peers/bin/python benchmarks/peers/grid.py

All methods get the same tables: random graphs of 20 variables and 30 edges. Continuous tables are
straight with normal or with skewed noise, or curved, and are given raw and standardised; a peer
that reads numbers only gets the codes of levels. What is not installed is left out with its reason.
The error is the number of pairs of variables that differ between the equivalence classes of the
true graph and of the answer. Seconds are CPU time, without imports.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

import isthmus as ist
from isthmus import published, simulate
from isthmus.errors import GraphError

sys.path.append(str(Path(__file__).resolve().parents[1]))
from runner import Experiment, Values

D, EDGES, LIMIT = 20, 30, 60
KINDS = ("straight", "skewed", "curved", "mixed", "discrete")
Table = dict[str, Any]
Marks = set[tuple[str, int, int]]


# --- tables ----------------------------------------------------------------------------------


def drawn(kind: str, n: int, seed: int) -> tuple[ist.DAG, Table]:
    """Return the true graph, and a table whose columns are shuffled."""
    dag = simulate.erdos_renyi(D, EDGES, seed=seed)
    if kind == "discrete":
        network = simulate.discrete_network(dag, cardinalities=(2, 4), seed=seed)
        data = dict(simulate.discrete(network, n, seed=seed).data)
    elif kind == "curved":
        mechanism = simulate.FourierAdditive(decay=1.0)
        data = dict(simulate.nonlinear(dag, n, mechanism=mechanism, seed=seed).data)
    elif kind == "mixed":
        data = mixed(dag, n, seed)
    else:
        noise = simulate.Exponential() if kind == "skewed" else simulate.Gaussian()
        data = dict(simulate.linear(dag, n, noise=noise, seed=seed).data)
    names = list(np.random.default_rng(seed).permutation(list(data)))
    return dag, {name: data[name] for name in names}


def mixed(dag: ist.DAG, n: int, seed: int) -> Table:
    """Every third variable has three levels, which shift its children."""
    rng = np.random.default_rng(seed)
    data: Table = {}
    for place, name in enumerate(dag.topological_order()):
        total = rng.normal(size=n)
        for parent in dag.parents(name):
            column = data[parent]
            weight = rng.uniform(0.5, 2.0) * rng.choice([-1, 1])
            if column.dtype.kind in "US":
                column = (column == "a") * 1.5 - (column == "b") * 1.0
            total = total + weight * column
        if place % 3 == 0:
            cuts = np.quantile(total, [0.35, 0.7])
            data[name] = np.array(["a", "b", "c"])[np.digitize(total, cuts)]
        else:
            data[name] = total / total.std()
    return data


def numbers(data: Table) -> np.ndarray:
    columns = [c if np.issubdtype(c.dtype, np.number) else np.unique(c, return_inverse=True)[1]
               for c in map(np.asarray, data.values())]  # fmt: skip
    return np.column_stack(columns).astype(float)


# --- methods: each gets a table and returns a DAG, or the marks of an equivalence class --------


def of_dag(dag: ist.DAG) -> Marks:
    cpdag = dag.cpdag()
    return {("->", dag.index(a), dag.index(b)) for a, b in cpdag.directed} | {
        ("--", *sorted((dag.index(a), dag.index(b)))) for a, b in cpdag.undirected
    }


def weighted(weights: np.ndarray, names: list[str]) -> ist.DAG:
    """An entry at (i, j) is an edge from i to j."""
    return ist.DAG(names, [(names[i], names[j]) for i, j in np.argwhere(weights != 0)])


def of_causal_learn(graph: Any) -> Marks:
    marks = graph.graph
    ahead = {("->", int(i), int(j)) for i, j in np.argwhere((marks == -1) & (marks.T == 1))}
    both = np.argwhere((marks != 0) & (marks == marks.T))
    return ahead | {("--", int(i), int(j)) for i, j in both if i < j}


def isthmus(data: Table) -> ist.DAG:
    return ist.learn(data).dag


def isthmus_xges(data: Table) -> ist.DAG:
    return ist.learn(data, search=ist.XGES()).dag


def isthmus_lingam(data: Table) -> ist.DAG:
    return ist.learn(data, search=ist.LiNGAM()).dag


def isthmus_notears(data: Table) -> ist.DAG:
    return ist.learn(data, score=ist.LeastSquares(), search=ist.Notears()).dag


def published_notears(data: Table) -> ist.DAG:
    return published.notears(data).dag


def sort_and_regress(data: Table) -> ist.DAG:
    return simulate.sort_and_regress(data)


def causal_learn_pc(data: Table) -> Marks:
    from causallearn.search.ConstraintBased.PC import pc

    found = pc(numbers(data), 0.01, "fisherz", show_progress=False)
    return of_causal_learn(found.G)


def causal_learn_ges(data: Table) -> Marks:
    from causallearn.search.ScoreBased.GES import ges

    return of_causal_learn(ges(numbers(data), "local_score_BIC_from_cov")["G"])


def causal_learn_boss(data: Table) -> Marks:
    from causallearn.search.PermutationBased.BOSS import boss

    found = boss(numbers(data), parameters={"lambda_value": 0.5}, verbose=False)
    return of_causal_learn(found)


def dagma(data: Table) -> ist.DAG:
    from dagma.linear import DagmaLinear

    with contextlib.redirect_stderr(io.StringIO()):  # a progress bar
        weights = DagmaLinear(loss_type="l2").fit(numbers(data), lambda1=0.03)
    return weighted(weights, list(data))


def xges(data: Table) -> Marks:
    import logging

    from xges import XGES

    logging.disable(logging.WARNING)
    found = XGES().fit(numbers(data)).to_networkx()
    pairs = {(int(a), int(b)) for a, b in found.edges}
    return {("--", min(e), max(e)) if e[::-1] in pairs else ("->", *e) for e in pairs}


@cache
def compiled() -> None:
    """Let xges compile what it runs."""
    xges({str(k): np.random.default_rng(k).normal(size=50) for k in range(4)})


def flop(data: Table) -> Marks:
    import flopsearch

    found = flopsearch.flop(numbers(data), 2.0, restarts=20)
    # 1 at (i, j) is an edge from i to j, 2 at both places an undirected one.
    ahead = {("->", int(i), int(j)) for i, j in np.argwhere(found == 1)}
    return ahead | {("--", int(i), int(j)) for i, j in np.argwhere(found == 2) if i < j}


def lingam(data: Table) -> ist.DAG:
    from lingam import DirectLiNGAM

    model = DirectLiNGAM()
    model.fit(numbers(data))
    return weighted((np.abs(model.adjacency_matrix_) > 0.05).T, list(data))


def pyagrum_hc(data: Table) -> ist.DAG:
    import pandas as pd
    import pyagrum as gum

    gum.initRandom(1)
    learner = gum.BNLearner(pd.DataFrame(data))
    learner.setNumberOfThreads(1)
    learner.useScoreBIC()
    learner.useNoPrior()
    learner.useGreedyHillClimbing()
    names = learner.names()
    return ist.DAG(list(data), [(names[a], names[b]) for a, b in learner.learnDAG().arcs()])


def pgmpy_hc(data: Table) -> ist.DAG:
    import pandas as pd
    from pgmpy.estimators import HillClimbSearch

    found = HillClimbSearch(pd.DataFrame(data)).estimate("bic-d", show_progress=False)
    return ist.DAG(list(data), list(found.edges()))


EVERYWHERE: dict[str, Callable[[Table], ist.DAG | Marks]] = {
    "isthmus": isthmus,
    "isthmus XGES": isthmus_xges,
}
NUMBERS = {
    "isthmus LiNGAM": isthmus_lingam,
    "isthmus Notears": isthmus_notears,
    "published.notears": published_notears,
    "sort and regress": sort_and_regress,
    "lingam": lingam,
    "dagma": dagma,
}
CORRELATIONS = {
    "flopsearch": flop,
    "xges": xges,
    "causal-learn PC": causal_learn_pc,
    "causal-learn GES": causal_learn_ges,
    "causal-learn BOSS, BIC": causal_learn_boss,
}
LEVELS = {"pyagrum hc": pyagrum_hc, "pgmpy hc": pgmpy_hc}
METHODS = EVERYWHERE | NUMBERS | CORRELATIONS | LEVELS


def cases() -> list[Values]:
    """What only correlations decide is the same on every scale, and is run once."""
    found = []
    for seed, kind, n in product((0, 1), KINDS, (500, 5000)):
        if kind in ("mixed", "discrete"):
            methods = EVERYWHERE | (LEVELS if kind == "discrete" else CORRELATIONS)
            scales = dict.fromkeys(methods, ("raw",))
        else:
            scales = dict.fromkeys(EVERYWHERE | CORRELATIONS, ("raw",))
            scales |= dict.fromkeys(NUMBERS, ("raw", "standardised"))
        for method, own in scales.items():
            if method == "published.notears" and (kind != "straight" or n != 500):
                continue  # ten seconds a table
            found += [
                {"kind": kind, "n": n, "scale": scale, "method": method, "seed": seed}
                for scale in own
            ]
    return found


def measure(kind: str, n: int, scale: str, method: str, seed: int) -> Values:
    warnings.simplefilter("ignore")
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - peers draw from it
    dag, data = drawn(kind, n, seed)
    if scale == "standardised":
        data = {name: (c - c.mean()) / c.std() for name, c in data.items()}
    names = list(data)
    truth = of_dag(ist.DAG(names, dag.edges))
    if method == "xges":
        compiled()
    signal.signal(signal.SIGVTALRM, out_of_time)
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT)
    begin = time.process_time()
    try:
        answer = METHODS[method](data)
    except GraphError:
        return {"failed": "cyclic"}
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    seconds = time.process_time() - begin
    if isinstance(answer, ist.DAG):
        answer = of_dag(ist.DAG(names, answer.edges))
    wrong = {(min(i, j), max(i, j)) for _, i, j in answer ^ truth}
    return {"shd": len(wrong), "edges": len(answer), "seconds": round(seconds, 3)}


def out_of_time(*_: object) -> None:
    raise TimeoutError(f"more than {LIMIT} CPU seconds")


def table(rows: list[Values]) -> str:
    """Mean errors, with seconds; what nobody beats is bold."""
    columns = list(dict.fromkeys((r["case"]["kind"], r["case"]["n"]) for r in rows))
    text = f"| method | {' | '.join(f'{kind}, {n:,}' for kind, n in columns)} |\n"
    text += "| --- " * (len(columns) + 1) + "|\n"
    cells: dict[tuple[str, tuple[str, int]], tuple[float, float]] = {}
    notes: dict[tuple[str, tuple[str, int]], str] = {}
    for row in rows:
        case = row["case"]
        name = case["method"] + (", standardised" if case["scale"] == "standardised" else "")
        key = name, (case["kind"], case["n"])
        same = [r["found"] for r in rows if {**r["case"], "seed": 0} == {**case, "seed": 0}]
        done = [f for f in same if "shd" in f]
        if done:
            cells[key] = mean(f["shd"] for f in done), mean(f["seconds"] for f in done)
        if len(done) < len(same):
            notes[key] = f" of {len(done)} of {len(same)}" if done else "failed"
    names = list(dict.fromkeys(name for name, _ in [*cells, *notes]))
    # Raw scales tell the order of the causes, so what reads variances is not among the best there.
    fair = [k for k in cells if k[0] not in VARIANCES]
    for name in names:
        line = []
        for column in columns:
            key = name, column
            if key not in cells:
                line.append(notes.get(key, "–"))
                continue
            least = min(cells[k][0] for k in fair if k[1] == column)
            value = f"{cells[key][0]:.1f}"
            bold = f"**{value}**" if key in fair and cells[key][0] <= least else value
            line.append(f"{bold} ({cells[key][1]:.2g} s){notes.get(key, '')}")
        text += f"| {name} | {' | '.join(line)} |\n"
    return text.rstrip("\n")


VARIANCES = ("isthmus Notears", "published.notears", "sort and regress", "dagma")

if __name__ == "__main__":
    if os.environ.get("OMP_NUM_THREADS") != "1":
        sys.exit("Set OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1, so that all use one thread.")
    packages = (
        "numpy",
        "causal-learn",
        "dagma",
        "lingam",
        "xges",
        "flopsearch",
        "pyagrum",
        "pgmpy",
    )
    Experiment(
        "peers-grid",
        measure,
        cases(),
        code=("src/isthmus/searches", "src/isthmus/verbs/defaults.py", "benchmarks/peers/grid.py"),
        packages=packages,
    ).main(table)
