"""Without the extra, a federation says what is missing."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from isthmus.errors import MissingExtraError
from isthmus_joint import Identity


@pytest.mark.skipif(find_spec("cryptography") is not None, reason="the extra is installed")
def test_missing_extra_is_named() -> None:
    with pytest.raises(MissingExtraError, match=r"isthmus\[horizontal\]"):
        Identity.generate()
