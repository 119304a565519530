"""The centre of a site: its mean with noise, which it subtracts from its rows and keeps to itself.

Sites of different levels cause edges in sums over all rows. So in each round a site first estimates
how far its mean is from the common centre: the sum of its mapped rows in the ball, with noise of
its own. The rows about that centre are mapped, scaled down to the ball again, and multiplied.

**Privacy.** Given the centre, one row changes the products by no more than the ball allows, as it
does without a centre, because the other rows stay where they are. (About the exact mean, every row
would move. Products of rows in the ball about their exact mean change by up to the square of its
diameter, n / (n + 1) of four times as much.) The centre itself is a sum with noise of rows in the
ball. The noise of other sites does not hide it, so that each site adds all of it. Costs of answers
of which the second depends on the first add up (Bun and Steinke 2016): a round costs the ρ of the
centre and that of the products, even for somebody who sees the centre.

What is left of the levels of sites in the products is the squared error of their centres. It is
counted as further noise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from isthmus.arrays import Floats

LAST_SHARE = 0.1
"""Share of the budget of the last round that its centres take."""

HALF = 20
"""Number of sites at which centres take half of an early round. Errors of centres are in what maps
are computed from, and small sites have large ones: ``benchmarks/results/privacy-whitening.md``."""

STANDS_OUT = 3.0
"""A site is moved if its number of rows is larger than so many standard deviations of its noise."""

MOST_ROWS = 2.0**30
FARTHEST = 2.0
"""No value is farther from the common centre, in units of half of the bounds."""


def share_of_centres(sites: int, *, last: bool) -> float:
    """Return the share of the budget of a round that its centres take."""
    return LAST_SHARE if last else sites / (sites + HALF)


class RoundNoise(NamedTuple):
    """The noise of one round.

    Attributes
    ----------
    products
        Standard deviation in the sum over all sites, in units of the square of the radius.
    centre
        Standard deviation in the sum of the rows of one site, in units of the radius; zero if
        products are those of all rows.
    sites
        Number of sites in the sum.
    """

    products: float
    centre: float
    sites: int

    def error(self, radius: float, n: float) -> float:
        """Return the standard deviation in each mean product of white rows.

        The errors of the centres are squared, and those of different sites are independent. Sites
        are taken to be of equal size.

        Parameters
        ----------
        radius
            Square of the radius of the ball.
        """
        own = self.centre_error(radius, n)
        return math.hypot(self.products * radius / n, own**2 / math.sqrt(self.sites))

    def centre_error(self, radius: float, n: float) -> float:
        """Return the standard deviation in each column of white rows by which centres are wrong."""
        return self.centre * math.sqrt(radius) * self.sites / n


class SiteCentre(NamedTuple):
    """What a site knows of its centre.

    Attributes
    ----------
    rows
        Number of its rows, as far as they are in the ball, with noise.
    offset
        Difference from the common centre, for each column.
    """

    rows: float
    offset: Floats

    def moved(self, sums: Floats, transform: Floats, noise: float) -> SiteCentre:
        """Return the centre after another round.

        Where noise explains most of the step, most of it is left out (James and Stein 1961).
        Sites of equal levels then lose little by it.

        Parameters
        ----------
        sums
            Sums of mapped rows in the unit ball about this centre, with noise.
        transform
            The map, which anyone may have chosen. It cannot do worse than choose a useless centre.
        noise
            Standard deviation of the noise in each sum.
        """
        weight, linear = float(transform[0, 0]), transform[1:, 1:]
        if weight <= 0.0 or sums[0] <= STANDS_OUT * noise:
            return SiteCentre(0.0, self.offset)
        step = sums[1:] / float(sums[0])
        used = int(linear.any(axis=1).sum())
        length = float(step @ step)
        random = max(used - 2, 0) * (noise / float(sums[0])) ** 2
        kept = max(1.0 - random / length, 0.0) if length else 0.0
        step = np.linalg.pinv(linear) @ (kept * weight * step)
        offset = np.clip(self.offset + np.nan_to_num(step), -FARTHEST, FARTHEST)
        return SiteCentre(min(float(sums[0]) / weight, MOST_ROWS), offset)

    def numbers(self) -> Floats:
        """Return what the site contributes to the mean of all rows, in units of one row.

        It follows from numbers that have noise.
        """
        return self.rows * np.append(1.0, self.offset / FARTHEST)


def mean_offset(total: Floats) -> Floats:
    """Return the mean offset of all sites for each column, from the sum of their numbers."""
    if total[0] <= 0.0:
        return np.zeros(len(total) - 1)
    offset: Floats = FARTHEST * np.clip(total[1:] / total[0], -1.0, 1.0)
    return offset
