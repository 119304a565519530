"""The data that sites released for a result, and in which form."""

from __future__ import annotations

from dataclasses import dataclass

EXACT_FORMS = ("secure sum", "to both")
"""Forms of sums over several organisations that have no noise."""


@dataclass(frozen=True)
class Release:
    """One item of data that one site released.

    Attributes
    ----------
    site
        Name of the site.
    what
        Description of the data, for a data protection officer.
    form
        How it was sent: ``"plain"``, ``"secure sum"`` and so on.
    size
        How many numbers were in it.
    """

    site: str
    what: str
    form: str
    size: int


@dataclass(frozen=True)
class Disclosure:
    """All releases for one result, in chronological order.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = simulate.erdos_renyi(5, 6, seed=1)
    >>> numbers = simulate.linear(dag, 300, seed=1).data
    >>> sites = {f"site {i}": {k: v[i::3] for k, v in numbers.items()} for i in range(3)}
    >>> federation = ist.Federation.simulate(sites)
    >>> print(ist.learn(federation).disclosure.entries[0].form)
    secure sum
    """

    entries: tuple[Release, ...] = ()

    @classmethod
    def none(cls) -> Disclosure:
        """Return a disclosure without any release."""
        return cls()

    @property
    def has_exact_sums(self) -> bool:
        """Whether organisations have released sums without noise for it."""
        return any(entry.form in EXACT_FORMS for entry in self.entries)

    def __add__(self, other: Disclosure) -> Disclosure:
        return Disclosure(self.entries + other.entries)

    def __str__(self) -> str:
        if not self.entries:
            return "No data were released: nothing left this process."
        lines = [f"{e.site}: {e.what} ({e.form}, {e.size} numbers)" for e in self.entries]
        return "\n".join(lines)

    __repr__ = __str__
