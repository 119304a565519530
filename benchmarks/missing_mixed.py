"""Missing values in tables of numbers and categories: errors of graphs, and calibrated imputation.

    python benchmarks/missing_mixed.py [--seeds 5]

Tables of 1,000 rows and 12 columns, half of them categories of three levels, from random networks
of 18 edges, lose 10 or 30 % of their cells completely at random (MCAR), or in half of the columns
with a probability that depends on the value of a complete column (MAR). The graph is learned with
the defaults of ``learn``, and its CPDAG compared with the true one.

Beside the strategies of Isthmus, two kinds of imputation fill in the table before ``learn``:
chained equations as in mice (``IterativeImputer`` of scikit-learn with Bayesian ridge regressions
and draws from their posterior, five rounds; categories as indicators, of which the largest counts),
and random forests as in missForest (scikit-learn, 30 trees, two passes).

The second table compares what is put into missing cells: root mean square error of numbers in units
of their standard deviation, wrong categories, and the share of true numbers between the smallest
and the largest of 20 draws, which is 90.5 % if the draws are calibrated. The network's draws come
from `isthmus.fitting.incomplete.completions`, with the graph that was learned.

Results: results/missing-mixed.md.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from missing import PATTERNS, punched
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 - it enables the next line
from sklearn.impute import IterativeImputer

import isthmus as ist
from isthmus.errors import IsthmusError
from isthmus.fitting.incomplete import completions

HERE = Path(__file__).parent
ROWS, COLUMNS, EDGES, DRAWS = 1_000, 12, 18, 20
LEVELS = np.array(["a", "b", "c"], dtype=object)
OWN = {
    "complete data": None,
    "`DropRows`": ist.DropRows(),
    "`ExpectationMaximisation`": ist.ExpectationMaximisation(),
}
CHAINED, FOREST = "chained equations, one draw", "random forests (missForest)"


def simulate(seed: int) -> tuple[dict[str, Any], ist.DAG]:
    """Draw a table of numbers and categories, and return it with the true graph."""
    rng = np.random.default_rng(seed)
    order, discrete = rng.permutation(COLUMNS), set(rng.permutation(COLUMNS)[: COLUMNS // 2])
    pairs = [(i, j) for i in range(COLUMNS) for j in range(i + 1, COLUMNS)]
    chosen = [pairs[k] for k in rng.choice(len(pairs), EDGES, replace=False)]
    edges = [(int(order[i]), int(order[j])) for i, j in chosen]
    values = np.zeros((COLUMNS, ROWS))
    for v in order.tolist():
        number, scores = np.zeros(ROWS), np.zeros((ROWS, 3))
        for parent in (a for a, b in edges if b == v):
            if parent in discrete:
                codes = values[parent].astype(int)
                shifts = rng.normal(size=3)
                number += 1.2 * (shifts - shifts.mean())[codes]
                scores += 1.5 * rng.normal(size=(3, 3))[codes]
            else:
                z = (values[parent] - values[parent].mean()) / values[parent].std()
                number += rng.choice([-1, 1]) * rng.uniform(0.8, 1.6) * z
                scores += np.outer(z, rng.permutation([-1.6, 0.0, 1.6]))
        if v in discrete:
            values[v] = (scores + rng.gumbel(size=(ROWS, 3))).argmax(axis=1)
        else:
            values[v] = number + rng.normal(size=ROWS)
    names = [f"x{i}" for i in range(COLUMNS)]
    table = {
        name: LEVELS[values[i].astype(int)] if i in discrete else values[i]
        for i, name in enumerate(names)
    }
    return table, ist.DAG(names, [(names[a], names[b]) for a, b in edges])


def is_missing(column: Any) -> Any:
    """Which cells of a column have no value."""
    return np.isnan(column) if column.dtype.kind == "f" else np.equal(column, None)


def chained(table: dict[str, Any], seed: int) -> dict[str, Any]:
    """Fill in one draw by chained Bayesian regressions."""
    columns, owner = [], []
    for name, column in table.items():
        if column.dtype.kind == "f":
            columns.append(column)
            owner.append(name)
            continue
        absent = is_missing(column)
        for level in LEVELS:
            columns.append(np.where(absent, np.nan, column == level).astype(float))
            owner.append(name)
    imputer = IterativeImputer(sample_posterior=True, max_iter=5, random_state=seed)
    filled = imputer.fit_transform(np.stack(columns, axis=1))
    result = {}
    for name, column in table.items():
        own = filled[:, [i for i, other in enumerate(owner) if other == name]]
        result[name] = own[:, 0] if column.dtype.kind == "f" else LEVELS[own.argmax(axis=1)]
    return result


def forest(table: dict[str, Any], seed: int) -> dict[str, Any]:
    """Fill in predictions of random forests, column by column, from the fewest missing values."""
    rng = np.random.default_rng(seed)
    absent = {name: is_missing(column) for name, column in table.items()}
    filled = {}
    for name, column in table.items():
        filled[name] = column.copy()
        there = column[~absent[name]]
        filled[name][absent[name]] = rng.choice(there, int(absent[name].sum()))

    def design(target: str) -> Any:
        parts = []
        for name, column in filled.items():
            if name != target:
                own = column.dtype.kind == "f"
                parts += [column] if own else [(column == x).astype(float) for x in LEVELS[1:]]
        return np.stack(parts, axis=1)

    order = sorted((n for n in table if absent[n].any()), key=lambda n: int(absent[n].sum()))
    for _ in range(2):
        for name in order:
            x, holes = design(name), absent[name]
            number = table[name].dtype.kind == "f"
            kind = RandomForestRegressor if number else RandomForestClassifier
            model = kind(n_estimators=30, random_state=seed)
            own = table[name][~holes]
            model.fit(x[~holes], own if number else own.astype(str))
            predicted = model.predict(x[holes])
            filled[name][holes] = predicted if number else predicted.astype(object)
    return filled


def by_network(table: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Draw completed tables from the learned network."""
    solution = ist.learn(table, missing=ist.ExpectationMaximisation())
    frame = ist.Frame(table, missing=ist.ExpectationMaximisation())
    schema, rows = frame.schema(), frame.rows_with_holes()
    drawn = completions(schema, rows, solution.dag, seed=seed, number=DRAWS)
    return [
        {
            name: LEVELS[whole[:, i].astype(int)] if schema[name].levels else whole[:, i]
            for i, name in enumerate(schema.names)
        }
        for _, whole in drawn
    ]


def cells(truth: dict[str, Any], holes: dict[str, Any], draws: list[dict[str, Any]]) -> list[float]:
    """Error of numbers, share of wrong categories, and share of numbers within the draws."""
    squares, wrong, inside = [], [], []
    for name, column in truth.items():
        absent = is_missing(holes[name])
        if not absent.any():
            continue
        own = [draw[name][absent] for draw in draws]
        if column.dtype.kind == "f":
            away = (np.mean(own, axis=0) - column[absent]) / column.std()
            squares += (away**2).tolist()
            low, high = np.min(own, axis=0), np.max(own, axis=0)
            inside += ((low <= column[absent]) & (column[absent] <= high)).tolist()
        else:
            votes = np.stack([np.sum([o == x for o in own], axis=0) for x in LEVELS])
            wrong += (LEVELS[votes.argmax(axis=0)] != column[absent]).tolist()
    return [float(np.sqrt(np.mean(squares))), float(np.mean(wrong)), float(np.mean(inside))]


def distance(table: Any, missing: Any, dag: ist.DAG, begin: float) -> list[tuple[int, float]]:
    """Structural Hamming distance and CPU seconds; nothing if the table is refused."""
    try:
        learned = ist.learn(table, missing=missing).cpdag
    except IsthmusError:
        return []
    return [(ist.shd(learned, dag.cpdag()), time.process_time() - begin)]


def main() -> None:
    """Measure and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    seeds = parser.parse_args().seeds
    warnings.simplefilter("ignore")
    distances: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    filled_in: dict[tuple[str, str], list[list[float]]] = defaultdict(list)
    patterns = [f"{how} {share:.0%}" for how, share in PATTERNS]
    for seed in range(seeds):
        truth, dag = simulate(seed)
        for pattern, (how, share) in zip(patterns, PATTERNS, strict=True):
            holes = punched(truth, how, share, seed)

            for label, missing in OWN.items():
                table, begin = truth if missing is None else holes, time.process_time()
                distances[label, pattern] += distance(table, missing, dag, begin)
            begin = time.process_time()
            distances[CHAINED, pattern] += distance(chained(holes, seed), None, dag, begin)
            begin = time.process_time()
            by_forest = forest(holes, seed)
            distances[FOREST, pattern] += distance(by_forest, None, dag, begin)
            draws = {
                "the learned network, 20 draws": by_network(holes, seed),
                "chained equations, 20 draws": [chained(holes, k) for k in range(DRAWS)],
                FOREST: [by_forest],
            }
            for label, own in draws.items():
                filled_in[label, pattern].append(cells(truth, holes, own))
            print(seed, pattern, flush=True)
    head = [f"| | {' | '.join(patterns)} |", "| --- " * (len(patterns) + 1) + "|"]
    lines = [
        "# Missing values in mixed tables",
        "",
        f"`python benchmarks/missing_mixed.py --seeds {seeds}`",
        "",
        (
            f"CPDAG-SHD, mean ± standard deviation over {seeds} tables (CPU seconds). True graphs "
            f"have {EDGES} edges. A dash: no complete row."
        ),
        "",
        *head,
    ]
    for label in dict.fromkeys(label for label, _ in distances):
        row = []
        for pattern in patterns:
            runs = np.array(distances.get((label, pattern), []))
            if not len(runs):
                row.append("–")
                continue
            fewer = f" [{len(runs)} of {seeds}]" if len(runs) < seeds else ""
            spread = f" ± {runs[:, 0].std(ddof=1):.1f}" if len(runs) > 1 else ""
            row.append(f"{runs[:, 0].mean():.1f}{spread} ({runs[:, 1].mean():.1f}){fewer}")
        lines.append(f"| {label} | {' | '.join(row)} |")
    lines += [
        "",
        (
            "Missing cells: root mean square error of numbers in standard deviations / wrong "
            "categories / numbers between the smallest and the largest draw (90.5% if calibrated), "
            "means over the tables."
        ),
        "",
        *head,
    ]
    for label in dict.fromkeys(label for label, _ in filled_in):
        row = []
        for pattern in patterns:
            error, wrong, inside = np.mean(filled_in[label, pattern], axis=0)
            within = "–" if label == FOREST else f"{inside:.1%}"
            row.append(f"{error:.2f} / {wrong:.0%} / {within}")
        lines.append(f"| {label} | {' | '.join(row)} |")
    (HERE / "results" / "missing-mixed.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
