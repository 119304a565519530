"""What a search reports about itself, as names and values for a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from math import isfinite, isnan
from typing import Any, Protocol

_NAMES = {
    "kkt_residual": "KKT residual (largest violation of the optimality conditions)",
    "gap": "gap (proven bound minus score)",
    "bound": "proven bound on the score",
    "left_out": "posterior weight left out by the limit on candidates",
    "complete": "score table has every parent set that can be optimal",
}
"""Display names of fields whose own names are not clear enough."""


class RunStatus(Protocol):
    """How a run ended."""

    @property
    def ending(self) -> str:
        """The kind of ending."""

    @property
    def message(self) -> str:
        """Why the run stopped."""

    @property
    def steps(self) -> int:
        """Number of steps."""

    @property
    def seconds(self) -> float:
        """Seconds by the wall clock."""


def search_diagnostics(
    score: float | None, status: RunStatus, details: object
) -> tuple[tuple[str, str], ...]:
    """Return names and values of the score, the ending and the record of a search."""
    rows: list[tuple[str, str]] = []
    if score is not None:
        rows.append(("score", "unknown" if isnan(score) else f"{score:.10g}"))
    rows += [
        ("ending", f"{status.ending}: {status.message}"),
        ("steps", f"{status.steps:,}"),
        ("seconds", f"{status.seconds:.3g}"),
    ]
    return (*rows, *_record(details))


def _record(details: object) -> list[tuple[str, str]]:
    """Return the fields of a record that are numbers, texts or counts of work."""
    if not is_dataclass(details):
        return []
    rows: list[tuple[str, str]] = []
    for field in fields(details):
        value: Any = getattr(details, field.name)
        name = _NAMES.get(field.name, field.name.replace("_", " "))
        if isinstance(value, Mapping):
            rows += [(str(k).replace("_", " "), _text(v)) for k, v in value.items() if _plain(v)]
        elif _plain(value):
            rows.append((name, _text(value)))
    return rows


def _plain(value: object) -> bool:
    return isinstance(value, bool | int | str) or (isinstance(value, float) and isfinite(value))


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
