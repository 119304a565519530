"""Ctrl-C while JAX is imported."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

# Ctrl-C while JAX is imported, in a callback of the garbage collector: Python ignores the exception
# there, as it does in the callback of JAX.
_IGNORED = """
import gc, os, signal, sys
import numpy as np
import isthmus as ist

signal.signal(signal.SIGINT, signal.default_int_handler)
table = {{f"v{{i}}": np.random.default_rng(i).normal(size=60) for i in range(3)}}

def press(*_):
    gc.callbacks.remove(press)
    os.kill(os.getpid(), signal.SIGINT)

class Finder:
    def find_spec(self, name, *_):
        if name == "jax._src.core":
            print("pressed", flush=True)
            gc.callbacks.append(press)
            gc.collect()

sys.meta_path.insert(0, Finder())
try:
    ist.learn(table, search=ist.{search})
    print("ignored")
except KeyboardInterrupt:
    print("heard")
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
ist.learn(table, search=ist.{search})
print("learned")
"""

_PROGRAM = """
import faulthandler, signal
import numpy as np
import isthmus as ist

faulthandler.enable()
signal.signal(signal.SIGINT, signal.default_int_handler)
table = {{f"v{{i}}": np.random.default_rng(i).normal(size=60) for i in range(3)}}
ist.learn(table)
print("ready", flush=True)
try:
    print(ist.learn(table, search=ist.{search}).status.ending.name)
except KeyboardInterrupt:
    print("KeyboardInterrupt")
"""

_SEARCHES = ["NotearsMLP()", "RBNets(episodes=2)"]


@pytest.mark.timing
@pytest.mark.parametrize("search", _SEARCHES)
def test_ctrl_c_while_jax_is_imported_is_not_ignored(search: str) -> None:
    pytest.importorskip("jax")
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _IGNORED.format(search=search)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.stdout.split() == ["pressed", "heard", "learned"], run.stderr
    assert run.returncode == 0


@pytest.mark.timing
@pytest.mark.parametrize("search", _SEARCHES)
@pytest.mark.parametrize("seconds", [0.1, 0.2, 0.3])
def test_ctrl_c_while_jax_is_imported_does_not_crash(search: str, seconds: float) -> None:
    pytest.importorskip("jax")
    program = _PROGRAM.format(search=search)
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
    assert out.strip() in ("KeyboardInterrupt", "INTERRUPTED"), errors
    assert "Fatal" not in errors
