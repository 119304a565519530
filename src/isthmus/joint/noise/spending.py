"""What the answers of a site with noise have cost so far, by study."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, final

from isthmus.joint.noise.accounting import epsilon_of


@final
@dataclass(frozen=True)
class Spending:
    """The cost of all answers with noise in a ledger, in zero-concentrated differential privacy.

    Attributes
    ----------
    costs
        The ρ of each study, by the hash of the study, in the order of the ledger.
    """

    costs: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, entries: Iterable[Mapping[str, Any]]) -> Spending:
        """Add up the entries of a ledger. An answer that was sent again costs nothing."""
        answers = {
            (str(e.get("study")), e["answer"]): float(e["rho"]) for e in entries if "rho" in e
        }
        costs: dict[str, float] = {}
        for (study, _), rho in answers.items():
            costs[study] = costs.get(study, 0.0) + rho
        return cls(costs)

    @property
    def total(self) -> float:
        """The cost of all studies together."""
        return sum(self.costs.values())

    def without(self, study: str) -> float:
        """Return the cost of all studies but one."""
        return sum(rho for name, rho in self.costs.items() if name != study)

    def describe(self, delta: float, limit: float | None = None) -> str:
        """Describe for people what was spent, at a δ; `limit` is the ε of the policy."""
        if not self.costs:
            spent = "no answer with noise has left"
        else:
            studies = [
                f"ε = {epsilon_of(rho, delta):.3g} in the study {name[:16]}…"
                for name, rho in self.costs.items()
            ]
            total = f"{epsilon_of(self.total, delta):.3g}"
            several = f"; ε = {total} in all {len(studies)} studies together"
            spent = ", ".join(studies) + (several if len(studies) > 1 else "")
        if limit is None:
            allowed = ""
        elif limit == 0.0:
            allowed = ". The policy allows no more such answers: maximum_epsilon is 0"
        else:
            allowed = f". The policy allows ε = {limit:g} in total, over the life of this ledger"
        return f"Differential privacy, per person and at δ = {delta:g}: {spent}{allowed}."
