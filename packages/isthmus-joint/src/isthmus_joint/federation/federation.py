"""Many sites with the same columns and different rows, as one source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Integers
from isthmus.errors import DataError, FederationError, MismatchError
from isthmus.objectives import Capability
from isthmus.results.reading import Disclosure, Reading, Release
from isthmus.statistics import Basis, CountPlan, Counts, Expansion, Kind, Moments, Schema
from isthmus.statistics.base import planned_sets
from isthmus.statistics.coded import CodedRows
from isthmus.statistics.on_demand import Core, TablesOnDemand
from isthmus.tables.base import Source, countable
from isthmus.tables.frame import Frame
from isthmus.tables.infer_kinds import stated
from isthmus.tables.missing import DropRows, ExpectationMaximisation, Missing
from isthmus_joint.agreement.identity import AUTHOR, Identity, Signature, Verifier
from isthmus_joint.agreement.protocol_catalogue import request_names
from isthmus_joint.agreement.study import Study
from isthmus_joint.federation.common_schema import (
    FederatedFeatures,
    IncompleteFederation,
    common_reading,
)
from isthmus_joint.federation.requests.base import SumRequest
from isthmus_joint.federation.requests.expectation import AskExpectation
from isthmus_joint.federation.requests.fixed_point import NUMBERS, FixedPointEncoding
from isthmus_joint.federation.requests.statistics import (
    AskCounts,
    AskFeatures,
    AskMoments,
    in_pieces,
    largest_table,
    needs_demand,
)
from isthmus_joint.federation.round_scheduler import RoundScheduler
from isthmus_joint.noise.accounting import DifferentialPrivacy
from isthmus_joint.noise.cost import cost_of_noise, warn_of_noise
from isthmus_joint.noise.statistics import (
    AskNoisy,
    NoisyEstimate,
    NoisyRelease,
    noisy_counts,
    noisy_moments,
)
from isthmus_joint.records.journal import Journal
from isthmus_joint.records.ledger import Ledger
from isthmus_joint.secure_sum.protocol import SecureSums
from isthmus_joint.secure_sum.terms import LimbArray, to_ints
from isthmus_joint.transport.base import Transport

if TYPE_CHECKING:
    from isthmus_joint.methods.admm import Consensus

T = TypeVar("T")


@final
class Federation(Source):
    """Sites that hold different rows of the same variables, as a source of statistics.

    Every statistic is one secure sum over all sites. The coordinator, which owns this object,
    learns the sum and nothing about a single site. Sums are cached and not requested again.

    For research and tests, `simulate` creates a federation within this process.

    Parameters
    ----------
    study
        The study that the sites agreed on.
    signatures
        The author's signature, and a countersignature of every site.
    identity
        The coordinator's key, which the study names.
    transport
        Carries messages to the sites.
    verifier
        Checks signatures. Sites in the same process may share it.
    first_round
        Number of the first round. Rounds that were opened before cannot be opened again.
    journal
        Records rounds and sums. A federation with the journal of one that was killed resumes its
        run and computes the same result.
    without
        Names of sites to leave out of all sums. By default none: sums need every site of the study,
        and a site that is silent or refuses stops the run. With ``None``, whoever is silent in the
        first sum is left out, as long as enough sites remain.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = simulate.erdos_renyi(5, 6, seed=1)
    >>> numbers = simulate.linear(dag, 300, seed=1).data
    >>> sites = {f"site {i}": {k: v[i::3] for k, v in numbers.items()} for i in range(3)}
    >>> federation = ist.Federation.simulate(sites)
    >>> ist.learn(federation).dag == ist.learn(numbers).dag
    True

    Attributes
    ----------
    largest_round
        Maximum number of values per round of tables. If the planned tables have more, they are
        asked for on demand.
    """

    largest_round: int = NUMBERS
    grouping: ClassVar[str] = (
        "The sites are the groups of a federation: moments are about the mean of each site, unless "
        "the study says within_sites = false."
    )

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
        without: Iterable[str] | None = (),
    ) -> None:
        if identity.public != study.coordinator:
            raise FederationError(
                "The study names another coordinator. Load the identity of that coordinator."
            )
        study.require(signatures, [AUTHOR, *(m.name for m in study.members)])
        self._study = study
        self._grid = FixedPointEncoding.of(study)
        self._scheduler = RoundScheduler(
            study, identity, transport, verifier, journal, first_round, without
        )
        self._moments: list[Moments] = []
        self._counts: list[Counts] = []
        self._features: dict[Expansion, FederatedFeatures] = {}
        self._tables: TablesOnDemand | None = None
        self._releases: list[Release] = []
        self._costs: dict[str, str] = {}
        self._reading: Reading | None = None  # of simulated sites; a study states its variables

    @classmethod
    def simulate(
        cls,
        tables: Mapping[str, object] | Sequence[object],
        *,
        schema: Schema | None = None,
        kinds: Mapping[str, Kind | str] | None = None,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        plan: CountPlan | None = None,
        requests: Iterable[str] | None = None,
        ledgers: Mapping[str, Ledger] | None = None,
        lost: Iterable[tuple[str, int]] = (),
        privacy: DifferentialPrivacy | None = None,
        missing: Missing | None = None,
        within_sites: bool = True,
    ) -> Federation:
        """Create a federation of tables in this process: the whole protocol, without a network.

        Parameters
        ----------
        tables
            The table of each site, by its name; the sites of a list are named ``site1``,
            ``site2`` and so on. Each site is an organisation of its own.
        schema
            The common variables; by default those of one table of all rows, which leaves out
            identifiers, for instance. Sources and tables of an engine keep all columns.
        kinds
            The kinds of some columns.
        bounds
            Bounds of continuous variables; by default taken from the tables, which is possible
            only because they are all in this process.
        plan
            The tables of counts that may be requested; by default every set.
        requests
            Names of the requests that the study allows; by default all that are known.
        ledgers
            The ledger of each site; by default in memory.
        lost
            Sites that fail: their names, with the number of the exchange, counted from zero. Each
            sum has five exchanges. Sites that fail in the first sum are left out.
        privacy
            Differential privacy. Continuous variables then need bounds, here or in `bounds`, that
            are not taken from the tables. By default the study then has counts of up to three
            variables if all variables are discrete, and moments otherwise.
        missing
            How to handle missing values: with `ExpectationMaximisation`, values of continuous
            variables; with `DropRows`, every site drops its incomplete rows. Others are refused.
        within_sites
            Whether each site subtracts its own means before sums of products, so that sites of
            different levels cause no edges. False is for one population that was divided at
            random: the result is then that of a table of all rows.
        """
        from isthmus_joint.federation.simulation import named_tables, simulated

        tables, lost = named_tables(tables), list(lost)
        if missing is not None and not isinstance(missing, ExpectationMaximisation | DropRows):
            raise _not_offered(missing)
        reading = None
        if schema is None:
            schema, reading = common_reading(list(tables.values()), kinds, missing)
        if isinstance(missing, DropRows):
            tables = {n: Frame(t, schema=schema, missing=missing) for n, t in tables.items()}
        if requests is None and privacy is None:
            holes = isinstance(missing, ExpectationMaximisation)
            known = request_names(SecureSums.name)
            requests = [n for n in known if holes or n != AskExpectation.name]
        arguments = simulated(
            tables,
            schema,
            bounds,
            plan,
            requests,
            ledgers,
            lost,
            privacy,
            within_sites=within_sites,
        )
        federation = cls(*arguments, without=None if lost else ())
        federation._reading = reading
        return federation

    def with_missing(self, missing: Missing) -> Source:
        """Return the same sites as a source of estimates from rows with missing values.

        Raises
        ------
        MismatchError
            The strategy is not `ExpectationMaximisation`, or the study does not allow its requests.
        """
        if not isinstance(missing, ExpectationMaximisation):
            raise _not_offered(missing)
        return IncompleteFederation(self, missing)

    @property
    def within_groups(self) -> bool:  # type: ignore[override]
        """Whether statistics are moments about the mean of each site."""
        return self._study.within_sites and AskMoments.name in self._study.requests

    @property
    def study(self) -> Study:
        """The study that the sites agreed on."""
        return self._study

    @property
    def active(self) -> tuple[str, ...] | None:
        """Names of the sites whose numbers are in the sums; ``None`` before the first sum."""
        return self._scheduler.active

    @property
    def asked(self) -> tuple[str, ...]:
        """Names of the sites that the next sum is asked from."""
        return self._scheduler.asked

    @property
    def kept(self) -> int:
        """Number of sums in the journal, which a resumed run does not request again."""
        return self._scheduler.kept

    @property
    def sums(self) -> int:
        """Number of sums that were requested so far."""
        return self._scheduler.used

    def schema(self) -> Schema:
        """Return names, kinds and levels of the variables, as stated in the study."""
        return self._study.schema

    def reading(self) -> Reading:
        """Return how columns were read: as the study states, or as a simulation decided."""
        return stated(self.schema()) if self._reading is None else self._reading

    def moments(self, names: Sequence[str] | None = None) -> Moments:
        """Compute moments over all sites with one secure sum."""
        self._require_statistics()
        asked = self.schema().names if names is None else tuple(names)
        self.schema().indices(asked)
        if self._study.privacy is not None and not self._moments:
            # With privacy, one series of rounds is answered, from which all others follow.
            self._moments.append(self._estimated(AskMoments.name, noisy_moments))
        for known in self._moments:
            if all(n in known.schema for n in asked):
                return known if known.schema.names == asked else known.select(asked)
        moments = self.ask(AskMoments(asked))
        self._moments.append(moments)
        return moments

    def counts(self, plan: CountPlan) -> Counts:
        """Compute counts over all sites with one secure sum.

        `CountPlan.everything` returns all tables that the study plans; access to any other table
        then raises `UnplannedError`. If these are too many for one sum, they are asked for when a
        search looks at them. In a study with differential privacy, there are two sums, and any plan
        returns the counts of rows that were made from them.
        """
        self._require_statistics()
        study = self._study.plan
        if study is not None and self._study.privacy is not None:
            if not self._counts:
                self._counts.append(self._estimated(AskCounts.name, noisy_counts))
            return self._counts[0]
        schema = countable(self.schema(), plan)
        if study is not None and plan.is_everything:
            if needs_demand(schema, study, self.largest_round):
                return self._counts_on_demand(schema, study)
            plan = study
        for known in self._counts:
            if known.plan == plan:
                return known
        if self._tables is not None and plan.groups is not None:
            sets = map(schema.indices, plan.groups)
            if all(self._tables.table(own) is not None for own in sets):
                return self._counts_on_demand(schema, plan).covering(plan)
        n, *tables = self.ask(AskCounts(plan))
        sets_of_plan = planned_sets(schema, plan)
        blocks: dict[Core, Integers | CodedRows] = dict(zip(sets_of_plan, tables, strict=True))
        self._counts.append(Counts(schema, int(n[0]), plan, blocks))
        return self._counts[-1]

    def _counts_on_demand(self, schema: Schema, plan: CountPlan) -> Counts:
        """Return the tables of single variables, and those of other sets on demand."""
        if self._tables is None:
            limit = largest_table(schema, plan)
            self._tables = TablesOnDemand(schema.cardinalities, limit, self._ask_cores)
        tables = self._tables
        names = [(name,) for name in schema.names]
        singles: dict[Core, Integers | CodedRows] = {
            (i,): np.asarray(tables.table((i,))) for i in range(len(names))
        }
        return Counts(schema, tables.n, CountPlan.sets(names), singles, on_demand=tables)

    def _ask_cores(self, cores: Sequence[Core]) -> dict[Core, Integers]:
        """Ask for cores in rounds of bounded size."""
        answers: dict[Core, Integers] = {}
        plan, asked = self._study.plan, [core for core in cores if core]
        assert plan is not None
        for request, some in in_pieces(self.schema(), plan, asked, self.largest_round):
            first, *others = self.ask(request)
            answers |= {(): first, **dict(zip(some, others, strict=True))}
        return answers

    def expansion_of(self, basis: Basis) -> Expansion:
        """Return the centres and scales that the study fixes for a basis.

        If the study fixes no basis, they are those of the pooled moments, which only simulated
        sites accept.

        Raises
        ------
        MismatchError
            The study allows no basis functions, or fixes others.
        """
        self._require_basis(basis)
        agreed = self._study.features
        if agreed is None:
            return super().expansion_of(basis)
        return replace(agreed, beside=self.schema().of_kind(Kind.DISCRETE))

    def with_features(self, expansion: Expansion) -> Source:
        """Return the variables with basis functions, which the sites compute.

        Raises
        ------
        MismatchError
            The study allows no basis functions, or fixes others.
        DataError
            There are too few rows for this number of columns: the sums would reveal single rows.
        """
        self._require_basis(expansion.basis)
        columns = expansion.widen(self.schema()).width
        variables = expansion.variables(self.schema())
        needed, n = expansion.basis.rows_per_column * columns, self.moments(variables).n
        if n < needed:
            raise DataError(
                f"{columns} columns of values and basis functions need at least {needed} rows over "
                f"all sites; there are {n}. With fewer rows the sums would reveal single rows. "
                "Use a basis with fewer functions, or fewer variables."
            )
        return self._features.setdefault(expansion, FederatedFeatures(self, expansion))

    def _require_basis(self, basis: Basis) -> None:
        """Raise `MismatchError` unless the study allows these basis functions."""
        agreed = self._study.features
        if self._study.privacy is not None:
            raise MismatchError(
                "The study has differential privacy, for which there are moments and counts only. "
                "Use a score without basis functions."
            )
        allowed = AskFeatures.name in self._study.requests
        if not allowed or (agreed and agreed.basis != basis):
            fixed = f"fixes {agreed.basis!r}" if allowed and agreed else "allows none"
            raise MismatchError(
                f"The basis functions {basis!r} are needed, and the study {fixed}. Draft a study "
                "for a score or search that needs them: 'isthmus coordinator draft --exact --score "
                "AdditiveEBIC' for those that challenge lines, '--search LiNGAM' for LiNGAM."
            )

    def ask(self, request: SumRequest[T]) -> T:
        """Send a request to all sites and return the sum of their answers."""
        total, _ = self._sum(request)
        return request.decode(total, self._grid)

    def _sum(
        self, request: SumRequest[Any], noisy: NoisyRelease | None = None
    ) -> tuple[LimbArray, int]:
        """Return the sum over all sites and their number, and note what they released."""
        total, active = self._scheduler.ask(request)
        what = f"{request}, hidden in the sum over {len(active)} sites"
        form = "secure sum"
        if noisy is not None:
            what, form = f"{what}, with noise for {noisy.described}", f"{form} with noise"
        self._releases += [Release(s, what, form, len(total)) for s in active]
        return total, len(active)

    def _estimated(self, name: str, estimate: Callable[[Study, AskNoisy], NoisyEstimate[T]]) -> T:
        """Return a statistic from rounds with noise; keep what the noise cost, and warn of it."""
        releases, sites = list[NoisyRelease](), list[int]()

        def ask(release: NoisyRelease) -> tuple[list[int], int]:
            total, active = self._sum(release.request(), release)
            releases.append(release)
            sites.append(active)
            return to_ints(total), active

        estimated = estimate(self._study, ask)
        self._costs[name] = cost_of_noise(name, releases, estimated, min(sites))
        warn_of_noise(name, estimated)
        return estimated.statistic

    def objective(self, accepts: Sequence[Capability[Any]] | None) -> Consensus | None:
        """Return the parameters that the sites can agree on, step by step, by ADMM."""
        from isthmus_joint.methods.admm import CONSENSUS, Consensus

        statistics = {AskMoments.name, AskCounts.name, AskExpectation.name}
        if accepts is None and statistics & self._study.requests:
            return None
        wanted = accepts is None or CONSENSUS in accepts
        return Consensus(self._study, self.ask) if wanted else None

    def _require_statistics(self) -> None:
        if self.objective(None) is not None:
            raise MismatchError(
                f"The study allows the requests {sorted(self._study.requests)}, and no statistics. "
                "Use search=ADMM(), or leave out the search."
            )

    def notes(self) -> tuple[str, ...]:
        """Return what noise cost, for each statistic, and whether sites were pooled in tables."""
        pooled = self._study.within_sites and bool(self._counts or self._tables)
        return (*self._costs.values(), *([_POOLED] if pooled else []))

    def send_result(self, result: bytes) -> tuple[str, ...]:
        """Send the result to every site whose numbers are in it, signed by the coordinator.

        The result should follow from the sums alone, and so reveal no more than they do.

        Parameters
        ----------
        result
            A JSON object, as bytes, such as that of `Solution.to_dict`.

        Returns
        -------
        tuple
            Names of the sites that have confirmed it. The others are silent or refuse it.
        """
        return self._scheduler.send_result(result)

    def rows(self) -> NDArray[np.float64]:
        raise MismatchError(
            "The rows of a federation stay at its sites.",
            "Use a score that needs moments or counts; for nonlinear effects pass "
            "WithFeatures(federation, basis).",
        )

    def disclosure(self) -> Disclosure:
        """Return what each site has released so far, with one entry per kind of sum."""
        sizes_of: dict[tuple[str, str, str], list[int]] = {}
        for r in self._releases:
            sizes_of.setdefault((r.site, r.what, r.form), []).append(r.size)
        entries = []
        for (site, what, form), sizes in sizes_of.items():
            repeated = what if len(sizes) == 1 else f"{len(sizes)} × {what}"
            entries.append(Release(site, repeated, form, sum(sizes)))
        return Disclosure(tuple(entries))

    def __repr__(self) -> str:
        return f"Federation({self._study.title!r}, {len(self._study.members)} sites)"


_POOLED = (
    "Tables are counts of all sites together, so sites of different levels can cause edges. Use a "
    "score of moments, such as DegenerateGaussian(), for relations within sites."
)


def _not_offered(missing: Missing) -> MismatchError:
    return MismatchError(
        f"{missing!r} is not offered in a federation. Use ExpectationMaximisation() for continuous "
        "variables; or let each site drop its incomplete rows, or make missing a level, before it "
        "takes part: Frame(table, missing=DropRows())."
    )
