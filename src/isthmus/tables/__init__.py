"""Sources of data: tables in memory and tables of engines."""

from __future__ import annotations

from isthmus.lazy import lazy_names

# The names and their modules are in __init__.pyi; each is imported when it is first used.
__getattr__, __dir__, __all__ = lazy_names(__name__)
