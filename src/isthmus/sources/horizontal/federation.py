"""Many sites with the same columns, as one source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError, FederationError, MismatchError
from isthmus.results.disclosure import Disclosure, Release
from isthmus.sources.base import Source, countable
from isthmus.sources.dispatch import as_source
from isthmus.statistics import Chebyshev, Counts, Expansion, Kind, Moments, Plan, Schema
from isthmus.statistics.schema import union_levels

if TYPE_CHECKING:
    # The protocol is imported where it is used: most programs federate nothing.
    from isthmus.federated import Step
    from isthmus.parties import (
        Identity,
        Journal,
        Ledger,
        Method,
        Signature,
        Study,
        Transport,
        Verifier,
    )
    from isthmus.sources.horizontal import AskTotals, Request

PLENTY = 10
"""Pooled rows for each column of basis functions; with fewer, products tell of single rows."""


@final
class Federation(Source):
    """Sites that hold different rows of the same variables.

    Every statistic is one secure sum over all sites: the coordinator, where this object lives,
    learns the sum and nothing of a single site. What was summed is kept and not asked for again.

    For research, `simulate` makes a federation within this process.

    Parameters
    ----------
    study
        What the sites agreed on.
    signatures
        The author's, and a countersignature of every site.
    identity
        The coordinator's key, which the study names.
    transport
        Carries frames to the sites.
    verifier
        Checks signatures; sites in the same process may share it.
    first_round
        Number of the first round; rounds that were opened before are not opened again.
    journal
        Where to keep what was opened and what was summed. A federation with the journal of one
        that was killed goes on where that one was, and comes to the same result.
    """

    def __init__(
        self,
        study: Study,
        signatures: Iterable[Signature],
        identity: Identity,
        transport: Transport,
        verifier: Verifier | None = None,
        *,
        first_round: int = 1,
        journal: Journal | None = None,
    ) -> None:
        from isthmus.parties.agreement.study import AUTHOR
        from isthmus.sources.horizontal.leader import Leader

        if identity.public != study.coordinator:
            raise FederationError("The study names another coordinator: load its identity.")
        study.require(signatures, [AUTHOR, *(m.name for m in study.members)])
        self._study = study
        self._transport = transport
        self._leader = Leader(study, identity, transport, verifier, journal, first_round)
        self._moments: list[Moments] = []
        self._counts: list[Counts] = []
        self._releases: list[Release] = []

    @classmethod
    def simulate(
        cls,
        tables: Mapping[str, object],
        *,
        schema: Schema | None = None,
        kinds: Mapping[str, Kind] | None = None,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        plan: Plan | None = None,
        method: Method | None = None,
        ledgers: Mapping[str, Ledger] | None = None,
        lost: Iterable[tuple[str, int]] = (),
    ) -> Federation:
        """Make a federation of tables that are all here: the whole protocol, without a network.

        Parameters
        ----------
        tables
            The table of each site, by its name; each counts as an organisation of its own.
        schema
            The common variables; by default those of the tables, with the levels of all.
        kinds
            How to read some columns.
        bounds
            Bounds of continuous variables; by default taken from the tables, which is possible
            only because they are all here.
        plan
            The tables that may be asked for; by default every set.
        method
            How the sites work together; by default by secure sums.
        ledgers
            Where each site writes what leaves it; by default into memory.
        lost
            Sites that fail: their names, with the number of the exchange (five a round; in ADMM
            two for keys, then one a step).
        """
        from isthmus.sources.horizontal.simulation import simulated

        if schema is None:
            found = [as_source(t, kinds=kinds).schema() for t in tables.values()]
            schema = reduce(union_levels, found)
        return cls(*simulated(tables, schema, bounds, plan, method, ledgers, lost))

    @property
    def study(self) -> Study:
        """What the sites agreed on."""
        return self._study

    @property
    def active(self) -> tuple[str, ...] | None:
        """The sites whose numbers are in the sums; ``None`` before the first."""
        return self._leader.active

    @property
    def kept(self) -> int:
        """How many sums the journal holds: a run that is taken up does not ask for them again."""
        return self._leader.kept

    def schema(self) -> Schema:
        """Names, kinds and levels of the variables, as the study states them."""
        return self._study.schema

    def moments(self, names: Sequence[str] | None = None) -> Moments:
        """Moments over all sites, in one secure sum."""
        asked = self.schema().names if names is None else tuple(names)
        self.schema().indices(asked)
        for held in self._moments:
            if all(n in held.schema for n in asked):
                return held if held.schema.names == asked else held.select(asked)
        from isthmus.sources.horizontal.requests.sums import AskMoments

        found = self._ask(AskMoments(asked))
        assert isinstance(found, Moments)
        self._moments.append(found)
        return found

    def counts(self, plan: Plan) -> Counts:
        """Counts over all sites, in one secure sum.

        `Plan.everything` gives all that the study plans: a table that it does not plan is an
        `UnplannedError` when it is asked for.
        """
        study = self._study.plan
        if plan.is_everything and study is not None:
            plan = study
        schema = countable(self.schema(), plan)
        for held in self._counts:
            if held.plan == plan:
                return held
        from isthmus.sources.horizontal.requests.sums import AskCounts

        found = self._ask(AskCounts(schema.names, plan))
        assert isinstance(found, Counts)
        self._counts.append(found)
        return found

    def expanded(self, basis: Chebyshev | Expansion = Chebyshev()) -> Source:
        """Continuous columns with basis functions beside them; standardised with pooled moments.

        Raises
        ------
        DataError
            There are too few rows for so many columns: their products would tell of single rows.
        """
        if isinstance(basis, Chebyshev):
            basis = basis.standardised(self.moments())
        columns, n = len(basis.schema()), self.moments(basis.names).n
        if n < PLENTY * columns:
            raise DataError(
                f"{columns} columns of basis functions need at least {PLENTY * columns} rows over "
                f"all sites, there are {n}: with fewer the sums would tell of single rows. "
                "Take a basis with fewer terms, or fewer variables."
            )
        return _Widened(self, basis)

    def features(self, expansion: Expansion) -> Moments:
        """Moments of basis functions over all sites, in one secure sum."""
        from isthmus.sources.horizontal.requests.sums import AskFeatures

        found = self._ask(AskFeatures(expansion))
        assert isinstance(found, Moments)
        return found

    def totals(self, request: AskTotals) -> tuple[int, NDArray[np.float64]]:
        """Number of rows and means over all sites, in one secure sum."""
        found = self._ask(request)
        assert isinstance(found, Moments)
        return found.n, found.mean()

    def consensus(self, request: Step) -> NDArray[np.float64]:
        """Sum over all sites of the parameters of one step of ADMM."""
        found = self._ask(request)
        assert isinstance(found, np.ndarray)
        return found

    def _ask(self, request: Request) -> Moments | Counts | NDArray[np.float64]:
        words, active = self._leader.ask(request)
        what = f"{request}, hidden in the sum over {len(active)} sites"
        self._releases += [Release(s, what, "secure sum", len(words)) for s in active]
        return request.decode(words, self._study.grid)

    def rows(self) -> NDArray[np.float64]:
        """Not here, and nowhere together."""
        raise MismatchError(
            "The rows of a federation stay at its sites. Choose a score that needs moments or "
            "counts; for curves give federation.expanded(basis)."
        )

    def disclosure(self) -> Disclosure:
        """What left which site, so far; the same kind of sum from one site as one entry."""
        found: dict[tuple[str, str, str], list[int]] = {}
        for r in self._releases:
            found.setdefault((r.site, r.what, r.form), []).append(r.size)
        entries = []
        for (site, what, form), sizes in found.items():
            often = what if len(sizes) == 1 else f"{len(sizes)} × {what}"
            entries.append(Release(site, often, form, sum(sizes)))
        return Disclosure(tuple(entries))

    def __repr__(self) -> str:
        return f"Federation({self._study.title!r}, {len(self._study.members)} sites)"


@final
class _Widened(Source):
    """A federation with basis functions of its columns."""

    def __init__(self, federation: Federation, expansion: Expansion) -> None:
        self._federation = federation
        self._expansion = expansion
        self._moments: Moments | None = None

    def schema(self) -> Schema:
        """The columns themselves, then the feature columns of each."""
        return self._expansion.schema()

    def moments(self, names: Sequence[str] | None = None) -> Moments:
        """Moments of these columns, in the order asked; of all if not given."""
        if self._moments is None:
            self._moments = self._federation.features(self._expansion)
        return self._moments if names is None else self._moments.select(names)

    def counts(self, plan: Plan) -> Counts:
        """Not of continuous columns; the error says so."""
        countable(self.schema(), plan)
        raise MismatchError("Basis functions are continuous and have no tables.")

    def rows(self) -> NDArray[np.float64]:
        """Not here."""
        return self._federation.rows()

    def disclosure(self) -> Disclosure:
        """What left for the standardisation, and then for the features."""
        return self._federation.disclosure()

    def __repr__(self) -> str:
        return f"{self._federation!r}.expanded({self._expansion.basis!r})"
