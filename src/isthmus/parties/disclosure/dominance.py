"""Dominance: how much of a released sum one person can account for."""

from __future__ import annotations

import numpy as np

from isthmus.parties.disclosure.material import Material
from isthmus.types import Floats

RANK = 1e-12
"""Directions with less than this share of the largest singular value do not exist."""


def largest_share(material: Material) -> float:
    """Return the largest share that one person has in a sum of squares.

    Whoever knows the sums and products of columns knows the sum of squares of every combination of
    them, about every origin. The share of a row in it is largest for one combination, where it is
    the leverage of the row in a regression on all columns. With several rows per person it is the
    largest eigenvalue of their block of the hat matrix. A share of one means that there is a
    combination which is zero for everybody else: the sums contain that person's record.
    """
    rows = material.rows
    columns = _orthonormal(material.columns)
    if material.persons is None:
        return float((columns**2).sum(axis=1).max() + 1 / rows) if rows else 0.0
    whole = np.concatenate([columns, np.full((rows, 1), rows**-0.5)], axis=1)
    order = np.argsort(material.persons, kind="stable")
    blocks = np.split(whole[order], np.flatnonzero(np.diff(material.persons[order])) + 1)
    largest = 0.0
    for block in blocks:
        if (block**2).sum() > largest:  # an upper bound of the eigenvalue
            largest = max(largest, float(np.linalg.svd(block, compute_uv=False)[0] ** 2))
    return largest


def _orthonormal(columns: Floats) -> Floats:
    """Return an orthonormal basis of the centred columns."""
    centred = columns - columns.mean(axis=0)
    scale = np.abs(centred).max(axis=0, initial=0.0)
    size = np.abs(columns).max(axis=0, initial=0.0)
    kept = scale > RANK * np.maximum(size, np.finfo(float).tiny)
    centred = centred[:, kept] / scale[kept]
    if not centred.shape[1]:
        return np.zeros((len(columns), 0))
    triangle = np.linalg.qr(centred, mode="r")
    _, singular, directions = np.linalg.svd(triangle)
    exist = singular > RANK * singular[0]
    found: Floats = centred @ (directions[: len(singular)][exist].T / singular[exist])
    return found
