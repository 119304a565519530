"""Groups of different levels: false and missed edges, and how often notes speak.

Numbers: two pairs and a column on its own, as in five hospitals of 400 rows. Levels: eight columns
of three levels with ten edges. Mixed: the same, with four of the columns as numbers. Each group
has levels of its own, whose standard deviation between groups is the spread: of the noise for
numbers, and of logits for levels. Writes results/groups.md.

    python benchmarks/groups/measure.py          # about 20 seconds on one core
    python benchmarks/groups/measure.py --tables 2
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import isthmus as ist
from isthmus import simulate

RESULT = Path(__file__).parents[1] / "results" / "groups.md"
Table = dict[str, Any]
Edges = set[frozenset[str]]


def numbers(seed: int, groups: int, rows: int, spread: float) -> tuple[Table, Edges]:
    """Two pairs and a column on its own."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(groups), rows)
    x, y, z, w, u = rng.normal(size=(5, len(group)))
    columns = {"x": x, "y": y + 0.8 * x, "z": z, "w": w + 0.8 * z, "u": u}
    level = rng.normal(scale=spread, size=(5, groups))
    table = {n: v + level[i, group] for i, (n, v) in enumerate(columns.items())}
    return table | {"site": group}, {frozenset("xy"), frozenset("zw")}


def levels(
    seed: int, groups: int, rows: int, spread: float, mixed: bool = False
) -> tuple[Table, Edges]:
    """Eight columns of three levels and ten edges; four of them as numbers, if mixed."""
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(8, 1)
    chosen = rng.choice(len(first), 10, replace=False)
    edges = list(zip(first[chosen].tolist(), second[chosen].tolist(), strict=True))
    weights = {e: rng.normal(0, 1.2, (3, 3)) for e in edges}
    base = rng.normal(0, 0.5, (8, 3))
    group = np.repeat(np.arange(groups), rows)
    shift = rng.normal(0, spread, (groups, 8, 3))
    columns = np.zeros((8, 3, len(group)))  # what a child sees: indicators, or a number
    values: list[Any] = []
    for j in range(8):
        logits = base[j] + shift[group, j]
        for (a, b), own in weights.items():
            if b == j:
                logits = logits + columns[a].T @ own
        if mixed and j % 2:
            values.append(0.5 * (logits[:, 1] - logits[:, 0]) + rng.normal(size=len(group)))
            columns[j, 0] = 0.5 * values[j]
        else:
            codes = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
            columns[j] = codes == np.arange(3)[:, None]
            values.append(np.array(["a", "b", "c"])[codes])
    table = {f"v{j}": values[j] for j in range(8)}
    return table | {"site": group}, {frozenset((f"v{a}", f"v{b}")) for a, b in edges}


def several(seed: int, groups: int, rows: int, spread: float) -> tuple[Table, Edges]:
    return levels(seed, groups, rows, spread, mixed=True)


def skeleton(solution: Any) -> Edges:
    return {frozenset(e) for e in solution.dag.edges}


def apart(table: Table) -> list[Table]:
    """The table of each group."""
    groups = np.unique(table["site"])
    rest = [n for n in table if n != "site"]
    return [{n: table[n][table["site"] == g] for n in rest} for g in groups]


def row(
    make: Callable[..., tuple[Table, Edges]],
    groups: int,
    rows: int,
    spread: float,
    tables: int,
    *,
    federated: bool,
) -> tuple[list[str], float]:
    """False and missed edges without groups, with groups and in a federation; power with groups."""
    false, missed = np.zeros(3), np.zeros(3)
    equal = found = edges = 0
    for seed in range(tables):
        table, true = make(seed, groups, rows, spread)
        plain = {n: v for n, v in table.items() if n != "site"}
        learned = [ist.learn(plain), ist.learn(table, groups="site")]
        if federated:
            learned.append(ist.learn(ist.Federation.simulate(apart(table))))
            equal += learned[1].cpdag == learned[2].cpdag
        for k, solution in enumerate(learned):
            own = skeleton(solution)
            false[k] += len(own - true) / tables
            missed[k] += len(true - own) / tables
        found += len(skeleton(learned[1]) & true)
        edges += len(true)
    cells = [f"{false[k]:.1f}, {missed[k]:.1f}" for k in range(2)]
    cells += [f"{false[2]:.1f}, {missed[2]:.1f}", f"{equal} of {tables}"] if federated else ["", ""]
    return cells, found / edges


def edges_of(tables: int) -> list[str]:
    """False and missed edges."""
    head = (
        "| columns | groups | spread | without groups | `groups=` | federation | equal graphs "
        "| share of true edges with `groups=`, of that at spread 0 |"
    )
    lines = [head, "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    plans: list[tuple[str, Any, tuple[tuple[int, int], ...], tuple[float, ...]]] = [
        ("numbers", numbers, ((5, 400), (2, 500), (60, 20), (300, 4), (500, 2)), (0, 0.3, 1, 10)),
        ("levels", levels, ((6, 600), (2, 600), (60, 60), (300, 12), (500, 8)), (0, 0.5, 1)),
        ("mixed", several, ((6, 600), (2, 600), (60, 60), (300, 12), (500, 8)), (0, 0.5, 1)),
    ]
    for name, make, sizes, spreads in plans:
        for groups, rows in sizes:
            first = 0.0
            for spread in spreads:
                cells, power = row(make, groups, rows, spread, tables, federated=groups in (5, 6))
                first = power if spread == 0 else first
                size = f"{groups} of {rows}"
                ratio = f"{power / first:.2f}"
                lines.append(f"| {name} | {size} | {spread} | {' | '.join(cells)} | {ratio} |")
                sys.stdout.write(lines[-1] + "\n")
    return lines


def spoken(solution: Any, text: str) -> bool:
    return any(text in note for note in solution.notes)


def notes_of(tables: int) -> list[str]:
    """How often the notes about groups speak."""
    lines = ["| tables | false edges per table | with a note, of those with false edges |"]
    lines += ["| --- | --- | --- |"]
    for groups, rows, spread in ((30, 30, 0.7), (6, 200, 0.5), (6, 200, 1.0), (100, 10, 0.7)):
        false, told, wrong = 0, 0, 0
        for seed in range(tables):
            rng = np.random.default_rng(seed)
            group = rng.permutation(np.repeat(np.arange(groups), rows))
            table: Table = {
                f"v{j}": rng.normal(scale=spread, size=groups)[group] + rng.normal(size=len(group))
                for j in range(5)
            }
            solution = ist.learn(table | {"clinic": group + 100})
            own = [e for e in solution.dag.edges if "clinic" not in e]
            false += len(own)
            wrong += bool(own)
            told += bool(own) and spoken(solution, "Learn within the groups")
        what = f"{groups} clinics of {rows}, spread {spread}, as numbers from 100"
        lines.append(f"| {what} | {false / tables:.1f} | {told} of {wrong} |")
    alarms = slopes = 0
    for seed in range(5 * tables):
        rng = np.random.default_rng(seed)
        data = simulate.linear(simulate.erdos_renyi(8, 10, seed=seed), 800, seed=seed).data
        clean: Table = {n: np.array(v) for n, v in data.items()}
        names = list(clean)
        for name in names[:2]:
            clean[name] = np.round(2 * clean[name])
        cut = np.digitize(clean[names[2]], [-1.5, -0.5, 0.5, 1.5])
        clean[names[2]] = np.array(list("abcde"))[cut]
        clean["age"] = np.round(40 + 10 * clean[names[3]] + 3 * rng.normal(size=800))
        clean["number"] = rng.integers(0, 30, 800)
        clean["count"] = rng.poisson(np.exp(0.3 * np.clip(clean[names[4]], -5, 5)))
        alarms += spoken(ist.learn(clean), "Learn within the groups")
        table, _ = numbers(seed, 8, 60, 1.0)
        slopes += spoken(ist.learn(table, groups="site"), "on their own")
    clean_tables = "no groups: ages, counts and whole numbers among eight columns"
    lines.append(f"| {clean_tables} | | alarms: {alarms} of {5 * tables} |")
    equal_slopes = "`groups=` and equal slopes, eight groups of 60"
    lines.append(f"| {equal_slopes} | | alarms: {slopes} of {5 * tables} |")
    unequal = 0
    for seed in range(tables):
        rng = np.random.default_rng(seed)
        group = np.repeat(np.arange(8), 60)
        x, y, z = rng.normal(size=(3, 480))
        slope = 0.3 + 0.5 * rng.permutation(np.linspace(-1, 1, 8))
        table = {"x": x, "y": slope[group] * x + y, "z": z, "site": group}
        unequal += spoken(ist.learn(table, groups="site"), "on their own")
    lines.append(f"| slopes from -0.2 to 0.8, eight groups of 60 | | {unequal} of {tables} |")
    return lines


def cost_of(rows: int) -> list[str]:
    """CPU time of the moments of 20 columns in 1,000 groups."""
    import duckdb
    import polars as pl

    rng = np.random.default_rng(0)
    table: Table = {f"x{i}": rng.normal(size=rows) for i in range(20)}
    table["site"] = rng.integers(0, 1000, rows)
    frame = pl.DataFrame(table)
    arrow = frame.to_arrow()
    places: dict[str, Callable[[], Any]] = {
        "memory": lambda: table,
        "DuckDB": lambda: duckdb.from_arrow(arrow),
        "Polars, lazy": frame.lazy,
    }
    lines = ["| table | all rows | within groups |", "| --- | --- | --- |"]
    for name, make in places.items():
        seconds = []
        for groups in (None, "site"):
            begin = time.process_time()
            ist.summarise(make(), groups=groups)
            seconds.append(f"{time.process_time() - begin:.2f} s")
        lines.append(f"| {name} | {' | '.join(seconds)} |")
    return lines


def main() -> None:
    """Measure everything."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=10)
    tables = parser.parse_args().tables
    warnings.simplefilter("ignore")
    begin = time.process_time()
    first, second = edges_of(tables), notes_of(tables)
    third = cost_of(10**6)
    seconds = time.process_time() - begin
    command = f"`python benchmarks/groups/measure.py --tables {tables}`"
    text = [
        "# Groups of different levels",
        "",
        f"{command}: mean of {tables} tables, {seconds:.0f} s of CPU time.",
        "",
        "False, missed edges per table:",
        "",
        *first,
        "",
        "Notes:",
        "",
        *second,
        "",
        "CPU time of the moments of a million rows of 20 columns, in 1,000 groups:",
        "",
        *third,
        "",
    ]
    RESULT.write_text("\n".join(text), encoding="utf-8")
    sys.stdout.write("\n".join([*second, *third]) + "\n")


if __name__ == "__main__":
    main()
