"""The first `learn` of a fresh process is as quick as the second, apart from imports."""

from __future__ import annotations

import subprocess
import sys

import pytest

TABLES = {
    "categories": """
rain = rng.random(2_000) < 0.3
sprinkler = rng.random(2_000) < 0.4
wet = (rain & (rng.random(2_000) < 0.9)) | (sprinkler & (rng.random(2_000) < 0.8))
table = {"rain": rain, "sprinkler": sprinkler, "wet": wet, "slippery": wet & (rain | sprinkler)}
""",
    "numbers": """
x = rng.normal(size=(1_000, 12))
x[:, 1:] += x[:, :-1]
table = {f"v{i}": x[:, i] for i in range(12)}
""",
}

PROGRAM = """
import time, warnings
import numpy as np
import isthmus as ist
learn = ist.learn  # names are imported when they are first used
warnings.simplefilter("ignore")
rng = np.random.default_rng(7)
{table}
for _ in range(2):
    start = time.process_time()
    learn(table)
    print(time.process_time() - start)
"""


# Numbers need SciPy's special functions, whose import alone takes 0.2 to 0.3 seconds.
@pytest.mark.long
@pytest.mark.timing
@pytest.mark.parametrize(("table", "limit"), [("categories", 0.3), ("numbers", 0.6)])
def test_cold_start(table: str, limit: float) -> None:
    program = PROGRAM.format(table=TABLES[table])
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    first, second = map(float, done.stdout.split())
    assert first - second < limit
