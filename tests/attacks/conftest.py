"""Fixtures of attacks."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from tests.joint.noise.seeded import use_seeded_noise

from isthmus.joint.cohorts import freezing


@pytest.fixture(autouse=True)
def seeded_noise(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    use_seeded_noise(request.node.nodeid, monkeypatch)


@pytest.fixture(autouse=True)
def seeded_blur(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sites blur values by a seed that belongs to a test."""
    rng = np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))
    monkeypatch.setattr(freezing, "draw", lambda size: rng.integers(0, 2**16, size).astype(float))
