"""Two engines that all tests of this folder share: setting them up takes seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.joint.shares.pair import Pair


@pytest.fixture(scope="session")
def pair() -> Iterator[Pair]:
    pytest.importorskip("spu", reason="spu is not installed: isthmus[vertical] on Python 3.11")
    both = Pair()
    yield both
    both.close()
