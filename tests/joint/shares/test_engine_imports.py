"""What the process imports that reads the bytes of the other party."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

LISTED = """
import json, sys
import isthmus_joint.shares.engine_process
print(json.dumps(sorted(name for name in sys.modules)))
"""
OWN = "isthmus_joint.shares"
LEAVES = {
    *("isthmus", "isthmus.hooks", "isthmus.lazy", "isthmus.errors", "isthmus.arrays"),
    *("isthmus_joint", "isthmus_joint.records", "isthmus_joint.records.private_files"),
    *("isthmus_joint.transport", "isthmus_joint.transport.pinned_connection"),
}
"""Outside of its own package: the root, whose names are imported when they are used, errors, and
the pinned connection over which it reads."""


@pytest.mark.long
def test_the_engine_imports_numpy_cryptography_and_its_own_package() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-c", LISTED], capture_output=True, text=True, check=True
    )
    names = set(json.loads(done.stdout))
    project = {name for name in names if name.split(".")[0] in {"isthmus", "isthmus_joint"}}
    assert {name for name in project if not name.startswith(OWN)} <= LEAVES
    roots = {name.split(".")[0] for name in names} - set(sys.stdlib_module_names)
    foreign = {r for r in roots if not r.startswith("_") and "." not in r}
    assert foreign - {"sitecustomize", "distutils"} <= {
        "isthmus",
        "isthmus_joint",
        "numpy",
        "cryptography",
    }
