"""What would leave a site."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import numpy as np

from isthmus.sources.horizontal.requests.base import Matrix
from isthmus.statistics import Counts, Moments


@final
@dataclass(frozen=True, eq=False)
class DryRun:
    """What would leave a site, and what stands against it. Nothing has left.

    Attributes
    ----------
    site
        Who would answer.
    request
        What was asked.
    statistics
        The statistics before they are masked. They never leave in this form.
    numbers
        How many numbers would be sent.
    size
        The bytes of the frame.
    against
        Why the site would refuse; empty if it would not.
    totals
        Whether of moments only number of rows and sums would be sent.
    """

    site: str
    request: str
    statistics: Moments | Counts | Matrix | None = field(repr=False)
    numbers: int
    size: int
    against: tuple[str, ...]
    totals: bool = False

    def __str__(self) -> str:
        lines = [f"Site {self.site} was asked for: {self.request}."]
        if self.against:
            lines += ["It would refuse:", *(f"  - {reason}" for reason in self.against)]
        else:
            lines.append(
                f"It would send {self.numbers} numbers ({self.size:,} bytes), each hidden under "
                "a mask; the coordinator learns only the sum over all sites."
            )
        lines += ["", "The numbers before masking, which stay here:", *self._printed()]
        return "\n".join(lines)

    def _printed(self) -> list[str]:
        found = self.statistics
        if found is None:
            return ["  (none: see above)"]
        with np.printoptions(threshold=2**31, linewidth=100):
            if isinstance(found, np.ndarray):
                return [str(found)]
            if isinstance(found, Moments) and self.totals:
                names = ", ".join(found.columns)
                return [f"  rows: {found.n}", f"  sums of {names}:", str(found.n * found.mean())]
            return _listed(found)


def _listed(found: Moments | Counts) -> list[str]:
    if isinstance(found, Counts):
        lines = [f"  rows: {found.n}"]
        for positions in found.tables:
            names = [found.schema.names[i] for i in positions]
            lines += [f"  {' × '.join(names)}:", str(found.table(names))]
        return lines
    return [
        f"  rows: {found.n}",
        f"  columns: {', '.join(found.columns)}",
        f"  sums about {found.shift.tolist()}:",
        str(found.sums),
        "  products:",
        str(found.gram),
    ]
