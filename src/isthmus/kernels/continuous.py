"""Compiled solvers of the continuous searches: columns of weights from second moments.

All objects work in slices of time: ``step(seconds)`` returns whether they are done, raises
``KeyboardInterrupt`` on Ctrl-C, and goes on where it was when it is called again.
"""

from __future__ import annotations

from isthmus.kernels._native import BarrierSweeps, GroupDescent, regression

__all__ = ["BarrierSweeps", "GroupDescent", "regression"]
