"""Fixtures of federations."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.joint.consortium import Consortium


@pytest.fixture
def four(tmp_path: Path) -> Consortium:
    return Consortium(tmp_path)
