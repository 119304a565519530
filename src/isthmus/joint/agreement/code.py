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


@lru_cache(maxsize=1)
def code_hash() -> str:
    """Return the SHA-256 of the source files of this package.

    It covers the Python files as installed, with their paths within the package, and the C++ files
    that the core was compiled from. It does not depend on where the package is installed, nor on
    the compiler.
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


def hash_of_package(root: Path, core: str) -> str:
    """Return the SHA-256 of all Python files below a folder and of the compiled core's hash."""
    parts: list[bytes] = []
    # Stubs too: they say which names the package imports when they are first used.
    for path in sorted(root.rglob("*.py*"), key=lambda path: path.relative_to(root).as_posix()):
        if path.suffix not in {".py", ".pyi"}:
            continue
        parts += [path.relative_to(root).as_posix().encode(), path.read_bytes()]
    if not parts:
        raise StudyError(f"There are no source files in {root}, so they have no hash.")
    return "sha256:" + digest(*parts, core.encode()).hex()
