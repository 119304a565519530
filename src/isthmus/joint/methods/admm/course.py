"""The course of ADMM: from the sums of the steps so far to the parameters of the next step."""

from __future__ import annotations

from typing import final

import numpy as np

from isthmus.errors import DataError
from isthmus.joint.methods.admm.models import (
    LARGEST,
    SMALLEST,
    ADMMOptions,
    ConsensusModel,
    Pull,
    cycles,
)
from isthmus.types import Floats

LARGEST_PARAMETER = 1024.0
"""Common parameters are not larger; those of a site are then far below the limit of its answer."""


@final
class ADMMCourse:
    """The common parameters of the next step, which follow from the sums of the steps so far.

    The coordinator and the sites compute them alike. Nobody can choose them.

    Attributes
    ----------
    step
        Number of the next step; step 0 counts sites and rows.
    sites, rows
        Number of sites, and of rows of all sites.
    common, rho
        The common parameters and the penalty on disagreement of the next step.
    cycles, moved, apart
        Of the last step: the acyclicity measure, by how much the common parameters changed, and
        how far they are from the mean of the sites.
    """

    def __init__(self, model: ConsensusModel, options: ADMMOptions) -> None:
        self._model, self._options = model, options
        self.step = self.sites = self.rows = 0
        self.common, self.rho = model.start(), options.rho2
        self.cycles = cycles(model.weights(self.common))
        self.moved = self.apart = np.inf
        self._alpha, self._rho1 = 0.0, options.rho1

    def take(self, total: Floats) -> None:
        """Take the sum of a step over all sites.

        Raises
        ------
        DataError
            The parameters that follow from it are larger than those of any sensible model.
        """
        if self.step == 0:
            self._count(*total.tolist())
        else:
            self._join(total / self.sites)
        self.step += 1

    def _count(self, sites: float, rows: float) -> None:
        if not 1 <= sites <= rows:
            raise DataError(
                f"The sites say that they are {sites:.0f} and have {rows:.0f} rows. A site may "
                "have sent a wrong answer. Check the sites, and start a new run."
            )
        self.sites, self.rows = int(sites), int(rows)
        if self._options.together:
            self.rho = max(self.rho / sites, SMALLEST)

    def _join(self, target: Floats) -> None:
        pull = Pull(self.sites * self.rho, self._alpha, self._rho1)
        new = self._model.join(target, self.common, pull)
        # A site could otherwise choose parameters at which the answers of other sites are cut, and
        # learn from the total which ones were.
        if not np.abs(new).max(initial=0.0) <= LARGEST_PARAMETER:
            raise DataError(
                f"The common parameters are larger than {LARGEST_PARAMETER:g}. The units of the "
                "variables may differ too much, or a site may have sent a wrong answer. Check the "
                "sites, and start a new run."
            )
        options, h = self._options, cycles(self._model.weights(new))
        self.cycles = h
        self.moved = float(np.abs(new - self.common).max())
        self.apart = float(np.abs(new - target).max())
        self.common = new
        self._alpha += self._rho1 * h
        self._rho1 = float(np.clip(self._rho1 * options.growth1, SMALLEST, LARGEST))
        self.rho = float(np.clip(self.rho * options.growth2, SMALLEST, LARGEST))
