"""Annotated matrices are read like tables of the same columns."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import DataError, SchemaError

NAMES = ["g0", "g1", "g2", "g3"]
GUIDES = {"none": list[str](), "g1": ["g1"], "g2": ["g2"]}


def numbers() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    guide = np.repeat(list(GUIDES), [200, 60, 60])
    x = rng.normal(size=(len(guide), 4))
    x[:, 1] = np.where(guide == "g1", x[:, 1], x[:, 0] + x[:, 1])
    x[:, 2] = np.where(guide == "g2", x[:, 2], x[:, 1] + x[:, 2])
    x[np.abs(x) < 0.3] = 0.0
    return x, guide


def cells(matrix: Any = None, **layers: Any) -> SimpleNamespace:
    """Something with the attributes of an AnnData."""
    x, guide = numbers()
    return SimpleNamespace(
        X=x if matrix is None else matrix,
        var_names=np.array(NAMES, dtype=object),
        obs={"guide": guide, "batch": np.tile(["p", "q"], len(guide) // 2)},
        obs_names=[f"c{i}" for i in range(len(guide))],
        layers=layers,
    )


@pytest.mark.parametrize("form", ["dense", "csr_matrix", "csc_matrix", "coo_matrix", "csr_array"])
def test_a_matrix_in_any_form_is_the_table_of_its_columns(form: str) -> None:
    from scipy import sparse

    x, _ = numbers()
    table = {name: x[:, i] for i, name in enumerate(NAMES)}
    data = cells(x if form == "dense" else getattr(sparse, form)(x))
    assert ist.summarise(data) == ist.summarise(table)
    groups = table | {"batch": data.obs["batch"]}
    assert ist.summarise(data, groups="batch") == ist.summarise(groups, groups="batch")
    assert ist.learn(data).score == ist.learn(table).score


def test_regimes_are_a_column_of_the_observations() -> None:
    from scipy.sparse import csr_matrix

    x, guide = numbers()
    table = {name: x[:, i] for i, name in enumerate(NAMES)} | {"guide": guide}
    expected = ist.learn(ist.Interventions(table, GUIDES, column="guide"))
    for data in (cells(), cells(csr_matrix(x))):
        found = ist.learn(ist.Interventions(data, GUIDES, column="guide"))
        assert found.dag == expected.dag
        assert found.score == expected.score
    parts = [cells() for _ in range(2)]
    assert ist.Interventions(parts, [[], ["g1"]]).schema().names == tuple(NAMES)


def test_layers_parts_and_annotations() -> None:
    from scipy.sparse import csr_matrix

    x, guide = numbers()
    table = ist.AnnotatedTable(
        cells(counts=csr_matrix(2 * x)), layer="counts", variables=["g2", "g0"], obs=["guide"]
    )
    assert list(table) == ["g2", "g0", "guide"]
    assert len(table) == 3
    np.testing.assert_array_equal(table["g2"], 2 * x[:, 2])
    np.testing.assert_array_equal(table["guide"], guide)
    with pytest.raises(KeyError):
        table["g1"]


def test_what_cannot_be_read_says_what_to_do() -> None:
    data = cells()
    for wrong, named in (
        ({"layer": "raw"}, "raw"),
        ({"variables": ["g9"]}, "g9"),
        ({"obs": ["day"]}, "day"),
    ):
        with pytest.raises(SchemaError, match=named):
            ist.AnnotatedTable(data, **wrong)
    data.obs["g0"] = data.obs["guide"]
    with pytest.raises(SchemaError, match="g0"):
        ist.AnnotatedTable(data, obs=["g0"])
    data.var_names = ["g0"] * 4
    with pytest.raises(SchemaError, match="var_names_make_unique"):
        ist.summarise(data)
    with pytest.raises(DataError, match="to_memory"):
        ist.summarise(cells(object()))
    with pytest.raises(DataError, match="dict"):
        ist.AnnotatedTable({})


def test_the_real_thing() -> None:
    from scipy.sparse import csr_matrix

    anndata = pytest.importorskip("anndata")
    pandas = pytest.importorskip("pandas")
    x, guide = numbers()
    data = anndata.AnnData(
        X=csr_matrix(x),
        obs=pandas.DataFrame({"guide": pandas.Categorical(guide)}, index=cells().obs_names),
        var=pandas.DataFrame(index=NAMES),
        layers={"counts": 2 * x},
    )
    table = {name: x[:, i] for i, name in enumerate(NAMES)}
    assert ist.summarise(data) == ist.summarise(table)
    found = ist.learn(ist.Interventions(data, GUIDES, column="guide"))
    expected = ist.learn(ist.Interventions(table | {"guide": guide}, GUIDES, column="guide"))
    assert found.score == expected.score
    doubled = ist.AnnotatedTable(data, layer="counts")
    np.testing.assert_array_equal(doubled["g3"], 2 * x[:, 3])
