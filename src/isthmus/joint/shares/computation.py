"""From the request of a study to the engine, and from what it opened to plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isthmus.graphs import DAG
from isthmus.joint.methods.private_k2 import private_k2, structure_only
from isthmus.joint.shares.columns import Columns, SharedColumn
from isthmus.joint.shares.engine import SecretSharingRuntime, Witness
from isthmus.joint.shares.private_tables import OWN, private_tables
from isthmus.joint.shares.requests import CrossMoments, PrivateK2Request, StructureOnlyRequest
from isthmus.joint.shares.secret_moments import opened_moments, secret_gaussian_structure
from isthmus.joint.shares.secret_scores import CountScore

if TYPE_CHECKING:
    from spu.libspu.link import Context

Task = Mapping[str, Any]
"""What the study says about a request, in plain data."""


def compute(
    link: Context,
    task: Task,
    values: NDArray[np.float64],
    witness: Witness,
    present: NDArray[np.bool_] | None = None,
) -> dict[str, Any]:
    """Compute a request together with the other party.

    Parameters
    ----------
    task
        The computation, the same at both parties except for the names of the own columns.
    values
        The values of the own columns, one row per common person; if only one party knows who they
        are, one row per person of the other party.
    present
        Which rows are of people in common, at the party that alone knows it; by default all.

    Returns
    -------
    dict
        The result in plain data, the same at both parties except for `OWN`.
    """
    levels, holders = task["levels"], task["holders"]
    columns = Columns(
        [SharedColumn(name, holders[name], levels[name]) for name in task["order"]],
        {name: values[:, i] for i, name in enumerate(task["own"])},
        link.rank,
        len(values),
        knower=task["knower"],
        present=present,
        people=task["people"],
    )
    engine = SecretSharingRuntime(link, witness, known=task["known"])
    return _COMPUTATIONS[task["request"]](engine, columns, task)


def _private_k2(engine: SecretSharingRuntime, columns: Columns, task: Task) -> dict[str, Any]:
    found = private_k2(engine, columns, task["order"], task["max_parents"], _score(task))
    result = _network(found.dag) | {"steps": [list(step) for step in found.steps]}
    return result | _tables(engine, columns, found.dag, task)


def _structure_only(engine: SecretSharingRuntime, columns: Columns, task: Task) -> dict[str, Any]:
    if any(task["levels"].values()):
        dag = structure_only(engine, columns, task["order"], task["max_parents"], _score(task))
        return _network(dag) | _tables(engine, columns, dag, task)
    dag = secret_gaussian_structure(engine, columns, task["order"], task["max_parents"])
    return _network(dag)


def _cross_moments(engine: SecretSharingRuntime, columns: Columns, _task: Task) -> dict[str, Any]:
    found = opened_moments(engine, columns)
    return {
        "n": found.n,
        "shift": found.shift.tolist(),
        "sums": found.sums.tolist(),
        "gram": found.gram.tolist(),
    }


def _tables(engine: SecretSharingRuntime, columns: Columns, dag: DAG, task: Task) -> dict[str, Any]:
    """Return the tables of this party's own variables, if the study says so."""
    if not task["tables"]:
        return {}
    found = private_tables(engine, columns, dag, task["minimum_cell"], task["parties"])
    return {OWN: [table.to_dict() for table in found.values()]}


_COMPUTATIONS: dict[str, Callable[[SecretSharingRuntime, Columns, Task], dict[str, Any]]] = {
    PrivateK2Request.name: _private_k2,
    StructureOnlyRequest.name: _structure_only,
    CrossMoments.name: _cross_moments,
}


def _score(task: Task) -> CountScore:
    return CountScore(task["score"].lower(), task["ess"])


def _network(dag: DAG) -> dict[str, Any]:
    return {"parents": {name: sorted(dag.parents(name)) for name in dag.nodes}}
