"""Everything between organisations: agreements, records, transports, secure sums and shares.

The names and their modules are in ``__init__.pyi``; ``README.md`` explains the folders.
"""

from __future__ import annotations

from isthmus.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
