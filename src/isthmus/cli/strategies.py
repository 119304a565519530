"""Parse scores, searches and other strategies written as in Python, such as ``BDeu(ess=10)``."""

from __future__ import annotations

import argparse
import ast
import dataclasses
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import isthmus.samplers
import isthmus.scores
import isthmus.searches
import isthmus.sources
from isthmus.cli.parsing import match_name, suggestion
from isthmus.samplers import Sampler
from isthmus.scores.base import Score
from isthmus.searches import Search
from isthmus.sources import Missing

if TYPE_CHECKING:
    # Imported only when needed: most commands use no federation.
    from isthmus.federated.admm.steps import ADMM


def score_from(text: str) -> Score[Any, Any]:
    """Return the score that a text describes."""
    score: Score[Any, Any] = _build(text, _strategies(isthmus.scores, Score))
    return score


def search_from(text: str) -> Search[Any]:
    """Return the search algorithm that a text describes."""
    search: Search[Any] = _build(text, _strategies(isthmus.searches, Search))
    return search


def sampler_from(text: str) -> Sampler[Any]:
    """Return the sampler that a text describes."""
    sampler: Sampler[Any] = _build(text, _strategies(isthmus.samplers, Sampler))
    return sampler


def missing_from(text: str) -> Missing:
    """Return the strategy for missing values that a text describes."""
    missing: Missing = _build(text, _strategies(isthmus.sources, Missing))
    return missing


def admm_from(text: str) -> ADMM:
    """Return the ADMM model that a text describes."""
    import isthmus.federated
    from isthmus.federated.admm.steps import ADMM

    models = _strategies(isthmus.federated, ADMM)
    model: ADMM = _build(text, {name: item for name, item in models.items() if item is not ADMM})
    return model


def names_of_scores() -> list[str]:
    """Return the names of scores that `score_from` accepts."""
    return sorted(_strategies(isthmus.scores, Score))


def names_of_searches() -> list[str]:
    """Return the names of searches that `search_from` accepts."""
    return sorted(_strategies(isthmus.searches, Search))


def names_of_samplers() -> list[str]:
    """Return the names of samplers that `sampler_from` accepts."""
    return sorted(_strategies(isthmus.samplers, Sampler))


def names_of_missing() -> list[str]:
    """Return the names of strategies that `missing_from` accepts."""
    return sorted(_strategies(isthmus.sources, Missing))


def _strategies(package: Any, base: type) -> dict[str, type]:
    public = {name: getattr(package, name) for name in package.__all__}
    return {
        name: item
        for name, item in public.items()
        if isinstance(item, type) and issubclass(item, base) and dataclasses.is_dataclass(item)
    }


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
    try:
        for field in dataclasses.fields(classes[name]):
            if field.name in options and isinstance(field.default, StrEnum):
                options[field.name] = type(field.default)(options[field.name])
        return classes[name](**options)
    except (TypeError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from None


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
