"""Noise of differential privacy that is the same in every run of a test.

Sites draw their noise from the system's random numbers. A test of what is done with noisy answers
would fail by chance now and then; `test_noise.py` alone is about the numbers that are really drawn.
"""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from numpy.typing import NDArray

from isthmus_joint.noise import answers


def use_seeded_noise(test: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sites draw their noise from a seed that belongs to a test."""
    rng = np.random.default_rng(zlib.crc32(test.encode()))

    def drawn(scale: float, size: int) -> NDArray[np.int64]:
        return np.rint(rng.normal(0.0, scale, size)).astype(np.int64)

    monkeypatch.setattr(answers, "discrete_gaussian", drawn)
