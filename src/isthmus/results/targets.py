"""Which mechanisms each regime changed."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

from isthmus.errors import rounded
from isthmus.frames import table_of
from isthmus.graphs import DAG


@final
@dataclass(frozen=True)
class TargetTest:
    """Whether one regime changed how one variable depends on its parents.

    Attributes
    ----------
    regime
        The regime, which is compared with the control.
    node
        The variable.
    p_value
        The p-value of no change. Of continuous variables it is the larger one of two: that of
        straight lines and normal noise, and that of a test which allows for curves and for noise
        of any shape.
    p_from_lines
        The p-value for straight lines and normal noise; of discrete variables, the same one.
    adjusted
        The p-value after Holm's correction for the numbers of regimes and variables.
    pays
        Whether the regime has a mechanism of its own in the best graph.
    """

    regime: Any
    node: str
    p_value: float
    p_from_lines: float
    adjusted: float
    pays: bool

    def is_target(self, alpha: float) -> bool:
        """Whether the mechanism changed by the score and by the test."""
        return self.pays and self.adjusted <= alpha


@final
@dataclass(frozen=True, repr=False)
class FoundTargets(Mapping[Any, tuple[str, ...]]):
    """The targets of each regime, which `Interventions` takes as they are.

    Attributes
    ----------
    control
        The regime without targets.
    tests
        One per regime and variable, the clearest change first.
    dag
        The graph that was learned together with the targets.
    alpha
        Probability of any false target if nothing changed and the graph is right.
    """

    control: Hashable
    tests: tuple[TargetTest, ...]
    dag: DAG
    alpha: float

    def __getitem__(self, regime: Any) -> tuple[str, ...]:
        own = [t for t in self.tests if t.regime == regime]
        if not own and regime != self.control:
            raise KeyError(regime)
        return tuple(t.node for t in own if t.is_target(self.alpha))

    def __iter__(self) -> Iterator[Any]:
        return iter(dict.fromkeys([self.control, *sorted({t.regime for t in self.tests})]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def to_frame(self, like: object = None) -> Any:
        """Return one row per regime and variable; see :func:`isthmus.to_frame`."""
        names = ("regime", "node", "p_value", "p_from_lines", "adjusted", "pays")
        return table_of({name: [getattr(t, name) for t in self.tests] for name in names}, like)

    def __str__(self) -> str:
        lines = []
        for regime in self:
            clear = [t for t in self.tests if t.regime == regime and t.is_target(self.alpha)]
            own = ", ".join(f"{t.node} (p = {rounded(t.adjusted)})" for t in clear)
            lines.append(f"{regime}: {'control' if regime == self.control else own or 'no target'}")
        doubtful = [
            f"{t.node} in {t.regime}"
            for t in self.tests
            if t.pays and t.p_value > self.alpha and t.p_from_lines * len(self.tests) <= self.alpha
        ]
        if doubtful:
            lines.append(
                "Changes that a curve or unequal variance explains as well, so that they are not "
                f"called targets: {', '.join(doubtful[:5])}."
            )
        return "\n".join(lines)

    __repr__ = __str__
