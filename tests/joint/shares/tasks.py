"""What the two parties of a test do; each gets its own columns only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.statistics import Moments, Schema
from isthmus_joint.shares.engine import SecretSharingRuntime
from isthmus_joint.shares.link import Words, decoded
from isthmus_joint.shares.private_k2 import private_k2, private_tables, structure_only
from isthmus_joint.shares.secret_functions import (
    CountScore,
    SecretScores,
    count_coefficients,
    count_intervals,
    evaluate,
)
from isthmus_joint.shares.secret_moments import (
    log_of_units,
    opened_moments,
    secret_gaussian_structure,
)
from isthmus_joint.shares.secret_tables import SecretTables
from isthmus_joint.shares.terms import Columns, FoundNetwork, SharedColumn

Values = dict[str, NDArray[Any]]


def halves(data: NDArray[Any], owners: list[int]) -> tuple[tuple[Values], tuple[Values]]:
    """Return the columns of each party."""
    mine = [{f"x{i}": data[:, i] for i, o in enumerate(owners) if o == r} for r in (0, 1)]
    return (mine[0],), (mine[1],)


def _columns(
    engine: SecretSharingRuntime, owners: list[int], levels: list[int], rows: int, own: Values
) -> Columns:
    described = [
        SharedColumn(f"x{i}", o, k) for i, (o, k) in enumerate(zip(owners, levels, strict=True))
    ]
    return Columns(described, own, engine.rank, rows)


def opened_tables(
    engine: SecretSharingRuntime,
    owners: list[int],
    levels: list[int],
    rows: int,
    wanted: Any,
    own: Values,
) -> Any:
    tables = SecretTables(engine, _columns(engine, owners, levels, rows, own))
    tables.prepare(wanted)
    shares = [tables.share(members) for members in wanted]
    return shares, [engine.open(share, "a table") for share in shares]


def _opened(engine: SecretSharingRuntime, scores: Words) -> Any:
    found = engine.open(scores, "values")
    assert found is not None
    return decoded(found)


def opened_functions(
    engine: SecretSharingRuntime, functions: Any, n: int, share: NDArray[Any]
) -> Any:
    tables = [count_coefficients(f, n) for f in functions]
    return _opened(engine, evaluate(engine, share, count_intervals(n), tables))


def opened_logarithms(engine: SecretSharingRuntime, share: NDArray[Any]) -> Any:
    return _opened(engine, log_of_units(engine, share))


def opened_scores(
    engine: SecretSharingRuntime,
    owners: list[int],
    levels: list[int],
    rows: int,
    score: tuple[str, float],
    families: Any,
    own: Values,
) -> Any:
    scores = SecretScores(engine, _columns(engine, owners, levels, rows, own), CountScore(*score))
    opened = _opened(engine, scores.shares(families))
    return opened, [scores.error(f) for f in families]


def k2(
    engine: SecretSharingRuntime,
    owners: list[int],
    levels: list[int],
    rows: int,
    order: list[str],
    limit: int,
    score: str,
    own: Values,
) -> Any:
    engine.transcript.clear()
    columns = _columns(engine, owners, levels, rows, own)
    dag, steps = private_k2(engine, columns, order, limit, CountScore(score))
    return (
        dag.edges,
        tuple(steps),
        [(o.what, o.to, np.asarray(o.value)) for o in engine.transcript],
    )


def best(
    engine: SecretSharingRuntime,
    owners: list[int],
    levels: list[int],
    rows: int,
    order: list[str],
    limit: int,
    score: str,
    own: Values,
) -> Any:
    engine.transcript.clear()
    columns = _columns(engine, owners, levels, rows, own)
    dag = structure_only(engine, columns, order, limit, CountScore(score))
    return dag.edges, [(o.what, o.to, np.asarray(o.value)) for o in engine.transcript]


def masked(
    engine: SecretSharingRuntime,
    owners: list[int],
    levels: list[int],
    order: list[str],
    knower: int,
    people: int,
    own: Values,
    present: NDArray[np.bool_],
) -> Any:
    """The best network of people whom one party alone knows."""
    engine.transcript.clear()
    described = [
        SharedColumn(f"x{i}", o, k) for i, (o, k) in enumerate(zip(owners, levels, strict=True))
    ]
    rows = len(present)
    columns = Columns(
        described, own, engine.rank, rows, knower=knower, present=present, people=people
    )
    found = [structure_only(engine, columns, order, 2, CountScore(s)) for s in ("k2", "bic")]
    return [dag.edges for dag in found], [len(o.value) for o in engine.transcript]


def tables(
    engine: SecretSharingRuntime,
    owners: list[int],
    levels: list[int],
    rows: int,
    edges: Any,
    least: int,
    own: Values,
) -> Any:
    engine.transcript.clear()
    columns = _columns(engine, owners, levels, rows, own)
    found = private_tables(engine, columns, FoundNetwork(columns.names, edges), least)
    return {n: t.counts for n, t in found.items()}, [(o.to, o.value) for o in engine.transcript]


def moments(engine: SecretSharingRuntime, owners: list[int], rows: int, own: Values) -> Any:
    columns = _columns(engine, owners, [0] * len(owners), rows, own)
    found = opened_moments(engine, columns)
    return Moments(Schema.continuous(columns.names), found.n, found.shift, found.sums, found.gram)


def gaussian(
    engine: SecretSharingRuntime,
    owners: list[int],
    rows: int,
    order: list[str],
    limit: int,
    own: Values,
) -> Any:
    engine.transcript.clear()
    columns = _columns(engine, owners, [0] * len(owners), rows, own)
    dag = secret_gaussian_structure(engine, columns, order, limit)
    return dag.edges, [np.asarray(o.value).shape for o in engine.transcript]
