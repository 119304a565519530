"""Write the data of the MLP benchmark, so that every peer reads the same numbers.

python benchmarks/notears_nonlinear/simulate.py FOLDER [--seeds 5] [--nodes 20] [--rows 1000]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from isthmus import simulate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--rows", type=int, default=1000)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    d = options.nodes
    for degree in (1, 2):
        for seed in range(options.seeds):
            dag = simulate.erdos_renyi(d, degree * d, seed=seed)
            data = simulate.nonlinear(dag, options.rows, mechanism=simulate.MLP(), seed=seed)
            np.savez(
                options.folder / f"er{degree}_{seed}.npz",
                x=data.array(),
                truth=dag.adjacency(),
            )


if __name__ == "__main__":
    main()
