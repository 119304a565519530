"""Which score and which search `learn` uses when the user names none, and why."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from isthmus import samplers, searches
from isthmus.errors import MismatchError, counted
from isthmus.objectives import (
    INDEPENDENCE_TESTS,
    INDEPENDENT_NOISE,
    LOCAL_SCORES,
    LocalScore,
    Objective,
)
from isthmus.objectives.correlations import CORRELATIONS
from isthmus.scores import (
    EBIC,
    K2,
    AdditiveLeastSquares,
    BDeu,
    BGe,
    ChiSquared,
    DegenerateGaussian,
    FisherZ,
    GaussianEBIC,
    IndependentNoise,
    LaggedLeastSquares,
    LeastSquares,
    Logistic,
    MixedLikelihoodRatio,
    Perceptrons,
)
from isthmus.searches import Progress
from isthmus.searches.base import Accepts
from isthmus.statistics import Kind, Schema
from isthmus.verbs.arguments import AnySampler, AnyScore, AnySearch

_EXACT_SECONDS = 1.0
"""An exact search is the default if scoring every family takes less time than this, as estimated
from sizes; bounds on the score make it shorter. See ``benchmarks/exact/costs.py``."""
_SLOW_FAMILY = 5e-3
"""From this many seconds per family of two parents on, a search must score as few families as it
can: one hill climb. See ``tests/verbs/test_default_search.py``."""
_REPEATED_STARTS, _MANY_VARIABLES = 4, 200
"""Starts of Boss per replicate of a bootstrap; a single one with more variables than this."""
_POSTERIOR_SECONDS, _PER_PAIR_OF_SETS = 20.0, 1e-8
"""The exact posterior is the default if it takes less time than this: scoring every family, and
summing over 3^d pairs of sets of variables. See ``benchmarks/posterior/exact.py``."""
MANY_COLUMNS = 2000
"""With more continuous variables, each has few candidates, and rows are kept instead of all pairs
if there are fewer rows than columns. Not tuned: ``benchmarks/large.py`` shows a gain from 1,000."""
_GAMMA = 0.5
"""Weight of the extended term for mixed tables; see the table of false edges in the docs."""
_GAMMA_DISCRETE = 0.75
"""The same for discrete tables; see ``benchmarks/tables/seventeen.py``, and ``benchmarks/
false_edges.py`` for flags that are rarely true: with 0.5 they have false edges."""
_MANY_LEVELS = 50
"""A column with more levels may be an identifier, whose levels occur once. `BDeu` favours its edges
to any other column by about ``log(n) / 2``; see ``tests/verbs/test_ugly_tables.py``."""


_JEFFREYS = 0.5
"""Pseudo-count of `sample`. `BDeu` divides its sample size among all cells, so with many cells its
prior expects rows with one level only: of the pairs that it excluded, 3 to 18% were adjacent. See
``benchmarks/results/posterior-discrete.md``."""


_LOSSES: tuple[tuple[type[AnyScore], str], ...] = (
    (AdditiveLeastSquares, "the search fits nonlinear additive models"),
    (IndependentNoise, "the search tests noise"),
    (LaggedLeastSquares, "the search models lagged effects"),
    (Perceptrons, "the search fits neural networks"),
    (LeastSquares, "the search optimises edge weights"),
)
"""Scores of searches that take no local score, and why each is chosen."""


def choose_score(
    schema: Schema,
    search: AnySearch | None,
    accepts: Accepts | None = None,
    *,
    incomplete: bool = False,
    within_groups: bool = False,
) -> tuple[AnyScore, str]:
    """Choose a score that fits the columns and the search; the second item says why.

    Discrete rows that are incomplete have a likelihood, and no marginal likelihood in closed form.
    Within groups there are moments of indicators instead of counts: tables of each group would lose
    their power if groups are many (``benchmarks/groups``).
    """
    accepts = (LOCAL_SCORES,) if accepts is None else accepts
    discrete = len(schema.of_kind(Kind.DISCRETE))
    if discrete == len(schema):
        columns = "all columns are discrete"
    elif discrete == 0:
        columns = "all columns are continuous"
    else:
        columns = _some_discrete(discrete, len(schema))
    if INDEPENDENCE_TESTS in accepts:
        test: AnyScore = MixedLikelihoodRatio()
        if discrete in (0, len(schema)) and not (discrete and within_groups):
            test = ChiSquared() if discrete else FisherZ()
        return test, columns
    score: AnyScore = GaussianEBIC() if discrete == 0 else DegenerateGaussian(gamma=_GAMMA)
    why, losses = columns, _LOSSES
    if discrete == len(schema) and not within_groups:
        many = max(schema.cardinalities, default=0) > _MANY_LEVELS
        score = EBIC() if incomplete or many else BDeu(gamma=_GAMMA_DISCRETE)
        why = f"{columns}, and one has more than {_MANY_LEVELS} levels" if many else columns
        losses = ((Logistic, columns), *_LOSSES)
    if not score.gives.isdisjoint(accepts):
        return score, why
    for loss, reason in losses:
        if not loss.gives.isdisjoint(accepts):
            return loss(), reason
    raise MismatchError(
        f"{search!r} needs {' or '.join(c.name for c in accepts)}, and no built-in score gives "
        "that. Name a score with score=."
    )


def choose_search(schema: Schema, objective: Objective, *, runs: int = 1) -> tuple[AnySearch, str]:
    """Choose a search for an objective; the second item says why.

    An exact search, if scoring every family takes less than a second, as the objective estimates
    from the sizes of the data: with few variables, as long as a family is cheap. Otherwise the
    heuristic that is the most accurate in the benchmarks of the documentation: a search over
    equivalence classes for discrete tables, a search over orders for the others, a search over
    orders among few candidates for thousands of variables, and a hill climb, which scores the
    fewest families, if one of them takes milliseconds.

    The choice does not depend on where the data are, with one exception: if a source gave tables
    of some sets of variables instead of all of them, a search that looks at every set would ask it
    for more than was agreed, so the search is a heuristic there.

    Parameters
    ----------
    runs
        How often the search will be run, as in a bootstrap.
    """
    local = LOCAL_SCORES.of(objective)
    if INDEPENDENCE_TESTS.of(objective) is not None:
        return searches.PC(), "the score is a test of independence"
    if INDEPENDENT_NOISE.of(objective) is not None:
        return searches.LiNGAM(), "the score is a test of noise"
    if local is None:
        return _continuous_search(objective)
    d = len(local.nodes)
    if local.seconds_for_all() * runs < _EXACT_SECONDS:
        return searches.SubsetDP(), f"{_variables(d)} few enough to search exhaustively"
    if _SLOW_FAMILY < local.seconds(2) < math.inf:
        return searches.HillClimb(restarts=0), "one family of this score takes milliseconds"
    discrete = len(schema.of_kind(Kind.DISCRETE)) == d
    # Tables of an engine are counted on request, for which the search over classes asks least.
    at_hand = CORRELATIONS.of(objective) is not None or (discrete and local.seconds(2) < math.inf)
    if d > MANY_COLUMNS and at_hand:
        return searches.ScreenedBoss(), f"{d:,} variables, so each has few candidates"
    if local.equivalent and discrete:
        return searches.XGES(), "the most accurate search on discrete tables"
    if runs == 1:
        return searches.Boss(), f"the most accurate search for {d} variables"
    starts = _REPEATED_STARTS if d <= _MANY_VARIABLES else 1
    return searches.Boss(starts=starts), f"the most accurate search for {d} variables"


def _continuous_search(objective: Objective) -> tuple[AnySearch, str]:
    candidates: tuple[tuple[AnySearch, str], ...] = (
        (searches.Dynotears(), "the score models lagged effects"),
        (searches.NotearsAdditive(), "the score is a loss of additive models"),
        (searches.NotearsMLP(), "the score is a loss of neural networks"),
        (searches.Notears(), "the score is a smooth loss over edge weights"),
    )
    for search, reason in candidates:
        if any(capability in objective.capabilities for capability in search.accepts):
            return search, reason
    offered = " and ".join(sorted(c.name for c in objective.capabilities))
    raise MismatchError(f"No built-in search accepts {offered}. Name a search with search=.")


def choose_marginal_likelihood(
    schema: Schema,
    within_groups: bool = False,  # noqa: FBT001, FBT002 - as `prepare` passes it
) -> tuple[AnyScore, str]:
    """Choose a score whose exponential is a marginal likelihood; the second item says why."""
    discrete = len(schema.of_kind(Kind.DISCRETE))
    if discrete == len(schema) and not within_groups:
        return K2(pseudo_count=_JEFFREYS), "all columns are discrete"
    if discrete == 0:
        return BGe(), "all columns are continuous"
    mixed = _some_discrete(discrete, len(schema))
    return DegenerateGaussian(), f"{mixed}; it approximates the marginal likelihood, as BIC does"


def choose_sampler(objective: Objective) -> tuple[AnySampler, str]:
    """Choose a sampler by the time that scores of families take; the second item says why."""
    local = LOCAL_SCORES.require(objective)
    d = len(local.nodes)
    if local.seconds_for_all() + _PER_PAIR_OF_SETS * 3.0**d < _POSTERIOR_SECONDS:
        return samplers.ExactPosterior(), f"{_variables(d)} few enough to sum over all graphs"
    reason = f"{d} variables are too many to sum over all graphs"
    if local.seconds(2) <= _SLOW_FAMILY or math.isinf(local.seconds(2)):
        return samplers.PartitionMCMC(), reason
    affordable = (c for c in range(1, d) if _table_seconds(local, c) < _POSTERIOR_SECONDS)
    count = max(affordable, default=1)
    return samplers.PartitionMCMC(candidates=count), f"{reason}, and one family takes milliseconds"


def _table_seconds(score: LocalScore, candidates: int) -> float:
    """Estimate how long it takes to score all subsets of candidates, and each with one more."""
    others = len(score.nodes) - 1 - candidates
    return len(score.nodes) * sum(
        math.comb(candidates, k) * (score.seconds(k) + others * score.seconds(k + 1))
        for k in range(candidates + 1)
    )


def _some_discrete(number: int, columns: int) -> str:
    return f"{number} of {columns} columns {'is' if number == 1 else 'are'} discrete"


def _variables(number: int) -> str:
    return f"{counted(number, 'variable')} {'is' if number == 1 else 'are'}"


# --- A line of progress on the terminal, for searches that take long ----------------------------

_PATIENCE = 1.0


@contextmanager
def reporter_for(
    progress: bool | Callable[[Progress], None] | None,  # noqa: FBT001 - as given to learn
) -> Iterator[Callable[[Progress], None] | None]:
    """Yield a function that shows progress, or None; clear the progress line at the end."""
    if callable(progress):
        yield progress
        return
    if progress is False or (progress is None and not _shows_lines()):
        yield None
        return
    width = 0

    def write(line: str) -> None:
        nonlocal width
        sys.stderr.write("\r" + line.ljust(width))
        sys.stderr.flush()
        width = len(line)

    def show(state: Progress) -> None:
        if progress is None and state.seconds < _PATIENCE:
            return
        done = "" if state.done is None else f", {state.done:.0%}"
        best = "" if math.isnan(state.score) else f", best {state.score:.8g}"
        write(
            f"{state.name}: {state.text}{best}{done}, {state.seconds:.0f} s "
            "(Ctrl-C for the best so far)"
        )

    try:
        yield show
    finally:
        if width:
            sys.stderr.write("\r" + " " * width + "\r")
            sys.stderr.flush()


def _shows_lines() -> bool:
    """Whether standard error is a terminal, or a notebook, which overwrites lines like one."""
    return sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel")
