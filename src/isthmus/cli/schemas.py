"""JSON schemas of what each command prints with `--json`; ``--json-schema`` prints them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from isthmus.cli.parsing import ExitCode

Schema: TypeAlias = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": ["number", "null"]}
"""A number that is not finite is null."""
WHOLE: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}


def or_none(schema: Schema) -> Schema:
    """Return the schema of a value that may be null."""
    return {"anyOf": [schema, {"type": "null"}]}


def many(schema: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": schema}


def one_per_name(schema: Schema) -> Schema:
    """Return the schema of an object whose keys are names."""
    return {"type": "object", "additionalProperties": schema}


def record(**fields: Schema) -> Schema:
    """Return the schema of an object with these fields."""
    return {
        "type": "object",
        "properties": fields,
        "required": sorted(fields),
        "additionalProperties": False,
    }


TEXTS, NUMBERS = many(TEXT), many(NUMBER)
EDGE: Schema = {
    "type": "array",
    "items": TEXT,
    "minItems": 2,
    "maxItems": 3,
    "description": "from and to; of a PAG the two ends with the marks between them",
}
EDGES = many(EDGE)
WRITTEN = {"written": TEXTS, "not_written": one_per_name(TEXT)}
"""Files, and why others could not be written."""
STATUS = record(ending=TEXT, message=TEXT, steps=WHOLE, seconds=NUMBER)
READING = many(
    record(name=TEXT, read_as=TEXT, reason=TEXT, caution=or_none(TEXT), unit=or_none(TEXT))
)
EXPLAINED = {"file": TEXTS, "reading": READING, "plan": TEXTS}
"""With ``--explain``: how the table is read, and what would be done."""
INDEPENDENCE = record(
    x=TEXT, y=TEXT, given=TEXTS, p_value=NUMBER, p_from_sums=NUMBER, adjusted=NUMBER
)


def _edges_with(measure: str) -> Schema:
    return many(record(**{"from": TEXT, "to": TEXT, measure: NUMBER}))


FACTS: Mapping[str, Mapping[str, Schema]] = {
    "learn": {
        **EXPLAINED,
        "nodes": TEXTS,
        "edges": EDGES,
        "directed": EDGES,
        "undirected": EDGES,
        "directions": many(
            record(**{"from": TEXT, "to": TEXT, "decided_by": TEXT, "margin": NUMBER})
        ),
        "equivalent": FLAG,
        "score": NUMBER,
        "sense": TEXT,
        "choice": or_none(TEXT),
        "status": STATUS,
        **WRITTEN,
    },
    "sample": {
        **EXPLAINED,
        "choice": or_none(TEXT),
        "status": STATUS,
        "warnings": TEXTS,
        "nodes": TEXTS,
        "edges": _edges_with("probability"),
        **WRITTEN,
    },
    "bootstrap": {
        **EXPLAINED,
        "warnings": TEXTS,
        "threshold": NUMBER,
        "nodes": TEXTS,
        "edges": _edges_with("share"),
        **WRITTEN,
    },
    "compare": {
        "compared": TEXT,
        "shd": WHOLE,
        "added": TEXTS,
        "missing": TEXTS,
        "reversed": TEXTS,
        "direction_differs": TEXTS,
        "marks_differ": TEXTS,
        "same": TEXTS,
        "metrics": one_per_name(NUMBER),
    },
    "fit": {"nodes": TEXTS, "edges": EDGES, "parameters": WHOLE, **WRITTEN},
    "query": {
        "identified": FLAG,
        "variables": TEXTS,
        "levels": one_per_name(many({})),
        "probabilities": many({}),
        "mean": NUMBERS,
        "covariance": many(NUMBERS),
        "median": NUMBERS,
        "level": NUMBER,
        "lower": many({}),
        "upper": many({}),
        "simulation_error": many({}),
    },
    "validate": {
        "agrees": FLAG,
        "rows": WHOLE,
        "objections": many(INDEPENDENCE),
        "unsupported": many(record(cause=TEXT, effect=TEXT, given=TEXTS, p_value=NUMBER)),
        "violated": TEXTS,
        "contradicted": TEXTS,
        "remarks": TEXTS,
    },
    "effect": {
        "identified": FLAG,
        "value": NUMBER,
        "standard_error": NUMBER,
        "interval": NUMBERS,
        "possible": or_none(NUMBERS),
        "method": or_none(TEXT),
        "adjustment": or_none(TEXTS),
        "through": TEXTS,
    },
    "simulate": {"rows": WHOLE, "nodes": TEXTS, "edges": EDGES, **WRITTEN},
    "datasets list": {"datasets": one_per_name(TEXT)},
    "datasets write": {"name": TEXT, "columns": TEXTS, "description": TEXT, **WRITTEN},
    "completion": {"script": TEXT},
}
"""What each command adds to the document; after an error, fields may be absent."""


def document_schema(command: str, facts: Mapping[str, Schema]) -> Schema:
    """Return the schema of the document that a command prints."""
    codes = [{"const": int(code), "title": code.name.lower()} for code in ExitCode]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"isthmus {command} --json",
        "type": "object",
        "properties": {
            "command": TEXT,
            "exit_code": {"oneOf": codes},
            "error": or_none(TEXT),
            **facts,
            "notes": TEXTS,
        },
        "required": ["command", "exit_code", "error", "notes"],
        "additionalProperties": False,
    }
