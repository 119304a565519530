"""Solutions as files: a ZIP archive of JSON texts and the statistics; see the reference."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, final

from isthmus import hooks
from isthmus.errors import FormatError, IsthmusError, MismatchError
from isthmus.graphs import DAG, PAG, Knowledge
from isthmus.io.json_text import from_json, to_json
from isthmus.networks import GPNetwork, Level, Network
from isthmus.networks.column_maps import plain_maps, read_maps
from isthmus.networks.rounding import (
    rounded_network,
    rounded_rows,
    rounded_text,
    rounded_values,
    significant,
)
from isthmus.results.directions import Directions, Edges
from isthmus.results.ensemble_file import DAMAGE
from isthmus.results.reading import (
    ColumnReading,
    Disclosure,
    ReadAs,
    Reading,
    Release,
    read_provenance,
)
from isthmus.watch import Ending, Sense, Status

if TYPE_CHECKING:
    from isthmus.results.solution import Solution, StatisticsKept

T = TypeVar("T")

FORMAT = "isthmus-solution/1"
PAG_FORMAT = "isthmus-pag-solution/1"
_DAMAGE = (*DAMAGE, ArithmeticError, AttributeError)
_SOLUTION, _EVIDENCE, _NETWORK = "solution.json", "evidence", "network.json"


def plain_solution(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a solution as plain data for JSON, without statistics."""
    knowledge: Knowledge | None = attributes["knowledge"]
    return {
        **(_plain_pag(attributes["pag"]) if "pag" in attributes else _plain_dag(attributes)),
        "choice": attributes["choice"],
        "notes": attributes["notes"],
        "status": asdict(attributes["status"]),
        "disclosure": [asdict(entry) for entry in attributes["disclosure"].entries],
        "reading": [asdict(column) for column in attributes["reading"].columns],
        "remarks": attributes["reading"].remarks,
        "read_by": attributes["reading"].read_by,
        "maps": plain_maps(attributes["reading"].maps),
        "knowledge": None if knowledge is None else _knowledge(knowledge),
        "provenance": asdict(attributes["provenance"]),
    }


def _plain_dag(attributes: dict[str, Any]) -> dict[str, Any]:
    dag, score = attributes["dag"], attributes["score"]
    return {
        "format": FORMAT,
        "nodes": dag.nodes,
        "edges": dag.edges,
        "score": None if math.isnan(score) else score,
        "sense": attributes["sense"],
        "equivalent": attributes["equivalent"],
        "identified": attributes["identified"],
        "directions": attributes["directions_kept"].to_list(),
    }


def _plain_pag(pag: PAG) -> dict[str, Any]:
    return {"format": PAG_FORMAT, "nodes": pag.nodes, "edges": pag.edges}


def write_solution(attributes: dict[str, Any], path: str | PathLike[str]) -> None:
    """Write the attributes of a solution."""
    content = plain_solution(attributes)
    statistics_kept: StatisticsKept | None = attributes["statistics_kept"]
    dag: DAG | None = attributes.get("dag")
    packed = b"" if statistics_kept is None else statistics_kept.to_bytes(dag)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        _put(archive, _SOLUTION, json.dumps(content, ensure_ascii=False, indent=1).encode())
        if packed:
            _put(archive, _EVIDENCE, packed)
        if attributes.get("parameters_kept") is not None:
            _put(archive, _NETWORK, to_json(attributes["parameters_kept"]).encode())


def _put(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name)  # a fixed date: the same content, the same bytes
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, content)


def _knowledge(knowledge: Knowledge) -> dict[str, Any]:
    return {
        "required": knowledge.required,
        "forbidden": knowledge.forbidden,
        "tiers": knowledge.tiers,
        "roots": knowledge.roots,
        "probabilities": knowledge.probabilities,
        "expected_parents": knowledge.expected_parents,
    }


def read_solution(path: str | PathLike[str], build: Mapping[str, Callable[..., T]]) -> T:
    """Return what ``build`` makes of the attributes of the solution in a file, by its format."""
    with Path(path).open("rb") as stream, _readable(path), zipfile.ZipFile(stream) as archive:
        content = json.loads(archive.read(_SOLUTION))
        names = archive.namelist()
        packed = archive.read(_EVIDENCE) if _EVIDENCE in names else None
        fitted = archive.read(_NETWORK).decode() if _NETWORK in names else None
        kind = content.get("format") if isinstance(content, dict) else None
        if kind not in _LOADERS:
            raise FormatError(f"this version reads the format {next(iter(build))!r}.")
    if kind not in build:
        raise FormatError(f"{path} {_LOADERS[kind]}")
    with _readable(path):
        graph = _pag(content) if kind == PAG_FORMAT else _dag(content, fitted)
        attributes, kept = _attributes(content), None
        if packed is not None:
            kept = hooks.statistics_from_bytes(packed, attributes["reading"].maps)
        return build[kind](**graph, **attributes, statistics_kept=kept)


@contextmanager
def _readable(path: str | PathLike[str]) -> Iterator[None]:
    try:
        yield
    except (IsthmusError, *_DAMAGE) as error:
        raise FormatError(
            f"{path} is not a solution that isthmus has written, or it is damaged: {error}"
        ) from error


_LOADERS = {
    FORMAT: "is a solution with a DAG. Read it with isthmus.Solution.load.",
    PAG_FORMAT: "is a solution with a PAG. Read it with isthmus.PAGSolution.load.",
}
"""Which method reads a file of each format."""


def _network(text: str, dag: DAG) -> Network:
    network = from_json(text)
    if not isinstance(network, Network) or network.dag != dag:
        raise FormatError("its parameters are not those of its graph.")
    return network


def _dag(content: dict[str, Any], fitted: str | None) -> dict[str, Any]:
    if not isinstance(content["equivalent"], bool):
        raise FormatError(f"equivalent is {content['equivalent']!r}.")
    dag = DAG(content["nodes"], [(a, b) for a, b in content["edges"]])
    return {
        "dag": dag,
        "parameters_kept": None if fitted is None else _network(fitted, dag),
        "score": math.nan if content["score"] is None else float(content["score"]),
        "sense": Sense(content["sense"]),
        "equivalent": content["equivalent"],
        "identified": tuple((str(a), str(b)) for a, b in content["identified"]),
        "directions_kept": _directions(content, dag),
    }


def _directions(content: dict[str, Any], dag: DAG) -> Directions | None:
    """Return who decides directions; None if the file is from a version that did not measure it."""
    if "directions" not in content:
        return None
    directions = Directions.from_list(content["directions"])
    if {(r["from"], r["to"]) for r in directions.to_list()} != {*dag.edges}:
        raise FormatError("its directions are not those of its edges.")
    return directions


def _pag(content: dict[str, Any]) -> dict[str, Any]:
    return {"pag": PAG(content["nodes"], [(a, kind, b) for a, kind, b in content["edges"]])}


def _attributes(content: dict[str, Any]) -> dict[str, Any]:
    for name, kind in (("choice", str), ("notes", list)):
        if not isinstance(content[name], kind):
            raise FormatError(f"{name} is {content[name]!r}.")
    given = content["knowledge"]
    status = dict(content["status"])
    return {
        "choice": content["choice"],
        "notes": tuple(str(note) for note in content["notes"]),
        "status": Status(
            Ending(status["ending"]),
            str(status["message"]),
            int(status["steps"]),
            float(status["seconds"]),
        ),
        "disclosure": Disclosure(
            tuple(
                Release(str(e["site"]), str(e["what"]), str(e["form"]), int(e["size"]))
                for e in content["disclosure"]
            )
        ),
        "reading": Reading(
            tuple(
                ColumnReading(
                    str(c["name"]),
                    ReadAs(c["read_as"]),
                    str(c["reason"]),
                    c["caution"],
                    c.get("unit"),
                )
                for c in content["reading"]
            ),
            tuple(str(remark) for remark in content["remarks"]),
            str(content.get("read_by", "")),
            read_maps(content.get("maps", {})),
        ),
        "provenance": read_provenance(content["provenance"]),
        "knowledge": None
        if given is None
        else Knowledge(
            required=[(a, b) for a, b in given["required"]],
            forbidden=[(a, b) for a, b in given["forbidden"]],
            tiers=given["tiers"],
            roots=given["roots"],
            probabilities=[(a, b, p) for a, b, p in given.get("probabilities", ())],
            expected_parents=given.get("expected_parents"),
        ),
    }


# --- Statistics as they are published ------------------------------------------------------------
#
# What organisations publish of a result that they computed together: no more digits than it
# needs.
#
# A network with exact parameters gives back the exact sums behind it. Files of joint results are
# written from these statistics instead.

SCORE_DIGITS = 4


@final
@dataclass(frozen=True)
class RoundedStatistics:
    """The statistics of a solution, as far as they are published."""

    kept: StatisticsKept

    @property
    def rows(self) -> int:
        """Number of rows, with two digits."""
        return rounded_rows(self.kept.rows)

    @property
    def fit_caveat(self) -> str | None:
        """How the network of `fit` differs from the learned model; None if it does not."""
        return self.kept.fit_caveat

    @property
    def tested(self) -> bool:
        """Whether tests have decided on directions, and no score."""
        return self.kept.tested

    def fit(
        self, dag: DAG, data: object | None, pseudo_count: float, *, curves: bool = True
    ) -> Network:
        """Return the network with rounded parameters and without counts."""
        exact = self.kept.fit(dag, data, pseudo_count, curves=curves)
        network: Network = rounded_network(exact)
        return network

    def strengths(self, dag: DAG) -> dict[tuple[str, str], float]:
        """Return for each edge how much the score falls without it, with three digits."""
        return {edge: significant(value) for edge, value in self.kept.strengths(dag).items()}

    def margins(
        self, dag: DAG, edges: Edges, knowledge: Knowledge, *, patient: bool = False
    ) -> dict[tuple[str, str], float] | None:
        """Return nothing: the margins of a published solution were measured before."""
        return None

    def to_bytes(self, dag: DAG | None) -> bytes:
        """Return nothing: statistics are not published."""
        return b""

    def fit_gp(self, dag: DAG) -> GPNetwork:
        """Refuse: curves are not published."""
        _refuse()

    def adjusted_effects(
        self,
        cause: str,
        effect: str,
        change: Sequence[Level] | None,
        outcome: Level | None,
        clusters: str | Sequence[object] | None = None,
    ) -> NoReturn:
        """Refuse: effects are estimated from exact statistics."""
        _refuse()

    def standardised(self) -> Solution:
        """Refuse: a refit needs exact statistics."""
        _refuse()


def _refuse() -> NoReturn:
    raise MismatchError(
        "This is the published form of a result of several organisations, which has rounded "
        "parameters and no statistics. Ask the solution that it was made from."
    )


def published(solution: Solution) -> Solution:
    """Return a solution as it may be published; see `Solution.published`."""
    if not solution.disclosure.has_exact_sums:
        return solution
    kept, own = solution.statistics_kept, solution.parameters_kept
    details = solution.details
    changed = {f.name: rounded_values(getattr(details, f.name)) for f in fields(details)}
    return replace(
        solution,
        score=significant(solution.score, SCORE_DIGITS),
        choice=rounded_text(solution.choice),
        notes=tuple(map(rounded_text, solution.notes)),
        details=replace(details, **changed),
        statistics_kept=None if kept is None else RoundedStatistics(kept),
        parameters_kept=None if own is None else rounded_network(own),
        directions_kept=_rounded_directions(solution.directions),
    )


def _rounded_directions(directions: Directions) -> Directions:
    margins: Any = rounded_values(dict(directions.margins))
    return replace(directions, margins=margins)
