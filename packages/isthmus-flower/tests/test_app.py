"""The Flower app: it uses Flower's public API only, and received code does not run beside it."""

from __future__ import annotations

import ast
import os
import py_compile
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

import pytest

from isthmus_flower.programs import APP, SOCKET, app_environment

SPEC = find_spec("flwr")
if SPEC is None or SPEC.origin is None:
    pytest.skip("needs Flower", allow_module_level=True)
FLOWER = Path(SPEC.origin).parent
FOLDER = APP.parent


def imports(text: str) -> Iterator[tuple[str, str | None]]:
    """The modules of Flower that a program imports, each with a name if it is imported from it."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((a.name, None) for a in node.names if a.name.split(".")[0] == "flwr")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "flwr":
            yield from ((str(node.module), a.name) for a in node.names)


def listed(package: Path) -> set[str]:
    """The names in ``__all__`` of a package, read without importing it."""
    for node in ast.parse((package / "__init__.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def is_public(module: str, name: str | None) -> bool:
    """Whether ``__all__`` leads there from the root: this is how Flower defines its public API."""
    package = FLOWER
    for part in [*module.split(".")[1:], *([name] if name else [])]:
        if not (package / "__init__.py").exists() or part not in listed(package):
            return False
        package /= part
    return True


def test_only_the_public_api_of_flower_is_imported() -> None:
    found = {
        (path.name, *item)
        for path in FOLDER.rglob("*.py")
        for item in imports(path.read_text(encoding="utf-8"))
    }
    assert ("client.py", "flwr.clientapp", "ClientApp") in found
    assert ("server.py", "flwr.serverapp", "Grid") in found
    private = [item for item in found if not is_public(*item[1:])]
    assert private == []


@pytest.mark.parametrize(
    "text",
    [
        "from flwr.supercore.constant import TaskType",
        "from flwr.proto.message_pb2 import PullObjectRequest",
        "import flwr.supernode.cli",
        "from flwr.app.message import Message",
        "from flwr.common import Message",  # a legacy name, in no documentation any more
    ],
)
def test_private_parts_of_flower_are_recognised(text: str) -> None:
    (item,) = imports(text)
    assert not is_public(*item)


def test_only_public_attributes_of_flower_objects_are_used() -> None:
    for path in (APP / "isthmus_relay").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
                assert isinstance(node.value, ast.Name)
                assert node.value.id == "self", f"{path.name}, line {node.lineno}"


# --- code that came over the network --------------------------------------------------------------


def as_source(folder: Path, code: str) -> None:
    (folder / "evil.py").write_text(code)


def as_package(folder: Path, code: str) -> None:
    (folder / "evil").mkdir()
    (folder / "evil" / "__init__.py").write_text(code)


def as_bytecode(folder: Path, code: str) -> None:
    """Without a source, and with the name of a file of Python's own."""
    (folder / "evil.txt").write_text(code)
    py_compile.compile(str(folder / "evil.txt"), str(folder / "evil.pyc"), dfile=os.__file__)


def as_zip(folder: Path, code: str) -> None:
    with zipfile.ZipFile(folder / "evil.zip", "w") as file:
        file.writestr("evil.py", code)


def as_library(folder: Path, _code: str) -> None:
    """A library, which cannot leave a mark."""
    spec = find_spec("_ctypes")
    assert spec is not None
    shutil.copy(str(spec.origin), folder / "_ctypes.so")


IMPORT = "sys.path[:0] = [folder, folder + '/evil.zip']; import evil"
LOAD = (
    "from importlib.util import spec_from_file_location as at, module_from_spec as new; "
    "spec = at({0!r}, folder + {1!r}); module = new(spec); spec.loader.exec_module(module)"
)
WAYS = {
    "a module": (as_source, IMPORT),
    "a package": (as_package, IMPORT),
    "bytecode": (as_bytecode, IMPORT),
    "a zip file": (as_zip, IMPORT),
    "a module of a folder on the path": (as_source, "import apps.evil.evil"),
    "a module by its file": (as_source, LOAD.format("evil", "/evil.py")),
    "a library by its file": (as_library, LOAD.format("_ctypes", "/_ctypes.so")),
    "a script": (as_source, "import runpy; runpy.run_path(folder + '/evil.py')"),
}


@pytest.mark.parametrize("way", WAYS)
def test_received_code_does_not_run(tmp_path: Path, way: str) -> None:
    """With the hooks nothing of it is executed; without them it is, so the test can fail."""
    make, statement = WAYS[way]
    folder, mark = tmp_path / "apps" / "evil", tmp_path / "mark"
    folder.mkdir(parents=True)
    make(folder, f"open({str(mark)!r}, 'w').close()\n")
    hooks = f"sys.path.insert(0, {str(FOLDER)!r}); import own_code_only as own; "
    hooks += "sys.path.pop(0); own.keep_received_code_out(); "

    def run(text: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-P", "-c", f"import sys; folder = {str(folder)!r}; {text}"],
            env=os.environ | {"FLWR_HOME": str(tmp_path), "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            timeout=60,
            check=False,
        )

    refused = run(hooks + statement)
    assert refused.returncode != 0
    assert not mark.exists()
    assert b"ImportError" in refused.stderr or b"ModuleNotFoundError" in refused.stderr
    allowed = run(statement)
    assert allowed.returncode == 0, allowed.stderr.decode()
    assert mark.exists() or make is as_library


def test_only_one_program_of_flower_runs_apps(tmp_path: Path) -> None:
    environment = app_environment(tmp_path, "flwr-clientapp", tmp_path / "socket")
    first = Path(environment["PATH"].split(os.pathsep)[0])
    names = {p.name for p in distribution("flwr").entry_points if p.name.startswith("flwr-")}
    assert {p.name for p in first.iterdir()} == names >= {"flwr-clientapp", "flwr-serverapp"}
    for name in sorted(names):  # with Flower's own arguments, and with our hooks
        done = subprocess.run(
            [name, "--help"], env=environment, capture_output=True, timeout=120, check=False
        )
        assert (done.returncode == 0) is (name == "flwr-clientapp"), name
    assert environment[SOCKET] == str(tmp_path / "socket")
