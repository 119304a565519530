"""The hash of the package, by which studies name versions."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from isthmus.errors import StudyError
from isthmus.joint import code_hash
from isthmus.joint.agreement.code import hash_of_package, package_folder
from isthmus.kernels._native import source_hash

PRINT = "from isthmus.joint import code_hash; print(code_hash())"


def copied(folder: Path) -> Path:
    """A copy of the installed package in another place."""
    package = folder / "isthmus"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(package_folder(), package, ignore=ignored)
    return package


def test_the_hash_does_not_depend_on_where_the_package_is(tmp_path: Path) -> None:
    package = copied(tmp_path)
    assert hash_of_package(package, source_hash()) == code_hash()
    done = subprocess.run(
        [sys.executable, "-c", PRINT],
        env={"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == code_hash()


def test_the_hash_depends_on_every_source_file_and_its_place(tmp_path: Path) -> None:
    package = copied(tmp_path)
    errors = package / "errors.py"
    text = errors.read_text()
    errors.write_text(text + "\n# changed\n")
    assert hash_of_package(package, source_hash()) != code_hash()
    errors.write_text(text)
    assert hash_of_package(package, source_hash()) == code_hash()
    errors.rename(package / "mistakes.py")
    assert hash_of_package(package, source_hash()) != code_hash()


def test_the_hash_depends_on_the_compiled_core() -> None:
    assert hash_of_package(package_folder(), "0" * 64) != code_hash()
    assert len(source_hash()) == 64


def test_a_folder_without_source_files_has_no_hash(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="no source files"):
        hash_of_package(tmp_path, source_hash())
