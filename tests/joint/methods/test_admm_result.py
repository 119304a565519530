"""What ADMM gives, and which model a study is for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from isthmus.errors import MismatchError, SchemaError, StudyError
from isthmus.joint import (
    ADMMResult,
    DynamicADMM,
    Federation,
    LinearADMM,
    MemoryLedger,
    PerceptronADMM,
    learn_admm,
    readable,
)
from isthmus.joint.federation.series import as_studied
from isthmus.joint.methods.admm.model_choice import SPARE, model_of
from isthmus.joint.records.ledger_text import summary
from isthmus.sources import Frame, Series
from isthmus.statistics import Schema


def chain(ledgers: dict[str, MemoryLedger] | None = None) -> Federation:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(90, 3))
    rows[:, 1] += 1.5 * rows[:, 0]
    tables = {f"s{k}": dict(zip("abc", rows[k::3].T, strict=True)) for k in range(3)}
    return Federation.simulate(tables, ledgers=ledgers)


def test_a_result_says_what_it_is_and_what_it_told(tmp_path: Path) -> None:
    steps: list[int] = []
    found = learn_admm(chain(), watch=steps.append)
    assert steps == list(range(1, found.rounds + 1))
    assert isinstance(found, ADMMResult)
    assert found.dag.edges == (("a", "b"),)
    text = str(found)
    assert "1 edge, 3 variables, learned by LinearADMM" in text
    assert "reveal the statistics of single sites" in text
    assert "converged" not in text
    assert found.edge_weights == {("a", "b"): found.weights[0, 1]}
    plain = json.loads(json.dumps(found.to_dict()))
    assert np.array(plain["parameters"]).tobytes() == found.parameters.tobytes()
    assert plain["edges"] == [["a", "b", found.weights[0, 1]]]
    assert [e[0] for e in plain["disclosure"]] == ["s0", "s1", "s2"] * 2
    found.report(tmp_path / "network.html")
    page = (tmp_path / "network.html").read_text()
    assert "strength" not in page.split("<h2>Edges</h2>")[1].split("<h2>")[0].lower()
    assert "reveal the statistics of single sites" in page
    assert f">{found.weights[0, 1]:.4g}</td>" in page
    assert len(found.plot().figure.axes) == 1


def test_a_result_that_was_cut_short_says_so() -> None:
    assert "All 2 rounds were used" in str(learn_admm(chain(), LinearADMM(rounds=2)))


def test_the_model_follows_from_the_study() -> None:
    study = chain().study  # allows all messages, and a million rounds
    assert model_of(study) == LinearADMM()
    given = PerceptronADMM(rounds=3)
    assert model_of(study, given) == given
    networks = replace(study, requests=frozenset({"totals", "networks"}))
    assert model_of(networks) == PerceptronADMM()
    with pytest.raises(MismatchError, match=r"PerceptronADMM.*LinearADMM"):
        model_of(networks, LinearADMM())
    with pytest.raises(MismatchError, match="is for LinearADMM or PerceptronADMM"):
        model_of(study, DynamicADMM())
    short = replace(study, rounds=SPARE + 5)
    assert model_of(short) == LinearADMM(rounds=5)
    with pytest.raises(StudyError, match=r"5 steps .*6"):
        model_of(short, LinearADMM(rounds=6))
    with pytest.raises(StudyError, match="0 steps"):
        model_of(replace(study, rounds=SPARE))
    with pytest.raises(StudyError, match="'totals'"):
        model_of(replace(study, requests=frozenset({"consensus"})))
    with pytest.raises(StudyError, match="'consensus'"):
        model_of(replace(study, requests=frozenset({"totals"})))


def test_a_table_becomes_the_series_of_a_study() -> None:
    schema = Schema.continuous(["x", "y"]).with_lags(1)
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({"t": [2, 0, 1, 9], "y": [5.0, 3, 4, 7], "x": [2.0, 0, 1, 8]})
    found = as_studied(table, schema, time="t")
    assert isinstance(found, Series)
    assert found.schema() == schema
    np.testing.assert_array_equal(found.rows(), [[1, 4, 0, 3], [2, 5, 1, 4]])
    wide = polars.DataFrame({name: [1.0, 2.0] for name in schema.names})
    assert as_studied(wide, schema) is wide
    flat = Schema.continuous(["x", "y"])
    assert as_studied(table, flat) is table
    assert Frame(table, schema=flat).schema() == flat
    with pytest.raises(SchemaError, match="not about time series"):
        as_studied(table, flat, time="t")
    with pytest.raises(SchemaError, match=r"no column \['z'\]"):
        as_studied(table, schema, by="z")


def test_a_ledger_of_many_steps_can_be_read() -> None:
    ledgers = {f"s{k}": MemoryLedger() for k in range(3)}
    federation = chain(ledgers)
    learn_admm(federation, LinearADMM(rounds=4))
    entries = ledgers["s0"].entries()
    assert all(len(line) < 600 for line in readable(entries).splitlines())
    first, second = summary(entries).splitlines()
    assert first.startswith("1 × number of rows and sums of 3 variables; 4 numbers in total")
    assert second.startswith("4 × parameters of ADMM for 3 variables; sums of many rounds")
    assert "36 numbers in total" in second
    assert federation.study.identity.hex()[:16] in second
    assert summary([]) == ""
