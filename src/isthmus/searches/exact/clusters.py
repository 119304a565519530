"""Cluster constraints: every set of nodes has a member without parents in the set."""

from __future__ import annotations

from typing import final

import numpy as np

from isthmus.graphs.bits import bits
from isthmus.kernels import _native
from isthmus.objectives.table import pack_set, unpack
from isthmus.searches.exact.components import Component, masks_of
from isthmus.types import Floats, Integers

_VIOLATED = 1.0 - 1e-4


@final
class ClusterConstraints:
    """Cluster constraints of a component: finds those that a solution violates."""

    def __init__(self, part: Component) -> None:
        self.d = len(part)
        self._first = part.starts[:-1]
        self._sets = part.sets
        self._owner = np.repeat(np.arange(self.d), np.diff(part.starts))

    def violated(self, values: Floats, most: int) -> list[Integers]:
        """Return clusters whose sum is below one, the lowest first, as nodes."""
        used = np.flatnonzero(values > 1e-6)
        owner, sets = self._owner[used], np.ascontiguousarray(self._sets[used])
        line, parent = np.nonzero(unpack(sets, self.d))
        if not len(line):
            return []
        pairs = np.unique(np.stack([owner[line], parent], axis=1), axis=0)
        counts = np.bincount(owner, minlength=self.d)
        search = _native.ClusterSearch(
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            sets,
            values[used],
            first=np.ascontiguousarray(pairs[:, 0]),
            second=np.ascontiguousarray(pairs[:, 1]),
            most=10 * most,
            limit=_VIOLATED,
        )
        while not search.step():
            pass
        clusters, sums = search.found()
        best = np.argsort(sums, kind="stable")[:most]
        return [np.flatnonzero(one) for one in unpack(clusters[best], self.d)]

    def cycle(self, values: Floats) -> Integers:
        """Return the nodes that remain after removing nodes without parents repeatedly."""
        parents = [0] * self.d
        chosen = np.flatnonzero(values > 0.5)
        for v, mask in zip(self._owner[chosen].tolist(), masks_of(self._sets[chosen]), strict=True):
            parents[v] = mask
        left = (1 << self.d) - 1
        while free := [v for v in bits(left) if not parents[v] & left]:
            for v in free:
                left ^= 1 << v
        return np.array(list(bits(left)), np.int64)

    def choice(self, values: Floats) -> tuple[int, ...]:
        """Return the line of each node; empty if a node has none or several."""
        chosen = np.flatnonzero(values > 0.5)
        if not np.array_equal(self._owner[chosen], np.arange(self.d)):
            return ()
        return tuple(chosen.tolist())

    def places(self, chosen: tuple[int, ...]) -> tuple[int, ...]:
        """Return the position of each line in the list of its node."""
        return tuple((np.array(chosen) - self._first).tolist())

    def avoiding(self, cluster: Integers) -> list[int]:
        """Return the lines of a cluster's nodes that have no parents in the cluster."""
        inside = np.zeros(self.d, np.bool_)
        inside[cluster] = True
        lines = np.flatnonzero(inside[self._owner])
        found: list[int] = lines[
            ~(self._sets[lines] & pack_set(cluster.tolist(), self.d)).any(axis=1)
        ].tolist()
        return found
