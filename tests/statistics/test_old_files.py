"""Files that version 1 of the formats wrote still load, or the error says what to do."""

from __future__ import annotations

import zlib
from base64 import b64decode
from pathlib import Path

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import FormatError
from isthmus.graphs.lags import Lag
from isthmus.statistics import Counts, Moments

# Written by the version before blocks, compressed: moments of a Series with one lag, of a table
# with Chebyshev polynomials, of a table with columns x and x~1, and counts of two variables.
SERIES = (
    "eNoL8GZm0WWAAEUGxjeL1P5DAReDCENGamJKapFeXkElI4MAQxYjRB2MnuwX6hsQychQxlCtnpJanFykbqWgXlNqqK6j"
    "oJ6WX1RSlJgXn18ENAAo7paYU5wKFC/OSCxIBfI1jIxNdDR1FGoVyAZc1UpAW3ITS5SsFJQyi0syckuLdXPzc1PzSor1"
    "DZV0FJSKkzNScxOB0tVKZYlFmYlJOanFQF50tVJeYm4qSFsFSFl2Zl4KiJOcn1eSmVeaX1qsVKujgFBUSYyiCgdDoszC"
    "rSwWqFApDyhqCqSLUtMzwTrySnNyagNQYunsGrMgWCxxAmOpOCMzrQQWSQugymA01kiySbMgKpIojSJgJDWIrHN/WDXF"
    "vgaFPmIPcV2DDarXVssvvgjzGgfIa6W5xYPVZ1DX7IHQBTYMaADVZ+Y8KxyQfZZelJgL8xkDNEMxMFLFZwomFGasE2X7"
    "5kvpczqYxu3y5GH6b7+3ZLIES9i3/W8Cd8i1vn5oDxP/dMk3SSCC1eHZBaXbP+v+7f+mEdN/6OuL/TD1MPHj3uadjgms"
    "Do+qQJH/zx5mDkw9TLzQluv64gJWhwBvRiZdZtRiCVTogDAXUgg3gMMLUUih6wNllAXQFMOJom8ZUCc826BrAyVCmDYO"
    "FG2NTAzwJImuCxTB4AhkRNcVzcwAj+4Ab1Y2kCgLEN4G0lNZQDwAtN9nbw=="
)
FEATURES = (
    "eNoL8GZm0WWAAEWGPX6cUf+hgItBhCEjNTEltUgvr6CSkUGAwZURog5GT/YL9Q2IZGQoY6hWT0ktTi5St1JQryk1VNdR"
    "UE/LLyopSsyLzy8CGgAUd0vMKU4FihdnJBakAvkahpbmOpo6CrUKZAOuaiWgLbmJJUpWCkqZxSUZuaXFurn5ual5JcX6"
    "hko6CkrFyRmpuYlA6WqlssSizMSknNRiIC+6WikvMTcVpK0CpCw7My8FxEnOzyvJzCvNLy1WqtVRQFJUZ0icMiNcymKB"
    "CpXygKJmQLooNT0TrCOvNCenNgAlAnZe0b4MiwBOYAQUZ2SmlcDCfwZUGYzGGv42aRZEhb8xhaEPDH8hQRBYaA9xTcIe"
    "i77HQPRiP6qXujUutsO8xAHyUmlu8WD1EcQVC2wg9AQofWQPqo+eihi4IvsovSgxF+ajE1BVJ6jjIwVjCvOIVe6Cy2xW"
    "nA7Hs1QOnTP6bm/rVjA1W/mxPYwfCgZP7U32Wf5pmnkRLg/jp/1+/nXp/ov2Ad6MTLrMqCUFqBwAYWiwgUEDuGxAlBvo"
    "+kAJfAY0xjlR9DUCdcKTO7o2UCKCaeNA0RbCxABPUui6QBF1AhoZqLrUmBng0RbgzcoGEmUBwttAWoMFxAMANWI7pg=="
)
TABLE = (
    "eNoL8GZm0WWAAEWGee8XrvgPBVwMIgwZqYkpqUV6eQWVjAwCDHKMEHUwerJfqG9AJCNDGUO1ekpqcXKRupWCek2pobqO"
    "gnpaflFJUWJefH4R0ACguFtiTnEqULw4I7EgFcjXMDS10NHUUahVIBtwVSsBbclNLFGyUlDKLC7JyC0t1s3Nz03NKynW"
    "N1TSUVAqTs5IzU0ESlcrlSUWZSYm5aQWA3nR1Up5ibmpIG0VIGXZmXkpIE5yfl5JZl5pfmmxUq2OApKiOkNcymKBCpXy"
    "gKJmQLooNT0TrCOvNCenNgAlZFk3hGfCQpYTGLLFGZlpJbCAnQBVBqOxBqxNmgVRAWtEYbACA1ZIEAQW2kOdw4DqlcoF"
    "7z1hXuEAeaU0t3iw+gTiigU22H0y/28YH7JP0osSc2E+WQBVtYA6PlEwojCxW+UuuMxmxenwsEpknfvDf/YwutCW6/ri"
    "AlaHAG9GJl1m1KwMyqggzMWAAA3gzIvI2Oj6QAl1AjQGOVH0RQF1wpMtujZQooBp40DRpsrEAE8i6LpAEbAAGsiout4D"
    "dcGiI8CblQ0kygKEt4H0SWYQDwCajBR6"
)
COUNTS = (
    "eNoL8GZm0WVgYOAAYkWGdXeXMvyHAi4GEYaM1MSU1CK9vIJKRgYBhqmMDGDwDEIxzA3w9WY2FMhd/6/LYLqGy6uugBf8"
    "H5ZVvFzoMfHm3Uxzk9lTanImlta31t+Y6Srg32Spssf8/cd7Tz5X/v6yKVqv7eiKaC/fK9JL7b2W9l5qFyh2+S+W5H3I"
    "fpH3kZpXH3x61r+/nl2cfGXJv9p1bg+myBnniNyYsnvfkttqIvMvr2JarGAq+/XEZUG2HrFs986LrznkqoXEu96k1Gov"
    "2LqHKVXo3EWHPLH7kqFv1RfX+Xy9r6bRxL5Tb8P8I/zp7XXvDq36Mc/6dT9PsY5KsKTtB+mXGc8l4uckx+y+MGdf9P+o"
    "pHdHmX4yaQodVmVUr2UMQAmhjbq5XsghlJyfklpsAAuhDmjIeEPp2W/EX0kLnDwRcCxg7bxJUXNiluQtXRAXnLVi3eIF"
    "86bFhwRNmSE+P37KJC6hcu8zmn6sXeLpKmJLmH5KuVlxqc2y4trKlcKsx+ZmkMLEEODNyKTLjBpVoIgARQoXAwI0gCMJ"
    "EXHo+kAeADkP5FRUfUpAnQjvBHizsoHEmYCwAEivBJsLAPqGwUI="
)


def old_file(folder: Path, text: str) -> Path:
    path = folder / "old.npz"
    path.write_bytes(zlib.decompress(b64decode(text)))
    return path


def test_moments_of_a_series_of_version_1_keep_their_time_steps(tmp_path: Path) -> None:
    moments = Moments.load(old_file(tmp_path, SERIES))
    assert moments.schema.lag_of == {
        "x": Lag("x", 0),
        "y": Lag("y", 0),
        "x@1": Lag("x", 1),
        "y@1": Lag("y", 1),
    }
    assert moments.n == 5
    np.testing.assert_allclose(moments.covariance().diagonal(), [0.6296, 0.5336, 0.5344, 0.536])
    ist.LaggedLeastSquares().bind(moments)
    moments.save(tmp_path / "new.npz")
    assert Moments.load(tmp_path / "new.npz") == moments


def test_names_in_files_of_version_1_are_read_as_the_names_they_were(tmp_path: Path) -> None:
    schema = Moments.load(old_file(tmp_path, TABLE)).schema
    assert schema.names == ("x", "x~1")


def test_basis_functions_of_version_1_must_be_computed_again(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"did not record the basis.*WithFeatures"):
        Moments.load(old_file(tmp_path, FEATURES))


def test_counts_of_version_1_load(tmp_path: Path) -> None:
    counts = Counts.load(old_file(tmp_path, COUNTS))
    assert counts.table(["a", "b"]).tolist() == [[2, 0, 0], [0, 1, 1]]


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "new.npz"
    ist.summarise({"x": np.arange(3.0) + 0.5}).save(path)
    path.write_bytes(path.read_bytes().replace(b"isthmus-moments/2", b"isthmus-moments/9"))
    with pytest.raises(FormatError):
        Moments.load(path)
