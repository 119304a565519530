"""Group lasso of one target on its possible causes, to machine precision.

Newton's method on the groups that are not zero, where the penalised loss is smooth; groups enter
when their gradient is steeper than the penalty and leave when they shrink to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from isthmus.objectives import AdditiveLoss
from isthmus.types import Floats, Integers, Work

EXACT = 1e-10
_NOTHING = 1e-9
_SMALL = 1e-2
_ROUNDS = 500


@final
@dataclass
class NodeLasso:
    """``loss of a target + Σ penalty |coefficients of a cause|``.

    Parameters
    ----------
    loss
        The loss of all targets.
    target
        The target.
    causes
        Nodes that may have coefficients.
    penalties
        Penalty of each node.
    """

    loss: AdditiveLoss
    target: int
    causes: Sequence[int]
    penalties: Floats

    def __post_init__(self) -> None:
        owner = self.loss.owner
        self._free = np.flatnonzero(owner < 0)
        by_owner = np.argsort(owner, kind="stable")
        starts = np.searchsorted(owner[by_owner], self.causes, side="left").tolist()
        stops = np.searchsorted(owner[by_owner], self.causes, side="right").tolist()
        spans = zip(self.causes, starts, stops, strict=True)
        self._groups = {c: by_owner[a:b] for c, a, b in spans}
        self._causes = np.array(self.causes, dtype=np.int64)
        # Rows of no cause are counted for a node that does not exist.
        self._nodes = len(self.loss.nodes)
        self._owner = np.where(owner < 0, self._nodes, owner)

    def _sizes(self, values: Floats) -> Floats:
        """Norm of the values of each node."""
        sizes: Floats = np.sqrt(np.bincount(self._owner, values * values, self._nodes + 1))
        return sizes

    def solve(self, start: Floats, tolerance: float = EXACT) -> Work[tuple[Floats, float]]:
        """Return the coefficients of all rows, and how far they are from optimal.

        ``start`` holds a guess at the coefficients; the solution does not depend on it.
        """
        coefficients = np.zeros_like(start)
        coefficients[self._free] = start[self._free]
        sizes = self._sizes(start)
        active = [c for c in self._groups if sizes[c] > 1e-2]
        for c in active:
            coefficients[self._groups[c]] = start[self._groups[c]]
        for _ in range(_ROUNDS):
            active = yield from self._descend(coefficients, active, tolerance)
            worst, enters = self._violation(coefficients, active)
            if enters is None or worst <= tolerance:
                return coefficients, worst
            # A short step down the gradient brings a group off zero, where it is smooth.
            yield from self._enter(coefficients, enters)
            active = [*active, enters]
        return coefficients, self._violation(coefficients, active)[0]

    def value(self, coefficients: Floats) -> float:
        """Return the penalised loss."""
        active = [c for c, rows in self._groups.items() if np.any(coefficients[rows] != 0.0)]
        return self._value(coefficients, active)[0]

    def _rows(self, active: Sequence[int]) -> Integers:
        parts = [self._free, *(self._groups[c] for c in active)]
        rows: Integers = np.concatenate(parts).astype(np.int64)
        return rows

    def _value(self, coefficients: Floats, active: Sequence[int]) -> tuple[float, Floats]:
        rows = self._rows(active)
        value, gradient = self.loss.column(self.target, rows, coefficients[rows])
        at = np.array(active, dtype=np.int64)
        return value + float(self.penalties[at] @ self._sizes(coefficients)[at]), gradient

    def _violation(self, coefficients: Floats, active: Sequence[int]) -> tuple[float, int | None]:
        """Return the largest violation of optimality, and the cause at zero that has it if any."""
        _, gradient = self._value(coefficients, active)
        worst = float(np.abs(gradient[self._free]).max(initial=0.0))
        if not len(self._causes):
            return worst, None
        sizes = self._sizes(coefficients)
        is_active = np.zeros(self._nodes + 1, dtype=np.bool_)
        is_active[np.array(active, dtype=np.int64)] = True
        there = is_active & (sizes > 0.0)
        penalties = np.append(self.penalties, 0.0)
        pull = np.divide(penalties, sizes, out=np.zeros_like(sizes), where=there)
        steep = self._sizes(gradient + pull[self._owner] * coefficients)
        wrong = np.where(there, steep, steep - penalties)[self._causes]
        largest = int(wrong.argmax())
        if wrong[largest] <= worst:
            return worst, None
        cause = int(self._causes[largest])
        return float(wrong[largest]), None if is_active[cause] else cause

    def _enter(self, coefficients: Floats, cause: int) -> Work[None]:
        rows = self._groups[cause]
        before = coefficients[rows].copy()
        nonzero = [
            c for c in self._groups if c == cause or np.any(coefficients[self._groups[c]] != 0.0)
        ]
        value, gradient = self._value(coefficients, nonzero)
        step = 1.0
        for _ in range(60):
            coefficients[rows] = before - step * gradient[rows]
            if self._value(coefficients, nonzero)[0] < value:
                return
            step *= 0.5
            yield

    def _descend(
        self, coefficients: Floats, active: list[int], tolerance: float
    ) -> Work[list[int]]:
        """Minimise over the active groups by damped Newton steps; return those that stay."""
        least, stalled = np.inf, 0
        for _ in range(_ROUNDS):
            active = yield from self._settle_small(coefficients, active)
            rows = self._rows(active)
            if len(rows) == 0:
                return active
            value, gradient = self._value(coefficients, active)
            slope, hessian = (
                gradient[rows].copy(),
                self.loss.curvature(self.target, rows, coefficients[rows]).copy(),
            )
            self._add_penalty(coefficients, active, slope, hessian)
            steepest = float(np.abs(slope).max())
            stalled = 0 if steepest < 0.5 * least else stalled + 1
            least = min(least, steepest)
            # Below the rounding of the gradient nothing more can be gained.
            if steepest <= 0.01 * tolerance or (stalled > 5 and steepest < tolerance):
                return active
            move = _newton(hessian, slope)
            yield
            moved = yield from self._line_search(coefficients, active, rows, move, value, slope)
            if not moved:
                return active
            active = self._shrunk(coefficients, active)
        return active

    def _settle_small(self, coefficients: Floats, active: list[int]) -> Work[list[int]]:
        """Move groups near zero by proximal steps: Newton's are short where the kink is near."""
        kept = []
        rows = self._rows(active)
        sizes = self._sizes(coefficients)
        for c in active:
            own = self._groups[c]
            if sizes[c] < _SMALL:
                _, gradient = self.loss.column(self.target, rows, coefficients[rows])
                steep = self._steepness(own, rows, coefficients)
                aim = coefficients[own] - gradient[own] / steep
                size = float(np.linalg.norm(aim))
                coefficients[own] = aim * max(
                    1.0 - self.penalties[c] / (steep * max(size, 1e-300)), 0.0
                )
                yield
            if np.any(coefficients[own] != 0.0):
                kept.append(c)
        return kept

    def _steepness(self, own: Integers, rows: Integers, coefficients: Floats) -> float:
        """Return the largest curvature of the loss over one group."""
        hessian = self.loss.curvature(self.target, rows, coefficients[rows])
        at = np.flatnonzero(np.isin(rows, own))
        return float(np.linalg.norm(hessian[np.ix_(at, at)], 2))

    def _add_penalty(
        self, coefficients: Floats, active: Sequence[int], slope: Floats, hessian: Floats
    ) -> None:
        at = len(self._free)
        for c in active:
            own = coefficients[self._groups[c]]
            stop = at + len(own)
            size = float(np.linalg.norm(own))
            unit = own / size
            slope[at:stop] += self.penalties[c] * unit
            curve = (np.eye(len(own)) - np.outer(unit, unit)) * (self.penalties[c] / size)
            hessian[at:stop, at:stop] += curve
            at = stop

    def _line_search(
        self,
        coefficients: Floats,
        active: Sequence[int],
        rows: Integers,
        move: Floats,
        value: float,
        slope: Floats,
    ) -> Work[bool]:
        before = coefficients[rows].copy()
        fall = float(slope @ move)
        length = 1.0
        # Near the optimum the value no longer shows a gain that the gradient still does.
        slack = 8 * np.finfo(np.float64).eps * abs(value)
        for _ in range(50):
            coefficients[rows] = before + length * move
            self._stop_at_zero(coefficients, active, before)
            if self._value(coefficients, active)[0] <= value + 1e-4 * length * fall + slack:
                return True
            length *= 0.5
            yield
        coefficients[rows] = before
        return False

    def _stop_at_zero(self, coefficients: Floats, active: Sequence[int], before: Floats) -> None:
        """Hold the groups that were about to pass zero, where their penalty has its kink."""
        at = len(self._free)
        for c in active:
            rows = self._groups[c]
            if float(coefficients[rows] @ before[at : at + len(rows)]) <= 0.0:
                coefficients[rows] = 0.0
            at += len(rows)

    def _shrunk(self, coefficients: Floats, active: list[int]) -> list[int]:
        """Set groups to zero that are next to nothing and want to be there."""
        kept = []
        sizes = self._sizes(coefficients)
        for c in active:
            if sizes[c] == 0.0 or (
                sizes[c] < _NOTHING and self._wants_zero(coefficients, active, c)
            ):
                coefficients[self._groups[c]] = 0.0
            else:
                kept.append(c)
        return kept

    def _wants_zero(self, coefficients: Floats, active: list[int], cause: int) -> bool:
        rest = [c for c in active if c != cause]
        rows = self._rows(rest)
        _, gradient = self.loss.column(self.target, rows, coefficients[rows])
        return bool(np.linalg.norm(gradient[self._groups[cause]]) <= self.penalties[cause])


def _newton(hessian: Floats, slope: Floats) -> Floats:
    try:
        move: Floats = np.asarray(-np.linalg.solve(hessian, slope), dtype=np.float64)
    except np.linalg.LinAlgError:
        move = np.full_like(slope, np.nan)
    if np.isfinite(move).all() and float(move @ slope) < 0.0:
        return move
    # Columns that determine each other: the step of least norm.
    least = np.linalg.lstsq(hessian, slope, rcond=1e-12)[0]
    move = np.asarray(-least, dtype=np.float64)
    return move if float(move @ slope) < 0.0 else -slope
