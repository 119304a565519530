"""JSON schemas of what the commands of studies print with `--json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isthmus.cli.schemas import FACTS as LEARNER
from isthmus.cli.schemas import NUMBER, TEXT, TEXTS, WHOLE, many, one_per_name, or_none

_INTACT: Mapping[str, Any] = {"entries": WHOLE, "head": or_none(TEXT)}
_SPENT: Mapping[str, Any] = {
    "epsilon": one_per_name(NUMBER),
    "epsilon_in_total": NUMBER,
    "delta": NUMBER,
}
_ANY: Mapping[str, Any] = {}
_FILES: Mapping[str, Any] = {"files": many({"type": "object"}), "mode": TEXT}
_DELETED: Mapping[str, Any] = {"deleted": TEXTS}

FACTS: Mapping[str, Mapping[str, Any]] = {
    "synthesise": {"epsilon": NUMBER, "delta": NUMBER, "fidelity": _ANY, "written": TEXT},
    "study variables": {"variables": TEXTS, "written": TEXT},
    "study show": {
        "title": TEXT,
        "purpose": TEXT,
        "hash": TEXT,
        "variables": TEXTS,
        "requests": TEXTS,
        "rounds": WHOLE,
        "signed": TEXTS,
        "not_signed": TEXTS,
        "expires": or_none(TEXT),
    },
    "study assess": {"written": TEXT, "to_complete": WHOLE},
    "study code": {"code": TEXT},
    "study check": {"name": TEXT, "hash": TEXT},
    "study sign": {"name": TEXT, "hash": TEXT, "signature": TEXT},
    "coordinator new": {"invitation": TEXT},
    "coordinator run": {**LEARNER["learn"], "sites": _ANY, "missing": _ANY},
    "site freeze": {"identity": TEXT, "rows": WHOLE, "persons": or_none(WHOLE)},
    "party run": LEARNER["learn"],
    "ledger show": {"ledger": many({"type": "object"}), **_SPENT, **_INTACT},
    "ledger verify": {**_SPENT, **_INTACT},
    "ledger heads": {"heads": _ANY},
    "ledger repair": {"bytes_put_aside": _ANY, **_INTACT},
    "ledger rotate": {"earlier_part": TEXT, **_INTACT},
    "ledger testify": {"written": TEXT, "studies": TEXTS},
    "ledger restore": {"studies": _ANY, **_SPENT, **_INTACT},
    **{f"{who} files": _FILES for who in ("site", "coordinator", "party")},
    **{f"{who} erase": _DELETED for who in ("site", "coordinator", "party")},
}
"""Commands that are not here add nothing to the document."""
