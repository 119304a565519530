"""Damaged files of statistics: a sentence, never a raw error, never other numbers."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isthmus.errors import FormatError
from isthmus.objectives import ScoreTable
from isthmus.statistics import CountPlan, Counts, Moments, Schema

Change = Callable[[dict[str, Any], dict[str, np.ndarray]], None]


def moments() -> Moments:
    values = np.random.default_rng(0).normal(size=(50, 3))
    return Moments.from_array(Schema.continuous(["a", "b", "c"]), values, regime="spring")


def counts(plan: CountPlan | None = None) -> Counts:
    schema = Schema.discrete({"a": "xy", "b": (0, 1, 2), "c": (False, True)})
    codes = np.random.default_rng(1).integers(0, schema.cardinalities[:, None], size=(3, 40))
    return Counts.from_codes(schema, codes, np.arange(1, 41), plan=plan)


def table() -> ScoreTable:
    return ScoreTable.from_lists(
        ["a", "b", "ç"], [[((), -3.5), ((1,), -2.25)], [((), -4.0)], [((0, 1), -1e-3), ((), -7.5)]]
    )


def rewritten(path: Path, change: Change) -> None:
    """Change the header or the arrays of a file, with valid checksums."""
    with np.load(path) as loaded:
        arrays = {name: loaded[name] for name in loaded.files}
    header = json.loads(arrays.pop("header").tobytes())
    change(header, arrays)
    raw = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    np.savez(path, header=raw, **arrays)


CASES: list[Any] = [
    pytest.param(moments(), id="moments"),
    pytest.param(counts(), id="counts of everything"),
    pytest.param(counts(CountPlan.up_to(2)), id="counts of pairs"),
    pytest.param(table(), id="score table"),
]


def load_again(kept: Any, path: Path) -> bool:
    """Whether a file still loads; nothing but FormatError may be raised, and nothing is changed."""
    try:
        loaded = type(kept).load(path)
    except FormatError:
        return False
    # A text has no checksum, so that another number or name can be read from it.
    assert isinstance(kept, ScoreTable) or loaded == kept
    return True


@pytest.mark.long
@pytest.mark.parametrize("kept", CASES)
def test_a_flipped_byte_is_reported_as_a_damaged_file(kept: Any, tmp_path: Path) -> None:
    path = tmp_path / "kept"
    kept.save(path)
    raw = path.read_bytes()
    for at in range(0, len(raw), 1 if "ISTHMUS_LONG" in os.environ else 2):
        flip = (0x01, 0x80, 0xFF)[at % 3]
        path.write_bytes(raw[:at] + bytes([raw[at] ^ flip]) + raw[at + 1 :])
        load_again(kept, path)


@pytest.mark.parametrize("kept", CASES)
def test_a_truncated_file_is_reported_as_damaged(kept: Any, tmp_path: Path) -> None:
    path = tmp_path / "kept"
    kept.save(path)
    raw = path.read_bytes()
    for size in range(0, len(raw), 3):
        path.write_bytes(raw[:size])
        loads = load_again(kept, path)
        assert not loads or isinstance(kept, ScoreTable)


@pytest.mark.parametrize("kept", CASES)
def test_random_damage_is_reported(kept: Any, tmp_path: Path) -> None:
    path = tmp_path / "kept"
    kept.save(path)
    raw = np.frombuffer(path.read_bytes(), dtype=np.uint8)
    rng = np.random.default_rng(2)
    for _ in range(200):
        changed = raw.copy()
        at = rng.integers(0, len(raw), rng.integers(1, 20))
        changed[at] = rng.integers(0, 256, len(at))
        path.write_bytes(changed.tobytes())
        load_again(kept, path)


@pytest.mark.parametrize(
    "line", ["nan 1 a", "inf 0", "-1.0 1 b", "-1.0 2 a a", "-1.0 1 z", "-1.0 -1", "x 0"]
)
def test_a_score_table_with_an_impossible_line_is_refused(line: str, tmp_path: Path) -> None:
    path = tmp_path / "scores.jkl"
    path.write_text(f"2\na 1\n-2.0 0\nb 1\n{line}\n")
    with pytest.raises(FormatError, match=r"Line 5|not among the variables"):
        ScoreTable.load(path)
    path.write_text("2\na 1\n-2.0 0\nb 0\n")
    with pytest.raises(FormatError, match="b has no parent sets"):
        ScoreTable.load(path)


def test_a_damaged_compressed_score_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "scores.jkl.gz"
    table().save(path)
    raw = path.read_bytes()
    for at in range(2, len(raw)):
        path.write_bytes(raw[:at] + bytes([raw[at] ^ 0xFF]) + raw[at + 1 :])
        load_again(table(), path)


def test_a_file_that_does_not_exist_is_not_called_damaged(tmp_path: Path) -> None:
    for kind in (Moments, Counts):
        with pytest.raises(FileNotFoundError):
            kind.load(tmp_path / "nowhere")


def set_n(value: object) -> Change:
    return lambda header, arrays: header.update(n=value)


def set_gram(change: Callable[[np.ndarray], np.ndarray]) -> Change:
    return lambda header, arrays: arrays.update(gram=change(arrays["gram"]))


def indefinite(gram: np.ndarray) -> np.ndarray:
    signs = np.array([[1, 0.9, 0.9], [0.9, 1, -0.9], [0.9, -0.9, 1]])
    spread = np.sqrt(gram.diagonal())
    matrix: np.ndarray = signs * np.outer(spread, spread)
    return matrix


def skewed(gram: np.ndarray) -> np.ndarray:
    gram[0, 1] += 1
    return gram


WRONG_MOMENTS = {
    "negative n": (set_n(-5), "n is -5; an integer of at least 1"),
    "fraction n": (set_n(1.7), "n is 1.7; an integer"),
    "boolean n": (set_n(True), "n is True"),
    "text n": (set_n("50"), "n is '50'"),
    "no n": (lambda header, arrays: header.pop("n"), "'n' is missing"),
    "negative gram": (set_gram(lambda gram: -gram), "negative sum of squares"),
    "asymmetric gram": (set_gram(skewed), "not symmetric"),
    "complex gram": (set_gram(lambda gram: gram + 1j), "complex128; real numbers"),
    "indefinite gram": (set_gram(indefinite), "negative eigenvalue"),
    "text gram": (set_gram(lambda gram: gram.astype(str)), "real numbers"),
    "large product": (
        set_gram(lambda gram: gram + 1e6 * (1 - np.eye(3))),
        "above what their squares allow",
    ),
    "regime": (lambda header, arrays: header.update(regime=7), "regime is 7"),
    "schema": (lambda header, arrays: header.update(schema=[1]), "not a schema"),
    "extra array": (lambda header, arrays: arrays.update(more=np.ones(1)), "'more'"),
}


@pytest.mark.parametrize("name", WRONG_MOMENTS)
def test_moments_that_no_rows_can_have_are_refused(name: str, tmp_path: Path) -> None:
    change, message = WRONG_MOMENTS[name]
    path = tmp_path / "moments.npz"
    moments().save(path)
    rewritten(path, change)
    with pytest.raises(FormatError, match=message):
        Moments.load(path)


def set_table(value: np.ndarray) -> Change:
    def change(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        arrays["table0"] = value

    return change


WRONG_COUNTS = {
    "fractions": (
        lambda header, arrays: arrays.update(table0=arrays["table0"] + 0.5),
        "not whole numbers",
    ),
    "negative": (lambda header, arrays: arrays.update(table0=-arrays["table0"]), "not whole"),
    "complex": (lambda header, arrays: arrays.update(table0=arrays["table0"] * 1j), "not whole"),
    "fraction n": (set_n(820.5), "n is 820.5"),
    "other n": (set_n(819), "counts 820 rows, but n is 819"),
    "form": (lambda header, arrays: header["blocks"][0].update(form="cube"), "form 'cube'"),
    "plan": (lambda header, arrays: header.update(plan={"up_to": 1}), "those of the plan"),
    "blocks": (lambda header, arrays: header.update(blocks=None), "damaged"),
}


@pytest.mark.parametrize("name", WRONG_COUNTS)
def test_counts_that_no_rows_can_have_are_refused(name: str, tmp_path: Path) -> None:
    change, message = WRONG_COUNTS[name]
    path = tmp_path / "counts.npz"
    counts(CountPlan.up_to(2)).save(path)
    rewritten(path, change)
    with pytest.raises(FormatError, match=message):
        Counts.load(path)


def test_fractional_weights_are_refused_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "counts.npz"
    counts().save(path)
    rewritten(path, lambda header, arrays: arrays.update(weights0=arrays["weights0"] + 0.25))
    with pytest.raises(FormatError, match="not whole numbers"):
        Counts.load(path)


def test_an_encrypted_or_unknown_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("notes.txt", "hello")
    for kind in (Moments, Counts):
        with pytest.raises(FormatError, match="header"):
            kind.load(path)
