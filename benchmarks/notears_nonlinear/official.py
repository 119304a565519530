"""Run the official NOTEARS-MLP (github.com/xunzheng/notears, not part of this repository).

    python benchmarks/notears_nonlinear/official.py CHECKOUT DATA.npz OUT.json

Its code is used as it is; only the evaluations are counted. Needs torch, scipy and igraph.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path


def main() -> None:
    checkout, data, out = sys.argv[1:4]
    sys.path.insert(0, checkout)
    import numpy as np
    import torch
    from notears import nonlinear

    torch.set_default_dtype(torch.double)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    counted = {"evaluations": 0}
    loss = nonlinear.squared_loss

    def counting(output: object, target: object) -> object:
        counted["evaluations"] += 1
        return loss(output, target)

    nonlinear.squared_loss = counting
    with np.load(data) as held:
        x, truth = held["x"], held["truth"]
    begin = time.process_time()
    model = nonlinear.NotearsMLP(dims=[x.shape[1], 10, 1], bias=True)
    weights = nonlinear.notears_nonlinear(model, x, lambda1=0.01, lambda2=0.01)
    seconds = time.process_time() - begin
    found = weights != 0
    different = int((found | found.T != truth | truth.T)[np.triu_indices(len(truth), 1)].sum())
    turned = int((found & truth.T & ~truth & ~found.T).sum())
    Path(out).write_text(
        json.dumps(
            {
                "file": Path(data).name,
                "cpu": seconds,
                "shd": different + turned,
                "edges": int(found.sum()),
                "found": np.argwhere(found).tolist(),
                **counted,
            }
        )
    )


if __name__ == "__main__":
    main()
