"""Rows of random numbers in products, which hide the columns of few people from the other party."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from isthmus.joint.shares.columns import Columns, SharedColumn
from isthmus.joint.shares.secret_tables import COVER, SecretTables, covered
from isthmus.joint.shares.shares import Private, SecretShare


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_random_rows_change_no_product(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    own = [rng.integers(-5, 5, (7, width)).astype(dtype) for width in (3, 2)]
    matrices = [covered(own[rank], rank, (3, 2))[rank] for rank in (0, 1)]
    assert [m.shape for m in matrices] == [(7 + 2 * COVER, 3), (7 + 2 * COVER, 2)]
    assert (matrices[0].T @ matrices[1] == own[0].T @ own[1]).all()
    assert (covered(own[0], 0, (3, 2))[1] == 0).all()  # what is not this party's


@pytest.mark.parametrize("rank", [0, 1])
def test_random_rows_are_new_in_each_product_and_column(rank: int) -> None:
    own = np.zeros((0, 2), dtype=np.int32)
    first, second = (covered(own, rank, (2, 2))[rank] for _ in range(2))
    random = first[rank * COVER : (rank + 1) * COVER]
    assert (random != 0).mean() > 0.99
    assert (random[:, 0] != random[:, 1]).mean() > 0.99
    assert (random != second[rank * COVER : (rank + 1) * COVER]).mean() > 0.99


class Engine:
    """An engine of one party, which sees what the party gives to a product."""

    rank = 0

    def __init__(self) -> None:
        self.given: list[Any] = []

    def run(self, program: Any, *inputs: Private, bits: int) -> list[SecretShare]:
        self.given += [value for value in inputs if value.values.ndim == 2 and value.owner == 0]
        shape = program(*(value.values for value in inputs)).shape
        return [SecretShare(np.zeros(shape, dtype=np.uint32), bits)]


def test_products_of_tables_have_random_rows() -> None:
    shapes = [SharedColumn("a", 0, 2), SharedColumn("b", 1, 3)]
    engine: Any = Engine()
    columns = Columns(shapes, {"a": np.array([0, 1, 0, 1, 1])}, 0, 5)
    SecretTables(engine, columns).prepare([(0, 1)])
    (left,) = engine.given
    assert left.values.shape == (1, 5 + 2 * COVER)
    assert (left.values[0, :5] == [1, 0, 1, 0, 0]).all()
    assert (left.values[0, 5 : 5 + COVER] != 0).mean() > 0.99
