"""Fixtures of federations."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.joint.consortium import Consortium
from tests.joint.noise.seeded import use_seeded_noise


@pytest.fixture
def four(tmp_path: Path) -> Consortium:
    return Consortium(tmp_path)


@pytest.fixture(autouse=True)
def seeded_noise(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    use_seeded_noise(request.node.nodeid, monkeypatch)
