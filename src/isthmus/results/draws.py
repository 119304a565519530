"""Checks of the arrays that describe draws of graphs, and how their number is said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import ArgumentError

_ROUNDING = 1e-6
"""Tolerance for sums of probabilities above one."""


def check_positions(chains: NDArray[Any], graphs: int) -> None:
    """Raise `ArgumentError` unless chains are an array of positions below ``graphs``."""
    if chains.ndim != 2 or not np.issubdtype(chains.dtype, np.integer):
        raise ArgumentError(
            "chains must be an array of integers of shape (chains, draws); an array of "
            f"{chains.dtype} of shape {chains.shape} was given."
        )
    if chains.size and not (chains.min() >= 0 and chains.max() < graphs):
        raise ArgumentError(
            f"chains must hold positions among {graphs} distinct graphs; it has positions "
            f"from {chains.min()} to {chains.max()}."
        )


def check_numbers(arrays: Mapping[str, NDArray[Any] | None], shape: tuple[int, ...]) -> None:
    """Refuse arrays that are not of floating-point numbers, or have another shape."""
    for name, values in arrays.items():
        if values is None:
            continue
        if values.shape != shape or not np.issubdtype(values.dtype, np.floating):
            raise ArgumentError(
                f"{name} must be an array of numbers of shape {shape}; an array of "
                f"{values.dtype} of shape {values.shape} was given."
            )


def check_probabilities(arrays: Mapping[str, NDArray[Any] | None], shape: tuple[int, ...]) -> None:
    """Refuse arrays of another shape, and numbers that are not probabilities."""
    check_numbers(arrays, shape)
    for name, values in arrays.items():
        if values is not None and not ((values >= 0.0) & (values <= 1.0 + _ROUNDING)).all():
            raise ArgumentError(f"{name} must hold probabilities, between 0 and 1.")
