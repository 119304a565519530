"""One person in a window that the first layer of a neural network makes.

The coordinator chose the parameters of the networks: hidden units that are steps at thresholds of
its choice. Now nobody chooses them, and sites whose rows describe persons take no part.
"""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.attacks.malicious import Attacked, drafted_policy

from isthmus.arrays import Floats
from isthmus.errors import FormatError, RefusedError
from isthmus.neural import perceptron
from isthmus.statistics import Schema
from isthmus_joint import Persons, Study
from isthmus_joint.methods.admm import AskNetworks
from isthmus_joint.methods.admm_models import ADMMOptions
from isthmus_joint.request_catalogue import read_request

NAMES = ("age", "hiv", "weight", "pressure")
BOUNDS = {"age": (0, 120), "hiv": (0, 1), "weight": (0, 300), "pressure": (0, 300)}
OLDEST = (101.0, 1.0, 51.3, 171.0)


def tables(oldest: tuple[float, ...] = OLDEST) -> dict[str, dict[str, Floats]]:
    rng = np.random.default_rng(10)
    found = {}
    for name, n in (("north", 400), ("east", 700), ("south", 250)):
        found[name] = {
            "age": rng.integers(20, 95, n).astype(float),
            "hiv": (rng.random(n) < 0.1).astype(float),
            "weight": rng.normal(80, 15, n),
            "pressure": rng.normal(140, 15, n),
        }
    for name, value in zip(NAMES, oldest, strict=True):
        found["east"][name][17] = value
    return found


def world(persons: str, **changes: Any) -> Attacked:
    rules = {"persons": Persons(persons)}
    schema = Schema.continuous(NAMES)
    return Attacked(tables(), schema, BOUNDS, requests=("networks",), rules=rules, **changes)


def drafted() -> Study:
    return world("none", rounds=300).study


@pytest.mark.parametrize("persons", ["rows", "column:patient"])
def test_sites_with_persons_take_no_part(persons: str) -> None:
    """Already when a study is checked against the policy, so that nobody signs in vain."""
    study = drafted()
    policy = drafted_policy(study, persons=Persons(persons))
    (why,) = policy.violations(study)
    assert "'networks'" in why
    assert "persons = 'none'" in why
    with pytest.raises(RefusedError, match="single out rows"):
        policy.require(study)
    if persons == "rows":
        with pytest.raises(RefusedError, match="single out rows"):
            world(persons, rounds=300)
    assert drafted_policy(study, persons=Persons("none")).violations(study) == []


def test_no_request_carries_parameters() -> None:
    study = drafted()
    plain = AskNetworks(NAMES, 0, ADMMOptions(hidden=24)).to_dict()
    read_request(json.dumps(plain, separators=(",", ":")).encode(), study)
    needle = np.zeros(perceptron.size(4, 24)).tobytes()
    for extra in ({"parameters": base64.b64encode(needle).decode()}, {"rho": 2e4}, {"rows": 1350}):
        with pytest.raises(FormatError):
            read_request(json.dumps(plain | extra, separators=(",", ":")).encode(), study)


@pytest.mark.long
def test_the_parameters_of_every_step_follow_from_the_sums() -> None:
    """Where rows are not persons, a step without the sum of the step before is refused."""
    pytest.importorskip("jax")
    attacked = world("none", rounds=300)
    federation = attacked.federation()
    first = AskNetworks(NAMES, 0, ADMMOptions(hidden=2, rho2=2e4))
    assert federation.ask(first).tolist() == [3.0, 1350.0]
    federation.ask(replace(first, step=1))
    frame = attacked.frame(replace(first, step=2))
    for site in attacked.sites:
        attacked.answer(site, frame)
    assert all(len(attacked.why(site)) == 1 for site in attacked.sites)
