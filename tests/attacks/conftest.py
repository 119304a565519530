"""Fixtures of attacks."""

from __future__ import annotations

import pytest
from tests.joint.noise.seeded import use_seeded_noise


@pytest.fixture(autouse=True)
def seeded_noise(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    use_seeded_noise(request.node.nodeid, monkeypatch)
