"""Less than who the people in common are: their number, or who they are to one party alone."""

from __future__ import annotations

import base64
from collections.abc import Callable

import numpy as np
from tests.processes.companies import Companies

from isthmus.cli import ExitCode


def test_the_number_alone_and_then_one_party(companies: Callable[..., Companies]) -> None:
    world = companies(
        bank=range(600),
        shop=range(200, 600),
        draft=["--intersection", "shop", "--count", "--parents", "1"],
    )
    assert world.both("--count") == (ExitCode.DONE, ExitCode.DONE), world.log("bank")
    for name in ("bank", "shop"):
        assert "DONE: 400 people in common." in world.log(name)
        events = [event for event, _ in world.ledger(name)]
        assert events == ["aligning", "aligned", "ended"]
        assert "of 600 people here and 400 at shop: both learn" in world.ledger("bank")[0][1]
        assert not any("positions" in record for record in world.journal(name))
    ends = world.both(stand_in=False)
    assert ends == (ExitCode.DONE, ExitCode.DONE)
    for name in ("bank", "shop"):
        assert "a → b\nb → c\nc → d" in world.log(name)
        assert "bank: which of the people of shop it has, too; shop learned" in world.log(name)
        assert "shop: how many of the people of bank it has, too; bank learned" in world.log(name)
        assert "400 people in common; shop learns which" in world.ledger(name)[4][1]
    places = {
        name: np.frombuffer(base64.b64decode(record["positions"]), "<i8")
        for name in ("bank", "shop")
        for record in world.journal(name)
        if "positions" in record
    }
    # The bank keeps all its rows in a random order, and nothing about whom the shop has.
    assert sorted(places["bank"]) == list(range(600))
    assert (places["shop"] >= 0).sum() == 400
    people = world.people
    for i, j in zip(places["bank"], places["shop"], strict=True):
        assert j < 0 or people["bank"][i] == people["shop"][j]
