"""Learn a network with Isthmus, called by the rule of this module with `snakemake` defined."""

import csv
import time
from pathlib import Path
from typing import Any

import isthmus as ist

snakemake: Any = globals()["snakemake"]


def read(path: str, datatype: str) -> dict[str, Any]:
    """Return the columns of a table of Benchpress."""
    with Path(path).open(newline="", encoding="utf-8") as file:
        names, *rows = csv.reader(file)
    if datatype == "discrete":
        rows = rows[1:]  # the first has the numbers of levels
        return dict(zip(names, zip(*rows, strict=True), strict=True))
    return {n: [float(v) for v in c] for n, c in zip(names, zip(*rows, strict=True), strict=True)}


def learn(table: dict[str, Any]) -> ist.Solution:
    """Learn with the options of the configuration."""
    options = {
        option: getattr(ist, snakemake.wildcards[option])()
        for option in ("search", "score")
        if snakemake.wildcards[option] != "default"
    }
    timeout = snakemake.wildcards["timeout"]
    return ist.learn(
        table,
        **options,
        kinds=dict.fromkeys(table, snakemake.wildcards["datatype"]),
        seed=int(snakemake.wildcards["seed"]),
        time_limit=None if timeout == "None" else float(timeout),
    )


table = read(snakemake.input["data"], snakemake.wildcards["datatype"])
start = time.perf_counter()
try:
    solution = learn(table)
except ist.errors.TimeLimitError:
    solution = None
seconds = time.perf_counter() - start

with Path(snakemake.output["adjmat"]).open("w", newline="", encoding="utf-8") as file:
    if solution is not None:  # an empty file says that there is no graph
        graph = solution.cpdag if solution.equivalent else solution.dag
        edges = set(graph.edges if isinstance(graph, ist.DAG) else graph.directed)
        for a, b in () if isinstance(graph, ist.DAG) else graph.undirected:
            edges |= {(a, b), (b, a)}
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows([int((a, b) in edges) for b in table] for a in table)
Path(snakemake.output["time"]).write_text(str(seconds))
Path(snakemake.output["ntests"]).write_text("None")
