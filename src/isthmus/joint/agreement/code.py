"""The hash of the installed package, by which a study names the versions that may take part."""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from isthmus.errors import StudyError
from isthmus.joint.agreement.identity import digest
from isthmus.kernels import _native

ANSWERING = (
    *("errors.py", "frames.py", "joint", "kernels", "neural", "objectives", "options.py"),
    *("searches/continuous/acyclicity.py", "sources", "statistics", "types.py"),
)
"""The files and folders that carry out the protocol and compute what leaves a site. Others, such as
searches, reports and commands, can change during a study; a test looks at what runs."""


@lru_cache(maxsize=1)
def code_hash() -> str:
    """Return the SHA-256 of the source files of the protocol and of what computes answers.

    It covers the Python files of `ANSWERING` as installed, with their paths within the package, and
    the C++ files that the core was compiled from. It does not depend on where the package is
    installed, nor on the compiler.
    """
    return hash_of_package(package_folder(), _native.source_hash())


DEPENDENCIES = (
    *("cryptography", "duckdb", "flwr", "ibis-framework", "jax", "jaxlib", "narwhals", "numpy"),
    *("pandas", "polars", "pyarrow", "pyspark", "scipy"),
)
"""Distributions that compute or carry what leaves a site."""


@lru_cache(maxsize=1)
def dependency_hash() -> str:
    """Return the SHA-256 of the installed versions of dependencies and of their lists of files.

    The lists contain a hash of every file as it was installed.
    """
    parts = [sys.version.encode()]
    for name in DEPENDENCIES:
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue
        parts += [name.encode(), found.version.encode(), (found.read_text("RECORD") or "").encode()]
    return digest(*parts).hex()


def package_folder() -> Path:
    """Return the folder of the source files of this package."""
    spec = find_spec("isthmus")
    if spec is None or spec.origin is None:
        raise StudyError(
            "The source files of the package cannot be found, so no study can name its version. "
            "Install it from a wheel or from source."
        )
    return Path(spec.origin).parent


def answers(path: Path) -> bool:
    """Return whether a file of the package is part of what answers."""
    return any(path.is_relative_to(each) for each in ANSWERING)


def hash_of_package(root: Path, core: str) -> str:
    """Return the SHA-256 of the Python files that answer, and of the compiled core's hash."""
    parts: list[bytes] = []
    found = [
        (path.relative_to(root).as_posix(), path)
        for path in root.rglob("*.py*")  # stubs, too: they say which names are imported when used
        if path.suffix in {".py", ".pyi"} and answers(path.relative_to(root))
    ]
    for name, path in sorted(found):
        parts += [name.encode(), path.read_bytes()]
    if not parts:
        raise StudyError(f"There are no source files in {root}, so they have no hash.")
    return "sha256:" + digest(*parts, core.encode()).hex()
