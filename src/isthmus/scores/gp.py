"""Gaussian-process scores: marginal likelihoods of nonlinear regressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import EllipsisType
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np

from isthmus.arrays import Work, completed_within
from isthmus.graphs import DAG
from isthmus.objectives import LocalScore, PythonLocalScore
from isthmus.objectives.local import UNFINISHED, FamilyCost
from isthmus.options import require_boolean, require_choice, require_instance, require_integer
from isthmus.scores.base import Score
from isthmus.scores.criterion import process_cost
from isthmus.statistics import Chebyshev, Kind, Moments, Rows
from isthmus.statistics.relations import (
    regressions_from_moments,
    regressions_from_rows,
    variance_beyond,
)

if TYPE_CHECKING:
    from isthmus.gp.families import Regressions

_SLICE = 0.02
"""Seconds of work before a score returns control, for time limits and Ctrl-C."""
_BRIDGE_SECONDS = 1.0
"""Minimum time of the no-U-turn sampler per family."""
_WORTH_A_NOTE = 1e-3
"""Share of the variance beyond the radius of the basis from which a note mentions it."""


class GPIntegral(StrEnum):
    """How the hyperparameters of a Gaussian process are integrated out."""

    LAPLACE = "laplace"
    """A normal approximation at the highest mode: fast and deterministic."""
    IMPORTANCE = "importance"
    """Importance sampling from Student-t distributions at all modes: corrects Laplace, which is
    too low by a few tenths of a nat."""
    BRIDGE = "bridge"
    """Bridge sampling on draws of the no-U-turn sampler, as a check of the others. It takes a
    second or more per family, and longer for the first family with a given number of parents. Needs
    the extra ``gp``."""


@final
@dataclass(frozen=True)
class GP(Score[Moments, LocalScore]):
    """Log marginal likelihood of a Gaussian-process network with additive effects, from moments.

    For continuous variables, which are standardised; higher is better. Each variable is a sum of
    smooth functions of its parents plus normal noise. The functions have Gaussian-process priors
    with squared-exponential kernels of amplitude one; priors of the length scales, the mean and
    the noise are those of Giudice, Kuipers and Moffa 2023. The score can determine the direction
    of nonlinear effects, so Markov-equivalent graphs have different values.

    Only moments of Chebyshev polynomials are needed: the cost of a score does not depend on the
    number of rows, which may be in a warehouse or at many sites. `ExactGP` needs the rows.

    Parameters
    ----------
    basis
        The polynomials. More terms resolve shorter length scales: 5 radius / terms is the shortest.
        The score uses as many of them as the length scale needs. Effects that oscillate by more
        than terms / radius radians per standard deviation look like noise.
    integral
        How the hyperparameters are integrated out.
    integration_draws
        Number of draws for importance sampling, or of the posterior for bridge sampling.

    Examples
    --------
    >>> import isthmus as ist
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=200)
    >>> table = {"x": x, "y": np.sin(2 * x) + 0.3 * rng.normal(size=200)}
    >>> ist.learn(table, score=ist.GP()).dag.edges
    (('x', 'y'),)
    """

    basis: Chebyshev = Chebyshev(48, 5.0)
    integral: GPIntegral = GPIntegral.LAPLACE
    integration_draws: int = 300
    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[Kind] = Kind.CONTINUOUS

    def __post_init__(self) -> None:
        require_instance(self, "basis", Chebyshev, "Chebyshev(48, 5.0)")
        _check(self)

    def bind(self, statistics: Moments) -> LocalScore:
        from isthmus.gp.families import FEWEST_TERMS

        regressions = regressions_from_moments(statistics, repr(self))
        scored = _Scored(regressions, self.integral, self.integration_draws)
        names = statistics.schema.names
        beyond = variance_beyond(statistics)

        def notes(dag: DAG) -> tuple[str, ...]:
            return (*_clipped(beyond, dag, self.basis.radius), *_unresolved(scored, names, dag))

        cost = _cost(self, per_parent=min(FEWEST_TERMS, self.basis.size))
        return PythonLocalScore(names, scored, equivalent=False, notes=notes, cost=cost)


@final
@dataclass(frozen=True)
class ExactGP(Score[Rows, LocalScore]):
    """Log marginal likelihood of a Gaussian-process network, from rows.

    The model of `GP` without the approximation by a basis, and optionally with interactions. The
    time for a score grows with the cube of the number of rows: use it for up to about 500 rows.

    Parameters
    ----------
    interactions
        Whether the kernel also has the product of every two parents. The sum of the parents'
        kernels and the sum of the products then have a weight each, with inverse-gamma priors.
    integral
        How the hyperparameters are integrated out.
    integration_draws
        Number of draws for importance sampling, or of the posterior for bridge sampling.

    Examples
    --------
    >>> import isthmus as ist
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=60)
    >>> table = {"x": x, "y": np.sin(2 * x) + 0.3 * rng.normal(size=60)}
    >>> ist.learn(table, score=ist.ExactGP()).dag.edges
    (('x', 'y'),)
    """

    interactions: bool = False
    integral: GPIntegral = GPIntegral.LAPLACE
    integration_draws: int = 300
    needs: ClassVar[type[Rows]] = Rows
    kind: ClassVar[Kind] = Kind.CONTINUOUS

    def __post_init__(self) -> None:
        require_boolean(self, "interactions")
        _check(self)

    def bind(self, statistics: Rows) -> LocalScore:
        statistics.schema.require(Kind.CONTINUOUS, f"{self!r} needs")
        regressions = regressions_from_rows(statistics, interactions=self.interactions)
        scored = _Scored(regressions, self.integral, self.integration_draws)
        cost = _cost(self, fixed=statistics.n)
        return PythonLocalScore(statistics.schema.names, scored, equivalent=False, cost=cost)


def _cost(score: GP | ExactGP, *, fixed: float = 0.0, per_parent: float = 0.0) -> FamilyCost:
    """Estimate how long the regression of a child takes, and the integral over it."""
    draws = 0 if score.integral is GPIntegral.LAPLACE else score.integration_draws
    modes = process_cost(fixed=fixed, per_parent=per_parent, draws=draws)
    if score.integral is GPIntegral.BRIDGE:
        return lambda parents: modes(parents) + _BRIDGE_SECONDS
    return modes


def _check(score: GP | ExactGP) -> None:
    require_integer(score, "integration_draws", least=2)
    require_choice(score, "integral", GPIntegral)


@final
class _Scored:
    """The score of a child given its parents."""

    def __init__(self, regressions: Regressions, integral: GPIntegral, draws: int) -> None:
        self.regressions = regressions
        self._integral, self._draws = integral, draws
        self._begun: dict[tuple[int, tuple[int, ...]], Work[float]] = {}
        self.unresolved: dict[tuple[int, tuple[int, ...]], tuple[int, ...]] = {}

    def __call__(self, child: int, parents: tuple[int, ...]) -> float | EllipsisType:
        """Return the score, or say that there is more work to do."""
        family = (child, parents)
        work = self._begun.pop(family, None) or self._work(child, parents)
        value = completed_within(work, _SLICE)
        if value is None:
            self._begun[family] = work
            return UNFINISHED
        return value

    def _work(self, child: int, parents: tuple[int, ...]) -> Work[float]:
        fit = yield from self.regressions.fit_work(child, parents)
        if not all(fit.resolved):
            coarse = tuple(p for p, fine in zip(parents, fit.resolved, strict=True) if not fine)
            self.unresolved[child, parents] = coarse
        if self._integral is GPIntegral.LAPLACE:
            return fit.log_likelihood
        # A seed of its own makes the score of a family the same whenever it is asked for.
        rng = np.random.default_rng([child, *parents])
        if self._integral is GPIntegral.BRIDGE:
            from isthmus.gp.bridge import CHAINS, bridge_work

            draws = max(2, self._draws // CHAINS)
            return (yield from bridge_work(fit.density, fit.modes, rng, draws=draws)).value
        from isthmus.gp.bridge import importance_work

        estimate = yield from importance_work(fit.density, fit.modes, self._draws, rng)
        return estimate.value


def _clipped(beyond: dict[str, float], dag: DAG, radius: float) -> tuple[str, ...]:
    wide = [
        f"{name!r} ({share:.1%})"
        for name, share in beyond.items()
        if share >= _WORTH_A_NOTE and dag.children(name)
    ]
    if not wide:
        return ()
    note = (
        f"Parents with values more than {radius:g} standard deviations from their mean, and the "
        f"share of their variance that lies beyond: {', '.join(wide)}. GP moves these values to "
        "that distance. Transform the columns, for example by a logarithm, or use a basis with a "
        "larger radius."
    )
    return (note,)


def _unresolved(scored: _Scored, names: Sequence[str], dag: DAG) -> tuple[str, ...]:
    position = {name: i for i, name in enumerate(names)}
    edges = []
    for child in dag.nodes:
        parents = tuple(sorted(position[p] for p in dag.parents(child)))
        coarse = scored.unresolved.get((position[child], parents), ())
        edges += [(names[p], child) for p in coarse]
    if not edges:
        return ()
    shown = ", ".join(f"{a!r} → {b!r}" for a, b in edges[:5])
    more = f" and {len(edges) - 5} more" if len(edges) > 5 else ""
    note = (
        f"Effects that vary faster than the basis of GP resolves: {shown}{more}. Their scores are "
        "approximate. Use a basis with more terms, or ExactGP."
    )
    return (note,)
