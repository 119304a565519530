"""The scripts of CI: what may be published, and what the sanitizers have checked."""

from __future__ import annotations

import hashlib
import json
import runpy
import shutil
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parent.parent / ".ci"
ASSETS = "isthmus/report/assets"
JOINT = "packages/isthmus-joint/pyproject.toml"


def project(file: Path) -> dict[str, Any]:
    """Return the metadata in a pyproject.toml."""
    return dict(tomllib.loads(file.read_text("utf-8"))["project"])


def wheel(folder: Path, lacking: str) -> Path:
    """Write a wheel with all that is asked for, except for one file or component."""
    check = runpy.run_path(str(SCRIPTS / "check_wheel.py"))
    path, about = folder / "isthmus-1.0.0-py3-none-any.whl", "isthmus-1.0.0.dist-info"
    names = [f"{ASSETS}/{name}" for name in check["ASSETS"]]
    names += [f"{about}/licenses/packaging/licences/{name}" for name in check["LICENCES"]]
    bill = {
        "metadata": {"component": {"version": "0.9.0" if lacking == "version" else "1.0.0"}},
        "components": [{"name": name} for name in check["COMPONENTS"] if name != lacking],
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            if not name.endswith(f"/{lacking}"):
                archive.writestr(name, "")
        if lacking != "bill":
            archive.writestr(f"{about}/sboms/isthmus.cdx.json", json.dumps(bill))
    return path


@pytest.mark.parametrize(
    ("lacking", "said"),
    [
        ("", []),
        ("dagre.min.js", ["dagre.min.js"]),
        ("robin-map.txt", ["the licence robin-map.txt"]),
        ("bill", ["its bill of materials"]),
        ("version", ["a bill of materials of version 1.0.0"]),
        ("cytoscape", ["cytoscape in its bill of materials"]),
    ],
)
def test_a_wheel_without_what_belongs_to_it_is_refused(
    lacking: str, said: list[str], tmp_path: Path
) -> None:
    check = runpy.run_path(str(SCRIPTS / "check_wheel.py"))
    path = wheel(tmp_path, lacking)
    assert check["missing"](path) == said
    assert check["main"]([path]) == (1 if lacking else 0)
    assert check["main"]([]) == 1  # nothing was built


def test_every_file_names_the_version_of_pyproject(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = runpy.run_path(str(SCRIPTS.parent / "packaging/set_version.py"))
    assert script["main"](["--check", version("isthmus")]) == 0, capsys.readouterr().err
    files = [file.relative_to(SCRIPTS.parent) for file in script["edited"]("9.8.7")]
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SCRIPTS.parent / file, tmp_path / file)
    monkeypatch.setitem(script["main"].__globals__, "ROOT", tmp_path)
    assert script["main"](["--check", "9.8.7rc1"]) == 1
    assert script["main"](["9.8.7rc1"]) == 0
    assert script["main"](["--check", "9.8.7rc1"]) == 0
    assert all("9.8.7" in (tmp_path / file).read_text("utf-8") for file in files)
    pins = (tmp_path / "packages/isthmus-flower/pyproject.toml").read_text("utf-8")
    assert '"isthmus[horizontal]==9.8.7rc1"' in pins
    assert '"isthmus==9.8.7rc1"' in (tmp_path / JOINT).read_text("utf-8")
    extras = project(tmp_path / "pyproject.toml")["optional-dependencies"]
    wanted = {"horizontal": "", "privacy": "[privacy]", "vertical": "[vertical]"}
    assert {n: extras[n] for n in wanted} == {
        name: [f"isthmus-joint{own}==9.8.7rc1"] for name, own in wanted.items()
    }
    assert (tmp_path / "containers/chart/Chart.yaml").read_text().endswith("version: 9.8.7\n")


def test_the_conda_recipe_needs_and_states_what_pyproject_does() -> None:
    yaml = pytest.importorskip("yaml")
    metadata = project(SCRIPTS.parent / "pyproject.toml")
    recipe = yaml.safe_load((SCRIPTS.parent / "packaging/conda/recipe.yaml").read_text("utf-8"))
    run = {line.replace(" ", "") for line in recipe["requirements"]["run"]}
    assert run == {*metadata["dependencies"], f"python{metadata['requires-python']}"}
    assert recipe["about"]["license"] == metadata["license"]


def test_a_rehearsal_notices_builds_that_differ(tmp_path: Path) -> None:
    release = runpy.run_path(str(SCRIPTS / "release.py"))
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.whl").write_text("a")
        (tmp_path / folder / "other.whl").write_text(folder)
    (tmp_path / "two" / "more.whl").touch()
    found = release["differences"](tmp_path / "one", tmp_path / "two")
    assert found == ["more.whl", "other.whl"]


def test_the_hash_of_sanitized_sources_is_that_of_the_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `find … | LC_ALL=C sort | xargs sha256sum | sha256sum` would print it."""
    stages = runpy.run_path(str(SCRIPTS / "stages.py"))["sanitized_sources"]
    files = {
        "CMakeLists.txt": b"a",
        "src/native/b/x.cpp": b"b",
        "src/native/B.hpp": b"c",
        "tests/kernels/test_x.py": b"d",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "tests/kernels/__pycache__").mkdir()
    (tmp_path / "tests/kernels/__pycache__/x.pyc").touch()
    monkeypatch.setitem(stages.__globals__, "ROOT", tmp_path)
    lines = [f"{hashlib.sha256(files[n]).hexdigest()}  {n}\n" for n in sorted(files)]
    assert stages() == hashlib.sha256("".join(lines).encode()).hexdigest()
