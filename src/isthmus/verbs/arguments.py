"""Checks of what users pass to the verbs, in the same words everywhere."""

from __future__ import annotations

import difflib
import inspect
import math
import os
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias, TypeVar, cast

import isthmus.samplers
import isthmus.scores
import isthmus.searches
import isthmus.tables
from isthmus.errors import ArgumentError, MismatchError, a_type
from isthmus.graphs import DAG, Knowledge
from isthmus.networks.column_maps import SINCE
from isthmus.options import is_integer, is_number
from isthmus.results import Reading
from isthmus.samplers.chains import Sampler
from isthmus.scores.base import Score
from isthmus.searches.base import Search
from isthmus.statistics import Kind
from isthmus.tables import Missing, TimeUnit, Transform, transformed
from isthmus.tables.dispatch import knows_kinds, names_of_table

AnySampler: TypeAlias = Sampler[Any]
AnyScore: TypeAlias = Score[Any, Any]
AnySearch: TypeAlias = Search[Any]
T = TypeVar("T")


def check_score(score: object, name: str = "score") -> AnyScore:
    """Return ``score`` if it is a score object; otherwise say what to write for this parameter."""
    return _check_strategy(score, Score, name, "BIC()", _names(isthmus.scores, Score))


def check_search(search: object) -> AnySearch:
    """Return ``search`` if it is a search object; otherwise say what to write."""
    return _check_strategy(search, Search, "search", "Boss()", _names(isthmus.searches, Search))


def check_sampler(sampler: object) -> AnySampler:
    """Return ``sampler`` if it is a sampler object; otherwise say what to write."""
    names = _names(isthmus.samplers, Sampler)
    return _check_strategy(sampler, Sampler, "sampler", "ExactPosterior()", names)


def check_missing(missing: object) -> Missing | None:
    """Return ``missing`` if it is None or a strategy; otherwise say what to write."""
    if missing is None:
        return None
    names = _names(isthmus.tables, Missing)
    return _check_strategy(missing, Missing, "missing", "DropRows()", names)


def check_transform(transform: object, data: object) -> Transform | None:
    """Return ``transform`` if it is None or a transform of a table; otherwise say what to write."""
    if transform is None:
        return None
    if knows_kinds(data):
        raise MismatchError(
            "transform is for tables; a source and statistics were read already. Transform the "
            "table first: isthmus.tables.transformed(table, transform).table."
        )
    names = _names(isthmus.tables, Transform)
    return _check_strategy(transform, Transform, "transform", "NormalScores()", names)


def _check_strategy(
    given: object, kind: Callable[..., T], word: str, example: str, names: list[str]
) -> T:
    assert isinstance(kind, type)
    noun = "strategy" if word == "missing" else word
    if isinstance(given, kind):
        return cast(T, given)
    if isinstance(given, type) and issubclass(given, kind):
        raise ArgumentError(
            f"{word} must be an object, and the class {given.__name__} was given. "
            f"Write {word}={given.__name__}()."
        )
    if isinstance(given, str):
        raise ArgumentError(
            f"{word} must be a {noun} object, and the string {given!r} was given. "
            f"Write {word}={_closest(given, names) or example}."
        )
    raise ArgumentError(
        f"{word} must be a {noun} object such as {example}; {a_type(given)} was given. "
        f"Available: {', '.join(names)}."
    )


def _names(module: Any, kind: type) -> list[str]:
    return [
        name
        for name in module.__all__
        if inspect.isclass(getattr(module, name))
        and issubclass(getattr(module, name), kind)
        and not inspect.isabstract(getattr(module, name))
    ]


_ABBREVIATIONS = {"hc": "HillClimb", "hillclimbing": "HillClimb", "ges": "XGES", "k2": "K2"}


def _closest(given: str, names: list[str]) -> str | None:
    """The public name that a string most likely means, as code."""
    plain = given.lower().replace("-", "").replace("_", "").replace(" ", "")
    known = {name.lower(): name for name in names}
    known |= {short: name for short, name in _ABBREVIATIONS.items() if name in names}
    if plain in known:
        return f"{known[plain]}()"
    close = difflib.get_close_matches(plain, known, n=1)
    return f"{known[close[0]]}()" if close else None


_NO_KNOWLEDGE = Knowledge()


def check_knowledge(knowledge: object) -> Knowledge:
    """Return ``knowledge``, or what None stands for."""
    if knowledge is None:
        return _NO_KNOWLEDGE
    if isinstance(knowledge, Knowledge):
        return knowledge
    raise ArgumentError(
        f"knowledge must be a Knowledge object; {a_type(knowledge)} was given. "
        "Write knowledge=Knowledge(required=[('a', 'b')], forbidden=[('b', 'c')], "
        "tiers=[['a'], ['b', 'c']])."
    )


def refuse_probabilities(knowledge: Knowledge, what: str) -> None:
    """Refuse prior probabilities of edges where there is no local score to add them to."""
    if knowledge.has_prior:
        raise MismatchError(
            f"Prior probabilities of edges are added to a local score, and {what} has none. Leave "
            "them out of the knowledge."
        )


def check_dag(dag: object) -> DAG:
    """Return ``dag`` if it is a DAG; otherwise say how to make one."""
    if isinstance(dag, DAG):
        return dag
    raise ArgumentError(
        f"dag must be a DAG; {a_type(dag)} was given. "
        "Write DAG(['a', 'b', 'c'], [('a', 'b'), ('b', 'c')]): nodes, then pairs (from, to)."
    )


def check_seed(seed: object, name: str = "seed") -> int:
    """Return a seed that NumPy accepts; otherwise say what to write for this parameter."""
    if is_integer(seed) and seed >= 0:
        return int(seed)
    raise ArgumentError(f"{name} must be an integer of at least 0; {seed!r} was given.")


def check_time_limit(time_limit: object) -> float | None:
    """Return a number of seconds, or None for no limit."""
    if time_limit is None:
        return None
    if is_number(time_limit) and float(time_limit) >= 0:
        return None if math.isinf(time_limit) else float(time_limit)
    raise ArgumentError(
        f"time_limit must be a number of seconds of at least 0, or None; {time_limit!r} was given."
    )


def check_progress(progress: object) -> None:
    """Refuse what is neither a Boolean nor a function."""
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise ArgumentError(
            f"progress must be True, False, None or a function; {progress!r} was given."
        )


def check_kinds(kinds: object) -> None:
    """Refuse what does not map names of columns to kinds."""
    if kinds is not None and not isinstance(kinds, Mapping):
        raise ArgumentError(
            f"kinds must map names of columns to kinds; {a_type(kinds)} was given. "
            "Write kinds={'age': Kind.CONTINUOUS}."
        )


def check_count(
    value: object, name: str, *, least: int = 0, most: int | None = None, optional: bool = True
) -> None:
    """Refuse what is not an integer in a range; None is allowed if ``optional``."""
    if value is None and optional:
        return
    if is_integer(value) and int(value) >= least:
        if most is None or int(value) <= most:
            return
        raise ArgumentError(f"{name} must be at most {most:,}; {value!r} was given.")
    other = ", or None" if optional else ""
    raise ArgumentError(
        f"{name} must be an integer of at least {least}{other}; {value!r} was given."
    )


def check_jobs(jobs: object) -> int | None:
    """Return the number of threads, or None for processes."""
    if jobs is None:
        return None
    if not is_integer(jobs) or (jobs < 1 and jobs != -1):
        raise ArgumentError(
            f"jobs must be the number of threads, -1 for one per core, or None to follow the "
            f"joblib configuration; {jobs!r} was given."
        )
    return (os.cpu_count() or 1) if jobs == -1 else jobs


# --- Read a table in the way in which a solution was learned ------------------------------------


def as_read(
    data: object,
    reading: Reading,
    nodes: Collection[str],
    kinds: Mapping[str, Kind | TimeUnit | str] | None = None,
) -> tuple[object, Mapping[str, Kind | TimeUnit | str] | None]:
    """Return data and kinds by which columns are read as they were when a graph was learned.

    Parameters
    ----------
    data
        As for :func:`~isthmus.fit`. A source and statistics know their kinds, and are returned as
        they are.
    kinds
        What the user said about some columns, which has precedence.
    """
    if knows_kinds(data):
        return data, kinds
    used = set(nodes).intersection(names_of_table(data))
    known = {str(kind) for kind in Kind}
    own: dict[str, Kind | TimeUnit | str] = {
        c.name: c.unit.removesuffix(SINCE) if c.unit else str(c.read_as)
        for c in reading
        if c.name in used and (c.unit or str(c.read_as) in known)
    }
    own |= kinds or {}
    if reading.maps:
        data = transformed(data, reading.maps, kinds=own).table
    return data, own or None
