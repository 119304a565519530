"""What is needed to reproduce a result."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cache
from math import isfinite
from typing import final

import numpy as np

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
        imports: set[str] = set()
        call = ", ".join(
            f"{name}={_text(v, imports)}" for name, v in (given | {"seed": seed}).items()
        )
        lines = "\n".join(("from isthmus import *", *sorted(imports)))
        return cls(f"{lines}\n\nresult = {function}(data, {call})", seed, _versions())


def read_provenance(content: object) -> Provenance:
    """Return the provenance in the header of a file."""
    match content:
        case {"code": str(code), "seed": int() | None as seed, "versions": dict(versions)}:
            numbers = {str(name): str(number) for name, number in versions.items()}
            return Provenance(code, seed, numbers)
    raise FormatError(f"provenance is {content!r}.")


def _text(value: object, imports: set[str]) -> str:
    """Return a value as Python code, and add the import lines that the code needs.

    Enumerations become their values, which every option accepts, and NumPy scalars numbers.
    """
    match value:
        case Enum():
            return _text(value.value, imports)
        case np.generic():
            return _text(value.item(), imports)
        case float() if not isfinite(value):
            return f"float('{value}')"
        case Mapping():
            pairs = (f"{_text(k, imports)}: {_text(v, imports)}" for k, v in value.items())
            return "{" + ", ".join(pairs) + "}"
        case list() | tuple() if type(value) in (list, tuple):
            return _sequence(value, imports)
    if is_dataclass(value) and not isinstance(value, type):
        own = type(value)
        imports.update(_import_lines(own))
        options = (f for f in fields(value) if f.init and f.repr)
        given = (f"{f.name}={_text(getattr(value, f.name), imports)}" for f in options)
        return f"{own.__name__}({', '.join(given)})"
    return repr(value)


def _sequence(value: list[object] | tuple[object, ...], imports: set[str]) -> str:
    items = ", ".join(_text(v, imports) for v in value)
    if isinstance(value, list):
        return f"[{items}]"
    return f"({items},)" if len(value) == 1 else f"({items})"


def _import_lines(own: type) -> tuple[str, ...]:
    """Return the line that imports a class, from the shortest module that offers it."""
    parts = own.__module__.split(".")
    if parts[0] == "__main__":
        return ()  # defined in a notebook or a script, where the code would be pasted
    for n in range(1, len(parts) + 1):
        name = ".".join(parts[:n])
        module = sys.modules.get(name)
        public = getattr(module, "__all__", None) or (vars(module) if n == len(parts) else ())
        if own.__name__ in public and getattr(module, own.__name__) is own:
            return () if name == "isthmus" else (f"from {name} import {own.__name__}",)
    return ()


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
