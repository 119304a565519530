"""Results as labelled tables: one row per probability, edge or variable."""

from __future__ import annotations

from typing import Any

from isthmus.errors import ArgumentError, MismatchError
from isthmus.models import DiscreteNetwork
from isthmus.plurals import a_type


def to_frame(result: object, like: object = None, *, node: str | None = None) -> Any:
    """Return a result as a table with names and levels, as its method ``to_frame`` does.

    ======================================= ============================================
    result                                  one row per
    ======================================= ============================================
    answer to a query                       combination of levels, or variable
    discrete network, with ``node``         cell of the probability table of this node
    Gaussian network                        edge, with its coefficient
    solution                                edge, and who decides its direction, by what margin
    posterior                               edge that occurs, with its probability
    bootstrap (ensemble)                    edge that occurs, with its share
    matrix of probabilities of edges        pair of nodes
    effect, or `effects` of a posterior     estimate
    forecast                                step and variable, or level
    cross-validation                        fold
    changes                                 mechanism
    validation                              implied independence, and edge
    reading                                 column
    ======================================= ============================================

    Parameters
    ----------
    result
        What to show. Its own documentation says which errors it has.
    like
        A table of pandas, Polars or PyArrow, such as the one that was learned from: the answer is
        one of the same library. For a dictionary of columns, it is a dictionary. By default it is a
        table of pandas; of Polars or PyArrow, if the program uses these and not pandas.
    node
        The node of a discrete network.

    Examples
    --------
    >>> import isthmus as ist
    >>> network = ist.learn(ist.datasets.asia(rows=1000, seed=1)).fit()
    >>> answer = network.query("lung", evidence={"xray": "yes"})
    >>> sorted(ist.to_frame(answer, like={}))
    ['lung', 'probability', 'sampling_error']
    """
    if isinstance(result, DiscreteNetwork):
        if node is None:
            raise ArgumentError(
                f"Name the node whose table is asked for: node={result.dag.nodes[0]!r}."
            )
        return result.to_frame(node, like)
    if node is not None:
        raise ArgumentError(f"node is for discrete networks only; the result is {a_type(result)}.")
    make = getattr(result, "to_frame", None)
    if make is None:
        raise MismatchError(
            f"There is no table for {a_type(result)}. Give an answer to a query, a discrete or "
            "Gaussian network, a solution, a posterior or a bootstrap."
        )
    return make(like)
