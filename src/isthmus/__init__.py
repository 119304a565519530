"""Learn Bayesian networks from one table, or from data that must stay where they are."""

from __future__ import annotations

from typing import Any

from isthmus import hooks
from isthmus.lazy import lazy_names

# The public names and their modules are in __init__.pyi; each is imported when it is first used.
_imported, _names, __all__ = lazy_names(__name__)


def _notebook_drawing(graph: Any, caption: str) -> str | None:
    from isthmus.plots.svg import notebook_drawing

    return notebook_drawing(graph, caption)


def _statistics_from_bytes(content: bytes, maps: Any) -> Any:
    from isthmus.verbs.kept import statistics_kept_from_bytes

    return statistics_kept_from_bytes(content, maps)


def _fit_as_read(
    data: Any, dag: Any, reading: Any, pseudo_count: float, *, curves: bool = True
) -> Any:
    from isthmus.verbs.fit import fit_as_read

    return fit_as_read(data, dag, reading, pseudo_count, curves=curves)


hooks.notebook_drawing = _notebook_drawing
hooks.statistics_from_bytes = _statistics_from_bytes
hooks.fit_as_read = _fit_as_read


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("isthmus")
    return _imported(name)


def __dir__() -> list[str]:
    return sorted({*_names(), "__version__"})
