"""Effects against the Wishart distribution that they come from."""

from __future__ import annotations

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import GraphError, MismatchError
from isthmus.fitting import LinearEffects

NAMES = ("a", "b", "c")
R = np.random.default_rng(0)


def scatter() -> np.ndarray:
    x = R.normal(size=(12, 3)) @ np.array([[1.0, 0.5, 0.2], [0, 1, -0.7], [0, 0, 1]])
    return np.asarray(x.T @ x + np.eye(3))


def test_coefficients_of_a_complete_graph_are_those_of_a_wishart_matrix() -> None:
    from scipy.stats import ks_2samp, wishart

    t, degrees = scatter(), 17.0
    effects = LinearEffects(NAMES, t, degrees)
    dag = ist.DAG(NAMES, [("a", "b"), ("a", "c"), ("b", "c")])
    drawn = effects.draw([dag] * 4000, 0, 2, np.random.default_rng(1))
    precisions = wishart.rvs(degrees, np.linalg.inv(t), size=4000, random_state=2)
    covariances = np.linalg.inv(precisions)
    # The total effect of the first node is its regression coefficient without any covariate.
    expected = covariances[:, 0, 2] / covariances[:, 0, 0]
    assert ks_2samp(drawn, expected).pvalue > 1e-3


@pytest.mark.long
def test_subsets_have_fewer_degrees_of_freedom() -> None:
    from scipy.stats import ks_2samp, wishart

    t, degrees = scatter(), 6.0  # few, so that one more or less would show
    effects = LinearEffects(NAMES, t, degrees)
    dag = ist.DAG(NAMES, [("b", "c")])
    drawn = effects.draw([dag] * 20_000, 1, 2, np.random.default_rng(1))
    precisions = wishart.rvs(degrees, np.linalg.inv(t), size=20_000, random_state=2)
    marginal = np.linalg.inv(precisions)[:, 1:, 1:]
    assert ks_2samp(drawn, marginal[:, 0, 1] / marginal[:, 0, 0]).pvalue > 1e-3


@pytest.mark.long
def test_means_are_those_of_the_draws() -> None:
    effects = LinearEffects(NAMES, scatter(), 40.0)
    dag = ist.DAG(NAMES, [("a", "b"), ("a", "c"), ("b", "c")])
    drawn = effects.draw([dag] * 20_000, 0, 2, np.random.default_rng(1))
    error = drawn.std() / np.sqrt(len(drawn))
    assert effects.mean(dag)[0, 2] == pytest.approx(drawn.mean(), abs=5 * error)
    assert effects.mean(dag)[2, 0] == 0
    assert (effects.draw([dag], 2, 0, np.random.default_rng(1)) == 0).all()


def test_effects_are_averaged_over_graphs() -> None:
    x = np.random.default_rng(3).normal(size=(60, 3))
    x[:, 1] += 2.0 * x[:, 0]
    x[:, 2] += 0.3 * x[:, 1]
    posterior = ist.sample({n: x[:, i] for i, n in enumerate(NAMES)}, draws=1500, chains=2)
    mean = posterior.mean_effects()
    drawn = posterior.effects("a", "c", seed=1)
    assert drawn.shape == (2, 1500)
    error = drawn.std() / np.sqrt(drawn.size)
    assert mean[0, 2] == pytest.approx(drawn.mean(), abs=6 * error)
    # Where there is no path, there is no effect.
    share = posterior.ensemble.probability(ist.path("a", "c"))
    assert (drawn != 0).mean() == pytest.approx(share, abs=1e-12)
    np.testing.assert_array_equal(drawn, posterior.effects("a", "c", seed=1))
    with pytest.raises(GraphError, match="no node 'q'"):
        posterior.effects("a", "q")


def test_a_certain_graph_gives_its_regression() -> None:
    x = np.random.default_rng(3).normal(size=(20_000, 2))
    x[:, 1] += 2.0 * x[:, 0]
    knowledge = ist.Knowledge(required=[("a", "b")])
    table = {"a": x[:, 0], "b": x[:, 1]}
    posterior = ist.sample(table, knowledge=knowledge, draws=50)
    assert posterior.mean_effects()[0, 1] == pytest.approx(2.0, abs=0.03)
    assert posterior.effects("a", "b").std() == pytest.approx(1 / np.sqrt(20_000), rel=0.3)


@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")
def test_categories_have_no_linear_effects() -> None:
    posterior = ist.sample({"a": list("xyxy"), "b": list("xxyy")}, draws=5)
    with pytest.raises(MismatchError, match="continuous"):
        posterior.mean_effects()
