"""A draft of a data protection impact assessment, filled from a study file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isthmus_joint.agreement.roster import printable
from isthmus_joint.commands.described import NOT_PROMISED, products_of

ASK = "**To be completed:**"
"""Begins every line that a person has to answer."""


def assessment(study: Any) -> str:
    """Return the draft as Markdown, in the order of Article 35 (7) of the GDPR."""
    parts = [_head(study), _processing(study), _necessity(study), _risks(study), _measures(study)]
    lines = [printable(line) for part in parts for line in part]
    return "\n".join([*lines, "## 5. Advice and decision", "", *_decision(), ""])


def _cell(text: object) -> str:
    return str(text).replace("|", "\\|")


def _head(study: Any) -> Iterator[str]:
    yield f"# Data protection impact assessment (draft): {study.title}"
    yield ""
    yield (
        "Filled from the study file whose SHA-256 is "
        f"`{study.identity.hex()}`. What the file does not say is marked, and is for the "
        "organisations to answer. This draft is no legal advice."
    )
    yield ""


def _processing(study: Any) -> Iterator[str]:
    from isthmus_joint.request_catalogue import registered_request

    yield from ("## 1. The processing", "", f"**Purpose:** {study.purpose}", "")
    yield from ("| name | organisation | role |", "| --- | --- | --- |")
    member = "party" if study.coordinator is None else "site"
    for m in study.members:
        yield f"| {_cell(m.name)} | {_cell(m.organisation)} | {member}, keeps its rows |"
    if study.coordinator is not None:
        yield "| coordinator | | adds up what the sites send |"
    yield from ("", f"- {ASK} controller or joint controllers, and processors.", "")
    yield from ("| variable | values |", "| --- | --- |")
    for variable in study.schema.variables:
        if variable.levels:
            values = ", ".join(map(str, variable.levels))
        else:
            low, high = study.bounds[variable.name]
            values = f"{low:g} to {high:g}"
        yield f"| {_cell(variable.name)} | {_cell(values)} |"
    yield ""
    yield f"- {ASK} who the people are, and which variables are special categories (Article 9)."
    yield ""
    yield f"**What is computed together:** {study.protocol.describe(study.roster)}."
    yield ""
    for name in sorted(study.requests):
        request = registered_request(name)
        caution = f" Caution: {request.caution}" if request.caution else ""
        yield f"- `{name}`.{caution}"
    yield from (f"- {' '.join(line.split())}" for line in products_of(study))
    yield ""
    yield (
        f"**How long:** at most {study.rounds} rounds, until {study.expires:%Y-%m-%d %H:%M} UTC. "
        "After that the sites stop answering."
    )
    yield from ("", f"- {ASK} how long extracts, ledgers and results are kept.", "")


def _necessity(study: Any) -> Iterator[str]:
    yield from ("## 2. Necessity and proportionality", "")
    yield (
        "Rows stay where they are. Only the requests above can be sent; every site enforces this "
        "by its own policy, and writes all that it answers to its ledger."
    )
    if study.plan is not None:
        yield from ("", f"Tables that may be counted: {study.plan}.")
    yield from (
        "",
        f"- {ASK} the legal basis (Articles 6 and 9).",
        f"- {ASK} why the purpose needs each of the {len(study.schema)} variables.",
        f"- {ASK} how people are informed, and how they can withdraw.",
        "",
    )


def _risks(study: Any) -> Iterator[str]:
    yield from ("## 3. Risks to the people", "")
    yield from ("| risk | what the study does about it | what remains |", "| --- | --- | --- |")
    if study.privacy is not None:
        told = study.privacy.describe()
        left = "what a guess can gain at this ε; several studies of the same people add up"
    elif study.protocol.results_add_up:
        told, left = "none: sums are exact", NOT_PROMISED
    else:
        told, left = "only what the protocol opens is learned", "what is opened (see the protocol)"
    yield f"| a result tells something about one person | {_cell(told)} | {_cell(left)} |"
    yield (
        "| an organisation learns the numbers of another | "
        f"{_cell(study.protocol.describe(study.roster))} | parties that collude |"
    )
    yield (
        "| somebody alters the study or takes part uninvited | all parties sign the file; keys "
        "and versions of the code are in it | stolen keys |"
    )
    yield "| rows leave a site | its program answers only the requests above | access at the site |"
    yield from (
        "",
        f"- {ASK} likelihood and severity of each, and further risks.",
    )
    yield ""


def _measures(study: Any) -> Iterator[str]:
    yield from ("## 4. Measures", "")
    section = study.protocol.to_dict()
    for key in ("threshold", "organisations", "rows", "minimum_cohort", "minimum_cell"):
        if key in section:
            yield f"- `{key}` of the protocol: {section[key]}"
    if study.privacy is not None:
        budget = study.privacy
        yield f"- budget per person: ε = {budget.epsilon:g}, δ = {budget.delta:g}"
    yield f"- versions of the program that may take part: {len(study.code)}, by their hashes"
    yield "- the policy of each site: thresholds, and what it refuses whatever the study says"
    yield from ("", f"- {ASK} access control, encryption at rest and training at each site.", "")


def _decision() -> Iterator[str]:
    yield f"- {ASK} advice of the data protection officers, with date and name."
    yield f"- {ASK} views of the people concerned or their representatives, or why not sought."
    yield f"- {ASK} whether the remaining risk is acceptable, or the authority is to be consulted."
