"""Options of strategy objects: checks, called from their ``__post_init__``, and descriptions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum, StrEnum
from numbers import Integral, Real
from typing import Any, TypeGuard, TypeVar

import numpy as np

from isthmus.errors import ArgumentError

E = TypeVar("E", bound=StrEnum)


def described(strategy: object) -> str:
    """Return the name of a strategy and the options that are not defaults: ``BDeu(ess=10)``."""
    if not is_dataclass(strategy):
        return repr(strategy)
    options = []
    for option in fields(strategy):
        value = getattr(strategy, option.name)
        default = option.default if option.default_factory is MISSING else option.default_factory()
        if option.repr and (type(value) is not type(default) or value != default):
            shown = value.value if isinstance(value, Enum) else value
            text = described(shown) if is_dataclass(shown) else repr(shown)
            options.append(f"{option.name}={text}")
    return type(strategy).__name__ + (f"({', '.join(options)})" if options else "")


def is_integer(value: object) -> TypeGuard[int]:
    """Whether this is an integer, of Python or NumPy, and no Boolean."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Whether this is a real number, of Python or NumPy, and no Boolean."""
    return isinstance(value, Real) and not isinstance(value, bool)


LARGEST = 2**62
"""Largest integer that an option can have."""


def require_integer(
    strategy: object, name: str, *, least: int, most: int = LARGEST, optional: bool = False
) -> None:
    """Raise `ArgumentError` unless an option is an integer within bounds.

    Parameters
    ----------
    strategy
        The object whose option is checked.
    name
        Name of the option.
    least
        Smallest value that is allowed.
    most
        Largest value that is allowed.
    optional
        Whether None is allowed.
    """
    value = getattr(strategy, name)
    if value is None and optional:
        return
    if is_integer(value) and least <= value <= most:
        return
    other = ", or None" if optional else ""
    too_large = is_integer(value) and value > least
    upper = f" and at most {most}" if most < LARGEST or too_large else ""
    raise ArgumentError(
        f"{type(strategy).__name__} was given {name}={value!r}; {name} must be an integer of at "
        f"least {least}{upper}{other}."
    )


def require_integers(strategy: object, name: str, *, least: int) -> None:
    """Replace an option by a tuple; raise `ArgumentError` unless it contains integers only.

    Parameters
    ----------
    strategy, name
        As for `require_integer`.
    least
        Smallest value that is allowed.
    """
    value = getattr(strategy, name)
    if isinstance(value, Iterable) and not isinstance(value, str):
        numbers = tuple(value)
        if all(is_integer(v) and least <= v <= LARGEST for v in numbers):
            object.__setattr__(strategy, name, numbers)
            return
    raise ArgumentError(
        f"{type(strategy).__name__} was given {name}={value!r}; {name} must be a tuple of integers "
        f"of at least {least}."
    )


def require_jobs(strategy: object, name: str) -> None:
    """Raise `ArgumentError` unless an option is a number of threads: 1 or more, or -1."""
    value = getattr(strategy, name)
    if is_integer(value) and (1 <= value <= LARGEST or value == -1):
        return
    raise ArgumentError(
        f"{type(strategy).__name__} was given {name}={value!r}; {name} must be the number of "
        "threads, -1 for one per core."
    )


def require_number(
    strategy: object,
    name: str,
    *,
    least: float | None = None,
    above: float | None = None,
    below: float | None = None,
    optional: bool = False,
) -> None:
    """Raise `ArgumentError` unless an option is a finite number within its bounds.

    Parameters
    ----------
    strategy, name, optional
        As for `require_integer`.
    least
        Smallest value that is allowed.
    above
        The value must be larger than this.
    below
        The value must be smaller than this.
    """
    value = getattr(strategy, name)
    if value is None and optional:
        return
    if is_number(value) and math.isfinite(value):
        low = -math.inf if least is None else least
        high = math.inf if below is None else below
        if low <= value < high and (above is None or value > above):
            return
    bound = f" of at least {least:g}" if least is not None else ""
    bound += f" above {above:g}" if above is not None else ""
    bound += f" and below {below:g}" if below is not None else ""
    other = ", or None" if optional else ""
    raise ArgumentError(
        f"{type(strategy).__name__} was given {name}={value!r}; {name} must be a finite "
        f"number{bound}{other}."
    )


def check_pseudo_count(pseudo_count: Any) -> None:
    """Raise `ArgumentError` unless the weight of a prior is a finite number of at least 0."""
    if is_number(pseudo_count) and 0 <= pseudo_count < math.inf:
        return
    raise ArgumentError(
        f"pseudo_count={pseudo_count!r} was given; pseudo_count must be a finite number of at "
        "least 0, in rows, such as 1.0, or 0 for maximum likelihood."
    )


def check_level(level: Any) -> None:
    """Raise `ArgumentError` unless the coverage of an interval is a number between 0 and 1."""
    if is_number(level) and 0 < level < 1:
        return
    raise ArgumentError(
        f"level={level!r} was given; level must be a number between 0 and 1, such as 0.95 for a "
        "95% interval."
    )


def require_boolean(strategy: object, name: str) -> None:
    """Raise `ArgumentError` unless an option is True or False."""
    value = getattr(strategy, name)
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentError(
            f"{type(strategy).__name__} was given {name}={value!r}; {name} must be True or False."
        )


def require_instance(
    strategy: object, name: str, kind: type, example: str, *, optional: bool = False
) -> None:
    """Raise `ArgumentError` unless an option is an object of a class.

    Parameters
    ----------
    strategy, name, optional
        As for `require_integer`.
    kind
        The class.
    example
        Code that creates such an object, for the message.
    """
    value = getattr(strategy, name)
    if isinstance(value, kind) or (value is None and optional):
        return
    other = ", or None" if optional else ""
    raise ArgumentError(
        f"{type(strategy).__name__} was given {name}={value!r}; {name} must be a {kind.__name__}, "
        f"such as {example}{other}."
    )


def require_choice(strategy: object, name: str, choices: type[StrEnum]) -> None:
    """Replace the value of an enum option by the enum's member.

    Raises `ArgumentError` unless the option is a member of the enum or the value of one.
    """
    owner = type(strategy).__name__
    object.__setattr__(strategy, name, as_choice(getattr(strategy, name), choices, name, owner))


def as_choice(value: object, choices: type[E], name: str, owner: str) -> E:
    """Return the member of an enum, given the member or its value.

    Parameters
    ----------
    value
        Value given by the user.
    choices
        The enum.
    name
        Name of the option or parameter.
    owner
        Name of the class or function that has it.

    Raises
    ------
    ArgumentError
        If the value is anything else, also a member of another enum with the same value.
    """
    if isinstance(value, choices):
        return value
    if isinstance(value, str) and not isinstance(value, Enum) and value in set(choices):
        return choices(value)
    allowed = ", ".join(f"{choices.__name__}.{m.name} ({m.value!r})" for m in choices)
    raise ArgumentError(f"{owner} was given {name}={value!r}; {name} must be one of {allowed}.")
