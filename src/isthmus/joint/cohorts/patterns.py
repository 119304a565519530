"""Patterns of missing values: what the steps of expectation-maximisation could tell apart.

The expected sums of a row depend on which of its values are missing. Whoever knows the sums of many
steps could learn the sums and products of the rows of each pattern. A site therefore treats every
pattern as a release of its own. Where a pattern breaks a rule, more of its values are treated as
missing, until it is the same as another pattern, or has no values left.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isthmus.joint.agreement.policy import Policy
from isthmus.joint.agreement.variables import Resolutions
from isthmus.joint.cohorts.candidates import ReleaseCandidates
from isthmus.joint.cohorts.checks import broken_rules
from isthmus.types import Floats, Integers

PARTNERS = 500
"""Number of the most frequent patterns to compare when one that breaks a rule is merged."""

FREQUENT = 2000
"""Number of patterns that are merged one by one, which takes time quadratic in their number; rarer
ones are merged at once (benchmarks/missing_steps.py)."""


def hide_rare_patterns(
    names: tuple[str, ...],
    values: Floats,
    persons: Integers | None,
    policy: Policy,
    resolutions: Resolutions,
) -> Floats:
    """Return the values, with more of them missing: every pattern then keeps the rules.

    Which values are hidden depends on a rule being broken, and for the rest on which values are
    missing, and not on the values themselves.

    Parameters
    ----------
    values
        Rows, with NaN for missing values.
    persons
        The person that each row describes; ``None`` if every row is a person of its own.
    """
    by_name = np.argsort(names)  # the order of columns in a study must not matter
    if (np.diff(by_name) < 0).any():
        hidden = hide_rare_patterns(
            tuple(names[i] for i in by_name), values[:, by_name], persons, policy, resolutions
        )
        return hidden[:, np.argsort(by_name)]
    observed, which = np.unique(~np.isnan(values), axis=0, return_inverse=True)
    which = which.reshape(-1)
    observed = np.concatenate([observed, np.zeros((1, observed.shape[1]), dtype=np.bool_)])
    if len(observed) > FREQUENT:
        which = _contained(observed, which)
    sizes = np.bincount(which, minlength=len(observed))
    settled: NDArray[np.bool_] = observed.sum(axis=1) == 0
    while not settled[sizes > 0].all():
        smallest = int(np.argmin(np.where(settled | (sizes == 0), np.inf, sizes)))
        if sizes[smallest] >= policy.minimum_cohort:  # there are no more persons than rows
            own = which == smallest
            candidates = _candidates(names, values, own, observed[smallest], persons, resolutions)
            if not broken_rules(candidates, policy):
                settled[smallest] = True
                continue
        other, merged = _partner(smallest, observed, sizes)
        into = _position(merged, observed)
        if into is None:
            observed = np.concatenate([observed, merged[None, :]])
            sizes, settled = np.append(sizes, 0), np.append(settled, False)
            into = len(observed) - 1
        for k in {smallest, other} - {into}:
            which[which == k] = into
            sizes[into] += sizes[k]
            sizes[k] = 0
        settled[into] = not merged.any()
    return np.where(observed[which], values, np.nan)


def pattern_candidates(
    names: tuple[str, ...], values: Floats, persons: Integers | None, resolutions: Resolutions
) -> list[ReleaseCandidates]:
    """Return what could be released about each pattern of missing values that has values."""
    observed, which = np.unique(~np.isnan(values), axis=0, return_inverse=True)
    which = which.reshape(-1)
    return [
        _candidates(names, values, which == k, there, persons, resolutions)
        for k, there in enumerate(observed)
        if there.any()
    ]


def _candidates(
    names: tuple[str, ...],
    values: Floats,
    own: NDArray[np.bool_],
    there: NDArray[np.bool_],
    persons: Integers | None,
    resolutions: Resolutions,
) -> ReleaseCandidates:
    """Return the rows of one pattern as if they were a table of their own."""
    columns = values[np.ix_(own, there)]
    named = [name for name, known in zip(names, there.tolist(), strict=True) if known]
    codes = None if persons is None else np.unique(persons[own], return_inverse=True)[1].reshape(-1)
    by_name = {name: columns[:, i] for i, name in enumerate(named)}
    return ReleaseCandidates(by_name, columns, persons=codes, resolutions=resolutions)


def _contained(observed: NDArray[np.bool_], which: NDArray[np.intp]) -> NDArray[np.intp]:
    """Merge rare patterns into the largest frequent pattern that they contain."""
    sizes = np.bincount(which, minlength=len(observed))
    order = np.argsort(-sizes, kind="stable")
    bottom = len(observed) - 1
    frequent = np.append(order[order != bottom][:PARTNERS], bottom)
    frequent = frequent[np.argsort(-observed[frequent].sum(axis=1), kind="stable")]
    into = np.arange(len(observed))
    rare = order[FREQUENT:]
    for start in range(0, len(rare), FREQUENT):
        part = rare[start : start + FREQUENT]
        # How many values of a frequent pattern a rare one lacks; the empty one lacks none.
        lacking = (~observed[part]).astype(np.float32) @ observed[frequent].T.astype(np.float32)
        into[part] = frequent[np.argmax(lacking == 0.0, axis=1)]
    return into[which]


def _partner(k: int, observed: NDArray[np.bool_], sizes: Integers) -> tuple[int, NDArray[np.bool_]]:
    """Return the pattern whose merger with this one hides the fewest values, and the merger.

    The pattern without values is always among the candidates: it is the last one at the beginning.
    """
    order = np.argsort(-sizes, kind="stable")
    bottom = int(np.flatnonzero(~observed.any(axis=1))[0])
    candidates = [j for j in (*order[:PARTNERS].tolist(), bottom) if j != k]
    candidates = [j for j in candidates if sizes[j] or j == bottom]
    common = observed[candidates] & observed[k]
    lost = sizes[k] * (observed[k] & ~common).sum(axis=1)
    lost += sizes[candidates] * (observed[candidates] & ~common).sum(axis=1)
    best = int(np.argmin(lost))
    return candidates[best], common[best]


def _position(pattern: NDArray[np.bool_], observed: NDArray[np.bool_]) -> int | None:
    same = np.flatnonzero((observed == pattern).all(axis=1))
    return int(same[0]) if len(same) else None
