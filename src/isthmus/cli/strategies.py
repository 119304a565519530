"""Scores, searches and models as they are written in Python: ``BDeu(ess=10)``."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import difflib
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import isthmus.scores
import isthmus.searches
from isthmus.scores.base import Score
from isthmus.searches import Search

if TYPE_CHECKING:
    # Most commands federate nothing.
    from isthmus.federated.admm.steps import ADMM


def score_from(text: str) -> Score[Any, Any]:
    """Read a score."""
    found: Score[Any, Any] = _made(text, _of(isthmus.scores, Score))
    return found


def search_from(text: str) -> Search[Any]:
    """Read a search."""
    found: Search[Any] = _made(text, _of(isthmus.searches, Search))
    return found


def admm_from(text: str) -> ADMM:
    """Read a model for ADMM."""
    import isthmus.federated
    from isthmus.federated.admm.steps import ADMM

    known = _of(isthmus.federated, ADMM)
    found: ADMM = _made(text, {name: kind for name, kind in known.items() if kind is not ADMM})
    return found


def names_of_scores() -> list[str]:
    """The names that `score_from` knows."""
    return sorted(_of(isthmus.scores, Score))


def names_of_searches() -> list[str]:
    """The names that `search_from` knows."""
    return sorted(_of(isthmus.searches, Search))


def _of(package: Any, base: type) -> dict[str, type]:
    public = {name: getattr(package, name) for name in package.__all__}
    return {
        name: item
        for name, item in public.items()
        if isinstance(item, type) and issubclass(item, base) and dataclasses.is_dataclass(item)
    }


def _made(text: str, known: dict[str, type]) -> Any:
    """Build the object; nothing but names, keywords and constants is read, nothing is run."""
    name, options = _parts(text)
    if name not in known:
        near = difflib.get_close_matches(name, known, 1, 0.4) or sorted(known)
        raise argparse.ArgumentTypeError(f"{name!r} is not known. Did you mean {near[0]}?")
    allowed = [f.name for f in dataclasses.fields(known[name]) if f.init]
    unknown = sorted(set(options).difference(allowed))
    if unknown:
        raise argparse.ArgumentTypeError(
            f"{name} has no option {unknown[0]!r}. It has: {', '.join(allowed) or 'none'}."
        )
    try:
        for field in dataclasses.fields(known[name]):
            if field.name in options and isinstance(field.default, StrEnum):
                options[field.name] = type(field.default)(options[field.name])
        return known[name](**options)
    except (TypeError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _parts(text: str) -> tuple[str, dict[str, Any]]:
    wrong = argparse.ArgumentTypeError(
        f"{text!r} is not of the form NAME or NAME(option=value, ...)."
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
