"""Studies and solutions in a few lines, for people."""

from __future__ import annotations

from typing import Any

from isthmus.cli.exit_codes import in_options
from isthmus.cli.output import was_noted

SHOWN_VARIABLES = 12


def described(study: Any) -> str:
    """Return a short description of a study, for people."""
    from isthmus.joint.agreement.lookalikes import printable
    from isthmus.joint.request_catalogue import registered_request

    names = study.schema.names
    shown = ", ".join(names[:SHOWN_VARIABLES]) + (" …" if len(names) > SHOWN_VARIABLES else "")
    requests = sorted(study.requests)
    cautions = dict.fromkeys(registered_request(name).caution for name in requests)
    lines = [
        f"Study {study.title!r}: {study.purpose}",
        f"  SHA-256    {study.identity.hex()}",
        f"  variables  {len(names)}: {shown}",
        f"  protocol   {study.protocol.describe(study.roster)}",
        f"  requests   {', '.join(requests)}",
        *([] if study.privacy is None else [f"  privacy    {study.privacy.describe()}"]),
        *(f"  caution    {caution}" for caution in cautions if caution),
        f"  rounds     at most {study.rounds}, until {study.expires:%Y-%m-%d %H:%M} UTC",
        *parties_of(study),
    ]
    return "\n".join(map(printable, lines))


def parties_of(study: Any) -> list[str]:
    """Return a line for the author, the coordinator and each site, with the key of each."""
    from isthmus.joint.agreement.identity import key_fingerprint
    from isthmus.joint.agreement.lookalikes import printable

    names = {m.key: f", who is the site {m.name}" for m in study.members}
    parties = [("author", study.author, names.get(study.author, ""))]
    if study.coordinator is not None:
        parties.append(("coordinator", study.coordinator, ""))
    parties += [("site", m.key, f", {m.name} ({m.organisation})") for m in study.members]
    lines = [f"  {role:<12}{key_fingerprint(key)}{who}" for role, key, who in parties]
    return list(map(printable, lines))


def described_solution(solution: Any) -> str:
    """Return the summary of a solution and its edges; "—" if they can point either way."""
    edges = solution.dag.edges
    directed = set(solution.cpdag.directed if getattr(solution, "equivalent", False) else edges)
    lines = [f"{a} {'→' if (a, b) in directed else '—'} {b}" for a, b in edges]
    lines = [" ".join(line.splitlines()) for line in lines]
    text = summary(solution).replace("can point either way", "can point either way (shown as —)")
    return "\n".join([text, *lines])


def summary(result: Any) -> str:
    """Return the summary of a result, without the notes that were printed as warnings."""
    lines, notes = str(result).splitlines(), tuple(getattr(result, "notes", ()))
    if notes and lines[-len(notes) :] == list(notes):
        lines = lines[: -len(notes)] + [n for n in notes if not was_noted(in_options(n))]
    return in_options("\n".join(lines))
