"""Correct the draws from one posterior to the posterior under another score."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from isthmus.compose.arguments import AnyScore, check_progress, check_score
from isthmus.compose.prepare import prepare
from isthmus.compose.progress import reporter_for
from isthmus.compose.sample import with_notes
from isthmus.errors import ArgumentError, DataError, MismatchError
from isthmus.objectives import LOCAL_SCORES, LocalScore
from isthmus.plurals import a_type
from isthmus.results import Ensemble, Posterior
from isthmus.runs import Progress, Watch
from isthmus.statistics import Kind


def reweight(
    posterior: Posterior,
    data: object,
    score: AnyScore,
    *,
    kinds: Mapping[str, Kind | str] | None = None,
    progress: bool | Callable[[Progress], None] | None = None,
) -> Posterior:
    """Correct the draws of a posterior to a more accurate score, by importance weights.

    Use this for scores that are too slow to sample with: draw graphs with a fast approximation,
    then compute the slow score only for the families of the distinct graphs that were drawn
    (Giudice, Kuipers and Moffa 2023). The importance weight of a graph is the ratio of its two
    scores; the prior of the draws stays. A note gives the effective sample size of the result,
    and says whether the weights can be trusted; with ArviZ (extra ``posterior``) it also covers
    their tail. Graphs that were never drawn cannot get any weight. Both steps of the
    paper in one call are :func:`isthmus.published.gp_posterior`.

    Parameters
    ----------
    posterior
        Draws of :func:`~isthmus.sample`. Those of `OrderMCMC` keep their bias.
    data
        The data that the graphs were drawn from, in any form that the score can use.
    score
        The log marginal likelihood to correct to, such as
        ``GP(integral=GPIntegral.IMPORTANCE)`` for draws with ``GP()``.
    kinds
        How to read some columns, as for :func:`~isthmus.learn`.
    progress
        As for :func:`~isthmus.learn`. Ctrl-C raises `KeyboardInterrupt`.

    Returns
    -------
    Posterior
        The same draws with weights. Probabilities are weighted averages over the draws.

    Examples
    --------
    >>> import numpy as np
    >>> import isthmus as ist
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=50)
    >>> table = {"x": x, "y": np.sin(2 * x) + 0.5 * rng.normal(size=50)}
    >>> draws = ist.sample(table, score=ist.GP(), draws=400)
    >>> better = ist.reweight(draws, table, ist.GP(integral=ist.GPIntegral.IMPORTANCE))
    >>> print(better.probability(ist.edge("x", "y")) > 0.9, better.importance().effective > 300)
    True True
    """
    if not isinstance(posterior, Posterior):
        raise ArgumentError(
            f"posterior must be a Posterior; {a_type(posterior)} was given. "
            "Write posterior=isthmus.sample(data, score=GP())."
        )
    check_progress(progress)
    ensemble = posterior.ensemble
    if ensemble.log_scores is None:
        raise DataError(
            "The scores of the draws are not known, so they cannot be compared with others. "
            "Draw the graphs with isthmus.sample."
        )
    problem = prepare(data, score=check_score(score), accepts=(LOCAL_SCORES,), kinds=kinds)
    local = LOCAL_SCORES.require(problem.objective)
    if set(local.nodes) != set(posterior.nodes):
        odd = sorted(set(local.nodes) ^ set(posterior.nodes))
        raise MismatchError(
            f"The posterior and the data differ in the variables {odd[:5]}. Give the data that "
            "the graphs were drawn from."
        )
    with reporter_for(progress) as report:
        totals = _totals(local, ensemble, Watch("reweight", report=report))
    scores = totals if posterior.log_prior is None else totals + posterior.log_prior
    log_weights = scores - _log_drawn(posterior)
    if not np.isfinite(log_weights.max()):
        raise DataError(f"No graph that was drawn has a finite score under {score!r}.")
    counts = np.bincount(posterior.chains.ravel(), minlength=len(ensemble))
    weights = counts * np.exp(log_weights - log_weights.max())
    status = posterior.status
    if posterior.independent:
        status = replace(status, message="the draws are independent, and were weighted.")
    corrected = replace(
        posterior,
        status=status,
        ensemble=replace(ensemble, weights=weights, log_scores=scores),
        log_weights=log_weights,
        exact_edges=None,
        exact_paths=None,
        disclosure=posterior.disclosure + problem.source.disclosure(),
        choice=f"{posterior.choice} Reweighted to {score!r}.",
        equivalent=problem.objective.equivalent,
        notes=(),
    )
    judged = with_notes(corrected)
    text = str(judged.importance())
    return judged if text in judged.notes else replace(judged, notes=(text, *judged.notes))


def _log_drawn(posterior: Posterior) -> NDArray[np.float64]:
    """Log probability with which each graph was drawn, up to a constant.

    Weights that the draws have already lead from there to the scores.
    """
    scores = posterior.ensemble.log_scores
    assert scores is not None
    return scores if posterior.log_weights is None else scores - posterior.log_weights


def _totals(local: LocalScore, ensemble: Ensemble, watch: Watch) -> NDArray[np.float64]:
    """Score the distinct families of some graphs; return the scores of the graphs."""
    place = [local.nodes.index(name) for name in ensemble.nodes]
    values = np.zeros(len(ensemble))
    families: list[tuple[int, NDArray[np.uint64], NDArray[np.bool_]]] = []
    for v in range(len(ensemble.nodes)):
        masks, which = np.unique(ensemble.parents[:, v], axis=0, return_inverse=True)
        which = which.ravel()
        families += [(v, mask, which == i) for i, mask in enumerate(masks)]
    with watch.until_stopped():
        for done, (v, mask, graphs) in enumerate(families, start=1):
            bits = sum(int(word) << 64 * w for w, word in enumerate(mask))
            parents = [place[p] for p in range(len(place)) if bits >> p & 1]
            values[graphs] += local.local(place[v], parents)
            text = f"{done} of {len(families)} families"
            watch.poll(text, float(values.max()), done / len(families))
    watch.reraise()
    return values
