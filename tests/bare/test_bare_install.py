"""What must work with the core dependencies alone: no pandas, no plots, no engine.

The whole of it also runs in an environment that holds nothing but the wheel and its core.
"""

from __future__ import annotations

import numpy as np

from isthmus.graphs import DAG
from isthmus.sources import as_source


def test_graphs() -> None:
    dag = DAG(["rain", "sprinkler", "wet"], [("rain", "wet"), ("sprinkler", "wet")])
    assert dag.parents("wet") == ("rain", "sprinkler")
    assert dag.d_separated("rain", "sprinkler")
    assert not dag.d_separated("rain", "sprinkler", given=["wet"])
    assert dag.cpdag().to_dag() == dag


def test_statistics_of_plain_arrays() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=200)
    moments = as_source({"x": x, "y": 2 * x + rng.normal(size=200)}).moments()
    assert moments.n == 200
    assert moments.correlation()[0, 1] > 0.8
