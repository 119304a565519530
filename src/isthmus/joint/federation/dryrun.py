"""A preview of what would leave a site."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final


@final
@dataclass(frozen=True, eq=False)
class DryRun:
    """Data that a site would release, and the rules that forbid it. Nothing was released.

    Attributes
    ----------
    site
        Name of the site.
    request
        Description of the request.
    contribution
        Contribution of the site before it is protected; ``None`` if it has nothing to
        contribute. It never leaves in this form.
    lines
        The same, for people.
    numbers
        How many numbers would be sent.
    size
        The size of the message in bytes.
    protection
        How the numbers are protected, in a phrase.
    violations
        Why the site would refuse; empty if it would not.
    """

    site: str
    request: str
    contribution: object = field(repr=False)
    lines: tuple[str, ...] = field(repr=False)
    numbers: int
    size: int
    protection: str
    violations: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"Request to site {self.site}: {self.request}."]
        if self.violations:
            lines += ["The site would refuse:", *(f"  - {reason}" for reason in self.violations)]
        else:
            lines.append(
                f"The site would send {self.numbers} numbers ({self.size:,} bytes), "
                f"{self.protection}."
            )
        lines += ["", "The numbers before protection, which stay at the site:"]
        lines += self.lines or ("  (none, because the site would refuse)",)
        return "\n".join(lines)
