"""What the compiled core was built from."""

from __future__ import annotations

from isthmus.kernels import _native


def source_hash() -> str:
    """Return the SHA-256 of the C++ sources of the compiled core, in hexadecimal digits."""
    return _native.source_hash()


__all__ = ["source_hash"]
