"""What a party says about a run that its engine ended."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from isthmus.errors import AbortedError
from isthmus_joint.shares.two_party import TwoPartyRun


def gone() -> None:
    raise AbortedError("The other party is gone.", reason="disconnected")


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("broken message", "broken message"),
        ("other identifiers", "other identifiers"),
        ("engine", "disconnected"),
    ],
)
def test_a_party_that_is_found_out_cannot_hide_it_by_leaving(reason: str, told: str) -> None:
    absent: Any = None
    run = TwoPartyRun(absent, absent, absent, absent, absent, absent)
    vars(run).update(_channel=SimpleNamespace(check=gone), _run=SimpleNamespace(number=1))
    run._failed([reason, "what the engine says"])
    assert isinstance(run._failure, AbortedError)
    assert run._failure.reason == told
