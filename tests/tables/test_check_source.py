"""The conformance check itself can fail, and says why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np
import pytest
from numpy.typing import NDArray

from isthmus.results.reading import Disclosure
from isthmus.statistics import CountPlan, Counts, Expansion, Moments, Schema
from isthmus.tables import Frame, Source
from isthmus.testing.source import check_source

RNG = np.random.default_rng(0)
DISCRETE = {"a": RNG.integers(0, 2, 50), "b": RNG.integers(0, 3, 50)}
MIXED = {**DISCRETE, "x": 1e6 + RNG.normal(size=50)}


@final
class Faulty(Source):
    """A frame that errs in one thing."""

    def __init__(self, data: dict[str, Any], fault: str) -> None:
        self._frame, self._fault = Frame(data), fault

    def schema(self) -> Schema:
        found = self._frame.schema()
        return found.subset(found.names[::-1]) if self._fault == "schema" else found

    def moments(self, names: Sequence[str] | None = None) -> Moments:
        found = self._frame.moments(names)
        if self._fault == "mean":
            return replace(found, shift=found.shift * (1 + 1e-9) + 1e-9)
        if self._fault == "products":
            return replace(found, gram=found.gram * (1 + 1e-9))
        if self._fault == "n":
            return replace(found, n=found.n + 1)
        if self._fault == "subset" and names is not None:
            return self._frame.moments()
        return found

    def counts(self, plan: CountPlan) -> Counts:
        if self._fault == "plan":
            return self._frame.counts(CountPlan.up_to(1))
        if self._fault == "counts":
            data = {n: x.copy() for n, x in DISCRETE.items()}
            data["a"][0] = 1 - data["a"][0]
            return Frame(data).counts(plan)
        return self._frame.counts(plan)

    def rows(self) -> NDArray[np.float64]:
        return self._frame.rows()

    def with_features(self, expansion: Expansion) -> Source:
        return self._frame.with_features(expansion)

    def disclosure(self) -> Disclosure:
        return Disclosure.none()


def test_a_right_source_passes() -> None:
    for data in (DISCRETE, MIXED):
        check_source(Faulty(data, "none"), Frame(data))


@pytest.mark.parametrize("fault", ["schema", "mean", "products", "n", "subset"])
def test_faults_are_found(fault: str) -> None:
    with pytest.raises(AssertionError, match=r"differ|rows|schemas"):
        check_source(Faulty(MIXED, fault), Frame(MIXED))


@pytest.mark.parametrize("fault", ["plan", "counts"])
def test_faults_in_counts_are_found(fault: str) -> None:
    with pytest.raises(AssertionError, match=r"differ|plan"):
        check_source(Faulty(DISCRETE, fault), Frame(DISCRETE))
