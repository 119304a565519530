"""Means and sizes of single sites from steps of ADMM about two centres.

Second moments of a site about two points differ by its number of rows times a square of its mean.
Sites now always subtract their own means, and no request or study can name another centre.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.attacks.malicious import Attacked

from isthmus.arrays import Floats
from isthmus.errors import ArgumentError, FormatError
from isthmus.statistics import Schema
from isthmus_joint import ADMM
from isthmus_joint.methods.admm import AskConsensus
from isthmus_joint.methods.admm_models import ADMMOptions
from isthmus_joint.request_catalogue import read_request

SITES = {"north": (400, 55.0, 12.0), "east": (713, 66.0, 15.0), "south": (250, 48.0, 18.0)}
NAMES = ("age", "weight")
BOUNDS = {"age": (-100.0, 250.0), "weight": (0.0, 300.0)}
CENTRES = {"consensus": {"centre of age": 0.0, "centre of weight": 150.0}}


def tables() -> dict[str, dict[str, Floats]]:
    rng = np.random.default_rng(9)
    return {
        name: {"age": rng.normal(m, s, n).clip(1, 119), "weight": rng.normal(80, 15, n)}
        for name, (n, m, s) in SITES.items()
    }


def seen(data: dict[str, dict[str, Floats]], limits: dict[str, dict[str, float]]) -> Floats:
    """All sums that the coordinator gets, in runs with penalties of its choice."""
    world = Attacked(
        data,
        Schema.continuous(NAMES),
        BOUNDS,
        requests=("consensus",),
        rounds=300,
        limits=limits,
    )
    federation, found = world.federation(), []
    for rho in np.geomspace(20, 2000, 8).tolist():
        first = AskConsensus(NAMES, 0, ADMMOptions(rho2=rho, penalty=0.0))
        found += [federation.ask(replace(first, step=step)).ravel() for step in range(3)]
    assert not any(world.why(site) for site in SITES)
    return np.concatenate(found)


@pytest.mark.long
def test_no_run_depends_on_the_means_of_sites() -> None:
    """Not even in a study whose author has tried to fix a centre."""
    data, other = tables(), tables()
    for shift, table in zip((9.0, -20.0, 40.0), other.values(), strict=True):
        table["age"] += shift
    plain = seen(data, {})
    for limits in ({}, CENTRES):
        # Values within one step of the resolution are drawn at random when a cohort is frozen.
        np.testing.assert_allclose(seen(other, limits), plain, atol=0.005)
    other["east"]["age"] *= 1.2  # second moments of sites do show, as documented
    assert np.abs(seen(other, {}) - plain).max() > 0.02


def test_no_request_names_a_centre() -> None:
    study = Attacked(tables(), Schema.continuous(NAMES), BOUNDS, requests=("consensus",)).study
    plain = AskConsensus(NAMES, 0).to_dict()
    read_request(json.dumps(plain, separators=(",", ":")).encode(), study)
    for extra in ({"centre": [0.0, 150.0]}, {"rows": 1363}, {"weights": [[0.0] * 2] * 2}):
        with pytest.raises(FormatError):
            read_request(json.dumps(plain | extra, separators=(",", ":")).encode(), study)
    with pytest.raises((TypeError, ArgumentError)):
        ADMM(centring="pooled")  # type: ignore[call-arg]
