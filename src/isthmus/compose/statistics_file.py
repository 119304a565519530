"""The part of a saved solution that its methods need: statistics, and which score it was."""

from __future__ import annotations

import json
import tempfile
import zipfile
from dataclasses import fields, is_dataclass
from enum import Enum
from io import BytesIO
from pathlib import Path
from typing import Any

import isthmus.scores
from isthmus.compose.arguments import AnyScore
from isthmus.errors import FormatError
from isthmus.scores.base import Score
from isthmus.statistics import Counts, Moments

_KINDS: dict[str, type[Moments] | type[Counts]] = {s.described: s for s in (Moments, Counts)}
_HEADER = "evidence.json"
_UNKNOWN = object()


def pack_statistics(
    statistics: Moments | Counts,
    score: object,
    nodes: tuple[str, ...],
    caveat: str | None,
) -> bytes:
    """Return a ZIP archive with the statistics, and a score if its options are plain values."""
    kind = statistics.described
    header = {"nodes": nodes, "caveat": caveat, "statistics": kind, "score": _described(score)}
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        _put(archive, _HEADER, json.dumps(header, ensure_ascii=False).encode())
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "statistics"
            statistics.save(path)
            _put(archive, "statistics", path.read_bytes())
    return buffer.getvalue()


def unpack_statistics(
    content: bytes,
) -> tuple[Moments | Counts, AnyScore | None, tuple[str, ...], str | None]:
    """Return statistics, score, names and caveat from what `pack_statistics` returned."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        header = json.loads(archive.read(_HEADER))
        kind = _KINDS[header["statistics"]]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "statistics"
            path.write_bytes(archive.read("statistics"))
            statistics = kind.load(path)
    caveat = header["caveat"]
    if caveat is not None and not isinstance(caveat, str):
        raise FormatError(f"the caveat is {caveat!r}.")
    score = None if header["score"] is None else _built(header["score"])
    if score is not None and score.needs is not kind:
        raise FormatError(f"{score!r} does not fit {statistics.described}.")
    return statistics, score, tuple(header["nodes"]), caveat


def _put(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name), content)


def _described(score: object) -> dict[str, Any] | None:
    """Return the name and the options of one of our scores; None if they are not plain values."""
    name = type(score).__name__
    if not is_dataclass(score) or getattr(isthmus.scores, name, None) is not type(score):
        return None
    options = {f.name: _plain(getattr(score, f.name)) for f in fields(score) if f.init}
    return None if _UNKNOWN in options.values() else {"name": name, "options": options}


def _plain(value: object) -> Any:
    """Return an option as JSON has it: a value, or the name of one of our enumerations with it."""
    name = type(value).__name__
    if isinstance(value, Enum):
        ours = getattr(isthmus.scores, name, None) is type(value)
        return {"enum": name, "value": value.value} if ours else _UNKNOWN
    return value if isinstance(value, (str, int, float, bool, type(None))) else _UNKNOWN


def _built(described: dict[str, Any]) -> AnyScore:
    found = getattr(isthmus.scores, described["name"], None)
    if (
        described["name"] not in isthmus.scores.__all__
        or not isinstance(found, type)
        or not issubclass(found, Score)
    ):
        raise FormatError(f"there is no score called {described['name']!r}.")
    options = {name: _option(value) for name, value in described["options"].items()}
    score: AnyScore = found(**options)
    return score


def _option(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    enum = getattr(isthmus.scores, value["enum"], None)
    if not isinstance(enum, type) or not issubclass(enum, Enum):
        raise FormatError(f"there is no enumeration called {value['enum']!r}.")
    return enum(value["value"])
