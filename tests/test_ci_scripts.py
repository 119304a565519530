"""The scripts of CI: what may be published, and what the sanitizers have checked."""

from __future__ import annotations

import hashlib
import runpy
import zipfile
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent.parent / ".ci"
ASSETS = "isthmus/report/assets"


@pytest.mark.parametrize("lacking", ["", "dagre.min.js"])
def test_a_wheel_without_the_drawing_of_reports_is_refused(lacking: str, tmp_path: Path) -> None:
    check = runpy.run_path(str(SCRIPTS / "check_wheel.py"))
    path = tmp_path / "isthmus.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in check["ASSETS"]:
            if name != lacking:
                archive.writestr(f"{ASSETS}/{name}", "")
    assert check["missing"](path) == ([lacking] if lacking else [])
    assert check["main"]([path]) == (1 if lacking else 0)
    assert check["main"]([]) == 1  # nothing was built


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
