"""What changed between two tables, and how much each mechanism explains."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Any, final

from isthmus.errors import counted, rounded
from isthmus.frames import table_of
from isthmus.networks import Level

_SHOWN = 5
"""Maximum number of mechanisms that are printed."""


@final
@dataclass(frozen=True)
class MechanismChange:
    """How one node depends on its parents, before and after.

    Attributes
    ----------
    node
        The node.
    p_value
        The p-value of no change. With rows of both tables in memory it is the larger one of two:
        that from sums, and that of a test which allows for curves and for noise of any shape.
    p_from_sums
        The p-value from sums alone, which is the same wherever the rows are.
    adjusted
        The p-value after Holm's correction for the number of nodes.
    share
        What the change of this mechanism adds to the change of the outcome: its Shapley value, the
        average over all orders in which mechanisms change. Zero if it is not an ancestor of the
        outcome; not a number if the mechanism is not shown to have changed.
    interval
        A 95% interval of the share, with the set of changed mechanisms taken as given.
    """

    node: str
    p_value: float
    p_from_sums: float
    adjusted: float
    share: float = nan
    interval: tuple[float, float] = (nan, nan)


@final
@dataclass(frozen=True)
class Changes:
    """Which mechanisms differ between two tables, and what each adds to a change of the outcome.

    Attributes
    ----------
    outcome
        The outcome.
    measure
        What changed of it: its mean, its variance, or the probability of a level.
    level
        The level of a discrete outcome; None for a continuous one.
    before, after
        The measure as the graph and the parameters of each table imply it. A mean is that of the
        rows; a variance or a rate can differ from that of the rows if the graph does not fit.
    observed
        The measure of the rows, before and after.
    mechanisms
        One per node, the clearest change first.
    others
        What all mechanisms add together that are not shown to have changed.
    alpha
        Probability of any false change if nothing changed.
    remarks
        What a reader should know about the tests.
    """

    outcome: str
    measure: str
    level: Level | None
    before: float
    after: float
    observed: tuple[float, float]
    mechanisms: tuple[MechanismChange, ...]
    others: float
    alpha: float
    remarks: tuple[str, ...] = ()

    @property
    def changed(self) -> tuple[MechanismChange, ...]:
        """The mechanisms that are shown to have changed, the largest share first."""
        found = [m for m in self.mechanisms if m.adjusted <= self.alpha]
        return tuple(sorted(found, key=lambda m: -abs(m.share)))

    @property
    def total(self) -> float:
        """The sum of all shares and of `others`: the change, without a standard error."""
        return self.after - self.before

    def to_frame(self, like: object = None) -> Any:
        """Return one row per mechanism; see :func:`isthmus.to_frame`."""
        own = self.mechanisms
        columns: dict[str, Any] = {
            name: [getattr(m, name) for m in own]
            for name in ("node", "p_value", "adjusted", "share")
        }
        columns |= {end: [m.interval[i] for m in own] for i, end in enumerate(("low", "high"))}
        return table_of(columns, like)

    def __str__(self) -> str:
        what = self.measure if self.level is None else f"probability of {self.level!r}"
        ends = f"from {rounded(self.before, 3)} to {rounded(self.after, 3)}"
        lines = [f"The {what} of {self.outcome} changed by {rounded(self.total, 3)}, {ends}."]
        changed = self.changed
        if not changed:
            lines.append(f"No mechanism is shown to have changed ({len(self.mechanisms)} tested).")
        for m in changed[:_SHOWN]:
            low, high = (rounded(end) for end in m.interval)
            lines.append(
                f"  {m.node} adds {rounded(m.share, 3)} (95% interval {low} to {high}, "
                f"p = {rounded(m.adjusted)})"
            )
        if len(changed) > _SHOWN:
            lines.append(f"  and {len(changed) - _SHOWN} more")
        if changed:
            unchanged = counted(len(self.mechanisms) - len(changed), "mechanism")
            lines.append(f"The other {unchanged} together add {rounded(self.others, 3)}.")
        return "\n".join([*lines, *self.remarks])

    __repr__ = __str__
