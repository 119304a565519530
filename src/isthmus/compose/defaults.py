"""Which score and which search `learn` uses when the user names none, and why."""

from __future__ import annotations

from isthmus.compose.arguments import AnySampler, AnyScore, AnySearch, check_search
from isthmus.errors import MismatchError
from isthmus.objectives import LOCAL_SCORES, Objective
from isthmus.plurals import counted
from isthmus.samplers import ExactPosterior, PartitionMCMC
from isthmus.scores import (
    EBIC,
    AdditiveLeastSquares,
    BDeu,
    BGe,
    DegenerateGaussian,
    GaussianEBIC,
    LaggedLeastSquares,
    LeastSquares,
    Logistic,
    Perceptrons,
)
from isthmus.searches import (
    XGES,
    Boss,
    Dynotears,
    Notears,
    NotearsAdditive,
    NotearsMLP,
    SubsetDP,
)
from isthmus.searches.base import Accepts
from isthmus.statistics import Kind, Regimes, Schema

_EXHAUSTIVE = 14
"""Up to this many variables, all graphs are searched; see ``benchmarks/exact/default.py``."""
_SEVERAL_STARTS = 200
"""Up to this many variables, several starts of Boss take seconds."""
_EXACT_POSTERIOR, _EXACT_POSTERIOR_DISCRETE = 18, 16
"""Up to this many variables, the posterior is exact: some seconds. Discrete families take longer to
score. See ``benchmarks/posterior/exact.py``."""
_EXACT_POSTERIOR_SLOW, _SLOW_FAMILIES = 8, 4_000
"""The same for scores of which a family takes milliseconds, and how many families to score with
more variables: below a minute."""
_GAMMA = 0.5
"""Weight of the extended term for mixed tables; see the table of false edges in the docs."""


def choose_score(
    schema: Schema, search: AnySearch | None, accepts: Accepts | None = None
) -> tuple[AnyScore, str]:
    """Choose a score that fits the columns and the search; the second item says why."""
    accepts = (LOCAL_SCORES,) if accepts is None else accepts
    discrete = len(schema.of_kind(Kind.DISCRETE))
    if discrete == len(schema):
        columns = "all columns are discrete"
    elif discrete == 0:
        columns = "all columns are continuous"
    else:
        columns = _some_discrete(discrete, len(schema))
    candidates: list[tuple[AnyScore, str]] = []
    if discrete == len(schema):
        candidates += [(EBIC(), columns), (Logistic(), columns)]
    elif discrete == 0:
        candidates.append((GaussianEBIC(), columns))
    else:
        candidates.append((DegenerateGaussian(gamma=_GAMMA), columns))
    candidates += [
        (AdditiveLeastSquares(), "the search fits nonlinear additive models"),
        (LaggedLeastSquares(), "the search models lagged effects"),
        (Perceptrons(), "the search fits neural networks"),
        (LeastSquares(), "the search optimises edge weights"),
    ]
    for score, reason in candidates:
        if any(capability in score.gives for capability in accepts):
            return score, reason
    raise MismatchError(
        f"{search!r} needs {' or '.join(c.name for c in accepts)}, and no built-in score gives "
        "that. Name a score with score=."
    )


def choose_search(schema: Schema, score: AnyScore, objective: Objective) -> tuple[AnySearch, str]:
    """Choose a search for an objective; the second item says why.

    The choice follows the benchmarks in the documentation: a search over equivalence classes for
    discrete tables, a search over orders for the others, and an exact search for few variables.
    Discrete tables are not searched exactly by default: counting every set of variables would ask
    a remote source for more than is needed.
    """
    preferred = score.preferred_search()
    if preferred is not None:
        return check_search(preferred), "the score suggests it"
    if LOCAL_SCORES.of(objective) is None:
        return _continuous_search(objective)
    d = len(schema)
    all_discrete = len(schema.of_kind(Kind.DISCRETE)) == d
    if objective.equivalent and all_discrete:
        return XGES(), "the most accurate search on discrete tables"
    if d <= _EXHAUSTIVE and (not all_discrete or score.needs is Regimes):
        return SubsetDP(), f"{_variables(d)} few enough to search exhaustively"
    if d <= _SEVERAL_STARTS:
        return Boss(), f"the most accurate search for {d} variables, from several starts"
    return Boss(starts=1), f"the most accurate search for {d} variables, from one start"


def _continuous_search(objective: Objective) -> tuple[AnySearch, str]:
    candidates: tuple[tuple[AnySearch, str], ...] = (
        (Dynotears(), "the score models lagged effects"),
        (NotearsAdditive(), "the score is a loss of additive models"),
        (NotearsMLP(), "the score is a loss of neural networks"),
        (Notears(), "the score is a smooth loss over edge weights"),
    )
    for search, reason in candidates:
        if any(capability in objective.capabilities for capability in search.accepts):
            return search, reason
    offered = " and ".join(sorted(c.name for c in objective.capabilities))
    raise MismatchError(f"No built-in search accepts {offered}. Name a search with search=.")


def choose_marginal_likelihood(schema: Schema) -> tuple[AnyScore, str]:
    """Choose a score whose exponential is a marginal likelihood; the second item says why."""
    discrete = len(schema.of_kind(Kind.DISCRETE))
    if discrete == len(schema):
        return BDeu(), "all columns are discrete"
    if discrete == 0:
        return BGe(), "all columns are continuous"
    mixed = _some_discrete(discrete, len(schema))
    return DegenerateGaussian(), f"{mixed}; it approximates the marginal likelihood, as BIC does"


def choose_sampler(
    schema: Schema, objective: Objective, score: AnyScore | None = None
) -> tuple[AnySampler, str]:
    """Choose a sampler by the number of variables and the score; the second item says why."""
    d = len(objective.nodes)
    if score is not None and score.slow and d > _EXACT_POSTERIOR_SLOW:
        count = max(c for c in range(1, d) if c == 1 or d * 2**c * (d - c) <= _SLOW_FAMILIES)
        reason = f"one family of this score takes milliseconds, and {d} variables have too many"
        return PartitionMCMC(candidates=count), reason
    most = _EXACT_POSTERIOR_DISCRETE if schema.of_kind(Kind.DISCRETE) else _EXACT_POSTERIOR
    if d <= most:
        return ExactPosterior(), f"{_variables(d)} few enough to sum over all graphs"
    return PartitionMCMC(), f"{d} variables are too many to sum over all graphs"


def _some_discrete(number: int, columns: int) -> str:
    return f"{number} of {columns} columns {'is' if number == 1 else 'are'} discrete"


def _variables(number: int) -> str:
    return f"{counted(number, 'variable')} {'is' if number == 1 else 'are'}"
