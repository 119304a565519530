"""Sentences on what an exact search has proven, and about which graphs."""

from __future__ import annotations

import numpy as np

from isthmus.graphs import BoundKnowledge
from isthmus.objectives import ScoreTable


def best_graph(
    knowledge: BoundKnowledge,
    max_parents: int | None,
    table: ScoreTable | None = None,
    *,
    ordered: bool = False,
) -> str:
    """Return a phrase for the set of graphs among which this one is proven to be the best.

    Parameters
    ----------
    knowledge
        Background knowledge that the graphs agree with.
    max_parents
        Bound on the number of parents that the search was given, or None.
    table
        The parent sets that were searched, which may have bounds of their own.
    ordered
        Whether an order was given, which is part of `knowledge` then.
    """
    required = knowledge.required
    bounds = [max_parents]
    if table is not None:
        bounds.append(table.max_parents)
        required = required if table.required is None else required | table.required
    limits = [bound for bound in bounds if bound is not None]
    words = ["no graph"]
    if table is not None and not table.complete:
        words.append("of the listed parent sets")
    if limits:
        limit = min(limits)
        words.append(f"with at most {limit} {'parent' if limit == 1 else 'parents'} per node")
        if required.sum(axis=0).max(initial=0) > limit:
            words.append("(more only where more are required)")
    if ordered:
        words.append("that agrees with the order")
    elif required.any() or (knowledge.forbidden & ~np.eye(len(required), dtype=np.bool_)).any():
        words.append("that agrees with the knowledge")
    return " ".join([*words, "scores higher"])
