"""The result of a cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from isthmus.frames import table_of
from isthmus.plurals import rounded


@final
@dataclass(frozen=True)
class CrossValidation:
    """How well networks predict rows that they were not learned from.

    Attributes
    ----------
    log_likelihoods
        Log-likelihood per row of each fold.
    sizes
        Number of rows of each fold.
    """

    log_likelihoods: tuple[float, ...]
    sizes: tuple[int, ...]

    @property
    def mean(self) -> float:
        """Log-likelihood per row, over all folds, with the error `standard_error`."""
        return float(np.average(self.log_likelihoods, weights=self.sizes))

    @property
    def standard_error(self) -> float:
        """Standard error of the mean, from the spread between folds.

        Folds share most of the rows they are learned from, so it is somewhat too small.
        """
        return float(np.std(self.log_likelihoods, ddof=1) / np.sqrt(len(self.sizes)))

    def to_frame(self, like: object = None) -> Any:
        """Return one row per fold; see :func:`isthmus.to_frame`."""
        columns = {"fold": range(len(self.sizes)), "rows": self.sizes}
        return table_of(columns | {"log_likelihood": self.log_likelihoods}, like)

    def __str__(self) -> str:
        error = rounded(self.standard_error)
        return (
            f"Log-likelihood per row {self.mean:.5g} (standard error {error}, "
            f"{len(self.sizes)} folds)"
        )

    __repr__ = __str__
