"""What tests of score tables share."""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.kernels import _native
from isthmus.objectives import LocalScore


def bound_of(local: LocalScore) -> _native.ScoreBound | None:
    """What a score of the library knows of supersets."""
    return None if local.score_bound is None else local.score_bound.kernel


def new_builder(
    score: Any,
    bound: _native.ScoreBound | None = None,
    *,
    required: Any = None,
    forbidden: Any = None,
    max_parents: int | None = None,
    slack: float = 0.0,
    **options: Any,
) -> _native.TableBuilder:
    """A builder with nothing required or forbidden unless that is given."""
    nothing = np.zeros((score.size, score.size), np.bool_)
    return _native.TableBuilder(
        score,
        bound,
        required=nothing if required is None else required,
        forbidden=nothing if forbidden is None else forbidden,
        max_parents=max_parents,
        slack=slack,
        **options,
    )


def build(builder: _native.TableBuilder, seconds: float = 0.01) -> tuple[Any, Any, Any]:
    """The table, built to the end in slices of so many seconds."""
    while not builder.step(seconds):
        pass
    return builder.table()
