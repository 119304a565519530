"""No answer without its uncertainty: every estimate says where its error is, or why it has none.

`ESTIMATES` lists each public method and property of results and models that returns a number about
the population, and the words by which its documentation leads to its uncertainty: the name of
another member, or the reason why there is none. A new method must be listed here or in
`NO_ESTIMATES`.
"""

from __future__ import annotations

import inspect
from functools import cached_property
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus import networks, results
from isthmus.networks.sampling_error import DrawnAnswer

NOT_INCLUDED = "The sampling error of fitted parameters is not included"

ERRORS = {"sampling_error": "given the graph", "confidence_interval": "given the graph"}

ESTIMATES: dict[str, dict[str, str]] = {
    "Solution": {
        "effect": "range",
        "fit": "range",
        "fit_gp": "error bands",
        "strengths": "without a standard error",
    },
    "PAGSolution": {"effect": "standard error"},
    "EffectEstimate": {
        "value": "interval",
        "standard_error": "standard error",
        "possible": "range",
        "interval": "confidence interval",
        "robustness_value": "interval",
        "e_value": "confidence interval",
    },
    "PossibleEffect": {"interval": "confidence interval"},
    "Changes": {"total": "without a standard error"},
    "Posterior": {
        "edge_probabilities": "agreement",
        "adjacency_probabilities": "agreement",
        "path_probabilities": "trace",
        "markov_blanket_probabilities": "trace",
        "probability": "trace",
        "equivalence_classes": "trace",
        "compelled_probabilities": "trace",
        "effects": "uncertainty about both",
        "mean_effects": "effect_deviations",
        "effect_deviations": "uncertainty about the graph",
        "edges_by_chain": "each chain alone",
    },
    "Ensemble": dict.fromkeys(
        (
            "edge_probabilities",
            "adjacency_probabilities",
            "direction_probabilities",
            "path_probabilities",
            "markov_blanket_probabilities",
            "probability",
            "equivalence_classes",
            "compelled_probabilities",
        ),
        "There are no standard errors, because",
    ),
    "CrossValidation": {"mean": "standard_error", "standard_error": "spread between folds"},
    "DynamicNetwork": {"matrices": "no standard errors"},
    "DiscreteNetwork": {
        "query": "has a `sampling_error`",
        "most_probable": "sampling error",
        "predict_probabilities": NOT_INCLUDED,
        "predict": "predict_probabilities",
        "counterfactual": NOT_INCLUDED,
    },
    "GaussianNetwork": {
        "weights": NOT_INCLUDED,
        "mean": NOT_INCLUDED,
        "covariance": NOT_INCLUDED,
        "query": "have a `sampling_error`",
        "most_probable": NOT_INCLUDED,
        "predict": NOT_INCLUDED,
        "counterfactual": NOT_INCLUDED,
    },
    "MixedNetwork": {
        "query": "simulation error",
        "predict_probabilities": NOT_INCLUDED,
        "predict": NOT_INCLUDED,
        "most_probable": NOT_INCLUDED,
        "counterfactual": NOT_INCLUDED,
    },
    "GPNetwork": {"curve": "95% band", "predict": "noises", "query": "simulation error"},
    "Effect": {"at": "band", "means_at": "band"},
    "Normal": {"deviation": "does not", "quantile": "does not", **ERRORS},
    "NormalMixture": {
        "mean": "error",
        "covariance": "does not",
        "deviation": "does not",
        "quantile": "does not",
        "error": "Simulation error",
        **ERRORS,
    },
    "Nonparanormal": {
        "median": "confidence_interval",
        "quantile": "single value",
        "interval": "single value",
        "error": "Simulation error",
        **ERRORS,
    },
    "Probabilities": {
        "marginal": "sampling_error",
        "most_probable": "sampling_error",
        "error": "Simulation error",
        **ERRORS,
    },
    "ProbabilityRange": {
        "lower": "confidence_interval",
        "upper": "confidence_interval",
        "confidence_interval": "sampling error",
    },
    "MeanRange": {
        "lower": "confidence_interval",
        "upper": "confidence_interval",
        "confidence_interval": "sampling error",
    },
}
"""For each class, its estimates and where their uncertainty is documented."""

NO_ESTIMATES: dict[str, set[str]] = {
    "Solution": {
        "cpdag",
        "directions",
        "measure_directions",
        "drawn",
        "to_dict",
        "standardised_refit",
        "save",
        "load",
        "save_bif",
        "published",
        "plot",
        "report",
    },
    "PAGSolution": {"dag", "cpdag", "plot", "report", "to_dict", "save", "load"},
    "EffectEstimate": {"adjustment", "degrees", "robust"},
    "Changes": {"changed"},
    # Tests, not estimates.
    "TargetTest": {"is_target"},
    "Validation": {"p_value", "agrees", "objections", "unsupported", "asked", "summary", "plot"},
    "Posterior": {
        "nodes",
        "rows",
        "trace",
        "most_probable",
        "median_graph",
        "agreement",
        "select_chains",
        "importance",
        "diagnostics",
        "plot",
        "plot_trace",
        "report",
        "save",
        "load",
    },
    "Ensemble": {
        "from_dags",
        "dag",
        "dags",
        "evaluate",
        "most_probable",
        "median_graph",
        "threshold",
        "averaged_graph",
        "cpdags",
        "effective_size",
        "plot",
        "report",
        "save",
        "load",
    },
    "DynamicNetwork": {
        "from_dag",
        "edges",
        "instantaneous",
        "lagged",
        "lag_of",
        "unrolled",
        "plot",
    },
    "DiscreteNetwork": {
        "cardinalities",
        "conditionals",
        "parameters",
        "unseen",
        "sample",
        "sample_codes",
        "encode",
        "log_likelihood",
        "log_densities",
        "reorder",
        "close_to",
    },
    "GaussianNetwork": {
        "conditionals",
        "levels",
        "parameters",
        "sample",
        "log_likelihood",
        "log_densities",
        "reorder",
        "close_to",
    },
    "MixedNetwork": {
        "levels",
        "parameters",
        "sample",
        "log_likelihood",
        "log_densities",
        "reorder",
    },
    "Nonparanormal": {"names", "mean", "deviation", "covariance"},  # the last three raise
    "Probabilities": {"names"},
    "ProbabilityRange": {"names"},
}
"""Members that describe graphs, rows or files, not the population."""

INTERNAL = {
    # Descriptions of runs and readings, features of graphs, and parts of networks.
    "ChainAgreement",
    "ColumnReading",
    "Conditional",
    "ConditionalGaussian",
    "CurvedGaussian",
    "CurvedLogit",
    "Directions",
    "Disclosure",
    "DynamicEdge",
    "EffectModel",
    "Factor",
    "SearchDetails",
    "Feature",
    "Hurdle",
    "NodeMatrix",
    "MultinomialLogit",
    "ProbabilityTable",
    "Provenance",
    "Reading",
    "Refit",
    "StatisticsKept",
    "Status",
    "WeightDiagnostics",
    "edge",
    "in_markov_blanket",
    "path",
}


def members(cls: type) -> set[str]:
    """Return the public methods and properties of a class, also those of its private bases."""
    kinds = (property, cached_property, classmethod, staticmethod)
    bases = [b for b in cls.__mro__ if b in (cls, DrawnAnswer) or b.__name__.startswith("_")]
    return {
        name
        for base in bases
        for name, value in vars(base).items()
        if not name.startswith("_")
        and name != "to_frame"  # the same numbers in a table
        and (inspect.isfunction(value) or isinstance(value, kinds))
    }


CLASSES = {
    name: cls
    for module in (results, networks)
    for name in module.__all__
    if inspect.isclass(cls := getattr(module, name)) and name not in INTERNAL and members(cls)
}


def test_every_public_class_is_listed() -> None:
    assert set(CLASSES) == set(ESTIMATES) | set(NO_ESTIMATES)


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_every_method_is_listed_once(name: str) -> None:
    estimates, others = set(ESTIMATES.get(name, {})), NO_ESTIMATES.get(name, set())
    assert not estimates & others
    assert members(CLASSES[name]) == estimates | others


@pytest.mark.parametrize(
    ("name", "method"), [(name, method) for name, own in ESTIMATES.items() for method in own]
)
def test_the_documentation_leads_to_the_uncertainty(name: str, method: str) -> None:
    cls = CLASSES[name]
    own = inspect.getdoc(inspect.getattr_static(cls, method)) or ""
    text = " ".join(f"{own} {cls.__doc__}".split())
    words = ESTIMATES[name][method]
    assert words in text
    if words.isidentifier() and hasattr(cls, words):
        assert words != method


def test_what_is_printed_has_an_error_or_says_why_not() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    table = {"x": x, "y": x + rng.normal(size=200), "z": rng.normal(size=200)}
    solution = ist.learn(table, knowledge=ist.Knowledge(tiers=[["x"], ["y"], ["z"]]))
    free = ist.learn(table)
    printed = {
        "standard error": solution.effect("x", "y"),
        "95% interval": solution.effect("x", "z"),
        "by background knowledge": solution.effect("z", "x"),
        "not identified": free.effect("x", "y"),
        "not identified:": free.fit().query("y", do={"x": 1.0}),
    }
    for words, answer in printed.items():
        assert words in str(answer)


def test_posterior_deviations_are_those_of_the_draws() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=60)
    table = {"x": x, "y": 0.4 * x + rng.normal(size=60), "z": rng.normal(size=60)}
    posterior: Any = ist.sample(table, draws=1000, chains=2, seed=0)
    deviations = posterior.effect_deviations(seed=1)
    drawn = posterior.effects("x", "y", seed=2)
    assert deviations[0, 1] == pytest.approx(drawn.std(), rel=0.1)
    assert (np.diagonal(deviations) == 0).all()
