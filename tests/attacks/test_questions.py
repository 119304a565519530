"""Questions of a malicious coordinator, or of a malicious author, that aim at single persons."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.attacks.malicious import Attacked

import isthmus as ist
import isthmus_joint
from isthmus.errors import AbortedError, RefusedError
from isthmus.statistics import Chebyshev, CountPlan, Expansion, Schema
from isthmus_joint import AskCounts, AskFeatures, AskMoments
from isthmus_joint.methods.admm import AskConsensus
from isthmus_joint.methods.admm_models import ADMMOptions
from isthmus_joint.secure_sum.envelopes import EnvelopeKind, Refusal, parse, write_refusal

NAMES = ("age", "weight", "pressure", "sugar")
BOUNDS = {"age": (0, 120), "weight": (0, 300), "pressure": (0, 300), "sugar": (-50, 50)}
SIZES = {"north": 400, "east": 700, "south": 250}
REFUSED = (EnvelopeKind.REFUSE, Refusal.REFUSED)


def patients(n: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "age": rng.uniform(20, 90, n),
        "weight": rng.normal(80, 15, n),
        "pressure": rng.normal(140, 15, n),
        "sugar": rng.normal(6, 1, n),
    }


def hospitals(seed: int = 0) -> dict[str, dict[str, Any]]:
    return {name: patients(n, seed + i) for i, (name, n) in enumerate(SIZES.items())}


# --- windows -----------------------------------------------------------------------------------


def test_a_window_chosen_by_the_coordinator_shows_no_record() -> None:
    """A centenarian is known to exist; a window from 98 to 104 would hold only that record."""
    tables = hospitals()
    tables["east"]["age"][17] = 101.3
    basis = Chebyshev(terms=2, radius=1.0)
    agreed = Expansion.within(basis, BOUNDS)
    world = Attacked(
        tables, Schema.continuous(NAMES), BOUNDS, requests=("features",), features=agreed
    )
    window = Expansion(basis, NAMES, (101.0, 80.0, 140.0, 6.0), (3.0, 1e3, 1e3, 1e3))
    with pytest.raises(AbortedError):
        world.federation().ask(AskFeatures(window))
    assert {tuple(world.events(n)) for n in tables} == {("refused",)}
    assert world.federation(2).ask(AskFeatures(agreed)).n == sum(SIZES.values())


def test_a_window_signed_by_a_malicious_author_shows_no_record() -> None:
    tables = hospitals()
    tables["east"]["age"][17] = 101.3
    basis = Chebyshev(terms=2, radius=1.0)
    window = Expansion(basis, NAMES, (101.0, 80.0, 140.0, 6.0), (3.0, 1e3, 1e3, 1e3))
    with pytest.raises(RefusedError, match="sum of squares"):
        Attacked(tables, Schema.continuous(NAMES), BOUNDS, requests=("features",), features=window)


def test_a_window_does_not_tell_whether_a_value_occurs() -> None:
    """A scale of zero, or a tiny one: a site with the value must look like one without it."""
    tables = hospitals()
    tables["east"]["weight"][3] = 171.3
    world = Attacked(tables, Schema.continuous(NAMES), BOUNDS, requests=("moments", "features"))
    probes = [
        b'{"features":{"basis":{"chebyshev":{"terms":1,"radius":1.0}},"columns":{"weight":[171.3,0.0]}}}',
        b'{"features":{"basis":{"chebyshev":{"terms":1,"radius":1.0}},"columns":{"weight":[171.3,1e-9]}}}',
    ]
    for probe in probes:
        frame = world.frame(probe, size=6)
        assert {world.answer(n, frame) for n in tables} == {REFUSED}


# --- persons -----------------------------------------------------------------------------------


def test_one_patient_with_many_time_steps_is_no_cohort() -> None:
    rng = np.random.default_rng(1)
    tables = {
        n: ist.Series({"x": rng.normal(size=200), "y": rng.normal(size=200)}, lags=1) for n in SIZES
    }
    schema = Schema.continuous(["x", "y"]).with_lags(1)
    bounds = dict.fromkeys(schema.names, (-9, 9))
    with pytest.raises(RefusedError, match="fewer than 50 persons"):
        Attacked(tables, schema, bounds)
    world = Attacked(tables, schema, bounds, rules={"persons": isthmus_joint.Persons("none")})
    assert world.federation().moments().n == 3 * 199


def test_many_rows_of_few_persons_are_no_cohort() -> None:
    tables = hospitals()
    for name, table in tables.items():
        table["patient"] = np.arange(SIZES[name]) % 49
    rules = {"persons": isthmus_joint.Persons("column:patient")}
    schema = Schema.continuous(NAMES)
    with pytest.raises(RefusedError, match="fewer than 50 persons"):
        Attacked(tables, schema, BOUNDS, rules=rules)
    for name, table in tables.items():
        table["patient"] = np.arange(SIZES[name]) % 100
    world = Attacked(tables, schema, BOUNDS, rules=rules)
    assert world.federation().moments().n == sum(SIZES.values())


@pytest.mark.parametrize("declared", ["continuous", "discrete"])
def test_a_rare_flag_does_not_show_the_record_of_its_only_patient(declared: str) -> None:
    """Whatever the author declares the flag to be."""
    tables = hospitals()
    for table in tables.values():
        table["hiv"] = np.zeros(len(table["age"]))
    tables["east"]["hiv"][321] = 1
    names = ("hiv", *NAMES)
    schema, bounds = Schema.continuous(names), BOUNDS | {"hiv": (0, 1)}
    if declared == "discrete":
        first = ist.statistics.Variable("hiv", ist.statistics.Kind.DISCRETE, (0.0, 1.0))
        schema, bounds = Schema((first, *schema.variables[1:])), BOUNDS
    with pytest.raises(RefusedError, match=r"fewer than 5 persons|constant at this site"):
        Attacked(tables, schema, bounds)


def test_two_nearly_equal_columns_do_not_show_the_record_in_which_they_differ() -> None:
    """The difference of two columns is a flag that nobody declared."""
    tables = hospitals()
    for table in tables.values():
        table["corrected"] = table["weight"].copy()
    names, bounds = (*NAMES, "corrected"), BOUNDS | {"corrected": (0, 300)}
    for difference in (1e-3, 40.0):
        tables["east"]["corrected"][5] = tables["east"]["weight"][5] + difference
        with pytest.raises(RefusedError, match="sum of squares"):
            Attacked(tables, Schema.continuous(names), bounds)


def test_fewer_rows_than_columns_are_not_released() -> None:
    rng = np.random.default_rng(6)
    names = [f"d{i}" for i in range(200)]
    tables = {n: {k: rng.normal(size=50) for k in names} for n in SIZES}
    with pytest.raises(RefusedError, match="200 columns"):
        Attacked(tables, Schema.continuous(names), dict.fromkeys(names, (-9, 9)))


# --- refusals as an oracle ---------------------------------------------------------------------


def steps(world: Attacked, number: int) -> list[bytes]:
    """First steps of ADMM with any options, and second ones without the sum of the first."""
    rng = np.random.default_rng(7)
    frames = []
    for _ in range(number):
        rho, penalty = np.exp(rng.uniform(-30, 30, 2)).tolist()
        names = NAMES if rng.random() < 0.8 else NAMES[:1]
        request = AskConsensus(names, int(rng.integers(2)), ADMMOptions(penalty, rho2=rho))
        frames.append(world.frame(request))
    return frames


@pytest.mark.long
def test_questions_about_one_site_are_answered_alike_whatever_its_data_are() -> None:
    """An attacker who sees only who refuses learns nothing: two data sets give the same bytes.

    An optimiser that chooses its questions itself is in test_budget.py.
    """
    number = 150
    arguments = (Schema.continuous(NAMES), BOUNDS)
    requests = ("consensus", "moments", "features")
    one = Attacked(hospitals(), *arguments, requests=requests, rounds=300)
    two = Attacked(hospitals(99), *arguments, requests=requests, rounds=300, earlier=one)
    two.study, two.signatures = one.study, one.signatures
    two.ledgers = {n: type(x)() for n, x in one.ledgers.items()}
    two.join()
    two.round = one.round
    frames = steps(one, number)
    frames += [one.frame(AskMoments((n,))) for n in NAMES]
    frames += [
        one.frame(AskFeatures(Expansion(Chebyshev(2), ("age",), (c,), (1.0,))))
        for c in range(40, 60)
    ]
    said = [(one.answer("east", f), two.answer("east", f)) for f in frames]
    assert all(a == b for a, b in said)
    assert any(a == REFUSED for a, _ in said)
    assert any(a[0] is EnvelopeKind.ADVERT for a, _ in said[:number])


def test_refused_questions_use_up_the_rounds_and_are_written_down() -> None:
    world = Attacked(hospitals(), Schema.continuous(NAMES), BOUNDS, rounds=5)
    for i in range(20):
        probe = AskFeatures(Expansion(Chebyshev(2), ("age",), (float(i),), (1.0,)))
        assert world.answer("east", world.frame(probe)) == REFUSED
    entries = world.ledgers["east"].entries()
    assert [e.get("counted") for e in entries[:6]] == [True] * 5 + [None]
    assert all(f'"age":[{i}.0,1.0]' in entries[i]["question"] for i in range(5))
    with pytest.raises(AbortedError):
        world.federation(100).moments()


def test_all_refusals_of_a_site_are_the_same_bytes_but_for_number_and_signature(
    tmp_path: Path,
) -> None:
    """Not allowed by the study, not a request, beyond the limits, or stopped."""
    stop = tmp_path / "STOP"
    schema = Schema.continuous(NAMES)
    world = Attacked(hospitals(), schema, BOUNDS, rules={"stop_file": stop}, rounds=6)
    windows = [AskFeatures(Expansion(Chebyshev(2), ("age",), (c,), (1.0,))) for c in range(50, 57)]
    answers = [
        world.sites["east"].handle(world.frame(windows[0])),
        world.sites["east"].handle(world.frame(b"{}")),
    ]
    stop.touch()
    answers.append(world.sites["east"].handle(world.frame(AskMoments(NAMES))))
    stop.unlink()
    for window in windows[1:]:
        world.sites["east"].handle(world.frame(window))
    answers.append(world.sites["east"].handle(world.frame(AskMoments(NAMES))))
    assert {parse(a).body for a in answers} == {write_refusal(Refusal.REFUSED)}
    assert len({len(a) for a in answers}) == 1
    assert set(world.why("east")) >= {"policy", "bad_request", "stopped"}


# --- questions that are no questions -----------------------------------------------------------


def test_a_number_of_four_hundred_digits_does_not_raise() -> None:
    big = 10**400
    step = AskConsensus(NAMES, 0).to_dict()
    basis = {"chebyshev": {"terms": 1, "radius": 1.0}}
    questions: list[Any] = [
        step | {"rho2": big},
        step | {"penalty": big},
        step | {"seed": big},
        step | {"hidden": big},
        step | {"forbidden": [[]]},
        step | {"forbidden": [[big, 1.0]]},
        step | {"step": big},
        {"features": {"basis": {"chebyshev": {"terms": 1, "radius": big}}, "columns": {}}},
        {"features": {"basis": basis, "columns": {"age": [big, 1.0]}}},
        {"features": {"basis": basis, "columns": {"age": [0.0, big]}}},
        {"counts": [], "plan": {"up_to": 10**30}},
        {"moments": {"age": 1}},
    ]
    world = Attacked(
        hospitals(),
        Schema.continuous(NAMES),
        BOUNDS,
        requests=("consensus", "features", "moments"),
        rounds=100,
    )
    for question in questions:
        data = json.dumps(question, separators=(",", ":")).encode()
        assert world.answer("east", world.frame(data)) == REFUSED, question
    assert world.answer("east", world.frame(b"[" * 200_000)) == REFUSED
    assert world.answer("east", world.frame(b'{"moments":["\\ud800"]}')) == REFUSED
    refused = [e for e in world.ledgers["east"].entries() if e["event"] == "refused"]
    assert len(refused) == len(questions) + 2  # each is in the ledger


@pytest.mark.timing
def test_billions_of_tables_are_refused_at_once() -> None:
    names = tuple(f"v{i}" for i in range(120))
    rng = np.random.default_rng(1)
    tables = {n: {k: rng.random(800) < 0.5 for k in names} for n in SIZES}
    schema = Schema.discrete(dict.fromkeys(names, (False, True)))
    rules = {"minimum_cell": 3}
    plan = CountPlan.up_to(2)
    world = Attacked(tables, schema, {}, requests=("counts",), plan=plan, rules=rules)
    sets = [[names[i] for i in rng.choice(120, 14, replace=False)] for _ in range(300)]
    for plan in (CountPlan.up_to(3), CountPlan.up_to(4), CountPlan.sets(sets)):
        frame = world.frame(AskCounts(plan).to_bytes())
        start = time.process_time()
        assert world.answer("east", frame) == REFUSED
        assert time.process_time() - start < 0.5


# --- budgets -----------------------------------------------------------------------------------


@pytest.mark.long
def test_a_flapping_site_does_not_use_up_the_rounds_of_a_study() -> None:
    """Nothing was sent in any of these rounds, and the question was always the same."""
    world = Attacked(hospitals(), Schema.continuous(NAMES), BOUNDS, rounds=3)
    for i in range(10):
        with pytest.raises(AbortedError):
            world.federation(i + 1, lost=[("south", 1)]).moments()
    assert world.federation(11).moments().n == sum(SIZES.values())


@pytest.mark.long
def test_nobody_opens_rounds_for_ever() -> None:
    world = Attacked(hospitals(), Schema.continuous(NAMES), BOUNDS, rounds=3)
    request = AskMoments(NAMES)
    said = [world.answer("east", world.frame(request))[0] for _ in range(150)]
    assert said.count(EnvelopeKind.ADVERT) == 100
    assert said[100:] == [EnvelopeKind.REFUSE] * 50
