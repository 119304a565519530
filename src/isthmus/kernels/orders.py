"""Searches over orders of the variables: best order score search (BOSS).

Random choices are made here, with NumPy's generator; everything else is compiled.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.kernels import _native
from isthmus.kernels.scoring import LocalScore, edge_flags, local

Flags: TypeAlias = NDArray[np.bool_]
Integers: TypeAlias = NDArray[np.int64]
Parents: TypeAlias = tuple[tuple[int, ...], ...]

PLACE_TOLERANCE = 1e-6
"""By how much a place in the order must be better than another to be preferred."""

_Stage = _native.BossRun.Stage


@final
class BossRun:
    """Best order score search, one time slice per step.

    Parameters
    ----------
    score
        Score to maximise.
    rng
        Generator of all random choices.
    starts
        Number of orders to start from, at least 1; `allow` adds to it. The first one is random;
        every further one is the best order so far with a few random swaps.
    required, forbidden
        Edges that must or must not be there, as matrices [from, to].
    max_parents
        Upper bound on the number of parents; None for no bound.
    labels
        The variables in the order in which random numbers apply to them; by default their own. An
        order that depends on the scores makes the result independent of the order of the columns.
    """

    def __init__(
        self,
        score: LocalScore,
        rng: np.random.Generator,
        *,
        starts: int = 4,
        required: Flags | None = None,
        forbidden: Flags | None = None,
        max_parents: int | None = None,
        labels: Integers | None = None,
    ) -> None:
        if starts < 1:
            raise ValueError(f"starts is {starts}; it must be at least 1")
        self._score = score
        self._rng = rng
        self._labels = np.arange(score.size) if labels is None else labels
        self._starts = starts
        self._starts_left = starts
        self._sweeps = 0
        self._required = edge_flags(required, score.size)
        self._run = _native.BossRun(
            score,
            required=self._required,
            forbidden=edge_flags(forbidden, score.size),
            max_parents=max_parents,
            tolerance=PLACE_TOLERANCE,
        )

    def step(self, seconds: float = 0.01) -> bool:
        """Search for at most this many seconds; return whether the search is finished."""
        if self.prepare():
            self._run.step(seconds)
        return self.finished

    def prepare(self) -> bool:
        """Make the random choices that the next step needs; return whether there is one."""
        if self.finished:
            return False
        stage = self._run.stage
        if stage is _Stage.WANTS_ORDER:
            self._starts_left -= 1
            self._run.start(self._next_order())
        elif stage is _Stage.WANTS_TURNS:
            self._sweeps += 1
            # From the last to the first. With 50 variables of degree 8, one start ended at a
            # distance above 100 for 1 of 20 seeds; with random turns, for 2.
            self._run.sweep(np.array(self._run.order, np.int64)[::-1].copy())
        return True

    def _next_order(self) -> Integers:
        """Draw a random order; after the first start, perturb the best order so far."""
        if self._starts - self._starts_left == 1:
            return random_order(self._required, self._rng, self._labels)
        order = np.array(self._run.best_order, np.int64)
        for _ in range(max(1, round(math.log(len(order))))):
            i, j = self._rng.integers(len(order), size=2)
            order[i], order[j] = order[j], order[i]
        return _with_required_first(order, self._required)

    def allow(self, starts: int) -> None:
        """Allow so many further starts."""
        self._starts += starts
        self._starts_left += starts

    @property
    def work(self) -> tuple[int, int]:
        """Number of families with scored steps, and of sweeps over all variables, so far."""
        return self._run.families, self._sweeps

    def current(self) -> Parents:
        """Return the parents of each variable in the order of the last start."""
        return _as_tuples(self._run.parents())

    @property
    def finished(self) -> bool:
        """Whether the search is finished."""
        return self._starts_left == 0 and self._run.stage is _Stage.WANTS_ORDER

    @property
    def native(self) -> _native.BossRun:
        """The compiled run."""
        return self._run

    def best(self) -> tuple[Parents, float]:
        """Return the parents and the score of the best graph so far.

        While no order has been scored, that is the graph of the required edges.
        """
        best = self._run.best()
        if best is not None:
            return _as_tuples(best[0]), best[1]
        return required_graph(self._score, self._required)

    @property
    def score(self) -> float:
        """Best score so far, including that of the current order."""
        return self._run.score

    def describe(self) -> str:
        """Return a phrase on the progress of the run."""
        start = self._starts - self._starts_left
        if self._run.stage is _Stage.SETTLING:
            return f"start {start}: first scores"
        return (
            f"start {start}, sweep {self._run.sweeps}: "
            f"{self._run.moved} of {self._score.size} variables"
        )


def required_graph(score: LocalScore, required: Flags | None) -> tuple[Parents, float]:
    """Return the parents and the score of the graph that has only the required edges."""
    parents: list[list[int]] = [[] for _ in range(score.size)]
    for parent, child in [] if required is None else np.argwhere(required).tolist():
        parents[child].append(parent)
    result = tuple(map(tuple, parents))
    return result, sum(local(score, v, p) for v, p in enumerate(result))


@final
class ParallelBossRun:
    """Best order score search with its starts in several threads.

    Each start has a random generator of its own, so the graph depends on the seed and on the
    number of starts, but not on the number of threads. It is not that of :class:`BossRun`, in
    which one generator serves all starts.

    Parameters
    ----------
    score, rng, starts, required, forbidden, max_parents, labels
        As for :class:`BossRun`.
    jobs
        Number of threads; 0 for one per processor.
    """

    def __init__(
        self,
        score: LocalScore,
        rng: np.random.Generator,
        *,
        jobs: int,
        starts: int = 4,
        required: Flags | None = None,
        forbidden: Flags | None = None,
        max_parents: int | None = None,
        labels: Integers | None = None,
    ) -> None:
        if starts < 1:
            raise ValueError(f"starts is {starts}; it must be at least 1")
        if jobs < 0:
            raise ValueError(f"jobs is {jobs}; it must be at least 0")
        self._jobs = jobs
        self._rng = rng
        self._begin = partial(
            BossRun,
            score,
            starts=1,
            required=required,
            forbidden=forbidden,
            max_parents=max_parents,
            labels=labels,
        )
        self._runs: list[BossRun] = []
        self.allow(starts)

    def step(self, seconds: float = 0.01) -> bool:
        """Search for at most this many seconds; return whether the search is finished."""
        waiting = [run for run in self._runs if run.prepare()]
        _native.step_together([run.native for run in waiting], seconds, self._jobs)
        return all(run.finished for run in waiting)

    def allow(self, starts: int) -> None:
        """Allow so many further starts."""
        self._runs += [self._begin(own) for own in self._rng.spawn(starts)]

    @property
    def work(self) -> tuple[int, int]:
        """Number of families with scored steps, and of sweeps over all variables, so far."""
        families, sweeps = zip(*(run.work for run in self._runs), strict=True)
        return sum(families), sum(sweeps)

    def scores(self) -> list[float]:
        """Return the best score of each start."""
        return [run.score for run in self._runs]

    def best(self) -> tuple[Parents, float]:
        """Return the parents and the score of the best graph so far."""
        results = [run.best() for run in self._runs]
        return max(results, key=lambda result: result[1])

    @property
    def score(self) -> float:
        """Best score so far, including those of the current orders."""
        return max(run.score for run in self._runs)

    def describe(self) -> str:
        """Return a phrase on the progress of the run."""
        done = sum(run.finished for run in self._runs)
        return f"{done} of {len(self._runs)} starts finished"


@final
class OrderDescent:
    """Parents along a given order, which is then improved by moving one variable at a time.

    What has been scored along one order is kept for the next one.

    Parameters
    ----------
    score
        Score to maximise.
    rng
        Generator of the turns in which variables move.
    tolerance
        Minimum gain for which a place in the order is preferred to another.
    max_sweeps
        Upper bound on the number of sweeps over all variables per order.
    required, forbidden
        Edges that must or must not be there, as matrices [from, to].
    max_parents
        Upper bound on the number of parents; None for no bound.
    """

    def __init__(
        self,
        score: LocalScore,
        rng: np.random.Generator,
        *,
        tolerance: float = 1e-10,
        max_sweeps: int = 50,
        required: Flags | None = None,
        forbidden: Flags | None = None,
        max_parents: int | None = None,
    ) -> None:
        self._rng = rng
        self._size = score.size
        self._max_sweeps = max_sweeps
        self._refine = True
        self._run = _native.BossRun(
            score,
            required=edge_flags(required, score.size),
            forbidden=edge_flags(forbidden, score.size),
            max_parents=max_parents,
            tolerance=tolerance,
        )

    def start(self, order: Integers, *, refine: bool = True) -> None:
        """Continue with this order; without ``refine`` no variable moves."""
        self._refine = refine
        self._run.start(np.ascontiguousarray(order, dtype=np.int64))

    def step(self, seconds: float = 0.01) -> bool:
        """Work for at most this many seconds; return whether the order is final."""
        if self._finished():
            return True
        if self._run.stage is _Stage.WANTS_TURNS:
            self._run.sweep(self._rng.permutation(self._size))
        self._run.step(seconds)
        return self._finished()

    def _finished(self) -> bool:
        stage = self._run.stage
        if stage is _Stage.WANTS_TURNS:
            return not self._refine or self._size == 1 or self._run.sweeps >= self._max_sweeps
        return stage is _Stage.WANTS_ORDER

    @property
    def settled(self) -> bool:
        """Whether every variable has its parents along the order."""
        return self._run.settled

    @property
    def sweeps(self) -> int:
        """Number of sweeps begun with this order."""
        return self._run.sweeps

    @property
    def moved(self) -> int:
        """Number of variables whose turn has passed in this sweep."""
        return self._run.moved

    def order(self) -> Integers:
        """Return the current order."""
        return np.array(self._run.order, np.int64)

    def parents(self) -> Parents:
        """Return the parents of each variable in the current order, in ascending order."""
        return _as_tuples(self._run.parents())


def random_order(
    required: Flags, rng: np.random.Generator, labels: Integers | None = None
) -> Integers:
    """Draw an order in which required parents come before their children."""
    shuffled = rng.permutation(len(required))
    return _with_required_first(shuffled if labels is None else labels[shuffled], required)


def _with_required_first(order: Integers, required: Flags) -> Integers:
    """Change an order as little as necessary for required parents to precede their children."""
    if not required.any():
        return order.astype(np.int64, copy=False)
    placed: list[int] = []
    waiting = {int(v): set(np.flatnonzero(required[:, v]).tolist()) for v in order}
    while waiting:
        ready = next((v for v, before in waiting.items() if not before), None)
        if ready is None:
            raise ValueError("the required edges form a cycle")
        placed.append(ready)
        del waiting[ready]
        for before in waiting.values():
            before.discard(ready)
    return np.array(placed, dtype=np.int64)


def _as_tuples(parents: list[list[int]]) -> Parents:
    return tuple(map(tuple, parents))


__all__ = ["BossRun", "OrderDescent", "ParallelBossRun", "random_order"]
