"""An adaptive attacker: it searches for questions that tell two worlds apart.

Both worlds have the same pooled rows, and one site whose mean is above the pooled mean in one world
and as far below it in the other. Whoever sees the same in both worlds cannot estimate that mean
with a smaller error than the pooled mean has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from tests.attacks.malicious import Attacked

from isthmus.errors import AbortedError, IsthmusError, RefusedError
from isthmus.statistics import Chebyshev, CountPlan, Expansion, Schema
from isthmus_joint import AskCounts, AskFeatures, AskMoments, SecureSums, SumRequest
from isthmus_joint.methods.admm import AskConsensus
from isthmus_joint.methods.admm_models import ADMMOptions
from isthmus_joint.secure_sum.envelopes import EnvelopeKind, parse, read_refusal
from isthmus_joint.secure_sum.terms import from_ints, to_ints

Tables = Mapping[str, Mapping[str, Any]]
VICTIM = "east"
ELITE = 40
TOLERANCE = 1e-9
"""Relative difference of two answers in floating point that is only rounding."""


@dataclass(frozen=True)
class Question:
    """What the attacker chooses; each field is mutated on its own."""

    kind: str
    names: tuple[str, ...]
    whole: bool = False
    """Run a complete round, and not only ask one site."""
    site: str = VICTIM
    lost: tuple[tuple[str, int], ...] = ()
    study: int = 0
    centre: float = 60.0
    scale: float = 30.0
    terms: int = 2
    rho: float = 1.0
    penalty: float = 0.01
    agreed: bool = False

    def essence(self) -> tuple[Any, ...]:
        """Return what the answer can depend on."""
        place = self.kind, self.names, self.study, self.lost if self.whole else self.site
        if self.kind == "consensus":
            return *place, self.rho, self.penalty
        if self.kind == "features" and not self.agreed:
            return *place, self.centre, self.scale, self.terms
        return place

    def request(self, basis: Expansion | None) -> SumRequest[Any]:
        d, k = len(self.names), self.names
        if self.kind == "moments":
            return AskMoments(k)
        if self.kind == "counts":
            return AskCounts(CountPlan.sets(combinations(k, min(self.terms, len(k)))))
        if self.kind == "features" and basis is not None:
            return AskFeatures(basis)
        if self.kind == "features":
            centres, scales = (self.centre,) * d, (self.scale,) * d
            return AskFeatures(Expansion(Chebyshev(self.terms), k, centres, scales))
        return AskConsensus(k, 0, ADMMOptions(rho2=self.rho, penalty=self.penalty))


@dataclass
class Campaign:
    """A search over questions and studies, in two worlds at once.

    Parameters
    ----------
    worlds
        Two data sets, each one table per site.
    names, bounds
        The variables of the first study.
    requests
        The requests that all studies allow.
    seed
        Random seed of the attacker.
    elite
        Questions of an earlier campaign that were answered, with their scores.
    """

    worlds: tuple[Tables, Tables]
    names: tuple[str, ...]
    bounds: Mapping[str, tuple[float, float]]
    requests: tuple[str, ...]
    seed: int = 0
    elite: list[tuple[float, Question]] = field(default_factory=list)
    studies: list[tuple[Attacked, Attacked]] = field(default_factory=list)
    releases: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    answered: int = 0
    sums: int = 0
    asked: int = 0

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)
        self._width = 1.0
        self._known: set[tuple[Any, ...]] = set()
        self.add_study(self.names, tuple(self.worlds[0]))
        self.ask(Question("moments", self.names, whole=True))  # an honest sum

    def add_study(self, names: tuple[str, ...], sites: tuple[str, ...]) -> None:
        """Let the sites sign another study, with these variables and these sites."""
        pair: list[Attacked] = []
        for i, tables in enumerate(self.worlds):
            world = Attacked(
                {n: tables[n] for n in sites},
                Schema.continuous(names),
                {n: self.bounds[n] for n in names},
                requests=self.requests,
                rounds=10**6,
                earlier=self.studies[0][i] if self.studies else next(iter(pair), None),
                purpose=f"study {len(self.studies)}",
                features=self._basis(names),
                rules={"only_with": tuple(self.worlds[0])},
                protocol=SecureSums(threshold=len(sites)),
            )
            if pair:  # the same study, signatures and keys; other data and ledgers
                world.study, world.signatures = pair[0].study, pair[0].signatures
            earlier = self.studies[0][i].ledgers if self.studies else {}
            world.ledgers = {n: earlier.get(n, type(world.ledgers[n])()) for n in sites}
            world.join()
            pair.append(world)
        self.studies.append((pair[0], pair[1]))

    def _basis(self, names: tuple[str, ...]) -> Expansion | None:
        if "features" not in self.requests:
            return None
        return Expansion.within(Chebyshev(2), {n: self.bounds[n] for n in names})

    # --- asking ------------------------------------------------------------------------------

    def ask(self, question: Question) -> bool:
        """Ask in both worlds; return whether the answer is more than a refusal."""
        one, two = self.studies[question.study]
        seen = self._observed(question)
        assert _alike(*seen), f"the worlds differ for {question}: {seen}"
        one.round = two.round = max(one.round, two.round)
        self.asked += 1
        if isinstance(seen[0], tuple) and seen[0][0] == "sum":
            self.sums += 1
            self._learn(question, seen[0])
        return bool(seen[0][0] != "refused")

    def _observed(self, question: Question) -> list[tuple[Any, ...]]:
        """Return what the attacker sees in each world."""
        worlds = self.studies[question.study]
        try:
            request = question.request(self._basis(question.names) if question.agreed else None)
            frame = worlds[0].frame(request)
            worlds[1].round = worlds[0].round
        except (IsthmusError, ValueError):
            return [("refused", "not a request")] * 2
        if question.whole:
            return [self._sum(world, question, request) for world in worlds]
        site = question.site if question.site in worlds[0].sites else VICTIM
        return [_answer(world.sites[site].handle(frame)) for world in worlds]

    def _sum(
        self, world: Attacked, question: Question, request: SumRequest[Any]
    ) -> tuple[Any, ...]:
        """Run a complete round, or some steps."""
        world.round += 3
        federation = world.federation(world.round, lost=question.lost)
        world.round += 10
        try:
            if isinstance(request, AskConsensus):
                steps = [federation.ask(replace(request, step=step)) for step in range(4)]
                return "sum", federation.active, np.concatenate([s.ravel() for s in steps])
            total, active = federation._scheduler.ask(request)
        except AbortedError as error:
            return "refused", str(error)
        except (IsthmusError, ValueError) as error:
            return "refused", type(error).__name__
        return "sum", active, to_ints(total)

    def _learn(self, question: Question, seen: tuple[Any, ...]) -> None:
        """Keep what a sum says about means."""
        request = question.request(self._basis(question.names) if question.agreed else None)
        if not isinstance(request, AskConsensus | AskCounts):
            grid = next(iter(self.studies[question.study][0].controllers.values()))._grid
            moments = request.decode(from_ints(seen[2], request.limbs), grid)
            means = dict(zip(moments.schema.column_names, moments.mean().tolist(), strict=True))
            entry = moments.n, {n: v for n, v in means.items() if n in self.names}
            if entry not in self.releases:
                self.releases.append(entry)

    # --- the optimiser -----------------------------------------------------------------------

    def run(self, questions: int, whole: float) -> None:
        """Evolve questions: what was not refused is mutated, in steps that adapt to success.

        A mutation that is answered widens the steps, and one that is refused narrows them (the
        one-fifth rule). Answered questions enter the elite, from which most parents are drawn.
        """
        for _ in range(questions):
            question = self._new(whole)
            answered = self.ask(question)
            self.answered += answered
            self._width = float(np.clip(self._width * (1.3 if answered else 0.93), 1e-6, 30.0))
            score = 2.0 * answered + question.whole + self._rng.random()
            self.elite.append((score, question))
            self.elite = sorted(self.elite, key=lambda e: -e[0])[:ELITE]
            if self._rng.random() < 6 / questions and len(self.studies) < 12:
                self._sign_another()

    def _sign_another(self) -> None:
        """Draft a study with other variables or without a site, and have it signed."""
        number = int(self._rng.integers(1, len(self.names) + 1))
        names = tuple(self._rng.permutation(self.names)[:number].tolist())
        sites = list(self.worlds[0])
        if len(sites) > 3 and self._rng.random() < 0.5:
            others = [n for n in sites if n != VICTIM]
            sites.remove(str(self._rng.choice(others)))
        try:
            self.add_study(names, tuple(sites))
        except RefusedError:  # the policies name the sites
            assert len(sites) < len(self.worlds[0])

    def _new(self, whole: float) -> Question:
        """Draw a question that was not asked before, if one is found quickly."""
        for _ in range(20):
            question = self._next(whole)
            if question.essence() not in self._known:
                break
        self._known.add(question.essence())
        return question

    def _next(self, whole: float) -> Question:
        rng = self._rng
        if not self.elite or rng.random() < 0.4:
            parent = Question(str(rng.choice(self.requests)), self.names)
        else:
            parent = self.elite[int(len(self.elite) * rng.random() ** 2)][1]
        study = int(rng.integers(len(self.studies)))  # the elite may be of other studies
        known = self.studies[study][0].study.schema.names
        names = parent.names if rng.random() < 0.5 else self._subset(known)
        if rng.random() < 0.9:
            names = tuple(n for n in names if n in known) or known
        lost: tuple[tuple[str, int], ...] = ()
        if rng.random() < 0.3:
            lost = ((str(rng.choice(list(self.worlds[0]))), int(rng.integers(5))),)
        fresh = rng.random() < 0.35
        return replace(
            parent,
            kind=str(rng.choice((*self.requests, "counts", "features"))) if fresh else parent.kind,
            names=names,
            study=study,
            whole=bool(rng.random() < whole),
            site=str(rng.choice(list(self.worlds[0]))) if rng.random() < 0.3 else VICTIM,
            lost=lost,
            centre=parent.centre + self._width * float(rng.normal()),
            scale=self._moved(parent.scale),
            terms=int(rng.integers(1, 5)),
            rho=self._moved(parent.rho),
            penalty=self._moved(parent.penalty),
            agreed=bool(rng.random() < 0.5),
        )

    def _subset(self, names: tuple[str, ...]) -> tuple[str, ...]:
        number = int(self._rng.integers(1, len(names) + 1))
        return tuple(self._rng.permutation(names)[:number].tolist())

    def _moved(self, value: float) -> float:
        moved = np.log(value) + self._width * float(self._rng.normal())
        return float(np.exp(np.clip(moved, -60.0, 60.0)))

    # --- what the attacker knows -------------------------------------------------------------

    def estimates(self, name: str) -> list[float]:
        """Guesses of a site's mean: means of all sums, and of all differences of two sums."""
        known = [(n, means[name]) for n, means in self.releases if name in means]
        guesses = [mean for _, mean in known]
        for n, a in known:
            guesses += [(n * a - m * b) / (n - m) for m, b in known if n > m]
        return guesses


def _answer(data: bytes) -> tuple[Any, ...]:
    frame = parse(data)
    if frame.kind is EnvelopeKind.REFUSE:
        return "refused", read_refusal(frame.body), len(data)
    return frame.kind.name, len(data)


def _alike(one: Any, two: Any) -> bool:
    """Whether two observations are the same, up to rounding of floating-point numbers."""
    if isinstance(one, tuple):
        return len(one) == len(two) and all(map(_alike, one, two))
    if isinstance(one, np.ndarray):
        return bool(np.allclose(one, two, rtol=TOLERANCE, atol=1e-12))
    return bool(one == two)
