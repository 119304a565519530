"""The headline figure of each of the five papers, as published and as recommended.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/papers.py notears
    (or admm, private-k2, gp, rbnets; each takes less than ten minutes of one thread)

Each writes a table to benchmarks/results/papers-NAME.md, which the page of the paper shows.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

import isthmus as ist
from isthmus import published, simulate
from isthmus.statistics import Rows
from isthmus.testing import enumerate_dags

HERE = Path(__file__).resolve().parent
Row = tuple[object, ...]
# Of the code that runs; at the end of a run there may be a later one.
COMMIT = subprocess.run(
    ["git", "log", "-1", "--format=%h", "--", "src", "benchmarks/papers.py"],
    cwd=HERE.parent, capture_output=True, text=True, check=False,
).stdout.strip()  # fmt: skip


def write(name: str, remark: str, columns: Row, rows: Iterable[Row]) -> None:
    """Write a table with the commit, the versions and the CPU time that it was made with."""
    lines = [columns, ("---",) * len(columns), *rows]
    table = "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
    stamp = (
        f"Code of commit {COMMIT}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"{platform.machine()}, {time.process_time():.0f} CPU seconds."
    )
    text = (
        f"{remark}\n\n{table}\n\n{stamp} To take it again: `python benchmarks/papers.py {name}`.\n"
    )
    (HERE / "results" / f"papers-{name}.md").write_text(text)
    print(text)


def mean(values: list[float], digits: int = 1) -> str:
    return f"{np.mean(values):.{digits}f}"


def distance(edges: Iterable[tuple[str, str]], truth: ist.DAG) -> int:
    """Structural Hamming distance of a graph that may have cycles: pairs that differ."""
    found, wanted = set(edges), set(truth.edges)
    return len({frozenset(edge) for edge in found ^ wanted})


def notears() -> None:
    """Figure 3: distance to the true graph with ten variables, three seeds."""
    rows = []
    for graph, n in (("ER2", 1000), ("SF4", 1000), ("ER2", 20), ("SF4", 20)):
        wrong: dict[str, list[float]] = {"published": [], "recommended": [], "XGES": []}
        for seed in range(3):
            dag = (
                simulate.erdos_renyi(10, 20, seed=seed)
                if graph == "ER2"
                else simulate.scale_free(10, 4, seed=seed)
            )
            table = simulate.linear(dag, n, seed=seed).data
            wrong["published"].append(distance(published.notears(table).edges, dag))
            own = ist.learn(table, score=ist.LeastSquares(), search=ist.Notears())
            wrong["recommended"].append(distance(own.dag.edges, dag))
            greedy = ist.learn(table, score=ist.GaussianBIC(), search=ist.XGES())
            wrong["XGES"].append(distance(greedy.dag.edges, dag))
        rows.append((graph, n, *(mean(v) for v in wrong.values())))
    write(
        "notears",
        "Mean SHD with ten variables, Gaussian noise, three seeds. XGES stands for FGS; one graph "
        "of its equivalence class is compared.",
        ("graph", "rows", "`published.notears`", "`Notears()`", "`XGES` with BIC"),
        rows,
    )


def admm() -> None:
    """Figure 2, d = 20, 64 sites of four rows: the numbers that the text gives."""
    rates: dict[str, list[tuple[float, float]]] = {}
    for seed in range(5):
        dag = simulate.erdos_renyi(20, 20, seed=seed)
        table = simulate.linear(dag, 256, seed=seed).data
        sites = [{name: v[k::64] for name, v in table.items()} for k in range(64)]
        alone = []
        for site in sites:
            search = ist.Notears(penalty=0.01, threshold=0.3)
            found = ist.learn(site, score=ist.LeastSquares(), search=search).details
            weights = found.weights_before_threshold
            alone.append(published.WeightedGraph(dag.nodes, weights, 0.3, strict=True))
        pooled = ist.learn(table, score=ist.LeastSquares(), search=ist.Notears())
        best = min(alone, key=lambda g: distance(g.edges, dag))
        for name, edges in {
            "`published.notears_admm`": published.notears_admm(sites).edges,
            "`published.vote`": published.vote(alone).edges,
            "`published.average`": published.average(alone).edges,
            "best site": best.edges,
            "recommended: `Notears()` on the secure sum of moments": pooled.dag.edges,
        }.items():
            share = len(set(edges) & set(dag.edges)) / 20
            rates.setdefault(name, []).append((share, distance(edges, dag)))
    paper = ("0.78", "0.05", "0.25", "0.33", "–")
    write(
        "admm",
        "20 variables, 64 sites of four rows, five seeds. The sites alone use `Notears` with the "
        "paper's λ and threshold.",
        ("method", "true edges found", "paper", "SHD"),
        [
            (name, mean([r for r, _ in pairs], 2), printed, mean([s for _, s in pairs]))
            for (name, pairs), printed in zip(rates.items(), paper, strict=True)
        ],
    )


def private_k2() -> None:
    """The open question of section 4: does g order families as f does?"""
    scores: dict[str, Callable[..., float]] = {
        "f": published.k2_score,
        "g": published.stirling_score,
        "g with constants": lambda counts: published.stirling_score(counts, constants=True),
    }
    rng = np.random.default_rng(0)
    names = tuple("abcdef")
    rows = []
    for n in (200, 1000, 5000, 20_000):
        same, edges = Counter[str](), Counter[str]()
        for _ in range(40):
            table: dict[str, np.ndarray] = {}
            for i, name in enumerate(names):
                parents = rng.permutation(i)[: rng.integers(0, 3)]
                code = np.zeros(n, dtype=int)
                for p in parents:
                    code = 2 * code + table[names[p]]
                table[name] = (rng.random(n) < rng.beta(0.8, 0.8, 2 ** len(parents))[code]) * 1
            alice, bob = ({k: table[k] for k in names[part::2]} for part in (0, 1))
            found = {
                key: published.private_k2(
                    alice, bob, order=names, max_parents=3, score=score
                ).additions
                for key, score in scores.items()
            }
            for key, own in found.items():
                same[key] += sum(set(own[v]) == set(found["f"][v]) for v in names)
                edges[key] += sum(map(len, own.values()))
        kept = (f"{same[k]} of 240" for k in ("g", "g with constants"))
        rows.append((f"{n:,}", *kept, *(edges[k] for k in scores)))
    write(
        "private-k2",
        "K2 with g beside K2 with f: 40 random networks of six binary variables per row, at most "
        "three parents; families with the same parents, and edges in all.",
        ("rows", "g: same", "g with constants: same", "edges, f", "g", "g with constants"),
        rows,
    )


def gp() -> None:
    """Figure 3: reverse Kullback-Leibler divergence of draws, four nodes, 543 graphs."""
    dag = simulate.erdos_renyi(4, 3, seed=3)
    mechanism = simulate.FourierAdditive(decay=1.0)
    data = simulate.nonlinear(dag, 100, mechanism=mechanism, seed=3).standardised().data
    score = ist.ExactGP(integral=ist.GPIntegral.IMPORTANCE, integration_draws=2000)
    local = score.bind(Rows.gather(ist.Frame(data)))
    logs = {frozenset(g.edges): local.total(g) for g in enumerate_dags(tuple(data))}
    whole = np.logaddexp.reduce(list(logs.values()))

    def divergence(posterior: ist.Posterior) -> str:
        own: dict[frozenset, float] = Counter()
        ensemble = posterior.ensemble
        for graph, weight in zip(ensemble.dags, np.asarray(ensemble.weights), strict=True):
            own[frozenset(graph.edges)] += float(weight)
        total = sum(own.values())
        shares = {edges: w / total for edges, w in own.items() if w > 0}
        kl = sum(p * (np.log(p) - logs[e] + whole) for e, p in shares.items())
        return f"{kl:.4f}"

    rows = []
    for draws in (100, 1000, 10_000):
        sampler = ist.PartitionMCMC()
        linear = ist.sample(data, score=ist.BGe(), sampler=sampler, draws=draws, seed=1)
        laplace = ist.sample(data, score=ist.ExactGP(), sampler=sampler, draws=draws, seed=1)
        weighted = published.gp_posterior(data, draws=draws, seed=1)
        rows.append((f"{draws:,}", *map(divergence, (linear, laplace, weighted))))
    write(
        "gp",
        "Reverse Kullback-Leibler divergence between M draws and the posterior over all 543 graphs "
        "of four nodes, 100 rows. The reference is importance sampling with 2,000 draws a family.",
        ("M", "BGe", "Laplace", "`published.gp_posterior`"),
        rows,
    )


def rbnets() -> None:
    """Table 2, alarm: BIC below the optimum and CPU seconds, after the parent sets are listed."""
    sys.path.append(str(HERE / "orders"))
    from data import load

    codes = load("alarm*")
    rows: list[Row] = []

    def timed(name: str, run: Callable[[], float], remark: str = "") -> None:
        begin = time.process_time()
        scores[name] = run()
        rows.append((name, scores[name], f"{time.process_time() - begin:.1f}", remark))

    scores: dict[str, float] = {}
    begin = time.process_time()
    table = ist.parent_sets(codes, score=ist.BIC(), max_parents=3, jobs=1)
    listing = time.process_time() - begin
    timed("`AStar()`", lambda: ist.solve(table, search=ist.AStar()).score)
    timed(
        "`OBS()`, at most one second",
        lambda: ist.solve(table, search=ist.OBS(), time_limit=1).score,
    )
    timed("`Boss()`", lambda: ist.solve(table, search=ist.Boss()).score)
    for label, epsilon in (("UCB", None), ("ε-greedy, ε = 0.1", 0.1)):
        for seed in range(3):
            begin = time.process_time()
            result = published.rbnets(codes, epsilon=epsilon, max_parents=3, seed=seed)
            seconds = time.process_time() - begin - listing
            name = f"`published.rbnets`, {label}, seed {seed}"
            scores[name] = result.score
            best = f"best walk {scores['`AStar()`'] - result.walks.max():.1f} below"
            rows.append((name, result.score, f"{seconds:.1f}", best))
    optimum = scores["`AStar()`"]
    write(
        "rbnets",
        f"alarm, 1,000 rows, at most three parents; {len(table)} parent sets listed in "
        f"{listing:.1f} CPU seconds, which are not counted, as in the paper. 300 episodes.",
        ("search", "BIC below the optimum", "CPU seconds", ""),
        [(name, f"{optimum - score:.1f}", *rest) for name, score, *rest in rows],
    )


FIGURES = {
    "notears": notears,
    "admm": admm,
    "private-k2": private_k2,
    "gp": gp,
    "rbnets": rbnets,
}

if __name__ == "__main__":
    for chosen in sys.argv[1:] or FIGURES:
        FIGURES[chosen]()
