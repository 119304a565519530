"""The house itself: what an import costs and touches, and what pyproject promises."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import isthmus

ROOT = Path(__file__).parent.parent
IMPORT_SECONDS = 0.3  # beside other work: public names are imported when they are used
HEAVY = {
    "arviz_stats",
    "cryptography",
    "duckdb",
    "flwr",
    "gadjid",
    "ibis",
    "jax",
    "joblib",
    "matplotlib",
    "narwhals",
    "networkx",
    "pandas",
    "pgmpy",
    "polars",
    "pyarrow",
    "pyspark",
    "scipy",
}


def run(code: str, cwd: Path | None = None) -> str:
    """Run code in a fresh interpreter and give what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=cwd, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.mark.timing
def test_import_is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    # CPU time: what other programs do at the same time is not our doing.
    # An installed package has its bytecode, also where Python is told to write none.
    code = "from time import process_time as t; a = t(); import isthmus; print(t() - a)"
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    seconds = min(float(run(code)) for _ in range(5))
    assert seconds < IMPORT_SECONDS


@pytest.mark.long
def test_import_brings_no_heavy_library() -> None:
    """Names of joint learning need keys and certificates, so those bring `cryptography`."""
    stub = Path(str(isthmus.__file__)).with_suffix(".pyi").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^from isthmus_joint import (.+)$", stub, re.MULTILINE)
    joint = set(listed.split(", "))
    assert "Federation" in joint
    assert not HEAVY & imported_by(set(isthmus.__all__) - joint)
    if find_spec("isthmus_joint") is not None:
        assert HEAVY & imported_by(joint) == {"cryptography"}


def imported_by(names: set[str]) -> set[str]:
    """The packages that are imported when these names are used."""
    code = f"""
import sys, isthmus
for name in {sorted(names)}: getattr(isthmus, name)
print(*{{name.partition('.')[0] for name in sys.modules}})"""
    return set(run(code).split())


@pytest.mark.long
def test_dir_lists_what_can_be_used() -> None:
    """Editors complete names from it, also of modules that nothing has imported yet."""
    code = "import isthmus; print(*dir(isthmus)); print(*dir(isthmus.tables))"
    top, sources = (set(line.split()) for line in run(code).splitlines())
    assert {*isthmus.__all__, "io", "metrics", "plots", "report", "simulate"} <= top
    assert {*isthmus.tables.__all__} <= sources


@pytest.mark.long
def test_learning_from_a_table_imports_no_federation_and_no_pages() -> None:
    code = "import sys, isthmus; isthmus.learn; print(*sys.modules)"
    names = run(code).split()
    assert "isthmus.verbs.learn" in names
    joint = ("isthmus_joint", "isthmus_joint.methods", "isthmus_joint.federation")
    shown = ("isthmus.report", "isthmus.plots", "isthmus.io")
    assert [name for name in names if name.startswith((*joint, *shown))] == []


@pytest.mark.long
def test_protocols_are_known_wherever_one_begins() -> None:
    """Studies name protocols and requests of packages that nothing else has imported yet."""
    pytest.importorskip("isthmus_joint")
    code = "from isthmus_joint import request_names; print(request_names('secure sums'))"
    assert "consensus" in run(code)


def test_protocols_name_the_requests_of_the_catalogue() -> None:
    pytest.importorskip("isthmus_joint")
    from isthmus_joint.agreement.protocol_catalogue import PROTOCOLS
    from isthmus_joint.request_catalogue import REQUESTS

    for protocol in PROTOCOLS:
        assert sorted(protocol.requests) == sorted(
            request.name for request in REQUESTS if request.protocol == protocol.name
        )
    assert {request.protocol for request in REQUESTS} == {p.name for p in PROTOCOLS}


def test_import_has_no_side_effects(tmp_path: Path) -> None:
    code = """
import logging, os, random, signal, sys, threading, warnings
import numpy as np

def state():
    return (
        dict(os.environ),
        os.getcwd(),
        list(sys.path),
        list(warnings.filters),
        random.getstate(),
        str(np.random.get_state()),
        str(np.geterr()),
        list(logging.getLogger().handlers),
        signal.getsignal(signal.SIGINT),
        threading.active_count(),
    )

before = state()
import isthmus
changed = [i for i, (a, b) in enumerate(zip(before, state())) if a != b]
assert not changed, changed
"""
    assert run(code, cwd=tmp_path) == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_every_module_can_be_imported() -> None:
    """In the core too: what an extra brings is imported where it is used, not at the top."""
    names = [module.name for module in pkgutil.walk_packages(isthmus.__path__, "isthmus.")]
    assert "isthmus.errors" in names
    code = f"import importlib\nfor name in {names!r}: importlib.import_module(name)"
    assert run(code) == ""


def test_no_files_import_each_other_in_a_circle() -> None:
    """A graph, its equivalence class and knowledge about it are one idea; nothing else is."""
    grimp = pytest.importorskip("grimp")
    names = [n for n in ("isthmus", "isthmus_joint") if find_spec(n)]
    graph = grimp.build_graph(*names, exclude_type_checking_imports=True)
    # Imports of the compiled core appear as imports of the package itself.
    modules = [m for m in graph.modules if m != "isthmus" and not m.startswith("isthmus.graphs")]
    imported = {m: graph.find_modules_directly_imported_by(m) & set(modules) for m in modules}
    while leaves := [m for m in imported if not imported[m]]:
        for leaf in leaves:
            del imported[leaf]
        for others in imported.values():
            others.difference_update(leaves)
    assert sorted(imported) == []


def test_public_names_exist() -> None:
    assert "DAG" in isthmus.__all__
    assert [name for name in isthmus.__all__ if not hasattr(isthmus, name)] == []
    assert ("Federation" in dir(isthmus)) is (find_spec("isthmus_joint") is not None)


@pytest.mark.long
def test_packages_export_what_they_say() -> None:
    for module in pkgutil.iter_modules(isthmus.__path__, prefix="isthmus."):
        package = importlib.import_module(module.name)
        missing = [name for name in getattr(package, "__all__", ()) if not hasattr(package, name)]
        assert missing == [], module.name


def test_version_is_the_one_of_pyproject(pyproject: dict[str, Any]) -> None:
    assert version("isthmus") == pyproject["project"]["version"] == isthmus.__version__


def test_types_are_shipped() -> None:
    assert (files("isthmus") / "py.typed").is_file()


def test_python_has_no_upper_cap(pyproject: dict[str, Any]) -> None:
    assert pyproject["project"]["requires-python"] == ">=3.11"


def test_all_is_every_extra(pyproject: dict[str, Any]) -> None:
    extras = pyproject["project"]["optional-dependencies"]

    def reached(extra: str) -> set[str]:
        inner: set[str] = set()
        for requirement in extras[extra]:
            if match := re.fullmatch(r"isthmus\[(.*)\]", requirement):
                inner |= set(match[1].split(","))
        return inner.union({extra}, *(reached(name) for name in inner))

    assert reached("all") == set(extras)


def test_the_page_on_installation_names_every_extra(pyproject: dict[str, Any]) -> None:
    page = (ROOT / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE))
    assert named == set(pyproject["project"]["optional-dependencies"])


def test_every_dependency_says_what_it_is_for() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project, _, _ = text.partition("[tool.")
    requirements = re.findall(r'^  "[a-zA-Z][^":]*",.*$', project, flags=re.MULTILINE)
    assert len(requirements) > 10
    assert [line for line in requirements if not re.search(r"#\s+\w+", line)] == []


def test_every_attack_is_in_the_threat_model() -> None:
    """And every test that the threat model cites exists."""
    text = (ROOT / "docs" / "explanation" / "threat-model.md").read_text(encoding="utf-8")
    attacks = sorted(path.name for path in (ROOT / "tests" / "attacks").glob("test_*.py"))
    assert [name for name in attacks if f"`{name}`" not in text] == []
    sources = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    cited = set(re.findall(r"`(test_\w+)`", text))
    assert [name for name in sorted(cited) if f"def {name}(" not in sources] == []


APPS = ("isthmus_flower", "isthmus_nvflare")
DOORS = {
    "isthmus.errors",
    "isthmus_joint",
    "isthmus_joint.commands.hosted",
    "isthmus_joint.transport.base",
}
"""What a package may use that has another system carry studies between organisations."""


@pytest.mark.parametrize("app", APPS)
def test_apps_of_other_systems_use_nothing_behind_the_doors(app: str) -> None:
    sources = ROOT / "packages" / app.replace("_", "-") / "src"
    used = set[str]()
    for file in sources.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                used |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                used.add(node.module or "")
    ours = {name for name in used if name.startswith("isthmus") and not name.startswith(app)}
    assert "isthmus_joint" in ours
    assert ours <= DOORS
