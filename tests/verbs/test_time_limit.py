"""Which time counts: that of the library, not that of others."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pytest

import isthmus as ist
from isthmus.results import Disclosure, Ending
from isthmus.statistics import CountPlan, Counts, Expansion, Moments, Schema
from isthmus.tables import Frame, Source

TABLE = {f"x{i}": column for i, column in enumerate(np.random.default_rng(0).normal(size=(8, 50)))}
ENDLESS = ist.Boss(starts=10**9)


@pytest.fixture
def _slow(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = Frame.moments

    def slow(self: Frame, names: Sequence[str] | None = None) -> Moments:
        time.sleep(0.5)
        return moments(self, names)

    ist.learn(TABLE, score=ist.GaussianBIC(), search=ENDLESS, time_limit=0.1)  # loads what it needs
    monkeypatch.setattr(Frame, "moments", slow)


@pytest.mark.timing
@pytest.mark.usefixtures("_slow")
def test_reading_a_table_in_memory_counts() -> None:
    begin = time.monotonic()
    solution = ist.learn(TABLE, score=ist.GaussianBIC(), search=ENDLESS, time_limit=0.6)
    assert solution.status.ending is Ending.TIME_LIMIT
    assert time.monotonic() - begin < 1.0
    assert solution.status.seconds < 0.2


class _Elsewhere(Source):
    """A table that somebody else reads."""

    def __init__(self) -> None:
        self._frame = Frame(TABLE)

    def schema(self) -> Schema:
        return self._frame.schema()

    def moments(self, names: Sequence[str] | None = None) -> Moments:
        return self._frame.moments(names)

    def counts(self, plan: CountPlan) -> Counts:
        return self._frame.counts(plan)

    def rows(self) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        raise NotImplementedError

    def with_features(self, expansion: Expansion) -> Source:
        raise NotImplementedError

    def disclosure(self) -> Disclosure:
        return self._frame.disclosure()


@pytest.mark.usefixtures("_slow")
def test_waiting_for_others_does_not() -> None:
    solution = ist.learn(_Elsewhere(), score=ist.GaussianBIC(), search=ENDLESS, time_limit=0.4)
    assert solution.status.ending is Ending.TIME_LIMIT
    assert solution.status.seconds > 0.3


@pytest.mark.long
def test_a_time_limit_below_what_the_statistics_take_is_told_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("isthmus.verbs.prepare._SECONDS_PER_PAIR", 1.0)
    with pytest.warns(ist.errors.DataWarning, match="8 columns: .* take about 64 s"):
        ist.learn(TABLE, time_limit=5.0)


def test_without_time_the_search_is_not_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("set up")

    monkeypatch.setattr("isthmus.searches.boss.BossRun", refuse)
    required = ist.Knowledge(required=[("x3", "x1")])
    solution = ist.learn(
        TABLE, score=ist.GaussianBIC(), search=ist.Boss(), knowledge=required, time_limit=1e-9
    )
    assert solution.status.ending is Ending.TIME_LIMIT
    assert "so the search had no time" in solution.status.message
    assert solution.dag.edges == (("x3", "x1"),)
    by_hand = ist.score(TABLE, solution.dag, score=ist.GaussianBIC())
    assert solution.score == pytest.approx(by_hand)
