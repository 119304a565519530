"""Wall time with one and with two threads: starts of Boss, families of a score table.

    OPENBLAS_NUM_THREADS=1 python benchmarks/threads.py

Run it on a machine that does nothing else; the best of three runs counts.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import before_after

import isthmus as ist


def seconds(action: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    return best


def line(name: str, action: Callable[[int], object]) -> str:
    one, two = (seconds(lambda k=jobs: action(k)) for jobs in (1, 2))  # type: ignore[misc]
    return f"| {name} | {one:.3f} | {two:.3f} | {one / two:.2f} |"


def main() -> None:
    warnings.simplefilter("ignore")
    print("| task | one thread | two threads | ratio |")
    print("| --- | --- | --- | --- |")
    for d in (100, 200):
        moments = ist.summarise(before_after.linear_rows(d))
        print(
            line(
                f"Boss, four starts, d = {d}",
                lambda jobs, m=moments: ist.learn(  # type: ignore[misc]
                    m, score=ist.GaussianBIC(), search=ist.Boss(independent_starts=True, jobs=jobs)
                ),
            ),
            flush=True,
        )
    rows = before_after.discrete_rows("alarm")
    kinds = dict.fromkeys(rows, ist.Kind.DISCRETE)
    counts = ist.summarise(rows, plan=ist.CountPlan.everything(), kinds=kinds)
    for size in (2, 3):
        print(
            line(
                f"parent sets of alarm, up to {size}",
                lambda jobs, most=size: ist.parent_sets(  # type: ignore[misc]
                    counts, score=ist.BDeu(), max_parents=most, jobs=jobs
                ),
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
