"""Where data live."""

from __future__ import annotations

from isthmus.sources.base import Source
from isthmus.sources.dispatch import as_source
from isthmus.sources.frame import Frame
from isthmus.sources.summary import Summary

__all__ = ["Frame", "Source", "Summary", "as_source"]
