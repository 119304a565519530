"""Whether bnlearn gives the same answers to the tasks of `docs/how-to/tasks.md`.

Writes the tables of the page and the graphs of Isthmus, runs `tasks.R`, and prints both answers in
Markdown. It needs R with the package bnlearn (its library in R_LIBS), scikit-learn and statsmodels:

    python benchmarks/peers/tasks_bnlearn.py > benchmarks/results/tasks-bnlearn.md
"""

from __future__ import annotations

import csv
import subprocess
import warnings
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits, load_wine
from statsmodels.datasets import (  # type: ignore[import-untyped]
    anes96,
    co2,
    fair,
    fertility,
    randhie,
)

import isthmus as ist
from isthmus import io

HERE = Path(__file__).parent
SIMULATED = {"15", "18"}
"""Tasks that bnlearn answers by 2,000,000 weighted draws."""


def write(folder: Path, name: str, table: Any, edges: Iterable[tuple[str, str]]) -> None:
    """Write a table and a graph for R."""
    table.to_csv(folder / f"{name}.csv", index=False)
    pd.DataFrame(list(edges), columns=["from", "to"]).to_csv(
        folder / f"{name}.edges.csv", index=False
    )


def categories(folder: Path) -> dict[tuple[str, str], float]:
    """Write the tables with categories, and return the answers of Isthmus."""
    wine = load_wine(as_frame=True).frame.rename(columns={"target": "cultivar"})
    wine["cultivar"] = wine["cultivar"].map({0: "A", 1: "B", 2: "C"})
    learned = ist.learn(wine, knowledge=ist.Knowledge(roots=["cultivar"]))
    own = [(a, b) for a, b in learned.dag.edges if b != "cultivar"]
    assert len(own) == len(learned.dag.edges)
    write(folder, "wine", wine, own)
    numbers = [name for name in wine.columns if name != "cultivar"]
    edges = [("cultivar", name) for name in numbers]
    write(folder, "naive", wine, edges)
    naive: Any = ist.fit(wine, ist.DAG(wine.columns, edges), pseudo_count=0)
    voters = anes96.load_pandas().data[["educ", "selfLR", "PID", "TVnews", "vote"]].astype(int)
    voters["vote"] = voters["vote"].map({0: "Clinton", 1: "Dole"})
    order = ist.Knowledge(tiers=[["educ"], ["selfLR"], ["PID"], ["TVnews"], ["vote"]])
    solution = ist.learn(voters, score=ist.BIC(), knowledge=order)
    network: Any = solution.fit()
    write(folder, "voters", voters, solution.dag.edges)
    write(folder, "own", voters, [("selfLR", "vote")])
    io.write_bif(network, folder / "voters.bif")
    best = ist.score(voters, solution.dag, ist.BIC())
    alone = ist.score(voters, ist.DAG(voters.columns, [("selfLR", "vote")]), ist.BIC())
    return {
        ("2", "size of the Markov blanket"): len(learned.dag.markov_blanket("cultivar")),
        ("4", "mean of alcohol in cultivar B"): naive.conditionals["alcohol"].intercepts[1],
        ("14", "BIC of the graph of hc"): best,
        ("19", "BIC of the graph of Isthmus"): best,
        ("19", "BIC of an own graph"): alone,
        ("15", "P(Dole) given selfLR = 4 and educ = 7"): network.query(
            "vote", {"selfLR": 4, "educ": 7}
        )["Dole"],
        ("18", "P(Dole) after PID is set to 3"): network.query("vote", do={"PID": 3})["Dole"],
    }


def numbers(folder: Path) -> dict[tuple[str, str], float]:
    """Write the tables of numbers, and return the answers of Isthmus."""
    births = fertility.load_pandas().data[[*map(str, range(1960, 2011, 10))]].dropna()
    years = list(births)
    edges = [(a, b) for i, b in enumerate(years) for a in years[:i]]
    write(folder, "births", births, edges)
    predicted = ist.fit(births, ist.DAG(years, edges)).predict(births.drop(columns="2010"), "2010")
    weeks = co2.load_pandas().data.rename_axis("date").reset_index().dropna()
    effect = ist.learn(
        weeks, kinds={"date": "years"}, knowledge=ist.Knowledge(roots=["date"])
    ).effect("date", "co2")
    plain = (weeks["date"] - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=365.2425)
    write(folder, "weeks", weeks.assign(date=plain), [("date", "co2")])
    months = weeks.set_index("date")["co2"].resample("MS").mean().diff()
    rises = pd.DataFrame({"month": months.index.month_name(), "rise": months.to_numpy()}).dropna()
    write(folder, "rises", rises, [("month", "rise")])
    season: Any = ist.fit(rises, ist.DAG(["month", "rise"], [("month", "rise")]))
    marriages = fair.load_pandas().data
    logs = marriages.assign(affairs=np.log1p(marriages["affairs"]))
    stages = [["age", "educ", "religious"], ["yrs_married", "occupation", "occupation_husb"]]
    known = ist.Knowledge(tiers=[*stages, ["children"], ["rate_marriage"], ["affairs"]])
    solution = ist.learn(logs, kinds={"religious": "continuous"}, knowledge=known)
    married = solution.effect("rate_marriage", "affairs")
    causes = ["rate_marriage", *married.adjustment]
    write(folder, "marriages", logs, [(name, "affairs") for name in causes])
    persons = randhie.load_pandas().data[["idp", "physlm", "disea", "mdvis"]]
    write(folder, "plans", persons, [("idp", "mdvis")])
    plans = ist.learn(persons, knowledge=ist.Knowledge(roots=["idp"])).effect("idp", "mdvis")
    pixels = load_digits(as_frame=True).data
    digits = ist.learn(pixels, score=ist.GaussianBIC(), search=ist.Boss(starts=1))
    still = set(pixels.columns) - {v for edge in digits.dag.edges for v in edge}
    moving = pixels.drop(columns=[v for v in still if pixels[v].nunique() == 1])
    write(folder, "pixels", moving, digits.dag.edges)
    score = ist.score(moving, ist.DAG(list(moving.columns), digits.dag.edges), ist.GaussianBIC())
    return {
        ("7", "mean prediction of 2010"): predicted.mean(),
        ("7", "spread of predictions of 2010"): predicted.std(),
        ("11", "rise per year"): effect.value,
        ("12", "rise in May"): season.query("rise", {"month": "May"}).mean[0],
        ("22", "effect of rate_marriage on affairs"): married.value,
        ("27", "effect of idp on mdvis"): plans.value,
        ("28", "BIC of the graph of hc"): score,
        ("28", "BIC of the graph of Isthmus"): score,
    }


def agreement(task: str, quantity: str, ours: float, theirs: float) -> str:
    """Return how far two answers are apart."""
    if quantity.endswith("of hc"):
        same = abs(ours - theirs) < 1e-6 * abs(ours)
        return "the same score" if same else f"Isthmus finds {ours - theirs:+.4g}"
    if task in SIMULATED:
        return f"{ours - theirs:+.1e}, by simulation"
    apart = abs(ours - theirs) / max(abs(ours), 1e-300)
    return f"{apart:.0e} of the value" if apart else "none"


def main() -> None:
    """Print a table in Markdown."""
    warnings.simplefilter("ignore")
    with TemporaryDirectory() as name:
        folder = Path(name)
        ours = categories(folder) | numbers(folder)
        run = ["Rscript", str(HERE / "tasks.R")]
        told = subprocess.run(run, cwd=folder, capture_output=True, text=True, check=False)
        if told.returncode:
            raise SystemExit(told.stderr)
    print("# Tasks of the page, answered by bnlearn\n\n<!-- table -->\n")
    print("| task | quantity | Isthmus | bnlearn | difference |\n| --- | --- | --- | --- | --- |")
    version = ""
    for task, quantity, value in csv.reader(told.stdout.splitlines()):
        if task == "0":
            version = quantity
        elif (task, quantity) in ours:
            own = float(ours[task, quantity])
            apart = agreement(task, quantity, own, float(value))
            print(f"| {task} | {quantity} | {own:.6g} | {float(value):.6g} | {apart} |")
    print(
        f"\nbnlearn {version} with R 4.2.2 (later versions need a later R). Its scores of Gaussian"
    )
    print("networks divide sums of squares by degrees of freedom, ours by the number of rows. The")
    print("standard error of simulated probabilities is 3e-4.")
    print("`python benchmarks/peers/tasks_bnlearn.py`")


if __name__ == "__main__":
    main()
