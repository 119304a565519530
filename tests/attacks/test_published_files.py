"""A reader of published files looks for sums, counts and digits that the study did not release."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.attacks.malicious import Attacked

import isthmus as ist
from isthmus.cli.result_files import write_outputs
from isthmus.errors import MismatchError
from isthmus.statistics import CountPlan, Kind, Schema, Variable
from isthmus_joint import DifferentialPrivacy

NAMES = ("weight", "age", "pressure")
BOUNDS = {"weight": (0.0, 300.0), "age": (0.0, 120.0), "pressure": (0.0, 300.0)}
FLAGS = ("smoking", "cough", "visit")
SITES = {"north": 1401, "east": 1907, "south": 1253}
ROWS = sum(SITES.values())
NETWORKS = ("network.html", "network.json", "network.isthmus", "network.bif", "network.xdsl")


def patients(rows: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 95, rows).astype(float)
    pressure = (age + rng.integers(70, 120, rows)).astype(float)
    return {"weight": rng.normal(80, 15, rows).round(1), "age": age, "pressure": pressure}


def flags(rows: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    smoking = rng.random(rows) < 0.3
    cough = rng.random(rows) < np.where(smoking, 0.7, 0.2)
    return {"smoking": smoking, "cough": cough, "visit": rng.random(rows) < 0.1 + 0.7 * cough}


NUMBERS = {name: patients(rows, i) for i, (name, rows) in enumerate(SITES.items())}
TABLES = {name: flags(rows, i) for i, (name, rows) in enumerate(SITES.items())}
DISCRETE = Schema(tuple(Variable(name, Kind.DISCRETE, (False, True)) for name in FLAGS))


def pooled(tables: dict[str, dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    names = tables["north"]
    return {name: np.concatenate([t[name] for t in tables.values()]) for name in names}


@pytest.fixture(scope="module")
def learned() -> ist.Solution:
    world = Attacked(NUMBERS, Schema.continuous(NAMES), BOUNDS)
    return ist.learn(world.federation(), progress=False)


@pytest.fixture(scope="module")
def tabulated() -> ist.Solution:
    plan = CountPlan.everything()
    world = Attacked(TABLES, DISCRETE, {}, requests=("counts",), plan=plan)
    return ist.learn(world.federation(), progress=False)


def published(solution: ist.Solution, folder: Path) -> dict[str, str]:
    """All files that `coordinator run -o` and the methods of the solution write, as texts."""
    discrete = isinstance(solution.fit(), ist.networks.DiscreteNetwork)
    for name in NETWORKS if discrete else NETWORKS[:3]:
        write_outputs(solution.published(), [folder / name])
    solution.report(folder / "report.html")
    solution.save(folder / "saved.isthmus", parameters=True)
    if discrete:
        solution.save_bif(folder / "saved.bif")
    texts = {"sent.json": json.dumps(solution.published().to_dict(), default=str)}
    for path in folder.iterdir():
        if path.suffix == ".isthmus":
            with zipfile.ZipFile(path) as archive:
                texts |= {f"{path.name}/{n}": archive.read(n).decode() for n in archive.namelist()}
        else:
            text = path.read_text(encoding="utf-8")
            code = r"<style.*?</style>|<script(?![^>]*json).*?</script>"  # the same in all reports
            texts[path.name] = re.sub(code, "", text, flags=re.DOTALL)
    return texts


def network_in(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found


def floats(value: Any) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    elif isinstance(value, dict):
        yield from (x for k, v in value.items() if k != "seconds" for x in floats(v))
    elif isinstance(value, list):
        yield from (x for v in value for x in floats(v))


def digits(value: float) -> int:
    return len(re.sub(r"^0+|\.0$|\.|^-|e.*", "", f"{value!r}".lstrip("-0."))) if value else 0


def grid_of(value: float) -> float:
    """The coarsest step of the series 1, 2, 5 of which a number is a multiple."""
    steps = sorted((s * 10.0**k for k in range(-7, 3) for s in (1, 2, 5)), reverse=True)
    return next(s for s in steps if abs(value / s - round(value / s)) < 1e-9 * max(1, value / s))


@pytest.mark.long
def test_files_have_no_counts_and_no_numbers_of_rows(
    learned: ist.Solution, tabulated: ist.Solution, tmp_path: Path
) -> None:
    """a07: reports and networks had the exact tables of all sites together."""
    table = pooled(TABLES)
    cells = [
        int(((table[a] == x) & (table[b] == y)).sum())
        for a in FLAGS
        for b in FLAGS
        if a != b
        for x in (False, True)
        for y in (False, True)
    ]
    for i, solution in enumerate((learned, tabulated)):
        (tmp_path / str(i)).mkdir()
        for name, text in published(solution, tmp_path / str(i)).items():
            whole = text if name.endswith(".html") else text.replace(",", " , ")
            for number in (ROWS, *cells):
                for shown in (f"{number}", f"{number:,}"):
                    assert not re.search(rf"(?<![\d.,#]){shown}(?![\d.,])", whole), (name, shown)
            assert '"counts"' not in text.replace('"counts": null', ""), name


@pytest.mark.long
def test_parameters_have_the_digits_of_their_errors(
    learned: ist.Solution, tabulated: ist.Solution, tmp_path: Path
) -> None:
    for i, solution in enumerate((learned, tabulated)):
        (tmp_path / str(i)).mkdir()
        for name, text in published(solution, tmp_path / str(i)).items():
            if not name.endswith(".json"):
                continue
            most = max(map(digits, floats(network_in(text))), default=0)
            assert most <= 5, (name, most)


@pytest.mark.long
def test_no_sum_is_read_from_published_means(learned: ist.Solution, tmp_path: Path) -> None:
    """a06: a mean times a number of rows was an integer on the grid of the sums."""
    files = published(learned, tmp_path)
    network = network_in(files["network.json"])
    table, step = pooled(NUMBERS), {"weight": 0.1, "age": 1.0, "pressure": 1.0}
    root = next(n for n in NAMES if not learned.dag.parents(n))
    mean, exact = network["intercepts"][root], float(table[root].mean())
    assert network["rows"] != ROWS
    assert abs(mean - exact) < table[root].std() / np.sqrt(ROWS)  # the mean is still good
    assert (
        grid_of(mean) * ROWS / step[root] > 100
    )  # so many sums fit, even for one who knows the rows


@pytest.mark.long
def test_no_cell_is_read_from_published_probabilities(
    tabulated: ist.Solution, tmp_path: Path
) -> None:
    """Who knows the number of rows at each configuration exactly cannot tell the cells."""
    exact = tabulated.fit()
    assert isinstance(exact, ist.networks.DiscreteNetwork)
    assert exact.counts is not None
    published(tabulated, tmp_path)
    read = ist.io.read_json(tmp_path / "network.json")
    assert isinstance(read, ist.networks.DiscreteNetwork)
    assert read.counts is None
    for name in FLAGS:
        counts = exact.counts[name]
        rows = counts.sum(axis=-1, keepdims=True)
        error = np.sqrt(exact.tables[name] * (1 - exact.tables[name]) / rows)
        assert (np.abs(read.tables[name] - exact.tables[name]) < error).all()
        steps = np.vectorize(grid_of)(read.tables[name])
        assert (steps * rows > 5).all()  # so many numbers of rows fit each probability
    for path in ("network.bif", "saved.bif", "network.xdsl"):
        again = ist.io.read_bif(tmp_path / path) if "bif" in path else None
        for name in FLAGS if again is not None else ():
            assert again is not None
            np.testing.assert_allclose(again.tables[name], read.tables[name], atol=1e-9)


def test_what_is_computed_again_from_a_published_network_is_nearly_the_same(
    learned: ist.Solution,
) -> None:
    exact, rounded = learned.fit(), learned.published().fit()
    assert isinstance(exact, ist.networks.GaussianNetwork)
    assert isinstance(rounded, ist.networks.GaussianNetwork)
    deviations = np.sqrt(np.diagonal(exact.covariance()))
    assert (np.abs(exact.mean() - rounded.mean()) < 2 * deviations / np.sqrt(ROWS)).all()
    np.testing.assert_allclose(rounded.covariance(), exact.covariance(), rtol=0.1, atol=3.0)


@pytest.mark.long
def test_with_noise_nothing_is_published_that_had_none(tmp_path: Path) -> None:
    world = Attacked(
        TABLES,
        DISCRETE,
        {},
        requests=("counts",),
        plan=CountPlan.up_to(2),
        privacy=DifferentialPrivacy(1.0),
        rounds=30,
        rules={"maximum_epsilon": 1.0},
    )
    solution = ist.learn(world.federation(), progress=False)
    assert solution.published() is solution  # it has nothing that was not made from noisy sums
    assert not solution.disclosure.has_exact_sums
    for ledger in world.ledgers.values():
        sent = [e for e in ledger.read() if "numbers" in e]
        assert sent
        assert all(e["rho"] > 0 for e in sent)
    table = pooled(TABLES)
    said = " ".join((solution.choice, *solution.notes))
    for name, text in ({"sentences": said} | published(solution, tmp_path)).items():
        for number in (ROWS, *(int(table[flag].sum()) for flag in FLAGS)):
            for shown in (f"{number}", f"{number:,}"):
                assert not re.search(rf"(?<![\d.,#]){shown}(?![\d.,])", text), (name, shown)


@pytest.mark.long
def test_sentences_have_no_numbers_of_rows(tmp_path: Path) -> None:
    """The sentence about curves says the exact number of rows of all sites together."""
    tables = {}
    for i, (name, rows) in enumerate(SITES.items()):
        rng = np.random.default_rng(i)
        age = rng.normal(size=rows)
        tables[name] = {"age": age, "risk": age**2 + rng.normal(size=rows)}
    solution = ist.learn(ist.Federation.simulate(tables), progress=False)
    assert f"n = {ROWS:,}" in solution.choice
    solution = replace(
        solution, notes=(f"Copied: {ROWS} of 4,562 rows of 'visit 2019' (41.273%).",)
    )
    assert solution.published().notes == ("Copied: 4600 of 4,600 rows of 'visit 2019' (41.3%).",)
    for name, text in published(solution, tmp_path).items():
        for number in (ROWS, ROWS + 1):
            for shown in (f"{number}", f"{number:,}"):
                assert not re.search(rf"(?<![\d.,#]){shown}(?![\d.,])", text), (name, shown)


def test_a_saved_solution_has_no_statistics(learned: ist.Solution, tmp_path: Path) -> None:
    learned.save(tmp_path / "saved.isthmus")
    write_outputs(learned.published(), [tmp_path / "written.isthmus"])
    for path in tmp_path.iterdir():
        with zipfile.ZipFile(path) as archive:
            assert archive.namelist() == ["solution.json"]
            content = json.loads(archive.read("solution.json"))
        assert "statistics" not in content
        loaded = ist.Solution.load(path)
        assert (loaded.dag, loaded.disclosure) == (learned.dag, learned.disclosure)
        with pytest.raises(MismatchError, match=r"solution\.fit\(data\)"):
            loaded.fit()


def test_statistics_are_saved_only_on_request(learned: ist.Solution, tmp_path: Path) -> None:
    learned.save(tmp_path / "kept.isthmus", statistics=True)
    assert ist.Solution.load(tmp_path / "kept.isthmus").fit() == learned.fit()
