"""Networks whose structure is learned from noisy statistics, for the other scripts here.

`TUNING` are random networks on which the constants for counts are varied, `REPORTED` are those on
which their rules were developed and their accuracy is reported (`counts.py`), and
`GAUSSIAN` are those of noisy moments (`whitening.py`).

The statistics are those of the sites' own code, with as much noise as the study asks for. Keys,
masks and processes are left out: masks cancel in a sum, which is the same integer however it is
carried. The noise of the three sites is drawn at once, from a normal distribution that is rounded
to integers, because NumPy can repeat it. Its standard deviation is hundreds of integers or more,
where nobody can tell it from the discrete Gaussian of OpenDP, which sites use.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import isthmus as ist
from isthmus.errors import IsthmusWarning
from isthmus.io import read_bif
from isthmus.metrics.edges import shd_cpdag
from isthmus.simulate import (
    Exponential,
    Gaussian,
    discrete_network,
    erdos_renyi,
    linear_model,
    scale_free,
)
from isthmus.simulate.tables import Noise
from isthmus.statistics import Variable
from isthmus.statistics.within import moments_within
from isthmus_joint import DifferentialPrivacy, Identity, Member, SecureSums, Study
from isthmus_joint.noise.statistics import NoisyEstimate, NoisyRelease, noisy_counts, noisy_moments

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("ISTHMUS_DATA", ROOT.parent / "shared" / "data")) / "networks"
ROWS = (1_000, 10_000, 100_000, 1_000_000)
EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
SITES = 3
DELTA = 1e-6
PARENTS = 2
SPREAD = 4.0
"""Bounds of continuous variables, in standard deviations on both sides of the mean."""


@dataclass(frozen=True)
class Problem:
    """A true graph with rows of its variables, and how it is searched for."""

    dag: ist.DAG
    schema: ist.Schema
    bounds: dict[str, tuple[float, float]]
    rows: np.ndarray
    sums: dict[Any, np.ndarray] = field(default_factory=dict)
    """Exact sums that were computed before; those of pairs do not depend on ε."""

    @property
    def is_discrete(self) -> bool:
        return not self.bounds

    def study(self, epsilon: float, sites: int = SITES, *, within: bool = False) -> Study:
        """A study with noise over these variables."""
        keys = [Identity.generate() for _ in range(sites + 2)]
        return Study.draft(
            "Benchmark",
            purpose="accuracy",
            author=keys[0].public,
            coordinator=keys[1].public,
            members=[Member(f"s{i}", f"o{i}", k.public) for i, k in enumerate(keys[2:])],
            schema=self.schema,
            bounds=self.bounds,
            protocol=SecureSums(),
            requests=["counts" if self.is_discrete else "moments"],
            plan=ist.CountPlan.up_to(PARENTS + 1) if self.is_discrete else None,
            privacy=DifferentialPrivacy(epsilon, DELTA),
            within_sites=within,
        )

    def counts(self, n: int, epsilon: float, rng: np.random.Generator) -> NoisyEstimate[Any]:
        """The counts that a coordinator estimates from the first n rows, with two requests."""
        study = self.study(epsilon)

        def ask(release: NoisyRelease) -> tuple[list[int], int]:
            key = n, release.request().to_bytes()
            if key not in self.sums:
                self.sums[key] = release.integers(self.rows[:n])
            return noisy_total(release, self.sums[key], rng)[0], SITES

        return noisy_counts(study, ask)

    def moments(
        self,
        n: int,
        epsilon: float,
        rng: np.random.Generator,
        sites: int = SITES,
        *,
        within: bool = False,
    ) -> NoisyEstimate[Any]:
        """The moments that a coordinator estimates from the first n rows, round by round.

        Of three sites, each has every third row.
        """
        study = self.study(epsilon, sites, within=within)
        offsets = [np.empty(0)] * sites

        def draw(spread: np.ndarray, scale: float) -> np.ndarray:
            return np.rint(rng.normal(0.0, scale * spread)).astype(np.int64)

        def ask(release: NoisyRelease) -> tuple[list[int], int]:
            rows = [self.rows[:n][k::sites] for k in range(sites)]
            answers = [release.answer(r, o, draw) for r, o in zip(rows, offsets, strict=True)]
            offsets[:] = [a.offset for a in answers]
            return sum(a.numbers for a in answers).tolist(), sites

        return noisy_moments(study, ask)

    def levelled(self, sites: int, sd: float, seed: int) -> Problem:
        """The same rows at sites whose levels differ by so many standard deviations."""
        rng, spread = np.random.default_rng(seed), self.rows.std(axis=0)
        levels = rng.normal(0.0, sd, (sites, len(spread))) * spread
        wider = {v: (low * (1 + sd), high * (1 + sd)) for v, (low, high) in self.bounds.items()}
        rows = self.rows + levels[np.arange(len(self.rows)) % sites]
        return replace(self, bounds=wider, rows=rows, sums={})

    def exact_within(self, n: int, sites: int) -> Any:
        """The moments of the first n rows about the mean of each site."""
        return moments_within(self.schema, list(self.rows[:n].T), np.arange(n) % sites)

    def exact(self, n: int) -> Any:
        """The moments of the first n rows."""
        return ist.Moments.from_array(self.schema, self.rows[:n])

    def shd(self, statistic: object) -> tuple[int, int]:
        """The distance of the equivalence class of the learned graph, and false adjacencies."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IsthmusWarning)
            found = ist.learn(statistic).dag
        true = {frozenset(e) for e in self.dag.edges}
        false = {frozenset(e) for e in found.edges} - true
        return int(shd_cpdag(found, self.dag)), len(false)


def noisy_total(
    release: NoisyRelease, exact: np.ndarray, rng: np.random.Generator
) -> tuple[list[int], float]:
    """The sum over the sites, and the standard deviation of its noise."""
    scale = release.scale * math.sqrt(SITES)
    noise = np.rint(rng.normal(0.0, scale * release.spread)).astype(np.int64)
    return (exact + noise).tolist(), scale


def linear(
    dag: ist.DAG, n: int, seed: int, noise: Noise = Gaussian(), spread: float = SPREAD
) -> Problem:
    """Rows of a linear network with random coefficients."""
    model, sample = linear_model(dag, seed=seed, noise=noise), 1000 + seed
    width = spread * np.sqrt(np.diagonal(model.covariance()))
    bounds = {name: (-s, s) for name, s in zip(dag.nodes, width.tolist(), strict=True)}
    schema = ist.Schema(tuple(Variable(v, ist.Kind.CONTINUOUS) for v in dag.nodes))
    return Problem(dag, schema, bounds, model.sample(n, seed=sample).array())


def discrete(network: Any, n: int, sample: int) -> Problem:
    """Rows of a discrete network."""
    codes, nodes = network.sample_codes(n, seed=sample), network.dag.nodes
    variables = tuple(Variable(v, ist.Kind.DISCRETE, network.levels[v]) for v in nodes)
    rows = np.column_stack([codes[v] for v in nodes]).astype(float)
    return Problem(network.dag, ist.Schema(variables), {}, rows)


def _gaussian(d: int, degree: int) -> Callable[[int, int], Problem]:
    return lambda n, seed: linear(erdos_renyi(d, degree * d // 2, seed=seed), n, seed)


def _hubs(d: int) -> Callable[[int, int], Problem]:
    return lambda n, seed: linear(scale_free(d, 2, seed=seed), n, seed)


def _random_tables(
    d: int, edges: int, parents: int, concentration: float
) -> Callable[[int, int], Problem]:
    def make(n: int, seed: int) -> Problem:
        for attempt in range(1000):
            dag = erdos_renyi(d, edges, seed=1000 * seed + attempt)
            if max(len(dag.parents(v)) for v in dag.nodes) <= parents:
                break
        network = discrete_network(
            dag, cardinalities=(2, 4), concentration=concentration, seed=seed
        )
        return discrete(network, n, 1000 + seed)

    return make


def _stored(name: str) -> Callable[[int, int], Problem]:
    return lambda n, seed: discrete(read_bif(DATA / f"{name}.bif.gz"), n, seed)


TUNING: dict[str, Callable[[int, int], Problem]] = {
    "8 variables, concentration 1": _random_tables(8, 8, 2, 1.0),
    "8 variables, concentration 0.3": _random_tables(8, 8, 2, 0.3),
    "12 variables, concentration 0.5": _random_tables(12, 12, 2, 0.5),
    "20 variables, concentration 1": _random_tables(20, 30, 4, 1.0),
    "20 variables, concentration 0.3": _random_tables(20, 30, 4, 0.3),
}
"""Random networks; each seed is another graph with other parameters. Variables have up to two
parents, and up to four in the larger ones."""

GAUSSIAN: dict[str, Callable[[int, int], Problem]] = {
    "gaussian10": _gaussian(10, 4),
    "gaussian20": _gaussian(20, 4),
    "gaussian8, degree 2": _gaussian(8, 2),
    "gaussian14, degree 4": _gaussian(14, 4),
    "gaussian12, hubs": _hubs(12),
}
"""Random networks; each seed is another graph. The first two are reported in detail."""


def skewed(n: int, seed: int, spread: float = 20.0) -> Problem:
    """The first of them with skewed noise, in wider bounds."""
    return linear(erdos_renyi(10, 20, seed=seed), n, seed, Exponential(), spread)


REPORTED: dict[str, Callable[[int, int], Problem]] = {
    "asia": _stored("asia"),
    "sachs": _stored("sachs"),
    "child": _stored("child"),
    "insurance": _stored("insurance"),
    "alarm": _stored("alarm"),
}
"""Stored networks: each seed is another sample."""
