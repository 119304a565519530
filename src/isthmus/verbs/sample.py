"""Draw graphs from their posterior distribution given data."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import ArgumentError, DataError, MismatchError, NoDrawsError, a_type
from isthmus.fitting import LinearEffects
from isthmus.fitting.standardised import ChallengedEffects
from isthmus.graphs import Knowledge
from isthmus.graphs.names import listed
from isthmus.networks.column_maps import scored_nodes
from isthmus.objectives import LOCAL_SCORES, LocalScore
from isthmus.options import described
from isthmus.results import Ending, Ensemble, Posterior, Provenance
from isthmus.results.ensemble import unpack
from isthmus.samplers import Draws
from isthmus.scores import AdditiveEBIC, BGe, DegenerateGaussian
from isthmus.statistics import Kind, Moments
from isthmus.tables import Missing, TimeUnit, Transform
from isthmus.verbs.arguments import (
    AnySampler,
    AnyScore,
    check_count,
    check_progress,
    check_sampler,
    check_score,
    check_seed,
    check_time_limit,
)
from isthmus.verbs.curves import Again, challenge_default, judged_by
from isthmus.verbs.defaults import choose_marginal_likelihood, choose_sampler, reporter_for
from isthmus.verbs.effect import incomplete_columns
from isthmus.verbs.notes import notes_on
from isthmus.verbs.prepare import Problem, prepare
from isthmus.watch import Progress, Watch, drive

_MOST_DRAWS, _MOST_CHAINS = 10**8, 10**4
"""More would not fit into memory."""


_MUCH_LEFT_OUT = 0.05
"""Share of the weight outside the tables above which a note is added."""


def sample(
    data: object,
    *,
    score: AnyScore | None = None,
    sampler: AnySampler | None = None,
    draws: int = 1000,
    chains: int | None = None,
    knowledge: Knowledge | None = None,
    kinds: Mapping[str, Kind | TimeUnit | str] | None = None,
    missing: Missing | None = None,
    groups: str | None = None,
    transform: Transform | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    progress: bool | Callable[[Progress], None] | None = None,
) -> Posterior:
    """Draw graphs from the posterior distribution given data.

    With few variables the posterior is computed exactly, and the draws are independent. With more
    variables, graphs are drawn by several Markov chains, and the result says whether they agree.

    Parameters
    ----------
    data
        As for :func:`~isthmus.learn`: a table, a table of an engine, statistics computed earlier,
        or a source such as a federation.
    score
        The log marginal likelihood of a graph, as a sum over families. By default `K2` with the
        pseudo-count 1/2 if all columns are discrete, `BGe` if all are continuous.
    sampler
        Sampling algorithm. By default chosen by the number of variables: exact if there are few.
    draws
        Number of graphs to draw; with several chains, of each chain.
    chains
        Number of independent chains, which are compared with each other. By default 4 Markov
        chains, and a single one for independent draws from an exact posterior.
    knowledge
        Required and forbidden edges, and tiers: all graphs drawn agree with them.
    kinds
        How to read some columns, as for :func:`~isthmus.learn`.
    missing
        How to handle missing values, as for :func:`~isthmus.learn`, except `StructuralEM`.
    groups
        Name of the column of groups of a table, as for :func:`~isthmus.learn`.
    transform
        A step that replaces numbers by normal scores or by levels, as for :func:`~isthmus.learn`.
        It is computed once, from the whole table.
    seed
        Random seed. The same seed gives the same draws.
    time_limit
        Stop after this many seconds and return the draws so far.
    progress
        As for :func:`~isthmus.learn`.

    Returns
    -------
    Posterior
        Distinct graphs with their probabilities, and probabilities of edges, paths and any other
        feature. Ctrl-C returns the draws so far.

    Raises
    ------
    NoDrawsError
        If the sampler is stopped before its first draw.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> posterior = ist.sample(data, draws=100, seed=1)
    >>> posterior.edge_probabilities().shape
    (8, 8)
    """
    seed, time_limit = check_seed(seed), check_time_limit(time_limit)
    check_count(draws, "draws", least=1, most=_MOST_DRAWS, optional=False)
    check_count(chains, "chains", least=1, most=_MOST_CHAINS)
    check_progress(progress)
    begin = time.monotonic()
    accepts = (LOCAL_SCORES,) if sampler is None else check_sampler(sampler).accepts
    options: dict[str, Any] = {
        "knowledge": knowledge,
        "kinds": kinds,
        "missing": missing,
        "groups": groups,
    }
    problem = prepare(
        data,
        score=score,
        accepts=accepts,
        **options,
        transform=transform,
        choose=choose_marginal_likelihood,
        time_limit=time_limit,
    )
    chosen, sentence = f"Score {described(problem.score)} ({problem.score_reason})", ""
    of_scale: tuple[str, ...] = ()
    if score is None and isinstance(problem.score, (BGe, DegenerateGaussian)):
        until = math.inf if time_limit is None else begin + problem.waited + time_limit
        again = Again(data, transform, options, seed=seed, until=until)
        problem, sentence, of_scale = _challenged(problem, again)
    objective = problem.objective
    if sampler is None:
        sampler, reason = choose_sampler(objective)
    else:
        reason = "as requested"
    chains = sampler.chains if chains is None else int(chains)
    if time_limit is not None:
        time_limit -= time.monotonic() - begin - problem.waited
    name = type(sampler).__name__
    with reporter_for(progress) as report:
        work = partial(
            sampler.sample,
            objective,
            problem.constraints,
            np.random.default_rng(seed),
            draws=int(draws),
            chains=chains,
        )
        result, status = drive(work, name, time_limit=time_limit, report=report)
    if result.chains.shape[1] == 0:
        if status.ending is Ending.INTERRUPTED:
            raise KeyboardInterrupt
        raise NoDrawsError(
            f"{name} was stopped by the time limit before its first draw. Allow more time, or name "
            "another sampler."
        )
    ensemble = _ensemble(objective.nodes, result, problem.statistics.number_of_rows)
    posterior = Posterior(
        ensemble=ensemble,
        chains=result.chains,
        status=status,
        disclosure=problem.source.disclosure(),
        choice=f"{chosen}; sampler {described(sampler)} ({reason}).{sentence}",
        log_weights=result.log_weights,
        log_prior=_log_prior(problem, ensemble),
        exact_edges=result.edge_probabilities,
        exact_paths=result.path_probabilities,
        chain_edges=result.chain_edges,
        independent=result.independent,
        equivalent=objective.equivalent,
        details=result.details,
        effect_model=_effect_model(problem),
        notes=(
            *notes_on(problem, ensemble.most_probable(), named=score is not None),
            *of_scale,
            *_units_of_effects(problem),
            *([sampler.bias] if sampler.bias else []),
        ),
        provenance=Provenance.of_call(
            "sample",
            seed,
            score=problem.plain_score,
            sampler=sampler,
            draws=draws,
            chains=chains,
            **options,
            transform=transform,
        ),
    )
    return with_notes(posterior)


def _challenged(problem: Problem, again: Again) -> tuple[Problem, str, tuple[str, ...]]:
    """Return the data, with a score of curves if lines do not survive them; a sentence; notes."""
    challenged = challenge_default(problem, again)
    sentence = f" {challenged.sentence}"
    if not challenged.changed:
        return problem, sentence, ()
    model = challenged.problem
    assert isinstance(model.plain_score, AdditiveEBIC)
    return judged_by(problem, model), sentence, challenged.notes


def _effect_model(problem: Problem) -> LinearEffects | ChallengedEffects | None:
    """Return the coefficients of linear networks, if the statistics have what they need.

    With rows in memory, effects are challenged as those of `effect` are.
    """
    moments: Moments | None = problem.statistics.as_moments()
    if moments is None or moments.schema.has_features or moments.schema.of_kind(Kind.DISCRETE):
        return None
    posterior = problem.score.posterior(moments) or BGe().posterior(moments)
    lines, source = LinearEffects(problem.objective.nodes, *posterior), problem.source
    if not source.in_memory or moments.groups is not None:
        return lines
    if not source.has_missing:
        return ChallengedEffects(lines, moments, source.without_features().selected)
    incomplete = incomplete_columns(source.without_features())
    return lines if incomplete is None else ChallengedEffects(lines, moments, None, incomplete)


def _units_of_effects(problem: Problem) -> list[str]:
    """Say that effects are in normal scores, if columns were learned as such."""
    names = scored_nodes(problem.reading.network_maps(problem.objective.nodes))
    if not names or _effect_model(problem) is None:
        return []
    text = f"{listed(names)} were learned as normal scores: `effects`, `mean_effects` and "
    return [text + "`effect_deviations` are in scores, not in units of the columns."]


def _ensemble(nodes: tuple[str, ...], draws: Draws, rows: int) -> Ensemble:
    weights = np.bincount(draws.chains.ravel(), minlength=len(draws.parents)).astype(np.float64)
    if draws.log_weights is not None:
        weights *= np.exp(draws.log_weights - draws.log_weights.max())
    return Ensemble(nodes, draws.parents, weights, draws.log_scores, rows=rows)


def _log_prior(problem: Problem, ensemble: Ensemble) -> NDArray[np.float64] | None:
    """Return the logarithm of the prior of each graph up to a constant, unless it is uniform."""
    if not problem.knowledge.has_prior:
        return None
    odds = problem.knowledge.log_odds(ensemble.nodes)
    return np.array([odds[unpack(graph[None])[0]].sum() for graph in ensemble.parents])


def with_notes(posterior: Posterior) -> Posterior:
    """Add notes on the importance weights, and on whether dependent chains agree.

    Chains that disagree, or that cannot be compared, are not called converged.
    """
    chains, draws = posterior.chains.shape
    notes: list[str] = []
    if posterior.log_weights is not None and posterior.importance().collapsed:
        notes.append(str(posterior.importance()))
    doubt = ""
    if posterior.independent:
        pass
    elif chains == 1:
        notes.append("One chain cannot tell whether it has converged; draw several.")
        doubt = "there is no other chain to compare it with."
    elif draws < 10:
        notes.append("The chains are too short to compare them; draw more.")
        doubt = "they are too short to compare."
    else:
        agreement = posterior.agreement()
        notes.append(str(agreement))
        doubt = "they disagree." if agreement.edges() else ""
    left_out = getattr(posterior.details, "left_out", None)
    if left_out is not None and left_out > _MUCH_LEFT_OUT:
        notes.append(
            "The sampler probably misses important parent sets. Expect fewer parents, such as "
            "`Knowledge(expected_parents=1)`, raise `candidates`, or limit `max_parents`: "
            f"graphs with one such set have about {_share(left_out)} the weight of "
            "those that can be drawn. All chains leave out the same sets, so their agreement does "
            "not show this; compare runs with different seeds."
        )
        doubt = doubt or "important parent sets are probably missing."
    status = posterior.status
    if doubt and status.ending is Ending.CONVERGED:
        message = f"{status.message.removesuffix('.')}, but {doubt}"
        status = replace(status, ending=Ending.NOT_CONVERGED, message=message)
    return replace(posterior, status=status, notes=(*posterior.notes, *notes))


def _share(ratio: float) -> str:
    return f"{ratio:.0%} of" if ratio < 2 else f"{ratio:,.0f} times"


# --- Correct the draws from one posterior to the posterior under another score ------------------


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
