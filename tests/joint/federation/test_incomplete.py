"""Missing values in a federation: expectation-maximisation by secure sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.attacks.malicious import Attacked

import isthmus as ist
from isthmus.errors import AbortedError, DataError, MismatchError
from isthmus.statistics import Moments, Schema
from isthmus.tables import Missing, Source, as_source
from isthmus_joint import Federation, InProcess
from isthmus_joint.records.journal import MemoryJournal

Table = dict[str, Any]
EM = ist.ExpectationMaximisation()
NAMES = ("north", "east", "south")


def table(n: int = 300, share: float = 0.25, seed: int = 0) -> Table:
    """Numbers of very different units, with holes and a row without values."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    y = 2.0 * x + rng.normal(size=n)
    z = 1e6 - 0.01 * y + 0.01 * rng.normal(size=n)
    numbers = {"x": 1e-6 * x, "y": y, "z": z}
    for values in numbers.values():
        values[rng.random(n) < share] = np.nan
        values[4] = np.nan
    return numbers


def split(numbers: Table) -> dict[str, Table]:
    return {s: {k: v[i::3] for k, v in numbers.items()} for i, s in enumerate(NAMES)}


def assert_close(found: Moments, wanted: Moments, tolerance: float = 1e-8) -> None:
    assert found.n == wanted.n
    spread = np.sqrt(np.diagonal(wanted.covariance()))
    np.testing.assert_allclose(found.mean() / spread, wanted.mean() / spread, rtol=tolerance)
    difference = (found.covariance() - wanted.covariance()) / np.outer(spread, spread)
    np.testing.assert_allclose(difference, 0.0, atol=tolerance)


def incomplete(federation: Federation) -> Source:
    return federation.with_missing(EM)


def pooled_moments(data: Table, missing: Missing = EM) -> Moments:
    return as_source(data, missing=missing).moments()


@pytest.mark.long
def test_it_is_the_estimate_from_the_pooled_table() -> None:
    data = table()
    federation = Federation.simulate(split(data), missing=EM)
    assert_close(incomplete(federation).moments(), pooled_moments(data))
    names = ("z", "x")
    chosen = incomplete(Federation.simulate(split(data), missing=EM)).moments(names)
    assert chosen.schema.names == names


@pytest.mark.long
def test_it_learns_and_samples_as_from_a_table() -> None:
    data = table()
    federation = Federation.simulate(split(data), missing=EM)
    solution, there = ist.learn(federation, missing=EM), ist.learn(data, missing=EM)
    assert solution.dag.cpdag() == there.dag.cpdag()
    assert solution.score == pytest.approx(there.score, abs=1e-6)
    assert solution.notes[0] == there.notes[0]
    said = str(solution.disclosure)
    assert "one step of expectation-maximisation" in said
    assert "numbers of values, sums and sums of squares" in said
    posterior = ist.sample(federation, missing=EM, draws=20, seed=1)
    pooled = ist.sample(data, missing=EM, draws=20, seed=1)
    edge = ist.edge("y", "z")
    assert posterior.probability(edge) == pytest.approx(pooled.probability(edge), abs=1e-6)


def test_complete_tables_give_their_moments() -> None:
    data = table(share=0.0)
    for values in data.values():
        values[4] = 0.0
    federation = Federation.simulate(split(data), missing=EM)
    assert incomplete(federation).moments() == federation.moments()


@pytest.mark.long
def test_a_variable_that_some_or_all_sites_lack() -> None:
    data = table()
    sites = split(data)
    sites["north"]["y"][:] = np.nan  # a view of the table
    schema = Schema.continuous(["x", "y", "z"])
    federation = Federation.simulate(sites, schema=schema, missing=EM)
    assert_close(incomplete(federation).moments(), pooled_moments(data))
    data["y"][:] = np.nan
    federation = Federation.simulate(sites, schema=schema, missing=EM)
    with pytest.raises(DataError, match=r"\['y'\]"):
        incomplete(federation).moments()


@pytest.mark.long
def test_other_strategies() -> None:
    data = table()
    with pytest.raises(MismatchError, match="not offered in a federation"):
        Federation.simulate(split(data), missing=ist.StructuralEM())
    with pytest.raises(MismatchError, match="not offered in a federation"):
        ist.learn(Federation.simulate(split(data), missing=EM), missing=ist.AvailableCases())
    dropped = Federation.simulate(split(data), missing=ist.DropRows(), within_sites=False)
    assert_close(dropped.moments(), pooled_moments(data, ist.DropRows()))
    with pytest.raises(MismatchError, match="allows requests for 'expectation'"):
        ist.learn(dropped, missing=EM)
    with pytest.raises(MismatchError, match="Basis functions of missing values"):
        ist.learn(
            Federation.simulate(split(data), missing=EM),
            missing=EM,
            score=ist.AdditiveLeastSquares(),
        )
    # Everything but the steps is refused where values are missing.
    with pytest.raises(AbortedError, match="refused"):
        Federation.simulate(split(data), missing=EM).moments()


BOUNDS = {"x": (-1e-5, 1e-5), "y": (-20.0, 20.0), "z": (1e6 - 0.5, 1e6 + 0.5)}


def consortium(sites: dict[str, Table], **changes: Any) -> Attacked:
    """Sites with the rules of a drafted policy."""
    schema = Schema.continuous(["x", "y", "z"])
    terms: dict[str, Any] = {"requests": ("expectation",), "rounds": 60} | changes
    return Attacked(sites, schema, BOUNDS, **terms)


def panels(n: int, seed: int = 0) -> Table:
    """Two thirds of the persons were not measured completely: either x or z is missing."""
    data = table(n, 0.0, seed)
    data["x"][: n // 3] = np.nan
    data["z"][n // 3 : 2 * n // 3] = np.nan
    data["x"][4] = 1e-7
    data["y"][4] = 0.1
    data["z"][4] = np.nan
    return {k: v[np.random.default_rng(seed).permutation(n)] for k, v in data.items()}


def test_the_rules_of_a_drafted_policy_allow_missing_values() -> None:
    sites = {s: panels(900, i) for i, s in enumerate(NAMES)}
    world = consortium(sites)
    found = incomplete(world.federation()).moments()
    assert_close(found, pooled_moments(frozen(world)))
    entries = world.ledgers["north"].entries()
    steps = [e for e in entries if "expectation-maximisation" in e.get("what", "")]
    sent = [e for e in entries if e["event"] == "sent"]
    assert len(sent) > 3
    assert [e["round"] for e in steps][-3:] == [e["round"] for e in sent][-3:]
    assert {e["data"] for e in sent} == {world.extracts["north"].identity}
    dry = str(world.controllers["north"].dry_run(first_step()))
    assert "rows with a value of both columns" in dry


def frozen(world: Attacked) -> Table:
    """The frozen rows of all sites."""
    rows = np.concatenate([c.values for c in world.extracts.values() if c.values is not None])
    return {name: rows[:, i] for i, name in enumerate(BOUNDS)}


def first_step() -> Any:
    from isthmus_joint.federation.requests.expectation import AskExpectation

    return AskExpectation(("x", "y", "z"), 0)


def test_the_study_bounds_the_number_of_steps() -> None:
    sites = {s: panels(900, i) for i, s in enumerate(NAMES)}
    for changes in ({"rounds": 3}, {"limits": {"expectation": {"steps": 2}}}):
        federation = consortium(sites, **changes).federation()
        solution = ist.learn(federation, missing=EM)
        assert any("still changing after 2 iterations" in note for note in solution.notes)
    with pytest.raises(DataError, match="allows 1 rounds"):
        incomplete(consortium(sites, rounds=1).federation()).moments()


@pytest.mark.long
def test_a_run_resumes_after_everybody_was_stopped() -> None:
    sites = {s: panels(900, i) for i, s in enumerate(NAMES)}
    world, journal = consortium(sites), MemoryJournal()
    kept = {s: MemoryJournal() for s in NAMES}

    def run(lost: Any = ()) -> Moments:
        world.join()
        handlers = {s: c.site(journal=kept[s]).handle for s, c in world.controllers.items()}
        federation = Federation(
            world.study,
            world.signatures,
            world.boss,
            InProcess(handlers, lost=lost),
            journal=journal,
        )
        return incomplete(federation).moments()

    with pytest.raises(AbortedError, match="Silent"):
        run(lost=[("east", 6)])
    opened = world.ledgers["north"].entries()
    assert_close(run(), pooled_moments(frozen(world)))
    assert world.ledgers["north"].entries()[: len(opened)] == opened
