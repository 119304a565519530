"""A ledger as text for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from isthmus.joint.agreement.lookalikes import printable
from isthmus.joint.records.ledger_entries import Entry

CUT = {
    "policy": 8,
    "code": 15,
    "dependencies": 8,
    "study": 16,
    "data": 16,
    "asked": 16,
    "answer": 16,
    "request": 120,
    "question": 120,
}
"""Number of characters of these values that are shown to people; the file holds all."""


def readable(entries: Iterable[Entry]) -> str:
    """Return one line per entry, for people; values that only programs need are shortened."""
    hidden = {"format", "number", "time", "event", "previous", "hash"}
    hidden |= {"signer", "signature", "heads", "seen", "head_signatures", "keys"}
    lines = []
    for e in entries:
        rest = ", ".join(f"{k}: {_short(k, v)}" for k, v in e.items() if k not in hidden)
        lines.append(f"{e['number']:>5}  {e['time']}  {e['event']:<9} {rest}")
    return "\n".join(lines)


def summary(entries: Iterable[Entry]) -> str:
    """Return one line per kind of statistic and study: how often it left, how many numbers."""
    asked: dict[tuple[str, int], str] = {}
    sent: dict[tuple[str, str, str], list[int]] = {}
    for e in entries:
        place = e.get("study", ""), e.get("round", 0)
        if "request" in e:
            asked[place] = e["what"]
        if "numbers" in e:
            what = e.get("what", asked.get(place, "unknown request"))
            key = place[0], what, e.get("form", "plain")
            sent.setdefault(key, []).append(e["numbers"])
    return "\n".join(
        f"{len(sizes)} × {what}; {sum(sizes):,} numbers in total, protected by {form} "
        f"(study {_short('study', study)})"
        for (study, what, form), sizes in sent.items()
    )


def received_results(entries: Iterable[Entry]) -> str:
    """Return one line per result that the site received: which sites have the same one."""
    results: dict[tuple[str, str], set[str]] = {}
    disputed: dict[str, set[str]] = {}
    for e in entries:
        study = e.get("study", "")
        if "result" in e:
            results.setdefault((study, e["result"]), set()).update(e.get("sites", ()))
        disputed.setdefault(study, set()).update(e.get("other_results", ()))
    lines = []
    for (study, result), sites in results.items():
        told = f"confirmed by {', '.join(sorted(sites))}"
        if disputed[study]:
            others = ", ".join(sorted(disputed[study]))
            told = f"{others} got another result; the coordinator has signed both: do not use it"
        elif not sites:
            told = "no other site has confirmed that it got the same one"
        lines.append(f"{result[:16]}… (study {_short('study', study)}): {printable(told)}")
    return "\n".join(lines)


def _short(key: str, value: Any) -> str:
    text, most = printable(str(value)), CUT.get(key, 2**31)
    return text if len(text) <= most else text[:most] + "…"
