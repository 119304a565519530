"""A network of 617 columns: spoken letters (ISOLET), and how well it predicts unseen speakers.

Parts 1 to 4 are learned from, and part 5, of other speakers, is predicted: single columns from all
others, by the network and by linear regression. The data are looked for in ../shared/data, or under
ISTHMUS_DATA.

    python benchmarks/tables/isolet.py > benchmarks/results/isolet.md
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from time import process_time

import numpy as np
from sklearn.linear_model import LinearRegression

import isthmus as ist

HOME = Path(os.environ.get("ISTHMUS_DATA", Path(__file__).parents[3] / "shared" / "data"))
PREDICTED = (100, 300, 500)


def main() -> None:
    """Print the results in Markdown."""
    warnings.simplefilter("ignore")
    file = np.load(HOME / "uci" / "isolet_int16_x10000.npz")
    values, part = file["x"] / 1e4, file["part"]
    names = [f"f{i}" for i in range(values.shape[1])]
    train, test = values[part < 5], values[part == 5]
    started = process_time()
    table = dict(zip(names, train.T, strict=True))
    solution = ist.learn(table, score=ist.GaussianBIC(), search=ist.Boss(starts=1))
    seconds = process_time() - started
    network = solution.fit()
    print("# A network of 617 columns\n\n<!-- table -->\n")
    print("| column | explained by the network | explained by linear regression |")
    print("| --- | --- | --- |")
    for column in PREDICTED:
        own, others = test[:, column], np.delete(np.arange(len(names)), column)
        given = {names[i]: test[:, i] for i in others}
        away = own - np.asarray(network.predict(given, names[column]))
        line = LinearRegression().fit(train[:, others], train[:, column])
        shares = 1 - (away**2).mean() / own.var(), line.score(test[:, others], own)
        print(f"| {names[column]} | {shares[0]:.1%} | {shares[1]:.1%} |")
    print(
        f"\nISOLET: {len(train):,} rows to learn from, {len(test):,} of other speakers to predict."
    )
    print(f"`Boss(starts=1)` found {len(solution.dag.edges):,} edges in {seconds:.0f} CPU s.")
    print("`python benchmarks/tables/isolet.py`")


if __name__ == "__main__":
    main()
