"""Parse scores, searches and other strategies written as in Python, such as ``BDeu(ess=10)``."""

from __future__ import annotations

import argparse
import ast
import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

import isthmus
from isthmus.cli.parsing import match_name, suggestion

if TYPE_CHECKING:
    from isthmus.joint.methods.admm.steps import ADMM
    from isthmus.samplers import Sampler
    from isthmus.scores.base import Score
    from isthmus.searches import Search
    from isthmus.sources import Missing

T = TypeVar("T")

# Names for help texts, which must not import the classes: a test compares them.
SCORES = (
    *("AIC", "AdditiveLeastSquares", "BDeu", "BGe", "BIC", "DegenerateGaussian", "EBIC"),
    *("ExactGP", "GP", "GaussianBIC", "GaussianEBIC", "K2", "LaggedLeastSquares", "LeastSquares"),
    *("LinearLikelihood", "Logistic", "Perceptrons", "Poisson"),
)
SEARCHES = (
    *("ASOBS", "AStar", "Boss", "Dynotears", "HillClimb", "ILP", "KnownOrder", "Notears"),
    *("NotearsAdditive", "NotearsMLP", "OBS", "RBNets", "SubsetDP", "XGES"),
)
OF_SERIES = ("Dynotears", "LaggedLeastSquares")
"""Strategies that need lagged variables, which a table on the command line does not have."""
SAMPLERS = ("ExactPosterior", "OrderMCMC", "PartitionMCMC", "StructureMCMC")
MISSING = ("DropRows", "ExpectationMaximisation", "NodeAverage", "OwnLevel", "StructuralEM")


def score_from(text: str) -> Score[Any, Any]:
    """Return the score that a text describes."""
    from isthmus.scores.base import Score

    score: Score[Any, Any] = _build(text, _strategies(isthmus.scores, Score))
    return score


def search_from(text: str) -> Search[Any]:
    """Return the search algorithm that a text describes."""
    search: Search[Any] = _build(text, _strategies(isthmus.searches, isthmus.searches.Search))
    return search


def table_search_from(text: str) -> Search[Any]:
    """Return the search algorithm that a text describes, one that learns from a table."""
    return _of_table(search_from(text))


def table_score_from(text: str) -> Score[Any, Any]:
    """Return the score that a text describes, one of a table."""
    return _of_table(score_from(text))


def _of_table(strategy: T) -> T:
    name = type(strategy).__name__
    if name in OF_SERIES:
        raise argparse.ArgumentTypeError(
            f"{name} is for time series, which this command does not read. Use Python: "
            "ist.learn(ist.Series(table, lags=2), search=ist.Dynotears())"
        )
    return strategy


def sampler_from(text: str) -> Sampler[Any]:
    """Return the sampler that a text describes."""
    sampler: Sampler[Any] = _build(text, _strategies(isthmus.samplers, isthmus.samplers.Sampler))
    return sampler


def missing_from(text: str) -> Missing:
    """Return the strategy for missing values that a text describes."""
    missing: Missing = _build(text, _strategies(isthmus.sources, isthmus.sources.Missing))
    return missing


def admm_from(text: str) -> ADMM:
    """Return the ADMM model that a text describes."""
    model: ADMM = _build(text, _strategies(isthmus.joint, isthmus.joint.ADMM))
    return model


def strategies() -> dict[str, list[str]]:
    """Return the names of all scores, searches, samplers and strategies for missing values."""
    from isthmus.scores.base import Score

    kinds: dict[str, dict[str, type]] = {
        "scores": _strategies(isthmus.scores, Score),
        "searches": _strategies(isthmus.searches, isthmus.searches.Search),
        "samplers": _strategies(isthmus.samplers, isthmus.samplers.Sampler),
        "missing": _strategies(isthmus.sources, isthmus.sources.Missing),
    }
    return {kind: sorted(classes) for kind, classes in kinds.items()}


def _strategies(package: Any, base: type) -> dict[str, type]:
    """Return the classes that can be built: those that no other one extends."""
    public = [getattr(package, name) for name in package.__all__]
    known = [
        item
        for item in public
        if isinstance(item, type) and issubclass(item, base) and dataclasses.is_dataclass(item)
    ]
    extended = {parent for item in known for parent in item.__mro__[1:]}
    return {item.__name__: item for item in known if item not in extended}


def _build(text: str, classes: dict[str, type]) -> Any:
    """Build the described object; only names, keywords and constants are parsed, never executed."""
    given, options = _parts(text)
    name = match_name(given, sorted(classes))
    allowed = [f.name for f in dataclasses.fields(classes[name]) if f.init]
    unknown = sorted(set(options).difference(allowed))
    if unknown:
        raise argparse.ArgumentTypeError(
            f"{name} has no option {unknown[0]!r}{suggestion(unknown[0], allowed)}"
        )
    needed = [f.name for f in dataclasses.fields(classes[name]) if _is_needed(f)]
    lacking = [option for option in needed if option not in options]
    if lacking:
        raise argparse.ArgumentTypeError(
            f"{name} needs the option {lacking[0]!r}: {_usage(classes[name])}"
        )
    try:
        return classes[name](**options)
    except (TypeError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _is_needed(field: dataclasses.Field[Any]) -> bool:
    nothing = dataclasses.MISSING
    return field.init and field.default is nothing and field.default_factory is nothing


def _usage(kind: type) -> str:
    """Return how to write a strategy with the options that it needs."""
    needed = ", ".join(f"{f.name}=..." for f in dataclasses.fields(kind) if _is_needed(f))
    return f"{kind.__name__}({needed})"


def _parts(text: str) -> tuple[str, dict[str, Any]]:
    wrong = argparse.ArgumentTypeError(
        f"{text!r} must have the form NAME or NAME(option=value, ...)."
    )
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        if isinstance(tree, ast.Name):
            return tree.id, {}
        if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name) or tree.args:
            raise wrong
        return tree.func.id, {str(k.arg): ast.literal_eval(k.value) for k in tree.keywords}
    except (SyntaxError, ValueError):
        raise wrong from None
