"""Compiled kernels."""

from collections.abc import Callable, Sequence
import enum
import types
from typing import Annotated, overload

import numpy
from numpy.typing import NDArray


def source_hash() -> str:
    """SHA-256 of the sources that this module was compiled from."""

class CountingMethod(enum.Enum):
    FASTEST = 0

    BITMAPS = 1

    HISTOGRAMS = 2

@overload
def tally_sets(codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, cardinalities: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], sets: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], method: CountingMethod = CountingMethod.FASTEST) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]]: ...

@overload
def tally_sets(codes: Annotated[NDArray[numpy.uint16], dict(shape=(None, None), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, cardinalities: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], sets: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], method: CountingMethod = CountingMethod.FASTEST) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]]:
    """
    Count a table for each row of ``sets``: where each starts, and all cells.
    """

@overload
def tally_all(codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, cardinalities: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], size: int, method: CountingMethod = CountingMethod.FASTEST) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]]: ...

@overload
def tally_all(codes: Annotated[NDArray[numpy.uint16], dict(shape=(None, None), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, cardinalities: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], size: int, method: CountingMethod = CountingMethod.FASTEST) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]]:
    """
    Count the tables of all sets of ``size`` variables, in lexicographic order.
    """

class ScoreFailed(RuntimeError):
    pass

class LocalScore:
    """A decomposable objective to be maximised."""

    @property
    def size(self) -> int:
        """Number of variables."""

    def extensions(self, child: int, parents: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], candidates: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]:
        """Score ``parents`` and each of its one-element extensions."""

    def reductions(self, child: int, parents: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], first: int = 0) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]:
        """Score ``parents`` without each one from ``first`` on."""

    @property
    def handle(self) -> tuple[int, int]:
        """Address of a C function and of its data, valid as long as this object."""

class GaussianScore(LocalScore):
    @overload
    def __init__(self, *, correlation: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], log_scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], constant: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], log_variance: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], log_determinant: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], squares: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], tolerance: float) -> None: ...

    @overload
    def __init__(self, *, whole: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], removed: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], spread: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], log_scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], constant: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], log_variance: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], log_determinant: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], squares: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], tolerance: float) -> None: ...

class GaussianBlockScore(LocalScore):
    def __init__(self, *, correlation: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], base: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], half_n: float, penalty: float, tolerance: float) -> None: ...

class CurveScore(LocalScore):
    def __init__(self, *, correlation: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], own: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], degrees: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], base: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], coefficient_price: float, parent_prices: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], column_prices: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], allowed: Annotated[NDArray[numpy.bool_], dict(shape=(None, None), order='C', device='cpu', writable=False)], half_n: float, tolerance: float) -> None: ...

    def degrees(self, child: int, parents: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
        """Degree of the functions of each parent."""

    def without_functions(self, child: int, parents: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], straight: int) -> float:
        """Score of a family in which one parent is held to its line."""

class ForeignScore(LocalScore):
    def __init__(self, size: int, function: int, data: int, keep: object | None = None) -> None:
        """Wrap a C function; ``keep`` lives as long as this object."""

class PenalisedScore(LocalScore):
    def __init__(self, inner: LocalScore, prices: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], factor: float = 1.0) -> None: ...

class PriorScore(LocalScore):
    def __init__(self, inner: LocalScore, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

class ChildScores(LocalScore):
    def __init__(self, scores: tuple[LocalScore, ...]) -> None: ...

class PythonScore(LocalScore):
    def __init__(self, size: int, function: Callable[[int, tuple[int, ...]], float | types.EllipsisType]) -> None: ...

class DiscreteForm(enum.Enum):
    """Which function of counts a discrete score adds up."""

    LIKELIHOOD = 0
    """BIC and AIC; penalty per free parameter."""

    BDEU = 1
    """BDeu; equivalent sample size."""

    K2 = 2
    """K2; pseudo-count of a cell."""

    SUPPORT = 3
    """Number of combinations seen; no parameter."""

class DiscreteScore(LocalScore):
    @overload
    def __init__(self, codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, cardinalities: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], form: DiscreteForm, parameter: float, *, bitmaps: bool = True) -> None: ...

    @overload
    def __init__(self, codes: Annotated[NDArray[numpy.uint16], dict(shape=(None, None), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, cardinalities: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], form: DiscreteForm, parameter: float, *, bitmaps: bool = True) -> None:
        """Score coded rows; ``bitmaps=False`` counts by histograms only."""

class IncompleteScore(LocalScore):
    def __init__(self, codes: Annotated[NDArray[numpy.uint16], dict(shape=(None, None), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, cardinalities: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], penalty: float, prices: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None:
        """
        Score coded rows in which the cardinality of a variable stands for a missing value.
        """

class XgesRun:
    def __init__(self, score: LocalScore, *, required: Annotated[NDArray[numpy.bool_], dict(shape=(None, None), order='C', device='cpu', writable=False)], forbidden: Annotated[NDArray[numpy.bool_], dict(shape=(None, None), order='C', device='cpu', writable=False)], max_parents: int | None, extended: bool) -> None: ...

    def step(self, seconds: float = 0.01) -> bool:
        """Work for so long at most; return whether the search has ended."""

    def best(self) -> tuple[list[list[int]], float]:
        """
        Parents of each variable in a member of the best class so far, and its score.
        """

    @property
    def finished(self) -> bool: ...

    @property
    def nodes(self) -> int: ...

    @property
    def changes(self) -> int: ...

    @property
    def trials_left(self) -> int: ...

    @property
    def evaluations(self) -> int: ...

    @property
    def guarded(self) -> bool: ...

    @property
    def score(self) -> float: ...

class BossRun:
    def __init__(self, score: LocalScore, *, required: Annotated[NDArray[numpy.bool_], dict(shape=(None, None), order='C', device='cpu', writable=False)], forbidden: Annotated[NDArray[numpy.bool_], dict(shape=(None, None), order='C', device='cpu', writable=False)], max_parents: int | None, tolerance: float) -> None: ...

    class Stage(enum.Enum):
        WANTS_ORDER = 0

        SETTLING = 1

        WANTS_TURNS = 2

        SWEEPING = 3

    def start(self, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def sweep(self, turns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def step(self, seconds: float = 0.01) -> BossRun.Stage:
        """Work until it wants something, for so long at most."""

    def best(self) -> tuple[list[list[int]], float] | None: ...

    def parents(self) -> list[list[int]]:
        """Parents of each variable in the current order."""

    @property
    def order(self) -> list[int]: ...

    @property
    def best_order(self) -> list[int]: ...

    @property
    def settled(self) -> bool: ...

    @property
    def stage(self) -> BossRun.Stage: ...

    @property
    def sweeps(self) -> int: ...

    @property
    def moved(self) -> int: ...

    @property
    def families(self) -> int: ...

    @property
    def score(self) -> float: ...

def step_together(runs: Sequence[BossRun], seconds: float, jobs: int) -> None:
    """Step several runs at the same time, in up to ``jobs`` threads."""

class BarrierSweeps:
    def __init__(self, moments: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], *, open: Annotated[NDArray[numpy.bool_], dict(shape=(None, None), order='C', device='cpu', writable=False)], radius: float) -> None: ...

    def begin(self, turns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], *, scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], penalty: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], barrier: float, tolerance: float) -> None:
        """Begin a sweep over the columns in these turns."""

    def step(self, seconds: float = 0.01) -> bool:
        """Work for so long at most; return whether the sweep is finished."""

    def incoming(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C')]:
        """Copy the weights, [to, from]."""

    def inverse_error(self) -> float: ...

    def set_inverse(self, inverse: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

    @property
    def done(self) -> int: ...

    @property
    def moved(self) -> float: ...

class GroupDescent:
    def __init__(self, features: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], *, starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], steeps: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def begin(self, coefficients: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], *, cross: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], penalties: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], causes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], tolerance: float, limit: int) -> None:
        """Start from these coefficients."""

    def step(self, seconds: float = 0.01) -> bool:
        """Work for so long at most; return whether the end is reached."""

    def coefficients(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]:
        """Copy the coefficients reached."""

    @property
    def sweeps(self) -> int: ...

class OrderedLassos:
    def __init__(self, moments: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], *, scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], penalty: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], open: Annotated[NDArray[numpy.bool_], dict(shape=(None, None), order='C', device='cpu', writable=False)], required: Annotated[NDArray[numpy.bool_], dict(shape=(None, None), order='C', device='cpu', writable=False)], tolerance: float) -> None: ...

    def start(self, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], incoming: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

    def sweep(self, turns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], *, least: float, worth: float) -> None: ...

    def step(self, seconds: float = 0.01) -> bool:
        """Work for so long at most; return whether nothing is left to do."""

    def order(self) -> list[int]: ...

    def incoming(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C')]:
        """Copy the weights, [to, from]."""

    def values(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]: ...

    def stirred(self) -> list[int]: ...

    @property
    def settled(self) -> int: ...

    @property
    def moved(self) -> int: ...

    @property
    def fell(self) -> float: ...

class ShrinkingRegression:
    def __init__(self, moments: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], child: int, parents: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], removals: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], tolerance: float) -> None: ...

    def step(self, seconds: float = 0.01) -> bool:
        """Work for so long at most; return whether all are removed."""

    def shares(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]: ...

    def weights(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]: ...

def reachable(edges: Annotated[NDArray[numpy.bool_], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.bool_], dict(shape=(None, None), order='C')]:
    """
    Return for a graph [from, to] which variable reaches which along a path.
    """

def acyclic_edges(*, required: Annotated[NDArray[numpy.bool_], dict(shape=(None, None), order='C', device='cpu', writable=False)], sources: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], targets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[list[bool], list[int]]:
    """
    Tell which edges close no cycle with those before, and order variables along them.
    """

def regression(moments: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], child: int, parents: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], tolerance: float) -> tuple[float, Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]]:
    """
    Return the share of the child's variance that its parents leave, and their weights.
    """

class Decomposition:
    """Splits a score table into components that can be solved alone."""

    def __init__(self, starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], sets: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], *, slack: float = 0.0) -> None: ...

    def step(self, seconds: float = 0.01) -> bool:
        """Go on for so long at most; return whether it is done."""

    def components(self) -> list:
        """
        Nodes of each component, then starts, sets over their positions, scores, and lines in the table.
        """

    @property
    def done(self) -> bool: ...

class ScoreBound:
    """An upper bound on the score of every superset of a parent set."""

    def __init__(self, *, top: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], levels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], factor: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], support: LocalScore | None, gain: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)]) -> None: ...

    @property
    def size(self) -> int:
        """Number of variables."""

class TableBuilder:
    """Builds a score table, one time slice at a time."""

    def __init__(self, score: LocalScore, bound: ScoreBound | None, *, required: Annotated[NDArray[numpy.bool_], dict(shape=(None, None), order='C', device='cpu', writable=False)], forbidden: Annotated[NDArray[numpy.bool_], dict(shape=(None, None), order='C', device='cpu', writable=False)], max_parents: int | None, slack: float, children: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, quota: int | None = None, jobs: int = 1) -> None: ...

    def step(self, seconds: float = 0.01) -> bool:
        """Go on for so long at most; return whether all children are done."""

    def hurry(self) -> None:
        """Turn the children that are not done to promising sets."""

    def skip(self) -> None:
        """End the children under way with what is there."""

    def close(self) -> None:
        """End the listing; further steps complete the table with small sets."""

    def table(self) -> tuple:
        """Return starts, sets and scores; the builder must be ready."""

    def so_far(self) -> tuple:
        """Return the same for the children that have begun, as far as they are."""

    @property
    def done(self) -> bool: ...

    @property
    def ready(self) -> bool: ...

    @property
    def complete(self) -> bool: ...

    @property
    def finished(self) -> int: ...

    @property
    def children(self) -> int: ...

    @property
    def scored(self) -> int: ...

class OrderGraph:
    """A* on the order graph of at most 64 nodes."""

    def __init__(self, starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], masks: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], *, groups: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], known: float, slack: float | None, max_states: int) -> None: ...

    def step(self, seconds: float = 0.01) -> bool:
        """Go on for so long at most; return whether it is done."""

    def lines(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
        """Line of each node in the graph that was found; empty if none is."""

    def closed(self) -> tuple:
        """
        States that were expanded, as masks, and the best score of the nodes in them.
        """

    def value(self, placed: int) -> float | None:
        """
        Best score of the nodes in a mask; None if that state was not expanded.
        """

    @property
    def done(self) -> bool: ...

    @property
    def gave_up(self) -> bool: ...

    @property
    def searching(self) -> bool:
        """Whether the patterns are filled."""

    @property
    def expanded(self) -> int: ...

    @property
    def states(self) -> int: ...

    @property
    def known(self) -> float:
        """Score of the best graph known."""

    @property
    def bound(self) -> float:
        """What the best graph can score at most."""

class SubsetDP:
    """Dynamic programming over all subsets of the nodes."""

    def __init__(self, starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], masks: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def step(self, seconds: float = 0.01) -> bool:
        """Go on for so long at most; return whether all subsets are solved."""

    def lines(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]:
        """Line of each node in the best graph; empty before the end."""

    @property
    def solved(self) -> int: ...

    @property
    def done(self) -> bool: ...

class ClusterSearch:
    """Finds clusters that a fractional choice of parent sets violates."""

    def __init__(self, starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], sets: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], amounts: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], *, first: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], second: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], most: int, limit: float) -> None: ...

    def step(self, seconds: float = 0.01) -> bool:
        """Go on for so long at most; return whether all pairs were tried."""

    def found(self) -> tuple:
        """
        Clusters as sets of bits, and their sums, in the order in which they were found.
        """

    @property
    def done(self) -> bool: ...

class ExactPosterior:
    """Exact probabilities of edges and of ancestor relations."""

    def __init__(self, score: LocalScore, *, required: Annotated[NDArray[numpy.bool_], dict(shape=(None, None), order='C', device='cpu', writable=False)], forbidden: Annotated[NDArray[numpy.bool_], dict(shape=(None, None), order='C', device='cpu', writable=False)], max_parents: int | None) -> None: ...

    def step(self, seconds: float = 0.01) -> bool:
        """Go on for so long at most; return whether all is done."""

    def edges(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C')]:
        """Entry [u, v] is the probability of the edge u -> v."""

    def ancestors(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C')]:
        """Entry [u, v] is the probability of a directed path from u to v."""

    @property
    def done(self) -> bool: ...

    @property
    def progress(self) -> float:
        """Share of the work that is done."""

    @property
    def log_total(self) -> float:
        """Logarithm of the sum of the weights of all graphs."""

    @property
    def error(self) -> float:
        """How far sums of probabilities are from one."""

    @property
    def sets(self) -> int:
        """Number of sets that were not left out."""

class ExactSampler:
    """Independent draws from the exact posterior."""

    def __init__(self, posterior: ExactPosterior, seed: int) -> None: ...

    def step(self, draws: int, seconds: float = 0.01) -> bool:
        """
        Draw for at most this many seconds; return whether the number of draws is reached.
        """

    def parents(self) -> Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C')]:
        """Parents of each node in each draw, as bits."""

    def scores(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]:
        """Logarithm of the weight of each draw."""

    @property
    def draws(self) -> int:
        """Number of draws."""

class HillClimb:
    def __init__(self, score: LocalScore, *, required: Annotated[NDArray[numpy.bool_], dict(shape=(None, None), order='C', device='cpu', writable=False)], forbidden: Annotated[NDArray[numpy.bool_], dict(shape=(None, None), order='C', device='cpu', writable=False)], max_parents: int | None, tabu: int, patience: int, restarts: int, seed: int | None) -> None: ...

    def start(self, parents: Sequence[Sequence[int]], *, parent: int, child: int, restarts: int, nearby: bool) -> None:
        """
        Begin anew from this graph, without removing or reversing one edge of it.
        """

    def step(self, seconds: float = 0.01) -> bool:
        """Search for at most this many seconds; return whether it is done."""

    def best(self) -> tuple[list[list[int]], float]:
        """Return the parents and the score of the best graph so far."""

    @property
    def changes(self) -> int: ...

    @property
    def climbs(self) -> int: ...

    @property
    def scored(self) -> int: ...

    @property
    def score(self) -> float: ...

class ScoreLines:
    """A score table with an index; the arrays must not change."""

    def __init__(self, starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], sets: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def prepare(self, seconds: float = 0.01) -> bool:
        """Make the index; return whether it is done."""

    def needed(self) -> Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C')]:
        """For each node the set of those in all its parent sets."""

    @property
    def size(self) -> int:
        """Number of nodes."""

class TableRun:
    """An order over a score table, improved job by job."""

    def __init__(self, table: ScoreLines, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def reset(self, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Begin to score another order."""

    def sweep(self, firsts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], size: int = 1) -> None:
        """Begin to move the windows that begin with these nodes."""

    def select(self) -> None:
        """Begin to let nodes choose acyclic parents, the last one first."""

    def step(self, seconds: float = 0.01) -> bool:
        """Go on for so long at most; return whether the job is done."""

    @property
    def done(self) -> bool: ...

    @property
    def order(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]: ...

    @property
    def lines(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]: ...

    @property
    def total(self) -> float: ...

    @property
    def gained(self) -> float: ...

    @property
    def changed(self) -> bool: ...

class SwapSearch:
    """Swaps of neighbours, the best one each time."""

    def __init__(self, table: ScoreLines, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], *, memory: int, patience: int, most: int | None = None) -> None: ...

    def step(self, seconds: float = 0.01) -> bool:
        """Go on for so long at most; return whether it has ended."""

    @property
    def order(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]: ...

    @property
    def score(self) -> float: ...

    @property
    def moves(self) -> int: ...

class TableWalks:
    """Walks through the order graph of a score table."""

    def __init__(self, table: ScoreLines, walks: int) -> None: ...

    def restart(self) -> None: ...

    def take(self, actions: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]:
        """Place a node in each walk; return the rewards."""

    def allowed(self) -> Annotated[NDArray[numpy.bool_], dict(shape=(None, None), order='C')]:
        """Mark the nodes that can be placed next in each walk."""

class FamilyTables:
    def __init__(self, score: LocalScore, *, required: Annotated[NDArray[numpy.bool_], dict(shape=(None, None), order='C', device='cpu', writable=False)], forbidden: Annotated[NDArray[numpy.bool_], dict(shape=(None, None), order='C', device='cpu', writable=False)], candidates: Annotated[NDArray[numpy.bool_], dict(shape=(None, None), order='C', device='cpu', writable=False)], outside: bool, max_parents: int | None, previous: FamilyTables | None) -> None: ...

    def step(self, seconds: float, jobs: int) -> bool:
        """Score for at most this many seconds; return whether it is done."""

    def log_sum(self, node: int, allowed: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], wanted: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None) -> float:
        """
        Logarithm of the weight of all parent sets within ``allowed``; with ``wanted``, of those with a member in it.
        """

    @property
    def size(self) -> int: ...

    @property
    def built(self) -> int: ...

    @property
    def families(self) -> int: ...

class Space(enum.Enum):
    ORDERS = 0

    PARTITIONS = 1

class SamplingRun:
    def __init__(self, tables: FamilyTables, *, space: Space, starts: Annotated[NDArray[numpy.uint32], dict(shape=(None, None), order='C', device='cpu', writable=False)], seeds: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], levels: int, warmup: int, thin: int, draws: int) -> None: ...

    def step(self, seconds: float, jobs: int) -> bool:
        """Sample for at most this many seconds; return whether it is done."""

    def draws(self, chain: int) -> tuple[Annotated[NDArray[numpy.uint64], dict(shape=(None, None, None), order='C')], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]]:
        """Parents of each node in each draw so far, and the scores of the draws."""

    def levels(self, chain: int) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]]:
        """Heats, and the share of accepted exchanges between neighbours."""

    def edges(self, chain: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C')]:
        """
        Edge probabilities given the states since the warm-up, averaged; one row per child.
        """

    @property
    def chains(self) -> int: ...

    @property
    def rounds(self) -> int: ...

    @property
    def total_rounds(self) -> int: ...

def move_probabilities(tables: FamilyTables, space: Space, labels: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], move: int, heat: float) -> tuple[Annotated[NDArray[numpy.uint32], dict(shape=(None, None), order='C')], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]]:
    """
    States after one move, and their probabilities; for tests with up to five nodes.
    """

def graph_probabilities(tables: FamilyTables, space: Space, labels: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C')], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]]:
    """
    Graphs that a state draws, and their probabilities; for tests with up to five nodes.
    """

def edge_probabilities(tables: FamilyTables, space: Space, labels: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C')]:
    """Probability of each edge given a state, one row per child."""

class ScreenedOrder:
    @overload
    def __init__(self, variables: int, *, constant: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], factor: float, tolerance: float, max_parents: int | None) -> None: ...

    @overload
    def __init__(self, score: LocalScore, *, names: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], max_parents: int | None) -> None: ...

    def set_partners(self, variable: int, partners: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], correlation: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, allowed: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], required: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def start(self, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def settle(self, changed: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def step(self, seconds: float) -> bool: ...

    @property
    def score(self) -> float: ...

    def parents(self) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')]]: ...

    def coefficients(self) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C')], Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]]: ...
