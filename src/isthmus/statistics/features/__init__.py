"""Basis functions: the interface, and one file per basis."""

from __future__ import annotations

from isthmus.statistics.features.base import (
    Basis,
    Features,
    basis_from_dict,
    basis_to_dict,
    register_basis,
)
from isthmus.statistics.features.chebyshev import Chebyshev
from isthmus.statistics.features.products import Products

__all__ = [
    "Basis",
    "Chebyshev",
    "Features",
    "Products",
    "basis_from_dict",
    "basis_to_dict",
    "register_basis",
]
