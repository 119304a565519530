"""The data sets of the RBNets paper, as it uses them: two states by the mean, complete rows.

Text columns keep their categories. The class is kept where the paper's number of variables says
so. Departures that the files force on us: of horse colic, columns with more than a quarter missing
are left out before rows are (else 6 rows remain); gas is the file that is standardised within
batches; wikipedia is not at hand.
"""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HOME = Path(os.environ.get("ISTHMUS_DATA", Path(__file__).parents[3] / "shared" / "data"))
Rows = list[list[str]]
Codes = dict[str, NDArray[np.int64]]
MISSING = {"?", "", "nan"}
SAMPLED = {"water": 500, "alarm": 1000, "hailfinder": 500, "hepar2": 1000, "pathfinder": 1000}
SIZES = (1000, 200, 5000, 500, 2000, 3000)  # the middle and the ends first


def _text(name: str) -> str:
    path = HOME / "uci" / name
    if name.endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8", errors="replace").read()
    return path.read_text(encoding="utf-8", errors="replace")


def _table(*names: str, by: str | None = ",", header: int = 0) -> Rows:
    found: Rows = []
    for name in names:
        lines = [line.strip() for line in _text(name).splitlines()[header:]]
        lines = [line for line in lines if line and line[0] not in "%@|"]
        if by == ",":
            found += [[c.strip().rstrip(".") for c in row] for row in csv.reader(lines)]
        else:
            found += [line.split(by) for line in lines]
    return found


def _without(rows: Rows, *columns: int) -> Rows:
    width = len(rows[0])
    drop = {c % width for c in columns}
    return [[c for j, c in enumerate(row) if j not in drop] for row in rows]


def _horse() -> Rows:
    rows = _without(_table("horse-colic.data", "horse-colic.test", by=None), 2)
    missing = np.array([[c in MISSING for c in row] for row in rows]).mean(axis=0)
    return _without(rows, *np.flatnonzero(missing > 0.25).tolist())


def _isolet() -> NDArray[np.float64]:
    return np.load(HOME / "uci" / "isolet_int16_x10000.npz")["x"].astype(float)


def _madelon() -> Rows:
    names = [f"madelon_{part}.data.gz" for part in ("train", "valid", "test")]
    return _table(*names, by=None)


def _coil() -> Rows:
    test = _table("coil2000_ticeval2000.txt.gz", by=None)
    target = _table("coil2000_tictgts2000.txt.gz", by=None)
    both = [row + one for row, one in zip(test, target, strict=True)]
    return _table("coil2000_ticdata2000.txt.gz", by=None) + both


UCI: dict[str, Callable[[], Any]] = {
    "shuttle": lambda: _without(_table("shuttle.trn.gz", "shuttle.tst.gz", by=None), -1),
    "adult": lambda: _without(_table("adult.data.gz", "adult.test.gz"), -1),
    "voting": lambda: _without(_table("house-votes-84.data"), 0),
    "segment": lambda: _without(_table("segment.arff.gz"), -1),
    "horse colic": _horse,
    "sponge": lambda: _without(_table("sponge.arff.gz"), 0),
    "ozone": lambda: _without(_table("ozone_onehr.csv.gz", header=1), 0),
    "insurance": _coil,
    "gas sensor": lambda: _without(_table("gas_drift_zscored_per_batch_13910.csv.gz", header=1), 0),
    "semeion": lambda: _without(_table("semeion.csv.gz", header=1), -1),
    "madelon": _madelon,
    "isolet": _isolet,
    "parkinson": lambda: _without(
        _table("parkinson_pd_speech_features.csv.gz", header=1), 0, -1
    ),
    "androgen": lambda: _without(_table("qsar_androgen_receptor.csv.gz", by=";"), -1),
}  # fmt: skip


def _codes(column: list[str]) -> NDArray[np.int64]:
    try:
        numbers = np.array(column, dtype=float)
    except ValueError:
        return np.unique(np.array(column), return_inverse=True)[1].astype(np.int64)
    if len(np.unique(numbers)) <= 2:
        return np.unique(numbers, return_inverse=True)[1].astype(np.int64)
    return (numbers > numbers.mean()).astype(np.int64)


def uci(name: str) -> Codes:
    """One of the UCI sets; constant columns stay."""
    rows = UCI[name]()
    if isinstance(rows, np.ndarray):
        return {f"v{j}": (c > c.mean()).astype(np.int64) for j, c in enumerate(rows.T)}
    width = len(rows[0])
    rows = [r for r in rows if len(r) == width and not any(c in MISSING for c in r)]
    return {f"v{j}": _codes([row[j] for row in rows]) for j in range(width)}


def network(name: str, n: int, seed: int = 0) -> Codes:
    """Rows drawn from a network of the repository, columns in an order that says nothing."""
    from isthmus.io import read_bif

    drawn = read_bif(HOME / "networks" / f"{name}.bif.gz").sample_codes(n, seed=seed)
    names = list(drawn)
    order = np.random.default_rng(1).permutation(len(names))
    return {
        names[j]: np.unique(drawn[names[j]], return_inverse=True)[1].astype(np.int64) for j in order
    }


def load(name: str) -> Codes:
    """By name: ``adult``, ``adult/0`` (a random half), ``alarm*`` (of Table 1), ``alarm*2000``."""
    if "*" in name:
        base, size = name.split("*")
        # The first rows of one sample, as the paper says.
        rows = network(base, max(SIZES))
        n = int(size) if size else SAMPLED[base]
        return {k: np.unique(v[:n], return_inverse=True)[1] for k, v in rows.items()}
    base, _, half = name.partition("/")
    rows = uci(base)
    if not half:
        return rows
    n = len(next(iter(rows.values())))
    picked = np.random.default_rng(0).permutation(n)
    picked = picked[: n // 2] if half == "0" else picked[n // 2 :]
    return {k: np.unique(v[picked], return_inverse=True)[1] for k, v in rows.items()}


if __name__ == "__main__":
    for one in [*UCI, *(f"{net}*" for net in SAMPLED)]:
        rows = load(one)
        column = next(iter(rows.values()))
        levels = [int(v.max()) + 1 for v in rows.values()]
        print(one, len(rows), len(column), f"levels up to {max(levels)}", flush=True)
