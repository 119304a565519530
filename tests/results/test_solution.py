"""What a solution says about itself."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import MismatchError, ModelWarning, counted
from isthmus.networks import GaussianNetwork, MixedNetwork
from isthmus.results import Disclosure, Ending, Solution, Status


def solution(nodes: list[str], edges: list[tuple[str, str]]) -> Solution:
    status = Status(Ending.CONVERGED, "done.", 1, 0.0)
    return Solution(ist.DAG(nodes, edges), 1.0, status, Disclosure.none(), "Chosen.")


def test_plurals_are_right() -> None:
    assert [counted(n, "study") for n in (0, 1, 2)] == ["0 studies", "1 study", "2 studies"]
    assert counted(2, "key") == "2 keys"
    assert str(solution(["a"], [])).startswith("0 edges, 1 variable, score 1")
    text = str(solution(["a", "b"], [("a", "b")]))
    assert text.startswith("1 edge, 2 variables")
    assert "The direction of the edge is open: the edge can point either way." in text
    collider = str(solution(["a", "b", "c"], [("a", "c"), ("b", "c")]))
    assert (
        "Both directions are those of the learned graph, and margins were not measured." in collider
    )


def test_a_solution_without_statistics_says_what_it_cannot_do() -> None:
    for method in (Solution.fit, Solution.strengths, Solution.standardised_refit):
        with pytest.raises(MismatchError, match=r"no statistics.*from (the )?data"):
            method(solution(["a"], []))


def curves() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    a = rng.normal(size=300)
    b = np.sin(2 * a) + 0.3 * rng.normal(size=300)
    return {"a": a, "b": b}


def test_fitting_lines_to_a_graph_of_curves_warns() -> None:
    learned = ist.learn(curves(), search=ist.NotearsAdditive(), progress=False)
    with pytest.warns(ModelWarning, match="linear Gaussian network"):
        assert isinstance(learned.fit(curves=False), GaussianNetwork)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(learned.fit(), MixedNetwork)


def test_the_report_of_a_graph_of_curves_shows_them_or_warns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fast_sugiyama")
    learned = ist.learn(curves(), search=ist.NotearsAdditive(), progress=False)
    assert 'class="curve"' in report(learned, tmp_path)

    def no_curves(_: Solution) -> None:
        raise MismatchError("There are no curves.")

    monkeypatch.setattr(Solution, "fit_gp", no_curves)
    assert "T3(a)" in report(learned, tmp_path)


def report(learned: Solution, folder: Path) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learned.report(folder / "report.html")
    return (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.long
def test_fitting_a_graph_of_neural_networks_warns() -> None:
    pytest.importorskip("jax")
    learned = ist.learn(curves(), search=ist.NotearsMLP(), progress=False, time_limit=5)
    with pytest.warns(ModelWarning, match="learned with Perceptrons"):
        learned.fit(curves=False)


@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")
@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")
def test_fitting_a_linear_graph_does_not_warn() -> None:
    learned = ist.learn(curves(), search=ist.Notears(), progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ModelWarning)
        learned.fit()
