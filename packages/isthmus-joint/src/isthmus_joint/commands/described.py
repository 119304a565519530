"""Studies and solutions in a few lines, for people."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from textwrap import fill, wrap
from typing import Any

import isthmus_joint as joint

SHOWN_VARIABLES = 12

PAGE = 20
"""Lines per page of what is signed."""

NOT_PROMISED = (
    "This study has no noise: its sums are exact. They protect the sites from each other, and no "
    "person from an analyst. Partners who do not trust each other by contract need noise."
)


def described(study: Any) -> str:
    """Return a short description of a study, for people."""
    from isthmus_joint.agreement.roster import printable
    from isthmus_joint.request_catalogue import registered_request

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
        *products_of(study),
        *privacy_of(study),
        *(f"  caution    {caution}" for caution in cautions if caution),
        f"  rounds     at most {study.rounds}, until {study.expires:%Y-%m-%d %H:%M} UTC",
        *parties_of(study),
    ]
    return "\n".join(map(printable, lines))


def products_of(study: Any) -> list[str]:
    """Return whether products are about the means of sites, for sums of products."""
    from isthmus.statistics import Kind

    products = {joint.AskMoments.name, joint.AskFeatures.name} & study.requests
    if not products or not study.protocol.results_add_up:
        return []
    if study.within_sites and study.privacy is not None:
        return ["  products   about the mean of each site, which has noise and stays there"]
    if study.within_sites and study.schema.of_kind(Kind.DISCRETE):
        return ["  products   about the means of each site; those of levels tell how sites differ"]
    if study.within_sites:
        return ["  products   about the means of each site: differences between sites stay there"]
    return ["  products   of all rows: sites of different levels can cause edges"]


def privacy_of(study: Any) -> list[str]:
    """Return what noise promises and costs, or that there is none."""
    from isthmus_joint.noise.cost import described_forecast

    if study.privacy is None:
        return ["  privacy    none: the sums are exact"] if study.protocol.results_add_up else []
    lines = [f"  privacy    {study.privacy.describe()}"]
    if joint.AskMoments.name in study.requests:
        lines.append(f"  forecast   {described_forecast(study)}")
    return lines


def signed_pages(study: Any) -> Iterator[str]:
    """Yield everything that a signature covers, page by page, for people."""
    from isthmus_joint.agreement.roster import printable

    yield described(study)
    lines = [line for variable in study.schema.variables for line in _variable(study, variable)]
    lines += _terms(study)
    for start in range(0, len(lines), PAGE):
        yield "\n".join(map(printable, lines[start : start + PAGE]))
    if study.protocol.results_add_up and study.privacy is None:
        yield fill(NOT_PROMISED, 96)


def _variable(study: Any, variable: Any) -> Iterator[str]:
    """Yield lines about the definition of a variable."""
    name = variable.name
    if variable.levels:
        yield f"Variable {name!r}: discrete"
        shown = ", ".join(map(repr, variable.levels))
        yield from (f"  {line}" for line in wrap(f"levels     {shown}", 94))
    else:
        low, high = study.bounds[name]
        yield f"Variable {name!r}: continuous"
        yield f"  bounds     {low!r} to {high!r}"
    if study.privacy is not None and name in study.privacy.bounds:
        low, high = study.privacy.bounds[name]
        yield f"  clipped    to {low!r} to {high!r} before noise is added"
    if variable.lag is not None:
        yield f"  lag        {variable.lag.steps} of {variable.lag.variable!r}"
    own = None if study.features is None else study.features.features.get(name)
    if own is not None:
        low, high = own.window
        yield f"  functions  {own.basis}"
        yield f"  window     {low!r} to {high!r} (centre {own.centre!r}, scale {own.scale!r})"


def _terms(study: Any) -> list[str]:
    """Return lines about everything else in the study file."""
    lines = ["Terms"]
    if study.plan is not None:
        lines.append(f"  tables     {study.plan}")
        lines += [f"             {', '.join(group)}" for group in study.plan.groups or ()]
    for name, limits in study.limits.items():
        lines += [f"  limit      {name}: {key} = {value!r}" for key, value in limits.items()]
    section = study.protocol.to_dict()
    lines += [f"  protocol   {key} = {_shown(value)}" for key, value in section.items()]
    if study.privacy is not None:
        lines += [f"  privacy    {key} = {value}" for key, value in study.privacy.to_dict().items()]
    lines += [f"  code       {code}" for code in study.code]
    return [part for line in lines for part in wrap(line, 96, subsequent_indent=" " * 13)]


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def turn_page(*, last: bool) -> None:
    """Wait for Enter, if a person reads this on a terminal. After the last page, Enter signs."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        then = "sign the study" if last else "see the next page"
        try:
            input(f"-- Press Enter to {then}, Ctrl-C to leave without signing --")
        except EOFError:
            raise KeyboardInterrupt from None


def parties_of(study: Any) -> list[str]:
    """Return a line for the author, the coordinator and each site, with the key of each."""
    from isthmus_joint.agreement.identity import key_fingerprint
    from isthmus_joint.agreement.roster import printable

    member = "party" if study.coordinator is None else "site"
    names = {m.key: f", who is the {member} {m.name}" for m in study.members}
    parties = [("author", study.author, names.get(study.author, ""))]
    if study.coordinator is not None:
        parties.append(("coordinator", study.coordinator, ""))
    parties += [(member, m.key, f", {m.name} ({m.organisation})") for m in study.members]
    lines = [f"  {role:<12}{key_fingerprint(key)}{who}" for role, key, who in parties]
    return list(map(printable, lines))
