"""Where data live."""

from __future__ import annotations

from isthmus.sources.base import Source
from isthmus.sources.dispatch import as_source
from isthmus.sources.expanded import Expanded
from isthmus.sources.federation import Federation
from isthmus.sources.frame import Frame
from isthmus.sources.lazy import Lazy
from isthmus.sources.series import Series
from isthmus.sources.summary import Summary

__all__ = ["Expanded", "Federation", "Frame", "Lazy", "Series", "Source", "Summary", "as_source"]
