"""Finding variables that say the same twice, from moments alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from isthmus.statistics.moments import Moments

TOLERANCE = 1e-12
"""How near to one a squared correlation must be: rounding of the sums stays below this."""


def groups(pairs: list[tuple[int, int]], names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Join pairs into groups of names."""
    leader: dict[int, int] = {}
    for i, j in sorted(pairs):
        leader.setdefault(i, i)
        leader.setdefault(j, leader[i])
    found: dict[int, list[str]] = {}
    for member in sorted(leader):
        found.setdefault(leader[member], []).append(names[member])
    return tuple(tuple(g) for g in found.values() if len(g) > 1)


def same_blocks(moments: Moments) -> tuple[tuple[str, ...], ...]:
    """Groups of variables whose blocks span the same space."""
    if moments.n < 3:
        return ()
    still = set(moments.constants())
    schema, scatter = moments.schema, moments.scatter()
    live = [i for i, name in enumerate(schema.names) if name not in still]
    thin = [i for i in live if schema.blocks[i][1] - schema.blocks[i][0] == 1]
    wide = [i for i in live if schema.blocks[i][1] - schema.blocks[i][0] > 1]
    return groups(
        _thin_pairs(scatter, schema.blocks, thin) + _wide_pairs(moments, wide),
        schema.names,
    )


def _thin_pairs(
    scatter: NDArray[np.float64], blocks: tuple[tuple[int, int], ...], thin: list[int]
) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    at = np.array([blocks[i][0] for i in thin], dtype=np.intp)
    square = scatter.diagonal()[at]
    for k, i in enumerate(thin):  # row by row: d² numbers at once would double the memory
        cross = scatter[at[k], at[k + 1 :]]
        same = cross * cross >= (1 - TOLERANCE) * square[k] * square[k + 1 :]
        found += [(i, thin[k + 1 + int(j)]) for j in np.flatnonzero(same)]
    return found


def _wide_pairs(moments: Moments, wide: list[int]) -> list[tuple[int, int]]:
    """Discrete variables with several columns: each explains the other without residual."""
    blocks, scatter = moments.blocks, moments.scatter()
    counts = np.rint(moments.mean() * moments.n).astype(np.int64)
    alike: dict[tuple[int, ...], list[int]] = {}
    for i in wide:  # the same variable under other labels has the same numbers in its levels
        shown = counts[slice(*blocks[i])]
        signature = sorted(c for c in [moments.n - int(shown.sum()), *shown.tolist()] if c)
        alike.setdefault(tuple(signature), []).append(i)
    return [
        (i, j)
        for members in alike.values()
        for k, i in enumerate(members)
        for j in members[k + 1 :]
        if _explains(scatter, slice(*blocks[i]), slice(*blocks[j]))
        and _explains(scatter, slice(*blocks[j]), slice(*blocks[i]))
    ]


def _explains(scatter: NDArray[np.float64], a: slice, b: slice) -> bool:
    cross = scatter[a, b]
    left = scatter[b, b] - cross.T @ np.linalg.pinv(scatter[a, a], hermitian=True) @ cross
    return bool(np.all(left.diagonal() <= 1e-9 * np.maximum(scatter[b, b].diagonal(), 1e-300)))
