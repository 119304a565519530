"""The hash of the package, by which studies name versions."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import StudyError
from isthmus.kernels._native import source_hash
from isthmus.tables import Source
from isthmus_joint import ADMM, Federation, code_hash
from isthmus_joint.agreement.study import answers, hash_of_packages, package_folders
from isthmus_joint.secure_sum.sides import Site

PRINT = "from isthmus_joint import code_hash; print(code_hash())"


def copied(folder: Path) -> dict[str, Path]:
    """A copy of the installed packages in another place."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name, package in package_folders().items():
        shutil.copytree(package, folder / name, ignore=ignored)
    return {name: folder / name for name in package_folders()}


def test_the_hash_does_not_depend_on_where_the_package_is(tmp_path: Path) -> None:
    packages = copied(tmp_path)
    assert hash_of_packages(packages, source_hash()) == code_hash()
    done = subprocess.run(
        [sys.executable, "-c", PRINT],
        env={"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == code_hash()


def test_the_hash_depends_on_every_file_that_answers_and_its_place(tmp_path: Path) -> None:
    packages = copied(tmp_path)
    errors = packages["isthmus_joint"] / "secure_sum" / "masks.py"
    text = errors.read_text()
    errors.write_text(text + "\n# changed\n")
    assert hash_of_packages(packages, source_hash()) != code_hash()
    errors.write_text(text)
    assert hash_of_packages(packages, source_hash()) == code_hash()
    errors.rename(errors.with_name("hidden.py"))
    assert hash_of_packages(packages, source_hash()) != code_hash()


def test_other_files_can_change_during_a_study(tmp_path: Path) -> None:
    packages = copied(tmp_path)
    for package, name in (
        ("isthmus", "plots/graph.py"),
        ("isthmus", "report/page.py"),
        ("isthmus", "searches/greedy.py"),
        ("isthmus_joint", "commands/site.py"),
    ):
        path = packages[package] / name
        path.write_text(path.read_text() + "\n# changed\n")
    assert hash_of_packages(packages, source_hash()) == code_hash()


@pytest.mark.long
def test_all_functions_that_answer_are_in_the_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a site calls while it answers, in every statistic and in steps of ADMM."""
    roots, called = package_folders(), set[tuple[str, Path]]()

    def note(frame: FrameType, event: str, _: object) -> None:
        path = Path(frame.f_code.co_filename)
        for package, root in roots.items():
            if event == "call" and root in path.parents:
                called.add((package, path.relative_to(root)))

    handle = Site.handle

    def traced(self: Site, frame: bytes) -> bytes:
        sys.setprofile(note)
        try:
            return handle(self, frame)
        finally:
            sys.setprofile(None)

    monkeypatch.setattr(Site, "handle", traced)
    rng = np.random.default_rng(0)
    numbers = {n: {v: rng.normal(size=90) for v in "abc"} for n in "xyz"}
    flags = {n: {v: rng.random(90) < 0.4 for v in "abc"} for n in "xyz"}
    ist.learn(Federation.simulate(numbers), search=ADMM(rounds=1))
    ist.learn(Federation.simulate(numbers), search=ist.searches.LiNGAM())
    ist.learn(Federation.simulate(flags), score=ist.BDeu())
    holes = {
        n: {v: np.where(rng.random(90) < 0.1, np.nan, x) for v, x in t.items()}
        for n, t in numbers.items()
    }
    ist.learn(holes_of(holes))
    assert {"secure_sum", "statistics", "tables"} <= {path.parts[0] for _, path in called}
    assert [each for each in sorted(called) if not answers(*each)] == []


def holes_of(tables: dict[str, dict[str, np.ndarray]]) -> Source:
    """Sites with missing values, which estimate moments together."""
    missing = ist.ExpectationMaximisation()
    return Federation.simulate(tables, missing=missing).with_missing(missing)


def test_the_hash_depends_on_the_compiled_core() -> None:
    assert hash_of_packages(package_folders(), "0" * 64) != code_hash()
    assert len(source_hash()) == 64


def test_a_folder_without_source_files_has_no_hash(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="no source files"):
        hash_of_packages({"isthmus": tmp_path}, source_hash())
