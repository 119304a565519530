"""What is needed to reproduce a result."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import final

from isthmus.errors import FormatError

_LIBRARIES = ("isthmus", "numpy", "scipy", "narwhals")


@final
@dataclass(frozen=True)
class Provenance:
    """Code, seed and versions that reproduce a result from the same data.

    Attributes
    ----------
    code
        Python code, with the score and the search that were used; empty if not known.
    seed
        Random seed; None if not known.
    versions
        Versions of Python and the libraries that numbers depend on.
    """

    code: str = ""
    seed: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_call(cls, function: str, seed: int, **arguments: object) -> Provenance:
        """Describe a call of a function of ``isthmus`` with a table called ``data``.

        Parameters
        ----------
        function
            Name of the function.
        seed
            Random seed.
        **arguments
            Other arguments; those that are None are left out.
        """
        given = {name: value for name, value in arguments.items() if value is not None}
        call = ", ".join(f"{name}={_text(v)}" for name, v in (given | {"seed": seed}).items())
        return cls(f"from isthmus import *\n\nresult = {function}(data, {call})", seed, _versions())


def read_provenance(content: object) -> Provenance:
    """Return the provenance in the header of a file."""
    match content:
        case {"code": str(code), "seed": int() | None as seed, "versions": dict(versions)}:
            numbers = {str(name): str(number) for name, number in versions.items()}
            return Provenance(code, seed, numbers)
    raise FormatError(f"provenance is {content!r}.")


def _text(value: object) -> str:
    """Return a value as Python code; enumerations as their text."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k!r}: {str(v)!r}" for k, v in value.items()) + "}"
    return repr(value)


@cache
def _versions() -> Mapping[str, str]:
    from importlib.metadata import PackageNotFoundError, version  # slow, so not with the package

    versions = {"Python": ".".join(map(str, sys.version_info[:3]))}
    for name in _LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions
