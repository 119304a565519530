"""Private set intersection: which people both parties have, and nothing about the others."""

from __future__ import annotations

import csv
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from spu.libspu.link import Context

COLUMN = "h"


def intersect(link: Context, hashes: list[str], folder: Path) -> NDArray[np.intp]:
    """Find the people whom both parties have, with the protocol RR22.

    Parameters
    ----------
    link
        The connection to the other party, which calls this function at the same time.
    hashes
        A distinct hash per row, made in the same way by both parties.

    Returns
    -------
    ndarray
        The positions of this party's rows of common people, in the order that both parties use.
    """
    from spu import psi

    with TemporaryDirectory(dir=folder) as name:
        given, found = Path(name).resolve() / "hashes.csv", Path(name).resolve() / "common.csv"
        _write(given, hashes)
        psi.psi_execute(
            psi.PsiExecuteConfig(
                protocol_conf=psi.PsiProtocolConfig(
                    protocol=psi.PsiProtocol.PROTOCOL_RR22,
                    receiver_rank=0,
                    broadcast_result=True,
                ),
                input_params=psi.InputParams(
                    path=str(given), selected_keys=[COLUMN], keys_unique=True
                ),
                output_params=psi.OutputParams(path=str(found)),
            ),
            link,
        )
        common = _read(found)
    position = {value: i for i, value in enumerate(hashes)}
    return np.array([position[value] for value in sorted(common)], dtype=np.intp)


def _write(path: Path, hashes: list[str]) -> None:
    with path.open("w", encoding="ascii", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([[COLUMN], *([h] for h in hashes)])


def _read(path: Path) -> list[str]:
    with path.open(encoding="ascii", newline="") as file:
        rows = csv.reader(file)
        next(rows, None)
        return [row[0] for row in rows]
