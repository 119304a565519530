"""Structural expectation-maximisation through `learn`."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import MismatchError
from isthmus.networks import DiscreteNetwork
from isthmus.results import StructuralEMDetails
from isthmus.watch import Ending

Table = dict[str, Any]


def chain(n: int = 2000) -> Table:
    """Draw a -> b -> c, and d by itself; half of b is missing where a is zero."""
    rng = np.random.default_rng(1)
    a = rng.integers(0, 3, n)
    b = np.where(rng.random(n) < 0.8, a, rng.integers(0, 3, n))
    c = np.where(rng.random(n) < 0.8, b, rng.integers(0, 3, n))
    d = rng.integers(0, 2, n)
    return {k: v.astype(str).astype(object) for k, v in {"a": a, "b": b, "c": c, "d": d}.items()}


def punched(table: Table) -> Table:
    rng = np.random.default_rng(2)
    n = len(table["a"])
    holes = {k: v.copy() for k, v in table.items()}
    holes["b"][(table["a"] == "0") & (rng.random(n) < 0.5)] = None
    holes["c"][rng.random(n) < 0.3] = None
    holes["d"][rng.random(n) < 0.3] = None
    return holes


def test_it_learns_graph_and_parameters() -> None:
    solution = ist.learn(punched(chain()), missing=ist.StructuralEM(), score=ist.BIC())
    assert {frozenset(e) for e in solution.dag.edges} == {frozenset("ab"), frozenset("bc")}
    assert solution.status.ending is Ending.CONVERGED
    assert "completed" in str(solution)
    assert "ExpectedScore" in solution.choice
    assert isinstance(solution.details, StructuralEMDetails)
    assert max(solution.details.scores) == solution.score
    network = solution.fit(pseudo_count=0)
    assert isinstance(network, DiscreteNetwork)
    # Rows that are complete for b have too few zeros of a; the completed rows do not.
    seen = chain()
    share = float(np.mean(seen["b"] == "0"))
    assert network.query("b")["0"] == pytest.approx(share, abs=0.02)
    assert all(value > 0 for value in solution.strengths().values())
    assert pickle.loads(pickle.dumps(solution)).dag == solution.dag  # noqa: S301 - our own


def test_the_score_is_that_of_the_observed_values() -> None:
    table = punched(chain(300))
    solution = ist.learn(table, missing=ist.StructuralEM(), score=ist.BIC())
    network = solution.fit(pseudo_count=1e-3)
    assert isinstance(network, DiscreteNetwork)
    joint = {}
    for levels in itertools.product("012", "012", "012", "01"):
        codes = {k: np.array([int(x)]) for k, x in zip("abcd", levels, strict=True)}
        joint[levels] = np.exp(network.log_likelihood(codes))
    total = 0.0
    for row in zip(*(table[k] for k in "abcd"), strict=True):
        total += np.log(
            sum(
                p
                for x, p in joint.items()
                if all(v in (None, u) for v, u in zip(row, x, strict=True))
            )
        )
    details = solution.details
    # The parameters of the last step are as good as those before, or a little better.
    assert details.log_likelihood == pytest.approx(total, abs=0.5)
    penalty = 0.5 * np.log(300) * network.parameters
    assert solution.score == pytest.approx(details.log_likelihood - penalty, abs=1e-6)


def test_without_holes_it_is_the_criterion() -> None:
    plain = ist.learn(chain(500))
    solution = ist.learn(chain(500), missing=ist.StructuralEM())
    assert (solution.dag, solution.score) == (plain.dag, plain.score)


def test_the_same_seed_gives_the_same_graph() -> None:
    table = punched(chain(400))
    a, b = (ist.learn(table, missing=ist.StructuralEM(completions=3), seed=5) for _ in range(2))
    assert (a.dag, a.score) == (b.dag, b.score)


def test_a_time_limit_returns_the_graph_to_start_with() -> None:
    table = punched(chain())
    solution = ist.learn(table, missing=ist.StructuralEM(), time_limit=1e-6)
    assert solution.status.ending is Ending.TIME_LIMIT
    assert any("that of AvailableCases" in note for note in solution.notes)
    assert solution.details.scores == ()


def test_knowledge_progress_and_the_number_of_iterations() -> None:
    strategy = ist.StructuralEM(completions=1, max_iterations=1)
    knowledge = ist.Knowledge(required=[("d", "a")])
    seen: list[str] = []
    solution = ist.learn(
        punched(chain()),
        missing=strategy,
        knowledge=knowledge,
        progress=lambda p: seen.append(p.text),
    )
    assert ("d", "a") in solution.dag.edges
    assert len(solution.details.scores) == 1


def test_what_it_does_not_do() -> None:
    table = punched(chain(100))
    with pytest.raises(MismatchError, match=r"works with BIC\(\)"):
        ist.learn(table, missing=ist.StructuralEM(), score=ist.BDeu())
    with pytest.raises(MismatchError, match="it is for learn"):
        ist.score(table, ist.DAG(list("abcd"), []), ist.BIC(), missing=ist.StructuralEM())
