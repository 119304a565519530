"""One party that learns and samples from moments across both, in Python.

python -m tests.processes.two_party_posterior HOME STUDY TABLE RESULT
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import isthmus as ist
from isthmus.tables.read_table import read_table


def main(home: str, study: str, table: str, result: str) -> None:
    source = ist.TwoParty(home, study, read_table(Path(table), text=["person"]), gather=60)
    solution = ist.learn(source, score=ist.GaussianBIC(), progress=False)
    posterior = ist.sample(source, draws=200, seed=3, progress=False)
    found = {
        "nodes": posterior.nodes,
        "edges": solution.dag.edges,
        "score": solution.score,
        "edge probabilities": posterior.edge_probabilities().tolist(),
        "released": [entry.what for entry in source.disclosure().entries],
    }
    Path(result).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
