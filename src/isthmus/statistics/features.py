"""Basis functions: the interface, and one file per basis."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar, TypeVar, final

import numpy as np

from isthmus.arrays import Floats
from isthmus.errors import DataError, FormatError
from isthmus.options import require_integer, require_number

# --- The interface of a basis: functions of one variable that become further columns ------------
#
# A basis states everything that other parts of the library need to know about it: how many
# functions it has, their values, how an engine computes them, their bounds, and how many rows
# their sums need before they may be released. Nothing else in the library has to change for a new
# basis.

_REGISTERED: dict[str, type[Basis]] = {}


class Basis(ABC):
    """Functions of one standardised variable (mean 0, standard deviation 1).

    Subclasses are frozen dataclasses whose fields are numbers, strings or Booleans. Decorate them
    with `register_basis`, so that files and requests to other sites can name them, and check them
    with `isthmus.testing.check_basis`.

    Attributes
    ----------
    name
        Under which the basis is registered.
    rows_per_column
        How many pooled rows a federation needs per column before it may sum the products of the
        columns; with fewer rows, the products would reveal single rows.
    pairs
        Whether the products of the first function of every two variables are columns, too.
    """

    name: ClassVar[str]
    rows_per_column: ClassVar[int]
    pairs: ClassVar[bool] = False

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of functions."""

    @property
    def window(self) -> tuple[float, float]:
        """Lowest and highest standardised value between which the functions vary."""
        return -math.inf, math.inf

    @abstractmethod
    def evaluate(self, z: Floats) -> Floats:
        """Evaluate all functions.

        Parameters
        ----------
        z
            Standardised values, of any shape. NaN gives NaN.

        Returns
        -------
        numpy.ndarray
            Shape ``(size, *z.shape)``.
        """

    @abstractmethod
    def expressions(self, z: Any) -> Sequence[Any]:
        """Write all functions in the language of an engine.

        Parameters
        ----------
        z
            A narwhals expression for the standardised variable. Use its operators and methods
            (``z.clip(-1.0, 1.0)``, ``z.exp()``); `polynomial` writes a polynomial.

        Returns
        -------
        sequence
            One expression per function, with the same values as `evaluate`.
        """

    @abstractmethod
    def bounds(self) -> Sequence[tuple[float, float]]:
        """Lowest and highest value that each function can have; secure sums rely on them."""


BasisT = TypeVar("BasisT", bound=type[Basis])


def register_basis(cls: BasisT) -> BasisT:
    """Register a basis under its name, so that files and requests can name it.

    Use it as a class decorator. In a federation, every site must import the module that does this.
    """
    other = _REGISTERED.get(cls.name)
    if other is not None and (other.__module__, other.__qualname__) != (
        cls.__module__,
        cls.__qualname__,
    ):
        raise DataError(
            f"The basis name {cls.name!r} is taken by {other.__module__}.{other.__qualname__}. "
            "Choose another name."
        )
    if not is_dataclass(cls):
        raise DataError(f"{cls.__name__} must be a dataclass to be registered as a basis.")
    _REGISTERED[cls.name] = cls
    return cls


def basis_to_dict(basis: Basis) -> dict[str, Any]:
    """Describe a basis by plain data for JSON: its name and its parameters."""
    assert is_dataclass(basis)
    return {basis.name: {f.name: getattr(basis, f.name) for f in fields(basis)}}


def basis_from_dict(data: Mapping[str, Any]) -> Basis:
    """Read what `basis_to_dict` wrote; `FormatError` for anything else."""
    if not isinstance(data, Mapping) or len(data) != 1:
        raise FormatError("A basis is described by one name with its parameters.")
    ((name, parameters),) = data.items()
    cls = _REGISTERED.get(name)
    if cls is None:
        raise FormatError(
            f"The basis {name!r} is not registered; registered are {sorted(_REGISTERED)}. "
            "Import the module that defines it."
        )
    try:
        return cls(**parameters)
    except (TypeError, ValueError) as error:
        raise FormatError(f"The basis {name!r} cannot have these parameters: {error}") from error


def polynomial(coefficients: Sequence[float], z: Any) -> Any:
    """Evaluate a polynomial of an array or an engine's expression by Horner's rule.

    Parameters
    ----------
    coefficients
        From the constant upwards; at least two.
    z
        The argument.
    """
    value = z * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        value = (value + coefficient) * z
    return value + coefficients[0]


@final
@dataclass(frozen=True)
class Features:
    """The basis functions of one variable: a basis, and the centre and scale of the variable.

    If the basis has products, `partners` are the names, centres and scales of the variables whose
    products with this one belong to it; the products follow the functions.
    """

    basis: Basis
    centre: float
    scale: float
    partners: tuple[tuple[str, float, float], ...] = ()

    def __post_init__(self) -> None:
        if not (math.isfinite(self.centre) and math.isfinite(self.scale) and self.scale > 0):
            raise DataError(
                f"Basis functions need a finite centre and a positive scale; {self.centre} and "
                f"{self.scale} were given."
            )

    @property
    def size(self) -> int:
        """Number of functions, with products."""
        return self.basis.size + len(self.partners)

    @property
    def window(self) -> tuple[float, float]:
        """Lowest and highest value of the variable between which the functions vary."""
        low, high = self.basis.window
        return self.centre + low * self.scale, self.centre + high * self.scale

    def standardised(self, values: Floats) -> Floats:
        """Return values less the centre, in units of the scale."""
        return (values - self.centre) / self.scale

    def evaluate(self, values: Floats, others: Mapping[str, Any]) -> Floats:
        """Evaluate all functions for values of the variable; shape ``(size, *values.shape)``.

        Values of the partners are taken from ``others``, by name.
        """
        own = self.basis.evaluate(self.standardised(values))
        if not self.partners:
            return own
        products = np.empty((self.size, *values.shape))
        products[: self.basis.size] = own
        for k, (name, centre, scale) in enumerate(self.partners, self.basis.size):
            z = (np.asarray(others[name], np.float64) - centre) / scale
            np.multiply(own[0], self.basis.evaluate(z)[0], out=products[k])
        return products

    def expressions(self, column: Any, others: Mapping[str, Any]) -> Sequence[Any]:
        """Write all functions of a column in the language of an engine."""
        own = self.basis.expressions((column - self.centre) / self.scale)
        return [
            *own,
            *(
                own[0] * self.basis.expressions((others[name] - centre) / scale)[0]
                for name, centre, scale in self.partners
            ),
        ]

    def bounds(self) -> Sequence[tuple[float, float]]:
        """Lowest and highest value that each function can have, and each product."""
        own = [*self.basis.bounds()]
        corners = [a * b for a in own[0] for b in own[0]]
        return [*own, *((min(corners), max(corners)) for _ in self.partners)]

    def to_dict(self) -> dict[str, Any]:
        """Describe them by plain data for JSON."""
        plain = {"basis": basis_to_dict(self.basis), "centre": self.centre, "scale": self.scale}
        return plain | {"partners": [[*p] for p in self.partners]} if self.partners else plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Features:
        """Read what `to_dict` wrote."""
        partners = ((str(n), float(c), float(s)) for n, c, s in data.get("partners", ()))
        return cls(
            basis_from_dict(data["basis"]),
            float(data["centre"]),
            float(data["scale"]),
            tuple(partners),
        )


# --- Chebyshev polynomials, clipped beyond a radius ---------------------------------------------

MOST_TERMS = 128
_HORNER = 5
"""Degrees up to this are written in powers; in higher ones the powers would cancel."""


@final
@register_basis
@dataclass(frozen=True)
class Chebyshev(Basis):
    """Chebyshev polynomials of a standardised variable, clipped beyond a radius.

    Parameters
    ----------
    terms
        Number of functions: the polynomials of degree 1 to this.
    radius
        Half-width of the interval around the mean on which the polynomials are defined, in
        standard deviations. Values outside are clipped to it.
    """

    terms: int = 6
    radius: float = 3.0
    name: ClassVar[str] = "chebyshev"
    rows_per_column: ClassVar[int] = 10

    def __post_init__(self) -> None:
        require_integer(self, "terms", least=1, most=MOST_TERMS)
        require_number(self, "radius", above=0)

    @property
    def size(self) -> int:
        return self.terms

    @property
    def window(self) -> tuple[float, float]:
        return -self.radius, self.radius

    def evaluate(self, z: Floats) -> Floats:
        u = np.clip(z / self.radius, -1.0, 1.0)
        values = np.empty((self.terms, *u.shape))
        values[0] = u
        before: Floats | float = 1.0
        for k in range(1, self.terms):
            values[k] = 2.0 * u * values[k - 1] - before
            before = values[k - 1]
        return values

    def expressions(self, z: Any) -> Sequence[Any]:
        u = (z / self.radius).clip(-1.0, 1.0)
        return [_expression(k, u) for k in range(1, self.terms + 1)]

    def bounds(self) -> Sequence[tuple[float, float]]:
        return ((-1.0, 1.0),) * self.terms


def _expression(degree: int, u: Any) -> Any:
    """Write one polynomial by halving its degree, which needs few copies of the argument.

    An expression cannot refer to another one, so the usual recurrence would double its length with
    every degree or two. ``T_2k = 2 T_k² - 1`` and ``T_2k+1 = 2 T_k T_k+1 - u`` do not.
    """
    if degree <= _HORNER:
        from numpy.polynomial.chebyshev import cheb2poly

        return polynomial(cheb2poly([0.0] * degree + [1.0]).tolist(), u)
    half = degree // 2
    if degree % 2 == 0:
        return _expression(half, u) ** 2 * 2.0 - 1.0
    return _expression(half, u) * _expression(half + 1, u) * 2.0 - u


# --- Powers and products of all variables, clipped beyond a radius ------------------------------


@final
@register_basis
@dataclass(frozen=True)
class Products(Basis):
    """Every variable, its square and cube, and its products with the other variables.

    Their moments are the joint moments of the variables up to the fourth order, and some of higher
    ones. The powers are written as Chebyshev polynomials.

    Parameters
    ----------
    radius
        Largest distance from the mean, in standard deviations. Values outside are clipped to it.
    """

    radius: float = 30.0
    name: ClassVar[str] = "products"
    rows_per_column: ClassVar[int] = 10
    pairs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_number(self, "radius", above=0)

    @property
    def _powers(self) -> Chebyshev:
        return Chebyshev(3, self.radius)

    @property
    def size(self) -> int:
        return 3

    @property
    def window(self) -> tuple[float, float]:
        return -self.radius, self.radius

    def evaluate(self, z: Floats) -> Floats:
        return self._powers.evaluate(z)

    def expressions(self, z: Any) -> Sequence[Any]:
        return self._powers.expressions(z)

    def bounds(self) -> Sequence[tuple[float, float]]:
        return self._powers.bounds()
