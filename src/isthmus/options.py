"""Checks of the options of strategy objects, called from their ``__post_init__``."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from isthmus.errors import ArgumentError


def _is_number(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


LARGEST = 2**62
"""Largest integer that an option can have."""


def require_integer(strategy: object, name: str, *, least: int, optional: bool = False) -> None:
    """Raise `ArgumentError` unless an option is an integer of at least ``least`` and at most 2**62.

    Parameters
    ----------
    strategy
        The object whose option is checked.
    name
        Name of the option.
    least
        Smallest value that is allowed.
    optional
        Whether None is allowed.
    """
    value = getattr(strategy, name)
    if value is None and optional:
        return
    if _is_number(value, Integral) and least <= value <= LARGEST:
        return
    other = ", or None" if optional else ""
    most = f" and at most {LARGEST}" if _is_number(value, Integral) and value > least else ""
    raise ArgumentError(
        f"{type(strategy).__name__} was given {name}={value!r}; {name} must be an integer of at "
        f"least {least}{most}{other}."
    )


def require_jobs(strategy: object, name: str, *, optional: bool = False) -> None:
    """Raise `ArgumentError` unless an option is a number of threads: 1 or more, or -1."""
    value = getattr(strategy, name)
    if value is None and optional:
        return
    if _is_number(value, Integral) and (value >= 1 or value == -1):
        return
    other = ", or None" if optional else ""
    raise ArgumentError(
        f"{type(strategy).__name__} was given {name}={value!r}; {name} must be the number of "
        f"threads, -1 for one per core{other}."
    )


def require_number(
    strategy: object,
    name: str,
    *,
    least: float | None = None,
    above: float | None = None,
    optional: bool = False,
) -> None:
    """Raise `ArgumentError` unless an option is a finite number within its bound.

    Parameters
    ----------
    strategy, name, optional
        As for `require_integer`.
    least
        Smallest value that is allowed.
    above
        The value must be larger than this.
    """
    value = getattr(strategy, name)
    if value is None and optional:
        return
    if _is_number(value, Real) and math.isfinite(value):
        low = -math.inf if least is None else least
        if value >= low and (above is None or value > above):
            return
    bound = f" of at least {least:g}" if least is not None else ""
    bound += f" above {above:g}" if above is not None else ""
    other = ", or None" if optional else ""
    raise ArgumentError(
        f"{type(strategy).__name__} was given {name}={value!r}; {name} must be a finite "
        f"number{bound}{other}."
    )
