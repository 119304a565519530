"""What curves change where effects are straight, and what they cost there.

Random graphs with straight effects and noise of several kinds: the SHD of the default beside that
of the score of lines alone, and how often both have the same equivalence class.

python benchmarks/curves/straight.py --tables 200 --out benchmarks/results/curves-straight.md
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import isthmus as ist
from isthmus import simulate


@dataclass(frozen=True)
class StudentT(simulate.Noise):
    """Noise with heavy tails and variance one."""

    freedom: float = 5.0

    def draw(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> np.ndarray:
        return rng.standard_t(self.freedom, size) / np.sqrt(self.freedom / (self.freedom - 2.0))


NOISES: dict[str, simulate.Noise] = {
    "Gaussian": simulate.Gaussian(),
    "exponential": simulate.Exponential(),
    "Gumbel": simulate.Gumbel(),
    "uniform": simulate.Uniform(),
    "t, 5 df": StudentT(),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = [
        "| noise | by lines | by default | same class | not survived | CPU s, lines | default |",
        "|" + " --- |" * 7,
    ]
    for name, noise in NOISES.items():
        rows = []
        for seed in range(options.tables):
            rng = np.random.default_rng(seed)
            d, n = int(rng.choice([5, 10, 20, 50])), int(rng.choice([200, 500, 1000, 5000]))
            degree = float(rng.choice([1.0, 1.5, 2.0]))
            dag = simulate.erdos_renyi(d, int(d * degree), seed=seed)
            table = simulate.linear(dag, n, seed=seed, noise=noise).data
            begin = time.process_time()
            straight = ist.learn(table, score=ist.GaussianEBIC())
            middle = time.process_time()
            default = ist.learn(table)
            end = time.process_time()
            truth = dag.cpdag()
            before, after = straight.dag.cpdag(), default.dag.cpdag()
            rows.append(
                (
                    ist.shd(before, truth),
                    ist.shd(after, truth),
                    ist.shd(before, after) == 0,
                    "did not" in default.choice,
                    middle - begin,
                    end - middle,
                )
            )
        means = np.mean(np.array(rows, float), axis=0)
        lines.append(
            f"| {name} | {means[0]:.2f} | {means[1]:.2f} | {means[2]:.1%} | {means[3]:.1%} | "
            f"{means[4]:.3f} | {means[5]:.3f} |"
        )
        print(lines[-1], flush=True)
    if options.out:
        text = (
            "# Straight effects\n\n"
            f"`python benchmarks/curves/straight.py --tables {options.tables}`\n\n"
            f"Means of {options.tables} tables of 5 to 50 columns and 200 to 5,000 rows. *By "
            "lines*: `score=GaussianEBIC()`. *Not survived*: the graph of lines did not survive "
            "curves.\n\n"
        )
        options.out.write_text(text + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
