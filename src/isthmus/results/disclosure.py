"""The data that sites released for a result, and in which form."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Release:
    """One item of data that one site released.

    Attributes
    ----------
    site
        The site that released it.
    what
        Description for a data protection officer.
    form
        How it was sent: ``"plain"``, ``"secure sum"`` and so on.
    size
        Number of values.
    """

    site: str
    what: str
    form: str
    size: int


@dataclass(frozen=True)
class Disclosure:
    """All releases for one result, in chronological order."""

    entries: tuple[Release, ...] = ()

    @classmethod
    def none(cls) -> Disclosure:
        """Return an empty disclosure: no data were released."""
        return cls()

    def __add__(self, other: Disclosure) -> Disclosure:
        return Disclosure(self.entries + other.entries)

    def __str__(self) -> str:
        if not self.entries:
            return "No data were released."
        lines = [
            f"{e.site}: {e.what} ({e.form}, {e.size} {'number' if e.size == 1 else 'numbers'})"
            for e in self.entries
        ]
        return "\n".join(lines)
