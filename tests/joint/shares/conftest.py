"""Two engines that all tests of this folder share: setting them up takes a second."""

from __future__ import annotations

import pytest
from tests.joint.shares.pair import Pair


@pytest.fixture(scope="session")
def pair() -> Pair:
    return Pair()
