"""Predict a column of public tables, with the default of the estimator for scikit-learn.

    python benchmarks/predict.py adult                   # six splits, beside two peers
    python benchmarks/predict.py [--rows 1000] horse ... # three folds of each table

Reads the folder ``uci`` of the data (``ISTHMUS_DATA``). Prints the rows of results/predict.md.
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from margins import ADULT
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import isthmus as ist
from isthmus.sklearn import BayesianNetwork

HOME = Path(os.environ.get("ISTHMUS_DATA", Path(__file__).parents[2] / "shared" / "data"))
UCI = HOME / "uci"
TRAINING, SPLITS = 6000, 6
# Name: file, what reads it, and the position of the column to predict.
TABLES: dict[str, tuple[str, dict[str, Any], int]] = {
    "horse": ("uci/horse-colic.data", {"sep": r"\s+"}, 22),
    "votes": ("uci/house-votes-84.data", {}, 0),
    "coil": ("uci/coil2000_ticdata2000.txt.gz", {"sep": "\t"}, 85),
    "ozone": ("uci/ozone_onehr.csv.gz", {"header": 0}, -1),
    "gas": ("uci/gas_drift_raw_8of10batches.csv.gz", {"header": 0}, -1),
    "shuttle": ("uci/shuttle.trn.gz", {"sep": " "}, 9),
    "sachs": ("sachs/sachs_853_cd3cd28_raw.csv", {"header": 0}, -1),
    "segment": ("uci/segment.arff.gz", {}, -1),
    "sponge": ("uci/sponge.arff.gz", {}, -1),
}


def read(name: str) -> tuple[pd.DataFrame, str]:
    """Return a table and the name of the column to predict."""
    file, options, target = TABLES[name]
    path = HOME / file
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    rows = [line for line in text.splitlines() if line and line[0] not in "%@"]  # not of arff
    table = pd.read_csv(
        io.StringIO("\n".join(rows)),
        na_values="?",
        skipinitialspace=True,
        **{"header": None, **options},
    )
    table.columns = [str(column) for column in table.columns]
    return table.reset_index(drop=True), str(table.columns[target])


def folds(name: str, rows: int) -> str:
    """Return the scores of three folds, or R² if the column is a number."""
    table, target = read(name)
    table = table.dropna(subset=[target])
    table = table.sample(min(rows, len(table)), random_state=0)
    missing: Any = None
    if table.isna().any(axis=None):
        numbers = table.select_dtypes("number").shape[1] > 0
        missing = ist.ExpectationMaximisation() if numbers else ist.MissingAsLevel()
    begin = time.process_time()
    scores = cross_val_score(
        BayesianNetwork(missing=missing),
        table.drop(columns=target),
        table[target],
        cv=KFold(3, shuffle=True, random_state=0),
        error_score="raise",
    )
    shown = ", ".join(f"{score:.3f}" for score in scores)
    how = "" if missing is None else type(missing).__name__
    seconds = time.process_time() - begin
    return f"| {name} | {len(table):,} | {table.shape[1]} | {how} | {shown} | {seconds:.0f} |"


def adult(split: int) -> str:
    """Return log loss and accuracy on the rows that were not drawn for training."""
    table = pd.read_csv(UCI / "adult.data.gz", names=ADULT, skipinitialspace=True, na_values="?")
    table = table.drop(columns=["fnlwgt", "education_num"]).dropna()
    table = table.sample(frac=1, random_state=split)
    y, X = table["income"], table.drop(columns="income")
    numbers = list(X.select_dtypes("number"))
    levels = [column for column in X if column not in numbers]
    code = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    models = [
        BayesianNetwork(),
        make_pipeline(
            make_column_transformer((code, levels), (StandardScaler(), numbers)),
            LogisticRegression(max_iter=2000),
        ),
        make_pipeline(
            make_column_transformer((code, levels), ("passthrough", numbers)),
            HistGradientBoostingClassifier(learning_rate=0.05, max_iter=150, max_leaf_nodes=15),
        ),
    ]
    cells = []
    for model in models:
        model.fit(X[:TRAINING], y[:TRAINING])
        p = model.predict_proba(X[TRAINING:])
        best = np.asarray(model.classes_)[p.argmax(axis=1)]
        loss = log_loss(y[TRAINING:], p, labels=model.classes_)
        cells.append(f"{loss:.3f} | {accuracy_score(y[TRAINING:], best):.3f}")
    return f"| {split} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("names", nargs="+", choices=["adult", *TABLES])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.names:
        if name == "adult":
            for split in range(SPLITS):
                print(adult(split), flush=True)
        else:
            print(folds(name, options.rows), flush=True)


if __name__ == "__main__":
    main()
