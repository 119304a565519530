"""Draws: the shape that every sampler returns."""

from __future__ import annotations

import numpy as np
import pytest

from isthmus.errors import ArgumentError
from isthmus.results import SamplerDetails
from isthmus.samplers import Draws
from isthmus.watch import Watch, drive


def words(*rows: int) -> np.ndarray:
    return np.array(rows, np.uint64)[:, None]


A_TO_B, B_TO_A, EMPTY = words(0, 1), words(2, 0), words(0, 0)


def test_repeated_graphs_are_stored_once() -> None:
    graphs = np.stack([[A_TO_B, A_TO_B, EMPTY], [EMPTY, B_TO_A, A_TO_B]])
    scores = np.array([[-1.0, -1.0, -3.0], [-3.0, -2.0, -1.0]])
    draws = Draws.from_sequence(graphs, scores)
    assert len(draws.parents) == 3
    np.testing.assert_array_equal(draws.parents[draws.chains], graphs)
    np.testing.assert_array_equal(draws.log_scores[draws.chains], scores)
    assert draws.log_weights is None
    assert draws.details == SamplerDetails()


@pytest.mark.parametrize("d", [1, 64, 65])
def test_any_number_of_words(d: int) -> None:
    rng = np.random.default_rng(d)
    graphs = rng.integers(0, 2**63, (2, 5, d, -(-d // 64))).astype(np.uint64)
    draws = Draws.from_sequence(graphs, np.zeros((2, 5)))
    np.testing.assert_array_equal(draws.parents[draws.chains], graphs)


def test_no_draws_yet() -> None:
    draws = Draws.from_sequence(np.zeros((3, 0, 4, 1), np.uint64), np.zeros((3, 0)))
    assert draws.parents.shape == (0, 4, 1)
    assert draws.chains.shape == (3, 0)


def test_the_driver_takes_draws() -> None:
    def once(watch: Watch) -> Draws:
        with watch.until_stopped():
            watch.poll("once", 0.0)
        return Draws.from_sequence(
            EMPTY[None, None], np.zeros((1, 1)), converged=False, conclusion="One draw."
        )

    draws, status = drive(once, "Once")
    assert draws.gap is None
    assert str(status) == "not converged: One draw."


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parents": np.zeros((2, 3, 1), np.int64)}, "unsigned 64-bit"),
        ({"parents": np.zeros((2, 65, 1), np.uint64)}, "need 2 words"),
        ({"log_scores": np.zeros(3)}, r"log_scores must be .* of shape \(2,\)"),
        ({"log_weights": np.zeros((2, 1))}, r"log_weights must be .* of shape \(2,\)"),
        ({"chains": np.zeros(4, np.int64)}, "shape .chains, draws."),
        ({"chains": np.zeros((1, 4))}, "array of integers"),
        ({"chains": np.array([[0, 2]])}, "from 0 to 2"),
        ({"chains": np.array([[-1, 0]])}, "from -1 to 0"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change: dict[str, np.ndarray], message: str) -> None:
    given = {
        "parents": np.zeros((2, 3, 1), np.uint64),
        "log_scores": np.zeros(2),
        "chains": np.zeros((1, 4), np.int64),
    }
    with pytest.raises(ArgumentError, match=message):
        Draws(**(given | change))
