"""Posteriors: chains, agreement, diagnostics, files."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isthmus.errors import ArgumentError, DataError, FormatError
from isthmus.graphs import DAG
from isthmus.results import (
    Disclosure,
    Ending,
    Ensemble,
    Posterior,
    Provenance,
    Release,
    Status,
    edge,
    in_markov_blanket,
    path,
)
from isthmus.results.chains import weight_diagnostics

NAMES = ("ä", "b", "c")
GRAPHS = (
    DAG(NAMES, [("ä", "b")]),
    DAG(NAMES, [("ä", "b"), ("b", "c")]),
    DAG(NAMES),
)


def posterior(chains: Any, **more: Any) -> Posterior:
    chains = np.array(chains)
    counts = np.bincount(chains.ravel(), minlength=3).astype(float)
    parents = Ensemble.from_dags(GRAPHS).parents
    return Posterior(
        Ensemble(NAMES, parents, counts, np.array([-1.0, -2.0, -3.0]), rows=70),
        chains,
        Status(Ending.CONVERGED, "all draws were made.", 10, 0.5),
        Disclosure((Release("site", "sums", "secure sum", 9),)),
        "Score BGe(); sampler X().",
        **more,
    )


def test_probabilities_are_those_of_the_draws() -> None:
    p = posterior([[0, 1, 1, 2], [0, 1, 2, 2]])
    assert p.edge_probabilities()[0, 1] == pytest.approx(5 / 8)
    assert p.probability(path("ä", "c")) == pytest.approx(3 / 8)
    assert p.path_probabilities()[0, 2] == pytest.approx(3 / 8)
    assert p.probability(in_markov_blanket("c", of="b")) == pytest.approx(3 / 8)
    assert p.probability(lambda g: len(g.edges)) == pytest.approx((2 + 3 * 2) / 8)
    assert p.most_probable() == GRAPHS[0]
    assert p.median_graph().edges == (("ä", "b"),)
    np.testing.assert_array_equal(p.trace(edge("b", "c")), [[0, 1, 1, 0], [0, 1, 0, 0]])
    np.testing.assert_array_equal(p.trace(), [[-1, -2, -2, -3], [-1, -2, -3, -3]])


def test_exact_probabilities_come_first() -> None:
    exact = np.array([[0, 0.9, 0.1], [0, 0, 0.2], [0, 0, 0]])
    p = posterior([[0, 1, 1, 2]], exact_edges=exact, exact_paths=exact / 2)
    np.testing.assert_array_equal(p.edge_probabilities(), exact)
    assert p.probability(edge("b", "c")) == 0.2
    assert p.probability(path("b", "c")) == 0.1
    assert p.median_graph().edges == (("ä", "b"),)
    p.edge_probabilities()[0, 1] = 5.0  # a copy
    assert p.probability(edge("ä", "b")) == 0.9


def test_averages_over_states_come_before_draws() -> None:
    edges = np.array([[[0, 0.8, 0], [0, 0, 0.3], [0, 0, 0]], [[0, 0.6, 0], [0, 0, 0.2], [0, 0, 0]]])
    chains = [[0, 1, 1, 2], [0, 0, 0, 2]]
    p = posterior(chains, chain_edges=edges)
    np.testing.assert_allclose(p.edge_probabilities(), edges.mean(axis=0))
    assert p.probability(edge("b", "c")) == pytest.approx(0.25)
    assert p.agreement().largest == pytest.approx(0.2)
    assert p.agreement().edges() == (("ä", "b"), ("b", "c"))
    weighted = posterior(chains, chain_edges=edges, log_weights=np.log([1.0, 3.0, 1.0]))
    counts = weighted.ensemble.edge_probabilities()
    np.testing.assert_array_equal(weighted.edge_probabilities(), counts)
    assert weighted.agreement().differences[1, 2] == pytest.approx(6 / 8)


def test_chains_can_be_selected(tmp_path: Path) -> None:
    edges = np.random.default_rng(0).random((3, 3, 3))
    p = posterior([[0, 1, 1, 2], [0, 0, 0, 2], [2, 2, 2, 2]], chain_edges=edges)
    p.save(tmp_path / "p.npz")
    some = Posterior.load(tmp_path / "p.npz").select_chains([1, 2])
    np.testing.assert_array_equal(some.edge_probabilities(), edges[1:].mean(axis=0))
    np.testing.assert_array_equal(some.trace(), [[-1, -1, -1, -3], [-3] * 4])
    np.testing.assert_allclose(some.ensemble.weights, [3 / 8, 5 / 8])
    assert "2 of 3 chains" in some.notes[-1]
    assert some.rows == 70
    weighted = posterior([[0, 1], [1, 2]], log_weights=np.log([1.0, 3.0, 1.0])).select_chains([0])
    np.testing.assert_allclose(weighted.ensemble.weights, [1 / 4, 3 / 4])
    for bad in ([], [3], [-1]):
        with pytest.raises(ArgumentError, match="from 0 to 2"):
            p.select_chains(bad)


def test_chains_that_disagree_are_told() -> None:
    p = posterior([[0] * 10, [0] * 9 + [1]])
    agreement = p.agreement()
    assert agreement.largest == pytest.approx(0.1)
    assert agreement.edges() == (("b", "c"),)
    assert "disagree" in str(agreement)
    assert "b → c" in str(agreement)
    assert "The chains agree" in str(posterior([[0, 1], [1, 0]]).agreement())


def test_agreement_counts_importance_weights() -> None:
    weights = np.log([1.0, 3.0, 1.0])
    p = posterior([[0, 1], [0, 0]], log_weights=weights)
    assert p.agreement().differences[1, 2] == pytest.approx(0.75)


def test_diagnostics_come_from_arviz() -> None:
    array_stats = pytest.importorskip("arviz_stats.base").array_stats
    rng = np.random.default_rng(0)
    p = posterior(rng.integers(0, 3, (4, 200)))
    diagnostics = p.diagnostics()
    assert diagnostics.edges == (("ä", "b"), ("b", "c"))
    trace = p.trace(edge("b", "c"))
    assert diagnostics.ess[1] == pytest.approx(array_stats.ess(trace, chain_axis=0, draw_axis=1))
    assert diagnostics.rhat[1] == pytest.approx(array_stats.rhat(trace, chain_axis=0, draw_axis=1))


def test_diagnostics_need_four_draws() -> None:
    pytest.importorskip("arviz_stats")
    with pytest.raises(DataError, match="at least 4 draws"):
        posterior([[0, 1, 2]] * 2).diagnostics()
    assert len(posterior([[0, 1, 2, 1]] * 2).diagnostics().ess) == 2


def test_chains_that_are_stuck_have_an_infinite_rhat() -> None:
    pytest.importorskip("arviz_stats")
    diagnostics = posterior([[0] * 20, [1] * 20]).diagnostics()
    assert diagnostics.edges == (("b", "c"),)
    assert diagnostics.rhat[0] == np.inf


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    exact = np.random.default_rng(0).random((3, 3))
    p = posterior(
        [[0, 1, 1, 2]],
        exact_edges=exact,
        log_weights=np.zeros(3),
        notes=("a note",),
        provenance=Provenance("result = sample(data, seed=7)", 7, {"numpy": "2.0"}),
    )
    p.save(tmp_path / "p.bin")
    loaded = Posterior.load(tmp_path / "p.bin")
    for attribute in fields(Posterior):
        ours, theirs = getattr(p, attribute.name), getattr(loaded, attribute.name)
        if attribute.name == "ensemble":
            assert (ours.nodes, ours.rows) == (theirs.nodes, theirs.rows)
            for name in ("parents", "weights", "log_scores"):
                np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
        elif isinstance(ours, np.ndarray):
            np.testing.assert_array_equal(ours, theirs)
        else:
            assert ours == theirs
    assert str(loaded) == str(p)


@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04broken"])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "other"
    file.write_bytes(content)
    with pytest.raises(FormatError, match="not a posterior"):
        Posterior.load(file)


def test_other_archives_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(FormatError, match="not a posterior"):
        Posterior.load(tmp_path / "other.npz")


@pytest.mark.long
def test_damaged_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "p.npz"
    posterior([[0, 1, 1, 2]]).save(file)
    whole = file.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= 1 << int(rng.integers(8))
        file.write_bytes(damaged)
        try:
            loaded = Posterior.load(file)
        except FormatError:
            refused += 1
        else:  # the date of the archive, for instance
            assert loaded.chains.tolist() == [[0, 1, 1, 2]]
    assert refused > 150
    for length in range(0, len(whole), 61):
        file.write_bytes(whole[:length])
        with pytest.raises(FormatError, match="not a posterior"):
            Posterior.load(file)


@pytest.mark.parametrize(
    "change",
    [
        {"chains": np.array([[0, 3]])},
        {"chains": np.array([[0, -1]])},
        {"chains": np.array([[0.0, 1.0]])},
        {"chains": np.array([0, 1])},
        {"parents": np.zeros((3, 3, 1))},
        {"log_scores": np.zeros(2)},
        {"log_weights": np.zeros(2)},
        {"exact_edges": np.zeros((2, 2))},
        {"exact_edges": np.full((3, 3), np.nan)},
        {"exact_paths": np.full((3, 3), 1.5)},
        {"chain_edges": np.zeros((2, 3, 3))},
        {"choice": 3},
        {"notes": "text"},
        {"notes": [1]},
        {"independent": "no"},
        {"provenance": "code"},
        {"provenance": {"code": 3, "seed": 0, "versions": {}}},
        {"provenance": {"code": "", "seed": 0.5, "versions": {}}},
        {"status": None},
        {"status": {"ending": "unknown"}},
        {"nodes": [1, 2, 3]},
        {"disclosure": [{"site": 1, "what": "", "form": "", "size": 3}]},
        {"format": "isthmus posterior 99"},
        {"rows": "many"},
    ],
    ids=lambda change: "-".join(map(str, *change.items())).replace("\n", ""),
)
def test_files_that_contradict_themselves_are_refused(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    file = tmp_path / "p.npz"
    posterior([[0, 1, 1, 2]]).save(file)
    with np.load(file) as archive:
        arrays = dict(archive)
    header = json.loads(arrays["header"].tobytes())
    for name, value in change.items():
        if isinstance(value, np.ndarray):
            arrays[name] = value
        else:
            header[name] = value
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(file, **arrays)
    with pytest.raises(FormatError, match="not a posterior"):
        Posterior.load(file)


def test_a_missing_file_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Posterior.load(tmp_path / "none.npz")


def test_the_text_says_what_was_done() -> None:
    text = str(posterior([[0, 1, 1, 2], [0, 1, 2, 2]], notes=("Beware.",)))
    assert text.splitlines() == [
        "8 draws in 2 chains, 3 distinct graphs of 3 variables",
        "1.0 edges expected; 2 edges with a probability between 0.05 and 0.95",
        "Score BGe(); sampler X().",
        "converged: all draws were made.",
        "Beware.",
    ]


def test_one_of_each_is_singular() -> None:
    one = posterior([[1]])
    assert str(one).startswith("1 draw in 1 chain, 3 distinct graphs of 3 variables\n")


def test_the_report_shows_probabilities_and_escapes_names(tmp_path: Path) -> None:
    p = posterior([[0, 1, 1, 2], [0, 1, 2, 2]], notes=("Beware of <b>.",))
    p.report(tmp_path / "p.html", title="<Title>")
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "&lt;Title&gt;" in page
    assert "Beware of &lt;b&gt;." in page
    assert page.count("Beware") == 1
    assert "0.625" in page  # the edge ä → b
    assert "0.375" in page  # b → c, and the path
    assert "secure sum" in page
    assert not re.search(r"""(src|href)=["']?http""", page)
    assert "agreement of the chains" in page


def test_plots_draw_what_the_posterior_says() -> None:
    pytest.importorskip("matplotlib")
    p = posterior([[0, 1, 1, 2], [0, 1, 2, 2]])
    np.testing.assert_array_equal(p.plot().images[0].get_array(), p.edge_probabilities())
    assert len(p.plot_trace(edge("b", "c")).lines) == 2
    assert p.plot_trace().get_ylabel() == "log score"


def test_importance_weights_that_collapse_are_told() -> None:
    weights = np.log([1.0, 3.0, 1.0])
    even = posterior([[0, 1], [0, 0]], log_weights=weights).importance()
    assert even.effective == pytest.approx(6**2 / 12)
    assert not even.collapsed
    assert "4 draws count as 3" in str(even)
    uneven = posterior([[0, 2] * 30 + [1]], log_weights=np.array([-50.0, 0.0, -60.0])).importance()
    assert uneven.effective == pytest.approx(1)
    assert uneven.collapsed
    assert "have collapsed: 61 draws count as 1" in str(uneven)
    assert posterior([[0, 1]]).importance().effective == 2


def test_the_tail_of_the_weights_comes_from_arviz() -> None:
    array_stats = pytest.importorskip("arviz_stats.base").array_stats
    for spread, collapsed in ((0.3, False), (8.0, True)):
        weights = spread * np.random.default_rng(0).normal(size=500)
        judged = weight_diagnostics(weights)
        assert judged.pareto_k == pytest.approx(array_stats.psislw(weights)[1])
        assert judged.collapsed == collapsed
