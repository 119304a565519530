"""Which score and which search, where the user names none; and why."""

from __future__ import annotations

from typing import Any, TypeAlias

from isthmus.objectives import (
    ADDITIVE_MODEL,
    LOCAL_SCORES,
    PARAMETRIC_MODEL,
    SECOND_MOMENTS,
    Objective,
)
from isthmus.scores import (
    BIC,
    AdditiveLeastSquares,
    DegenerateGaussian,
    GaussianEBIC,
    LaggedLeastSquares,
    LeastSquares,
    Logistic,
    Perceptrons,
)
from isthmus.scores.base import Score
from isthmus.searches import (
    XGES,
    Boss,
    Dynotears,
    Notears,
    NotearsAdditive,
    NotearsMLP,
    Search,
    SubsetDP,
)
from isthmus.statistics import Kind, Schema

AnyScore: TypeAlias = Score[Any, Any]
AnySearch: TypeAlias = Search[Any]

_ALL = 10
"""Up to here the best graph of all takes less time than a search."""
_FEW = 200
"""Up to here several starts take seconds."""


def choose_score(schema: Schema, search: AnySearch | None) -> tuple[AnyScore, str]:
    """Choose a score that the search takes; the second item says why."""
    discrete = len(schema.of_kind(Kind.DISCRETE))
    accepts = (LOCAL_SCORES,) if search is None else search.accepts
    if isinstance(search, Dynotears):
        return LaggedLeastSquares(), "the search looks back in time"
    if ADDITIVE_MODEL in accepts:
        if discrete == len(schema):
            return Logistic(), "all columns are discrete"
        return AdditiveLeastSquares(), "the search fits curves"
    if PARAMETRIC_MODEL in accepts:
        return Perceptrons(), "the search fits small neural networks"
    if SECOND_MOMENTS in accepts:
        return LeastSquares(), "the search moves weights"
    if discrete == len(schema):
        return BIC(), "all columns are discrete"
    if discrete == 0:
        return GaussianEBIC(), "all columns are continuous"
    return DegenerateGaussian(), (
        f"{discrete} columns are discrete and {len(schema) - discrete} are continuous"
    )


def choose_search(schema: Schema, objective: Objective) -> tuple[AnySearch, str]:
    """Choose a search for an objective; the second item says why.

    By measurement (see the benchmarks in the docs): over equivalence classes for tables of
    categories, over orders for the rest; where moments tell all, over every graph of few variables.
    To count every set of variables would tell more of the data than is needed.
    """
    if ADDITIVE_MODEL.of(objective):
        return NotearsAdditive(), "the score fits curves"
    if PARAMETRIC_MODEL.of(objective):
        return NotearsMLP(), "the score fits small neural networks"
    if SECOND_MOMENTS.of(objective):
        return Notears(), "the score weighs edges"
    d = len(schema)
    counted = len(schema.of_kind(Kind.DISCRETE)) == d
    if objective.equivalent and counted:
        return XGES(), "the most accurate on tables of categories"
    if d <= _ALL and not counted:
        return SubsetDP(), f"{d} variables: so few that no graph need be left out"
    if d <= _FEW:
        return Boss(), f"{d} variables: the most accurate search, from several starts"
    return Boss(starts=1), f"{d} variables: the most accurate search, from one start"
