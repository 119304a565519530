"""Compare effects with those of DoWhy, which must be installed: adjustment, mediator, instrument.

Run it with

    python benchmarks/effects/compare_dowhy.py
"""

from __future__ import annotations

import logging
import warnings

import numpy as np
import pandas as pd
from dowhy import CausalModel

import isthmus as ist

U = [("u", "x"), ("u", "y")]
CASES = {
    "backdoor.linear_regression": (
        ist.DAG(["w", "x", "y"], [("w", "x"), ("w", "y"), ("x", "y")]),
        [],
    ),
    "frontdoor.two_stage_regression": (
        ist.DAG(["u", "x", "m", "y"], [*U, ("x", "m"), ("m", "y")]),
        ["u"],
    ),
    "iv.instrumental_variable": (
        ist.DAG(["u", "z", "x", "y"], [*U, ("z", "x"), ("x", "y")]),
        ["u"],
    ),
}


def main() -> None:
    """Print the largest relative difference for each method of DoWhy."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    for method, (dag, hidden) in CASES.items():
        worst = 0.0
        for seed in range(20):
            rng = np.random.default_rng(seed)
            columns: dict[str, np.ndarray] = {}
            for name in dag.topological_order():
                columns[name] = rng.normal(size=300) + sum(columns[p] for p in dag.parents(name))
            table = pd.DataFrame({v: c for v, c in columns.items() if v not in hidden})
            ours = ist.effect(table, dag, "x", "y", hidden=hidden).value
            graph = ist.io.to_networkx(dag)
            model = CausalModel(table, treatment="x", outcome="y", graph=graph)
            estimand = model.identify_effect(proceed_when_unidentifiable=True)
            theirs = model.estimate_effect(estimand, method_name=method).value
            worst = max(worst, abs(theirs - ours) / abs(ours))
        print(f"{method}: {worst:.1g}")


if __name__ == "__main__":
    main()
