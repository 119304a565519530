"""Parse scores, searches and other strategies written as in Python, such as ``BDeu(ess=10)``."""

from __future__ import annotations

import argparse
import ast
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import isthmus
from isthmus.cli.parsing import match_name, suggestion

if TYPE_CHECKING:
    from types import ModuleType

    from isthmus.samplers import Sampler
    from isthmus.scores.base import Score
    from isthmus.searches import Search
    from isthmus.sources import Missing, Transform

T = TypeVar("T")


class StrategyOption(argparse.Action):
    """An option whose value is a strategy; ``%(names)s`` in its help stands for all of them.

    The names are found out when the help is printed, because that costs the import of the library.
    """

    def __init__(self, *arguments: Any, names: Callable[[], list[str]], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.names = _Names(names)

    def __call__(
        self, _: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, *__: Any
    ) -> None:
        """Store the strategy."""
        setattr(namespace, self.dest, values)


@dataclasses.dataclass(frozen=True)
class _Names:
    find: Callable[[], list[str]]

    def __str__(self) -> str:
        return ", ".join(self.find())


def table_score_names() -> list[str]:
    """Return the scores of a table, as they are written."""
    return _listed(s for s in _scores().values() if not _is_of_series(s.gives))


def search_names() -> list[str]:
    """Return the searches, as they are written."""
    return _listed(_searches().values())


def sampler_names() -> list[str]:
    """Return the samplers, as they are written."""
    return _listed(_strategies(isthmus.samplers, isthmus.samplers.Sampler).values())


def missing_names(*without: str) -> list[str]:
    """Return the strategies for missing values, as they are written."""
    classes = _strategies(isthmus.sources, isthmus.sources.Missing).values()
    return [name for name in _listed(classes) if name not in without]


def transform_names() -> list[str]:
    """Return the transforms of columns, as they are written."""
    return _listed(_strategies(isthmus.sources, isthmus.sources.Transform).values())


def score_from(text: str) -> Score[Any, Any]:
    """Return the score that a text describes."""
    score: Score[Any, Any] = _build(text, _scores())
    return score


def search_from(text: str, modules: Sequence[ModuleType] = ()) -> Search[Any]:
    """Return the search algorithm that a text describes, from these modules too."""
    kind = isthmus.searches.Search
    found = {name: each for m in modules for name, each in _strategies(m, kind).items()}
    search: Search[Any] = _build(text, _searches() | found)
    return search


def table_search_from(text: str) -> Search[Any]:
    """Return the search algorithm that a text describes, one that learns from a table."""
    search = search_from(text)
    return _of_table(search, search.accepts)


def table_score_from(text: str) -> Score[Any, Any]:
    """Return the score that a text describes, one of a table."""
    score = score_from(text)
    return _of_table(score, score.gives)


def _of_table(strategy: T, capabilities: Iterable[object]) -> T:
    if _is_of_series(capabilities):
        raise argparse.ArgumentTypeError(
            f"{type(strategy).__name__} is for time series: isthmus learn FILE --lags 2 --search "
            "Dynotears"
        )
    return strategy


def needs_lags(search: Search[Any] | None) -> bool:
    """Return whether a search needs lagged variables."""
    return search is not None and _is_of_series(search.accepts)


def _is_of_series(capabilities: Iterable[object]) -> bool:
    """Return whether a strategy needs lagged variables, which a table does not have."""
    return isthmus.objectives.LAGGED_MODEL in capabilities


def sampler_from(text: str) -> Sampler[Any]:
    """Return the sampler that a text describes."""
    sampler: Sampler[Any] = _build(text, _strategies(isthmus.samplers, isthmus.samplers.Sampler))
    return sampler


def missing_from(text: str) -> Missing:
    """Return the strategy for missing values that a text describes."""
    missing: Missing = _build(text, _strategies(isthmus.sources, isthmus.sources.Missing))
    return missing


def transform_from(text: str) -> Transform:
    """Return the transform of columns that a text describes."""
    transform: Transform = _build(text, _strategies(isthmus.sources, isthmus.sources.Transform))
    return transform


def _scores() -> dict[str, type[Score[Any, Any]]]:
    from isthmus.scores.base import Score

    return _strategies(isthmus.scores, Score)


def _searches() -> dict[str, type[Search[Any]]]:
    return _strategies(isthmus.searches, isthmus.searches.Search)


def _listed(classes: Iterable[type]) -> list[str]:
    """Return the names in alphabetical order, each with the options that it needs."""
    return sorted((_usage(each) for each in classes), key=str.lower)


def _strategies(package: Any, base: Any) -> dict[str, Any]:
    """Return the classes that can be built: those that no other one extends."""
    public = [getattr(package, name) for name in package.__all__]
    known = [
        item
        for item in public
        if isinstance(item, type) and issubclass(item, base) and dataclasses.is_dataclass(item)
    ]
    extended = {parent for item in known for parent in item.__mro__[1:]}
    return {item.__name__: item for item in known if item not in extended}


def _build(text: str, classes: Mapping[str, type]) -> Any:
    """Build the described object; names, keywords and constants are parsed and never executed."""
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
    return f"{kind.__name__}({needed})" if needed else kind.__name__


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
        return tree.func.id, {str(k.arg): _value(k.value) for k in tree.keywords}
    except (SyntaxError, ValueError):
        raise wrong from None


def _value(node: ast.expr) -> Any:
    """Return a constant, or the score or search that an option of another one describes."""
    if isinstance(node, ast.Call):
        return _build(ast.unparse(node), {**_scores(), **_searches()})
    return ast.literal_eval(node)
