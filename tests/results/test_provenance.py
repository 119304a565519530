"""The code of a result can be pasted and run."""

from __future__ import annotations

import warnings
from dataclasses import is_dataclass
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.results import Provenance
from isthmus.searches import (
    L1,
    EqualNoiseEBIC,
    ExponentialAcyclicity,
    FamilyEBIC,
    QuasiMCP,
    RBNetsVariant,
    RefitEBIC,
)
from isthmus_joint import ADMMModel, Stiffness


def _with_defaults() -> list[Any]:
    """Return every public strategy, with its default options."""
    classes = [
        getattr(ist, name)
        for module in (ist.scores, ist.searches, ist.samplers)
        for name in module.__all__
        if name in ist.__all__ and is_dataclass(getattr(ist, name))
    ]
    assert len(classes) > 30
    return [c() for c in classes if c is not ist.KnownOrder]


NUMPY_COUNT: Any = np.int64(3)

STRATEGIES = [
    *_with_defaults(),
    ist.ADMM(),
    ist.ADMM(model=ADMMModel.LINEAR, stiffness=Stiffness.TOGETHER),
    ist.BDeu(ess=np.float64(2.0)),
    ist.BGe(prior_mean=ist.PriorMean.ZERO, alpha_w=np.float64(12.5)),
    ist.Dynotears(criterion=FamilyEBIC(gamma=1.0)),
    ist.GP(basis=ist.Chebyshev(terms=12), integral=ist.GPIntegral.IMPORTANCE),
    ist.KnownOrder(order=("b", "a")),
    ist.Notears(penalty=L1(0.2), acyclicity=ExponentialAcyclicity()),
    ist.Notears(penalty=QuasiMCP(), criterion=RefitEBIC()),
    ist.Notears(criterion=EqualNoiseEBIC()),
    ist.PrivateK2(order=("a",)),
    ist.RBNets(variant=RBNetsVariant(walks=2)),
    ist.XGES(max_parents=NUMPY_COUNT),
]


@pytest.mark.long
@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_the_code_gives_an_equal_strategy(strategy: object) -> None:
    provenance = Provenance.of_call("call", 3, strategy=strategy)
    pasted: dict[str, Any] = {"data": None}
    code = provenance.code.replace("call(data, ", "dict(")
    exec(code, pasted)
    assert pasted["result"] == {"strategy": strategy, "seed": 3}
    assert "np." not in code


def test_the_other_arguments_are_code_too() -> None:
    arguments: dict[str, Any] = {
        "knowledge": ist.Knowledge(required=[("a", "b")], tiers=[["a"], ["b"]]),
        "kinds": {"a": ist.Kind.CONTINUOUS, "b": "discrete", "c": ist.TimeUnit.DAYS},
        "missing": ist.StructuralEM(),
        "draws": np.int64(10),
        "limit": float("inf"),
    }
    pasted: dict[str, Any] = {}
    code = Provenance.of_call("call", 0, **arguments).code.replace("call(data, ", "dict(")
    exec(code, pasted)
    assert pasted["result"] == arguments | {"seed": 0}


@pytest.mark.parametrize(
    ("function", "options"),
    [
        ("learn", {"search": ist.Notears()}),
        ("learn", {"score": ist.BGe()}),
        ("learn", {"data": "regimes"}),
        ("learn", {"data": "regimes", "knowledge": ist.Knowledge(expected_parents=0.2)}),
        ("learn", {"data": "levels", "missing": ist.AvailableCases()}),
        ("sample", {"draws": 20, "chains": 1}),
        ("sample", {"draws": 20, "transform": ist.NormalScores()}),
        ("sample", {"draws": 20, "knowledge": ist.Knowledge(expected_parents=0.2)}),
    ],
)
def test_the_call_runs_again(function: str, options: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    a = np.exp(rng.normal(size=200))
    numbers = {"a": a, "b": a + rng.normal(size=200)}
    holes = np.where(a > 1, "x", "y").astype(object)
    holes[:20] = None
    known: dict[str, Any] = {
        "numbers": numbers,
        "regimes": ist.Interventions([numbers, numbers], [[], ["b"]]),
        "levels": {"a": holes, "b": np.where(numbers["b"] > 1, "u", "v")},
    }
    data = known[options.get("data", "numbers")]
    options = {name: value for name, value in options.items() if name != "data"}
    pasted: dict[str, Any] = {"data": data}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = getattr(ist, function)(data, **options)
        exec(result.provenance.code, pasted)
    again = pasted["result"]
    # The call names the score that a challenge ended with, and the choice says both.
    assert again.choice.split()[1].partition("(")[0] in result.choice
    assert again.provenance.code == result.provenance.code
    if function == "learn":
        assert (again.dag, again.score) == (result.dag, result.score)
    else:
        assert np.array_equal(again.ensemble.log_scores, result.ensemble.log_scores)
