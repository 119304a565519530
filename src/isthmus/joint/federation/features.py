"""A federation with basis functions of its variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import MismatchError
from isthmus.joint.federation.requests.statistics import AskFeatures
from isthmus.results.disclosure import Disclosure
from isthmus.sources.base import Source, countable
from isthmus.statistics import CountPlan, Counts, Expansion, Moments, Schema

if TYPE_CHECKING:
    from isthmus.joint.federation.federation import Federation


@final
class FederatedFeatures(Source):
    """A federation with basis functions of its variables, which the sites compute."""

    def __init__(self, federation: Federation, expansion: Expansion) -> None:
        self._federation = federation
        self._expansion = expansion
        self._moments: Moments | None = None

    def schema(self) -> Schema:
        return self._expansion.widen(self._federation.schema())

    def moments(self, names: Sequence[str] | None = None) -> Moments:
        """Compute moments of these variables with their basis functions, by default of all."""
        if self._moments is None:
            self._moments = self._federation.ask(AskFeatures(self._expansion))
        return self._moments if names is None else self._moments.select(names)

    def counts(self, plan: CountPlan) -> Counts:
        countable(self.schema(), plan)
        raise MismatchError(
            "Basis functions are continuous and cannot be counted. Use a score that needs moments."
        )

    def rows(self) -> NDArray[np.float64]:
        return self._federation.rows()

    def with_features(self, expansion: Expansion) -> Source:
        expansion.widen(self.schema())
        return self

    def disclosure(self) -> Disclosure:
        """Return what was released for the standardisation and for the features."""
        return self._federation.disclosure()

    def __repr__(self) -> str:
        return f"{self._federation!r} with {self._expansion.basis!r}"
