"""Which members of an equivalence class an intervention must be answered for."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice

from isthmus.errors import GraphError
from isthmus.graphs import CPDAG, DAG, PDAG
from isthmus.graphs.names import listed
from isthmus.graphs.possible_parents import (
    is_identified,
    parent_configurations,
    possible_descendants,
)
from isthmus.plurals import a_type

MAX_CONFIGURATIONS = 1024
"""Maximum number of choices of the parents of the variables that are set: all subsets of ten
neighbours. Each of them takes a junction tree, some milliseconds."""


def check_class(dag: DAG, cpdag: CPDAG | PDAG | None) -> None:
    """Raise a GraphError if a graph is not a member of an equivalence class."""
    if cpdag is None:
        return
    if not isinstance(cpdag, CPDAG | PDAG):
        raise GraphError(f"cpdag must be a CPDAG or a PDAG; got {a_type(cpdag)}.")
    same = set(cpdag.nodes) == set(dag.nodes) and cpdag.skeleton() == dag.skeleton()
    if not same or not all(dag.has_edge(*edge) for edge in cpdag.directed):
        raise GraphError("The graph of the network is not a member of the class in cpdag.")


def members_to_ask(
    dag: DAG,
    cpdag: CPDAG | PDAG | None,
    do: Collection[str],
    asked: Collection[str],
) -> tuple[DAG, ...]:
    """Return the graphs for which an intervention must be answered; none if there are too many.

    Parameters
    ----------
    dag
        The graph of the network, which is the only one if all members give the same answer.
    cpdag
        The equivalence class; None if the graph is causal by assumption.
    do
        The variables that are set.
    asked
        Targets and evidence.
    """
    if cpdag is None or not do or is_identified(cpdag, do, asked):
        return (dag,)
    graphs = tuple(islice(parent_configurations(cpdag, do), MAX_CONFIGURATIONS + 1))
    return () if len(graphs) > MAX_CONFIGURATIONS else graphs


def reason_for_range(do: Collection[str], choices: int, more: str = "") -> str:
    """Return why an intervention has no single answer."""
    text = f"the data do not determine the directions of all edges at {listed(do)}."
    if choices:
        return f"{text} Bounds over {choices} possible sets of parents:"
    return (
        f"{text} The range was not computed{more}. Add background knowledge, or ask "
        "solution.effect for the range of an effect."
    )


def note_without_path(
    cpdag: CPDAG | PDAG | None, do: Collection[str], targets: Collection[str]
) -> str:
    """Return what to say if no intervention has a path to the targets in a learned graph."""
    if cpdag is None or not do:
        return ""
    reached = {v for cause in do for v in possible_descendants(cpdag, cause)}
    if reached & {*targets}:
        return ""
    return (
        f"The learned graph has no directed path from {listed(do)} to {listed(targets)}, so the "
        "intervention changes nothing here. The search may have missed an edge: solution.effect "
        "compares the levels or values in the data."
    )
