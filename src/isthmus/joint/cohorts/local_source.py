"""The data of a simulated site as a source."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from isthmus.errors import DataError
from isthmus.sources.base import Source
from isthmus.sources.tables.engines.find import is_lazy
from isthmus.sources.tables.frame import Frame
from isthmus.sources.tables.lazy import Lazy
from isthmus.sources.tables.missing import KeepMissing
from isthmus.statistics import Schema
from isthmus.types import Floats


def local_source(data: object, schema: Schema, *, holes: bool = False) -> Source:
    """Return the data of a site as a source, read as a study says.

    Parameters
    ----------
    data
        The site's table or source.
    schema
        The variables of the study.
    holes
        Whether values may be missing.
    """
    if isinstance(data, Source):
        if data.schema() != schema:
            raise DataError("The source does not have the variables and levels of the study.")
        return data
    if isinstance(data, Mapping) or not is_lazy(data):
        return Frame(data, schema=schema, missing=KeepMissing() if holes else None)
    return Lazy(data, schema=schema)


def rows_with_holes(source: Source) -> Floats:
    """Return the rows of a site, with NaN for missing values. Tables of an engine are fetched."""
    if isinstance(source, Lazy):
        schema = source.schema()
        parts = [
            Frame(batch, schema=schema, missing=KeepMissing()).rows_with_holes()
            for batch in source.fetch(schema.names)
            if len(batch[schema.names[0]])
        ]
        return np.concatenate([np.zeros((0, len(schema))), *parts])
    return source.rows_with_holes() if isinstance(source, Frame) else source.rows()
