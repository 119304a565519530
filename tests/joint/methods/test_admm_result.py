"""What ADMM gives, and which model a study is for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import MismatchError, SchemaError, StudyError
from isthmus.statistics import Schema
from isthmus.tables import Frame, Series
from isthmus.watch import Ending
from isthmus_joint import ADMM, ADMMModel, Federation, MemoryLedger, readable
from isthmus_joint.federation.common_schema import as_studied
from isthmus_joint.methods.admm import SPARE
from isthmus_joint.records.ledger import summary


def chain(ledgers: dict[str, MemoryLedger] | None = None) -> Federation:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(90, 3))
    rows[:, 1] += 1.5 * rows[:, 0]
    tables = {f"s{k}": dict(zip("abc", rows[k::3].T, strict=True)) for k in range(3)}
    return Federation.simulate(tables, ledgers=ledgers)


@pytest.mark.long
def test_a_result_says_what_it_is_and_what_it_told(tmp_path: Path) -> None:
    rounds: list[str] = []
    found = ist.learn(chain(), search=ADMM(), progress=lambda state: rounds.append(state.text))
    assert all(text.endswith("of at most 200") for text in rounds)
    assert found.dag.edges == (("a", "b"),)
    assert found.status.ending is Ending.CONVERGED
    assert found.status.steps == found.details.rounds
    assert "ADMM(" in found.provenance.code
    text = str(found)
    assert "1 edge, 3 variables, score unknown" in text
    assert "reveal the statistics of single sites" in text
    weight = found.published().details.weights[0, 1]
    plain = json.loads(json.dumps(found.to_dict()))
    assert np.array(plain["details"]["parameters"]).tobytes() == found.details.parameters.tobytes()
    assert plain["details"]["model"] == "linear"
    assert [e["site"] for e in plain["disclosure"]] == ["s0", "s1", "s2"] * 2
    found.report(tmp_path / "network.html")
    page = (tmp_path / "network.html").read_text()
    assert "reveal the statistics of single sites" in page
    assert f">{weight:.4g}</td>" in page
    assert len(found.plot().figure.axes) == 1
    with pytest.raises(MismatchError, match=r"ADMM, PrivateK2.*isthmus.fit\(data, solution.dag\)"):
        found.fit()
    sites = chain()
    assert found.fit(sites) == ist.fit(sites, found.dag)
    found.save(tmp_path / "network.isthmus")
    assert ist.Solution.load(tmp_path / "network.isthmus").dag == found.dag


def test_a_result_that_was_cut_short_says_so() -> None:
    found = ist.learn(chain(), search=ADMM(rounds=2))
    assert found.status.ending is Ending.NOT_CONVERGED
    assert "all 2 rounds were used" in str(found)
    stopped = ist.learn(chain(), search=ADMM(), time_limit=1e-6)
    assert (stopped.status.ending, stopped.details.rounds) == (Ending.TIME_LIMIT, 1)


def test_ctrl_c_gives_the_weights_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    federation = chain()
    ask = federation.ask

    def interrupted(request: Any) -> Any:
        if getattr(request, "step", 0) == 3:
            raise KeyboardInterrupt
        return ask(request)

    monkeypatch.setattr(federation, "ask", interrupted)
    found = ist.learn(federation, search=ADMM())
    assert (found.status.ending, found.details.rounds) == (Ending.INTERRUPTED, 2)


@pytest.mark.long
def test_knowledge_forbids_edges_and_cannot_require_them() -> None:
    known = ist.Knowledge(forbidden=[("a", "b")])
    found = ist.learn(chain(), search=ADMM(), knowledge=known)
    assert found.dag.edges == (("b", "a"),)
    assert found.knowledge == known
    with pytest.raises(MismatchError, match="cannot require edges"):
        ist.learn(chain(), search=ADMM(), knowledge=ist.Knowledge(required=[("a", "b")]))


@pytest.mark.long
def test_a_study_of_admm_alone_needs_no_search() -> None:
    rng = np.random.default_rng(3)
    tables = [dict(zip("ab", rng.normal(size=(2, 30)), strict=True)) for _ in range(3)]
    allowed = ["consensus"]
    federation = Federation.simulate(tables, requests=allowed)
    with pytest.raises(MismatchError, match=r"Use search=ADMM\(\)"):
        ist.learn(federation, search=ist.Boss())
    found = ist.learn(federation, progress=False)
    assert found.choice.startswith("Search ADMM")
    assert found.choice.endswith("(as the study says); no score is computed.")


@pytest.mark.parametrize("search", [ADMM(), ist.PrivateK2(), ist.StructureOnly()])
def test_a_table_is_no_joint_source(search: Any) -> None:
    table = {"a": [1.0, 2.5, 3.0], "b": [3.0, 2.0, 2.5]}
    name = "Federation" if isinstance(search, ADMM) else "TwoParty"
    with pytest.raises(MismatchError, match=f"which only a {name} whose study allows"):
        ist.learn(table, search=search)


@pytest.mark.parametrize("option", [{"score": ist.GaussianBIC()}, {"missing": ist.DropRows()}])
def test_options_without_effect_are_refused(option: dict[str, Any]) -> None:
    with pytest.raises(MismatchError, match=f"Leave out {next(iter(option))}"):
        ist.learn(chain(), search=ADMM(), **option)


def test_the_model_follows_from_the_study() -> None:
    study = chain().study  # allows all messages, and a million rounds
    assert ADMM().allowed(study) == (ADMMModel.LINEAR, 200)
    assert ADMM("perceptron", rounds=3).allowed(study) == (ADMMModel.PERCEPTRON, 3)  # type: ignore[arg-type]
    networks = replace(study, requests=frozenset({"networks"}))
    assert ADMM().allowed(networks) == (ADMMModel.PERCEPTRON, 200)
    with pytest.raises(MismatchError, match="is for a perceptron model; a linear one was given"):
        ADMM(ADMMModel.LINEAR).allowed(networks)
    with pytest.raises(MismatchError, match="is for a linear or perceptron model"):
        ADMM(ADMMModel.DYNAMIC).allowed(study)
    short = replace(study, rounds=SPARE + 5)
    assert ADMM().allowed(short) == (ADMMModel.LINEAR, 5)
    with pytest.raises(StudyError, match="5 steps for ADMM; 6 were requested"):
        ADMM(rounds=6).allowed(short)
    with pytest.raises(StudyError, match="0 steps"):
        ADMM().allowed(replace(study, rounds=SPARE))
    with pytest.raises(StudyError, match="'consensus'"):
        ADMM().allowed(replace(study, requests=frozenset({"moments"})))


@pytest.mark.long
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
    ist.learn(federation, search=ADMM(rounds=4))
    entries = ledgers["s0"].entries()
    assert all(len(line) < 600 for line in readable(entries).splitlines())
    first, second = summary(entries).splitlines()
    assert first.startswith("1 × number of sites and rows; 2 numbers in total")
    assert second.startswith("4 × parameters of ADMM for 3 variables; sums of many rounds")
    assert "36 numbers in total" in second
    assert federation.study.identity.hex()[:16] in second
    assert summary([]) == ""
