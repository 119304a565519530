"""Call one method on one data set and write what it gave and what it took.

Run by `harness` in a process of its own; the tables are built before the clock starts, and the
method's package is imported before it too.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Pairs = list[tuple[int, int]]


@dataclass(frozen=True)
class Answer:
    """Edges by index; ``undirected`` only for methods that give an equivalence class."""

    edges: Pairs
    undirected: Pairs | None = None


Learner = Callable[[], Answer]


@dataclass(frozen=True)
class Data:
    """A table as the peers want it."""

    names: list[str]
    values: Any  # floats (n, d), or codes (n, d) for discrete data
    levels: list[int] | None

    def frame(self) -> Any:
        import pandas as pd

        if self.levels is None:
            return pd.DataFrame(self.values, columns=self.names)
        columns = {}
        for j, name in enumerate(self.names):
            labels = [f"s{k:03d}" for k in range(self.levels[j])]
            columns[name] = pd.Categorical.from_codes(self.values[:, j], labels)
        return pd.DataFrame(columns)

    def named(self, arcs: Any) -> Answer:
        place = {name: j for j, name in enumerate(self.names)}
        return Answer([(place[str(a)], place[str(b)]) for a, b in arcs])


def causal_learn_graph(graph: Any) -> Answer:
    marks = graph.graph
    directed = [(int(i), int(j)) for i, j in np.argwhere((marks == -1) & (marks.T == 1))]
    both = [(int(i), int(j)) for i, j in np.argwhere((marks == -1) & (marks.T == -1)) if i < j]
    return Answer(directed, both)


def causal_learn_boss(penalty: float) -> Callable[[Data, int], Learner]:
    def prepare(data: Data, seed: int) -> Learner:
        from causallearn.search.PermutationBased.BOSS import boss

        def learn() -> Answer:
            random.seed(seed)
            parameters = {"lambda_value": penalty}
            return causal_learn_graph(
                boss(data.values.copy(), parameters=parameters, verbose=False)
            )

        return learn

    return prepare


def causal_learn_grasp(data: Data, seed: int) -> Learner:
    from causallearn.search.PermutationBased.GRaSP import grasp

    def learn() -> Answer:
        random.seed(seed)
        return causal_learn_graph(grasp(data.values.copy(), verbose=False))

    return learn


def causal_learn_ges(data: Data, seed: int) -> Learner:
    from causallearn.search.ScoreBased.GES import ges

    def learn() -> Answer:
        random.seed(seed)
        return causal_learn_graph(ges(data.values.copy(), "local_score_BIC_from_cov")["G"])

    return learn


def dagma(data: Data, seed: int) -> Learner:
    from dagma.linear import DagmaLinear

    def learn() -> Answer:
        random.seed(seed)
        # It centres the array it is given in place.
        weights = DagmaLinear(loss_type="l2").fit(data.values.copy())
        return Answer([(int(i), int(j)) for i, j in np.argwhere(weights != 0)])

    return learn


def pybnesian_gaussian(score: str) -> Callable[[Data, int], Learner]:
    def prepare(data: Data, seed: int) -> Learner:
        import pybnesian as pbn

        frame = data.frame()

        def learn() -> Answer:
            return data.named(
                pbn.hc(frame, bn_type=pbn.GaussianNetworkType(), score=score, seed=seed).arcs()
            )

        return learn

    return prepare


def pybnesian_discrete(data: Data, seed: int) -> Learner:
    import pybnesian as pbn

    frame, kind = data.frame(), pbn.DiscreteBNType()

    def learn() -> Answer:
        # It has no default operators for discrete networks.
        found = pbn.hc(frame, bn_type=kind, score="bic", operators=["arcs"], seed=seed)
        return data.named(found.arcs())

    return learn


def pyagrum(*, tabu: bool) -> Callable[[Data, int], Learner]:
    def prepare(data: Data, seed: int) -> Learner:
        import pyagrum as gum

        frame = data.frame()

        def learn() -> Answer:
            gum.initRandom(seed + 1)
            learner = gum.BNLearner(frame)
            learner.setNumberOfThreads(1)
            learner.useScoreBIC()
            learner.useNoPrior()
            if tabu:
                learner.useLocalSearchWithTabuList()
            else:
                learner.useGreedyHillClimbing()
            names = learner.names()
            return data.named((names[a], names[b]) for a, b in learner.learnDAG().arcs())

        return learn

    return prepare


def pgmpy(data: Data, seed: int) -> Learner:
    from pgmpy.estimators import HillClimbSearch

    frame = data.frame().astype(str)

    def learn() -> Answer:
        random.seed(seed)
        found = HillClimbSearch(frame).estimate(scoring_method="bic-d", show_progress=False)
        return data.named(found.edges())

    return learn


def isthmus(score: str, search: str) -> Callable[[Data, int], Learner]:
    """Learn with a score and a search, as a user writes them."""

    def prepare(data: Data, seed: int) -> Learner:
        import isthmus as ist

        frame = data.frame()
        scorer, searcher = eval(score, vars(ist)), eval(search, vars(ist))

        def learn() -> Answer:
            return data.named(ist.learn(frame, score=scorer, search=searcher, seed=seed).dag.edges)

        return learn

    return prepare


def sort_and_regress(by: str) -> Callable[[Data, int], Learner]:
    def prepare(data: Data, seed: int) -> Learner:
        from isthmus import simulate

        frame = data.frame()

        def learn() -> Answer:
            found = simulate.sort_and_regress(frame, by=simulate.SortBy(by), seed=seed)
            return data.named(found.edges)

        return learn

    return prepare


METHODS: dict[str, Callable[[Data, int], Learner]] = {
    "isthmus default: BOSS, EBIC, 4 starts": isthmus("GaussianEBIC()", "Boss()"),
    "isthmus BOSS, EBIC, 1 start": isthmus("GaussianEBIC()", "Boss(starts=1)"),
    "isthmus BOSS, 4 x BIC, 1 start": isthmus("GaussianBIC(penalty_discount=4)", "Boss(starts=1)"),
    "isthmus BOSS, BIC, 1 start": isthmus("GaussianBIC()", "Boss(starts=1)"),
    "isthmus XGES, EBIC": isthmus("GaussianEBIC()", "XGES()"),
    "isthmus HillClimb, EBIC": isthmus("GaussianEBIC()", "HillClimb()"),
    "isthmus default: XGES": isthmus("BIC()", "XGES()"),
    "isthmus XGES, not extended": isthmus("BIC()", "XGES(extended=False)"),
    "isthmus BOSS": isthmus("BIC()", "Boss()"),
    "isthmus HillClimb": isthmus("BIC()", "HillClimb()"),
    "causal-learn BOSS": causal_learn_boss(2.0),
    "causal-learn BOSS, BIC": causal_learn_boss(0.5),
    "causal-learn GRaSP": causal_learn_grasp,
    "causal-learn GES": causal_learn_ges,
    "dagma": dagma,
    "pybnesian hc, BGe": pybnesian_gaussian("bge"),
    "pybnesian hc, BIC": pybnesian_gaussian("bic"),
    "pybnesian hc": pybnesian_discrete,
    "pyagrum hc": pyagrum(tabu=False),
    "pyagrum tabu": pyagrum(tabu=True),
    "pgmpy hc": pgmpy,
    "sort by variance, regress": sort_and_regress("variance"),
    "sort by R2, regress": sort_and_regress("r_squared"),
}


def timed(learn: Learner) -> tuple[Answer, float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    answer = learn()
    return answer, time.process_time() - cpu, time.perf_counter() - wall


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("given")
    parser.add_argument("answer")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", type=float, default=0.0)
    parser.add_argument("--limit", type=int, default=0, help="CPU seconds after which to be killed")
    options = parser.parse_args()
    if options.limit:
        resource.setrlimit(resource.RLIMIT_CPU, (options.limit, options.limit + 5))
    with np.load(options.given) as arrays:
        levels = arrays["levels"].tolist() if "levels" in arrays else None
        data = Data([str(name) for name in arrays["names"]], arrays["values"], levels)
    learn = METHODS[options.method](data, options.seed)
    answer, cpu, wall = timed(learn)
    figures: dict[str, Any] = {"first_cpu": cpu, "first_wall": wall}
    if cpu < options.again:
        answer, cpu, wall = timed(learn)
    figures |= {"cpu": cpu, "wall": wall, "warm": figures["first_cpu"] != cpu}
    figures["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    figures |= {"edges": answer.edges, "undirected": answer.undirected}
    with open(options.answer, "w", encoding="utf-8") as file:
        json.dump(figures, file)


if __name__ == "__main__":
    sys.exit(main())
