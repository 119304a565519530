"""Packages that import what they offer when it is used, so that `import isthmus` is quick.

The public names of such a package, and the modules they come from, are in its ``__init__.pyi``,
which type checkers and editors read as well.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from isthmus.errors import MissingExtraError

JOINT = "isthmus_joint"
"""The distribution of what runs between organisations, some names of which are offered here."""


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return what a lazy package needs: ``__getattr__``, ``__dir__`` and ``__all__``.

    Names of a distribution that is not installed are not listed, so that ``import *`` and what
    looks at all names work; whoever asks for one by name reads what to install.

    Parameters
    ----------
    package
        Name of the package, whose ``__init__.pyi`` lists the names.
    """
    module = sys.modules[package]
    stub = ast.parse(Path(str(module.__file__)).with_suffix(".pyi").read_text(encoding="utf-8"))
    homes, public = {}, []
    for statement in stub.body:
        if isinstance(statement, ast.ImportFrom):
            homes.update({alias.name: str(statement.module) for alias in statement.names})
        elif isinstance(statement, ast.Assign):  # the only one is __all__
            public = ast.literal_eval(statement.value)
    joint = {name for name, home in homes.items() if home.startswith(JOINT)}
    hidden = joint if joint and find_spec(JOINT) is None else set()

    def get(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if home == package:
            return import_module(f"{package}.{name}")
        try:
            value = getattr(import_module(home), name)
        except ModuleNotFoundError as error:
            if error.name != JOINT:
                raise
            raise MissingExtraError(JOINT, "horizontal", f"{package}.{name}") from None
        setattr(module, name, value)
        return value

    def names() -> list[str]:
        # What the module itself imports or calls is not public.
        return sorted(
            {*homes.keys() - hidden, *(name for name in vars(module) if name.startswith("__"))}
        )

    return get, names, [name for name in public if name not in hidden]
