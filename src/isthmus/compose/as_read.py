"""Read a table in the way in which a solution was learned."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from isthmus.models.column_maps import SINCE
from isthmus.results import Reading
from isthmus.sources import Source, TimeUnit, transformed
from isthmus.sources.dispatch import names_of_table
from isthmus.statistics import Kind, Statistic


def as_read(
    data: object,
    reading: Reading,
    nodes: Collection[str],
    kinds: Mapping[str, Kind | TimeUnit | str] | None = None,
) -> tuple[object, Mapping[str, Kind | TimeUnit | str] | None]:
    """Return data and kinds by which columns are read as they were when a graph was learned.

    Parameters
    ----------
    data
        As for :func:`~isthmus.fit`. A source and statistics know their kinds, and are returned as
        they are.
    reading
        How columns were read.
    nodes
        Nodes of the graph.
    kinds
        What the user said about some columns, which has precedence.
    """
    if isinstance(data, (Source, Statistic)):
        return data, kinds
    used = set(nodes).intersection(names_of_table(data))
    known = {str(kind) for kind in Kind}
    own: dict[str, Kind | TimeUnit | str] = {
        c.name: c.unit.removesuffix(SINCE) if c.unit else str(c.read_as)
        for c in reading
        if c.name in used and (c.unit or str(c.read_as) in known)
    }
    own |= kinds or {}
    if reading.maps:
        data = transformed(data, reading.maps, kinds=own).table
    return data, own or None
