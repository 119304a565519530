"""Solutions in files, pickles, copies and other processes."""

from __future__ import annotations

import contextlib
import copy
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import FormatError, MismatchError

RNG = np.random.default_rng(0)
A = RNG.integers(0, 3, 200)
X = RNG.normal(size=200)
DISCRETE = {"a": A, "b": (A + RNG.integers(0, 2, 200)) % 3, "ö c": RNG.integers(0, 2, 200)}
NUMERIC = {"x": X, "y": X + RNG.normal(size=200), "z": RNG.normal(size=200)}
MIXED = {"a": A.astype(str), "x": A + X, "y": X}

CASES: list[Any] = [
    (DISCRETE, {}),
    (DISCRETE, {"score": ist.BDeu(10), "search": ist.HillClimb()}),
    (DISCRETE, {"knowledge": ist.Knowledge(tiers=[["a"], ["b", "ö c"]])}),
    (NUMERIC, {}),
    (NUMERIC, {"score": ist.BGe()}),
    (NUMERIC, {"search": ist.Notears(), "seed": 3}),
    (NUMERIC, {"score": ist.GP(), "search": ist.HillClimb()}),
    (MIXED, {}),
]


def same(one: ist.Solution, other: ist.Solution, data: Any) -> None:
    for name in ("dag", "score", "choice", "equivalent", "sense", "knowledge", "notes"):
        assert getattr(one, name) == getattr(other, name), name
    assert one.status.message == other.status.message
    assert one.reading == other.reading
    assert one.disclosure == other.disclosure
    assert one.cpdag == other.cpdag
    given = data if data is MIXED else None
    first, second = (s.fit(given) for s in (one, other))
    if data is MIXED:
        assert ist.log_likelihood(first, data) == ist.log_likelihood(second, data)
    else:
        assert first == second


@pytest.mark.long
@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.filterwarnings("ignore::isthmus.errors.ModelWarning")
@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")
def test_everything_survives(case: int, tmp_path: Path) -> None:
    data, options = CASES[case]
    solution = ist.learn(data, **options)
    path = tmp_path / "solution.isthmus"
    solution.save(path, statistics=True)
    loaded = ist.Solution.load(path)
    same(solution, loaded, data)
    same(solution, pickle.loads(pickle.dumps(solution)), data)  # noqa: S301 - our own bytes
    same(solution, copy.deepcopy(solution), data)
    if "search" not in options or case == 1:
        assert loaded.strengths() == pytest.approx(solution.strengths())
    if data is NUMERIC and case < 5:
        assert loaded.effect("x", "y") == copy.deepcopy(solution).effect("x", "y")
        assert loaded.effect("x", "y").possible == solution.effect("x", "y").possible
    loaded.save(tmp_path / "again", statistics=True)
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


@pytest.mark.long
def test_in_other_processes() -> None:
    joblib = pytest.importorskip("joblib")
    work = (
        joblib.delayed(ist.learn)(t, score=s) for t, s in ((NUMERIC, ist.BGe()), (DISCRETE, None))
    )
    found = joblib.Parallel(n_jobs=2)(work)
    same(found[0], ist.learn(NUMERIC, score=ist.BGe()), NUMERIC)
    same(found[1], ist.learn(DISCRETE), DISCRETE)


@pytest.mark.long
def test_a_new_process_that_has_not_learned_loads(tmp_path: Path) -> None:
    path = tmp_path / "solution.isthmus"
    ist.learn(DISCRETE).save(path, statistics=True)
    code = f"import isthmus as ist; print(ist.Solution.load({str(path)!r}).fit())"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("DiscreteNetwork(3 nodes")


def test_without_statistics_nothing_of_the_data_is_in_the_file(tmp_path: Path) -> None:
    solution = ist.learn(DISCRETE, search=ist.XGES())
    solution.save(tmp_path / "bare")
    loaded = ist.Solution.load(tmp_path / "bare")
    assert loaded == solution
    with zipfile.ZipFile(tmp_path / "bare") as archive:
        assert archive.namelist() == ["solution.json"]
    with pytest.raises(MismatchError, match=r"solution\.fit\(data\)"):
        loaded.fit()


def test_the_file_has_tables_of_families_and_not_the_rows(tmp_path: Path) -> None:
    many = {f"v{i}": RNG.integers(0, 2, 300) for i in range(12)}
    solution = ist.learn(many)
    solution.save(tmp_path / "s", statistics=True)
    loaded = ist.Solution.load(tmp_path / "s")
    statistics: Any = loaded.statistics_kept.statistics  # type: ignore[union-attr]
    assert statistics.joint is None
    ist.learn(NUMERIC).save(tmp_path / "n", statistics=True)
    numeric = ist.Solution.load(tmp_path / "n")
    with pytest.raises(MismatchError, match="loaded from a file"):
        numeric.standardised_refit()


def test_damage_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "solution"
    solution = ist.learn(DISCRETE)
    solution.save(path, statistics=True)
    good = path.read_bytes()
    rng = np.random.default_rng(1)
    for _ in range(150):
        bad = bytearray(good)
        if rng.random() < 0.3:
            bad = bad[: rng.integers(len(bad))]
        else:
            for place in rng.integers(len(bad), size=3):
                bad[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(bad)
        with contextlib.suppress(FormatError):
            ist.Solution.load(path)
    path.write_bytes(b"")
    with pytest.raises(FormatError):
        ist.Solution.load(path)
    with pytest.raises(FileNotFoundError):
        ist.Solution.load(tmp_path / "none")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("isthmus-solution/1", "isthmus-solution/9"),
        ('"optimal"', '"exploded"'),
        ('"choice": "', '"choice": 3, "x": "'),
        ('"edges": [', '"edges": [["a", "a"],'),
    ],
)
def test_wrong_content_is_refused(tmp_path: Path, old: str, new: str) -> None:
    solution = ist.learn(DISCRETE)
    solution.save(tmp_path / "good")
    with zipfile.ZipFile(tmp_path / "good") as archive:
        text = archive.read("solution.json").decode()
    assert old in text
    with zipfile.ZipFile(tmp_path / "bad", "w") as archive:
        archive.writestr("solution.json", text.replace(old, new))
    with pytest.raises(FormatError):
        ist.Solution.load(tmp_path / "bad")


@pytest.mark.parametrize(
    "score",
    [
        ist.BIC(),
        ist.AIC(),
        ist.EBIC(),
        ist.K2(),
        ist.BDeu(),
        ist.GaussianBIC(),
        ist.GaussianEBIC(),
        ist.BGe(),
        ist.DegenerateGaussian(),
        ist.LeastSquares(),
    ],
)
def test_scores_and_statistics_survive(score: Any) -> None:
    data = DISCRETE if score.kind == "discrete" else NUMERIC
    statistics = score.needs.gather(ist.Frame(data))
    assert pickle.loads(pickle.dumps(score)) == score  # noqa: S301 - our own bytes
    assert copy.deepcopy(score) == score
    if isinstance(score, ist.LeastSquares):
        return
    objective = score.bind(statistics)
    for twin in (pickle.loads(pickle.dumps(statistics)), copy.deepcopy(statistics)):  # noqa: S301
        assert score.bind(twin).local(0, [1]) == objective.local(0, [1])


def test_statistics_of_incomplete_rows_are_not_kept(tmp_path: Path) -> None:
    table = {name: column.astype(object) for name, column in DISCRETE.items()}
    table["b"][::9] = None
    solution = ist.learn(
        table, missing=ist.AvailableCases(), kinds=dict.fromkeys(table, "discrete")
    )
    solution.save(tmp_path / "s", statistics=True)
    loaded = ist.Solution.load(tmp_path / "s")
    assert loaded.dag == solution.dag
    assert loaded.reading == solution.reading  # with the remark on missing values
    assert loaded.fit() == solution.fit()  # parameters are kept
    with pytest.raises(MismatchError, match=r"no statistics.*AvailableCases\(\).*isthmus\.fit\("):
        loaded.fit(pseudo_count=2.0)


@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")
def test_parameters_are_kept_without_statistics(tmp_path: Path) -> None:
    for data in (DISCRETE, NUMERIC, MIXED):
        solution = ist.learn(data)
        solution.save(tmp_path / "s", parameters=True)
        with zipfile.ZipFile(tmp_path / "s") as archive:
            assert archive.namelist() == ["solution.json", "network.json"]
        loaded = ist.Solution.load(tmp_path / "s")
        assert loaded.statistics_kept is None
        fitted, own = loaded.fit(), solution.fit()
        assert fitted.cpdag == solution.cpdag
        assert ist.log_likelihood(fitted, data) == ist.log_likelihood(own, data)
    with pytest.raises(MismatchError, match=r"nonlinear.*write_json"):
        ist.learn(NUMERIC, score=ist.GP()).save(tmp_path / "g", parameters=True)


def test_parameters_must_be_those_of_the_graph(tmp_path: Path) -> None:
    ist.learn(DISCRETE).save(tmp_path / "s")
    other = ist.fit(NUMERIC, ist.DAG(tuple(NUMERIC), [("x", "y")]))
    with zipfile.ZipFile(tmp_path / "s", "a") as archive:
        archive.writestr("network.json", ist.io.to_json(other))
    with pytest.raises(FormatError, match="not those of its graph"):
        ist.Solution.load(tmp_path / "s")


def test_a_file_without_statistics_fits_from_data(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=300)
    table = {"x": x, "t": (x + rng.normal(size=300) > 0).astype(int)}
    solution = ist.learn(table, kinds={"t": "continuous"})
    solution.save(tmp_path / "s")
    loaded = ist.Solution.load(tmp_path / "s")
    assert loaded.fit(table) == solution.fit()  # with the class, and t read as it was
    for call, advice in (
        (loaded.fit, r"isthmus\.fit\(data, solution\.dag\)"),
        (lambda: loaded.effect("x", "t"), r"Learn again.*\.effect\("),
        (loaded.strengths, r"Learn again.*isthmus\.score\("),
        (loaded.standardised_refit, r"Learn again.*standardised_refit\("),
        (loaded.fit_gp, r"Learn again.*GP\(\)"),
    ):
        with pytest.raises(MismatchError, match=advice) as error:
            call()
        assert "write_json" not in str(error.value)


def hidden_cause() -> dict[str, Any]:
    rng = np.random.default_rng(4)
    u, a, d = rng.normal(size=(3, 2000))
    noise = rng.normal(size=(2, 2000))
    return {"a": a, "b": a + u + noise[0], "c": u + d + noise[1], "d": d}


@pytest.mark.parametrize(
    "data", [hidden_cause(), DISCRETE, MIXED], ids=["numbers", "levels", "mixed"]
)
@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")
def test_solutions_with_a_pag(data: Any, tmp_path: Path) -> None:
    knowledge = ist.Knowledge(tiers=[[next(iter(data))], list(data)[1:]])
    solution = ist.learn(data, search=ist.FCI(), knowledge=knowledge)
    solution.save(tmp_path / "s.isthmus", statistics=True)
    loaded = ist.PAGSolution.load(tmp_path / "s.isthmus")
    assert loaded.pag.edges == solution.pag.edges
    for name in ("status", "disclosure", "choice", "knowledge", "notes", "reading", "provenance"):
        assert getattr(loaded, name) == getattr(solution, name), name
    assert (loaded.statistics_kept is None) == (list(data) != ["a", "b", "c", "d"])
    loaded.save(tmp_path / "again", statistics=True)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "s.isthmus").read_bytes()
    solution.save(tmp_path / "bare")
    assert ist.PAGSolution.load(tmp_path / "bare").statistics_kept is None
    assert pickle.loads(pickle.dumps(solution)) == solution  # noqa: S301 - our own bytes
    with pytest.raises(FormatError, match=r"with a PAG\. Read it with isthmus\.PAGSolution\.load"):
        ist.Solution.load(tmp_path / "bare")


def test_a_file_of_the_other_kind_is_named(tmp_path: Path) -> None:
    ist.learn(NUMERIC).save(tmp_path / "dag")
    with pytest.raises(FormatError, match=r"with a DAG\. Read it with isthmus\.Solution\.load"):
        ist.PAGSolution.load(tmp_path / "dag")
    (tmp_path / "broken").write_bytes(b"PK nothing")
    with pytest.raises(FormatError, match="damaged"):
        ist.PAGSolution.load(tmp_path / "broken")
