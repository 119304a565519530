"""Study and policy files of earlier formats.

Those of format 1 were written before a study had a protocol of its own. They were all of secure
sums. Their ``method`` decided whether steps of ADMM were allowed; in format 2 the requests alone
decide.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from isthmus.statistics.versions import lags_by_name

PROTOCOL = "secure sums"
SECTION = ("rows", "threshold", "organisations", "fixed_membership")
"""Keys of a study that are in the section of its protocol since format 2."""

STEPS = frozenset({"consensus", "networks"})
"""Requests that only a study with the method ``"admm"`` could use."""

ALLOWED = {
    PROTOCOL: frozenset({"moments", "counts", "features", "totals"}),
    "admm": STEPS | {"totals"},
}
"""The requests that a policy allowed for each of its methods."""


def study_from_format_1(table: dict[str, Any]) -> dict[str, Any]:
    """Return a study of format 1 in the layout of format 2; mistakes are left in it."""
    new = dict(table)
    section = {"name": PROTOCOL} | {key: new.pop(key) for key in SECTION if key in new}
    messages = new.get("messages")
    if new.get("method") in (PROTOCOL, "admm") and isinstance(messages, list):
        unused = STEPS if new["method"] == PROTOCOL else frozenset()
        del new["method"], new["messages"]
        new["requests"] = [m for m in messages if m not in unused]
    if isinstance(new.get("variables"), list):
        new["variables"] = _with_lags(new["variables"])
    return new | {"protocol": section}


def _with_lags(variables: list[Any]) -> list[Any]:
    """State which variables are of earlier time steps, which format 1 knew by their names."""
    names = tuple(str(v.get("name")) if isinstance(v, dict) else "" for v in variables)
    lag_of = lags_by_name(names)
    return [
        {**v, "lag_of": lag_of[name].variable, "lag": lag_of[name].steps}
        if name in lag_of and lag_of[name].steps
        else v
        for name, v in zip(names, variables, strict=True)
    ]


def policy_from_format_1(table: dict[str, Any]) -> dict[str, Any]:
    """Return a policy of format 1 in the layout of format 2; it does not allow more."""
    new = dict(table)
    methods, messages = new.get("methods"), new.get("messages")
    if _are_known(methods, ALLOWED) and _are_known(messages, ALLOWED[PROTOCOL] | STEPS):
        allowed = frozenset().union(*(ALLOWED[method] for method in new.pop("methods")))
        new["protocols"] = [PROTOCOL]
        new["requests"] = [m for m in new.pop("messages") if m in allowed]
    return new


NEW_IN_POLICY_3 = {
    "columns_per_row": 0.33,
    "largest_share": 0.5,
    "persons": "rows",
    "fixed_windows": True,
    "fixed_membership": True,
    "revoked": [],
    "peers": [],
}
"""What a policy of format 2 could not say. The site is protected by the defaults.

Such a policy names no peers, so that it allows no study before they are added.
"""


def policy_from_format_2(table: dict[str, Any]) -> dict[str, Any]:
    """Return a policy of format 2 in the layout of format 3, with the default rules added."""
    return NEW_IN_POLICY_3 | table


def _are_known(names: Any, known: Container[str]) -> bool:
    return isinstance(names, list) and all(isinstance(n, str) and n in known for n in names)
