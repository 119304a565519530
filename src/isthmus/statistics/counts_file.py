"""Counts in a file: the header lists the tables, each of which is one or two arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from numpy.typing import NDArray

from isthmus.errors import FormatError
from isthmus.statistics import archive
from isthmus.statistics.base import Block, CountPlan, Positions
from isthmus.statistics.coded import CodedRows
from isthmus.statistics.schema import Schema

FORMAT = "isthmus-counts/1"


class Contents(NamedTuple):
    """The fields of `Counts`, in the order of its constructor."""

    schema: Schema
    n: int
    plan: CountPlan
    tables: Mapping[Positions, Block]
    regime: str | None


def write(path: archive.FilePath, contents: Contents) -> None:
    """Write counts to a file."""
    entries: list[dict[str, Any]] = []
    arrays: dict[str, NDArray[Any]] = {}
    for k, (positions, block) in enumerate(contents.tables.items()):
        entry: dict[str, Any] = {"variables": list(positions), "form": "table"}
        if isinstance(block, CodedRows):
            entry["form"] = "rows"
            arrays[f"codes{k}"] = block.codes
            if block.weights is not None:
                arrays[f"weights{k}"] = block.weights
        else:
            arrays[f"table{k}"] = block
        entries.append(entry)
    header = {
        "format": FORMAT,
        "schema": contents.schema.to_dict(),
        "plan": contents.plan.to_dict(),
        "n": contents.n,
        "regime": contents.regime,
        "blocks": entries,
    }
    archive.write(path, header, arrays, compress=True)


def read(path: archive.FilePath) -> Contents:
    """Read counts from a file; `Counts` checks that the tables agree with each other."""
    header, arrays = archive.read(path, FORMAT)
    with archive.damage_reported(path):
        tables = {}
        used = set()
        for k, entry in enumerate(header["blocks"]):
            positions = tuple(int(i) for i in entry["variables"])
            if entry["form"] == "rows":
                names = {f"codes{k}", f"weights{k}"} & arrays.keys()
                block: Block = CodedRows(arrays[f"codes{k}"], arrays.get(f"weights{k}"))
            elif entry["form"] == "table":
                names = {f"table{k}"}
                block = arrays[f"table{k}"]
            else:
                raise FormatError(f"a table has the unknown form {entry['form']!r}")
            tables[positions] = block
            used |= names
        archive.require_arrays(arrays, used)
        schema, plan = Schema.from_dict(header["schema"]), CountPlan.from_dict(header["plan"])
        if set(tables) != set(plan.maximal(schema.names)):
            raise FormatError("the tables are not those of the plan")
        n = archive.whole_number(header["n"], "n")
        return Contents(schema, n, plan, tables, archive.optional_text(header["regime"], "regime"))
