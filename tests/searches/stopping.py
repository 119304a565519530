"""How soon `learn` returns after its time limit, or after Ctrl-C, in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

TABLES = {
    "12 columns of 3,000 levels": """
rows = {f"v{i}": [f"level {k}" for k in rng.integers(0, 3000, 10_000)] for i in range(12)}
kinds = dict.fromkeys(rows, ist.Kind.DISCRETE)
evidence = ist.summarise(rows, plan=ist.CountPlan.everything(), kinds=kinds)
""",
    "2,000 numeric columns": """
x = rng.normal(size=(300, 2000))
x[:, 1:] += 0.9 * x[:, :-1]
evidence = ist.summarise({f"v{i}": x[:, i] for i in range(2000)})
""",
}

STOPPED = (1, 130, -signal.SIGINT)
"""Exit codes of Python after a KeyboardInterrupt that nobody caught."""

PROGRAM = """
import signal, sys, time, warnings
import numpy as np
import isthmus as ist
signal.signal(signal.SIGINT, signal.default_int_handler)
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
{table}
print("ready", flush=True)
start = time.monotonic()
solution = ist.learn(evidence, {arguments})
print(solution.status.ending.name, time.monotonic() - start, flush=True)
"""


def ending_and_seconds(
    table: str, arguments: str, *, ctrl_c_after: float | None = None
) -> tuple[str, float]:
    """Run ``learn(evidence, arguments)``; return how it ended, and the seconds it took.

    Ctrl-C before or after the search itself is a KeyboardInterrupt, as in any Python function.
    With ``ctrl_c_after`` the process gets Ctrl-C so many seconds after `learn` was called, and the
    seconds are counted from there.
    """
    program = PROGRAM.format(table=TABLES[table], arguments=arguments)
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process:
        try:
            assert process.stdout.readline() == "ready\n"
            if ctrl_c_after is not None:
                time.sleep(ctrl_c_after)
                process.send_signal(signal.SIGINT)
                sent = time.monotonic()
            ending, _, seconds = process.stdout.readline().partition(" ")
            if not ending and process.wait() in STOPPED:
                ending = "KEYBOARD_INTERRUPT"
            if ctrl_c_after is None:
                return ending, float(seconds)
            return ending, time.monotonic() - sent
        finally:
            process.kill()
