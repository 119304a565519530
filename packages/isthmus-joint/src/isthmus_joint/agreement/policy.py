"""The policy of a site: its own rules, which no study can relax."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, final

from isthmus.errors import IsthmusError, RefusedError, StudyError, counted
from isthmus_joint.agreement.identity import key_bytes, key_text
from isthmus_joint.agreement.protocol import COLUMNS_PER_ROW, LARGEST_SHARE
from isthmus_joint.agreement.protocol_catalogue import protocol_named, protocol_names, request_names
from isthmus_joint.agreement.roster import NOT_PERSONS, Member, Persons
from isthmus_joint.agreement.study import Study
from isthmus_joint.agreement.toml import Least, Reader, Text, document, plain
from isthmus_joint.noise.accounting import Spending, epsilon_of

FORMAT = "isthmus-policy/3"
ANY = "*"

UNLIMITED = 1e300
"""Columns per row of a policy that does not limit them."""

NOT_FOR_PERSONS = frozenset({"networks"})
"""Requests whose answers single out rows: the first layer of a network can be a window around one
person, and a malicious site can steer it there."""

SMALLEST_CELL = 3
"""Exact sums of persons have no smaller cells, whatever a policy says."""

MAXIMUM_DELTA = 1e-6
"""The δ at which the budget of all studies with differential privacy is counted."""

BUDGET = ("maximum_epsilon", "maximum_delta", "epsilon_per_study")
"""Keys that only sites have which take part in studies with differential privacy."""

LISTS = ("exact_studies", "newer_values", "only_with")
"""Keys that a policy has only if they are not empty."""

ROUNDING = 1e-9
"""Relative error of an ε that was computed from a sum of costs."""


@dataclass(frozen=True, kw_only=True)
class DataRules:
    """The rules of a policy that depend on data, which are checked when a table is frozen."""

    minimum_cohort: Annotated[int, Least(1)]
    minimum_cell: Annotated[int, Least(1)]
    columns_per_row: float = COLUMNS_PER_ROW
    largest_share: float = LARGEST_SHARE
    persons: Annotated[Persons, Text(str, Persons)] = Persons()

    def is_weaker_than(self, other: DataRules) -> bool:
        """Return whether the other rules are stricter, or count persons in another way."""
        return (
            self.minimum_cohort < other.minimum_cohort
            or self.minimum_cell < other.minimum_cell
            or self.columns_per_row > other.columns_per_row
            or self.largest_share > other.largest_share
            or self.persons != other.persons
        )


@final
@dataclass(frozen=True, kw_only=True)
class Policy(DataRules):
    """The rules of a site. Where a study asks for more, the site refuses.

    Every key is required: what nobody has decided is not allowed.

    Parameters
    ----------
    minimum_cohort
        Number of persons that the site must have to take part in a study with exact sums.
    minimum_cell
        Smallest number of persons in a non-empty cell of a table of the site, or with a value that
        the released sums single out. If all sites use the same number, no non-empty cell of a sum
        over the sites is smaller. At least 3 for exact sums, where rows describe persons.
    minimum_organisations
        Number of organisations that must take part in every result. At least the minimum of each
        allowed protocol holds in any case.
    variables
        Names of the variables that may be used; ``"*"`` for all.
    protocols
        Names of the protocols that studies may use.
    requests
        Names of the requests that the site answers.
    rounds_per_study
        Number of rounds that are answered in one study.
    rounds_per_year, queries_per_year
        Number of rounds that are opened, and of statistics that are sent, over all studies in 365
        days.
    stop_file
        While this file exists, the site answers nothing. Relative to `folder`.
    columns_per_row
        How many columns may be released per row of the site; 0.33 means three rows per column.
    largest_share
        The largest share that one person may have in the sum of squares of any combination of the
        released columns. 1 allows all.
    persons
        The person or persons that a row describes.
    peers
        The parties with which this site takes part in studies: name, organisation and key of each,
        including this site. ``None`` accepts any, for simulations.
    revoked
        Keys that must not be used any more, by anybody.
    maximum_epsilon, maximum_delta
        The budget of all studies with differential privacy together, over the life of the ledger.
        With an epsilon of 0, the site takes part in no such study.
    epsilon_per_study
        The largest budget of one such study, at `maximum_delta`. By default the same as that of
        all together.
    exact_studies
        SHA-256 of each study without noise that the site takes part in, as `isthmus study show`
        prints it; ``"*"`` for any, for simulations. Exact sums protect sites from each other, and
        no person from an analyst: whoever is responsible for the data allows them study by study.
    newer_values
        SHA-256 of each study of two parties in which columns that were shared with the other party
        before may have other values, or be of other people. The difference of the two results is
        then about those whose values differ: about one person if only one does.
    only_with
        Names of the sites of every result, including this one; empty for no such rule. A study of
        other sites is refused, and so is a sum that one of them is missing in: nobody can then
        subtract two results and learn the numbers of a site. Without one of them there is no
        result, and no other site can join.
    folder
        Folder of the policy file. Paths in the policy are relative to it.
    """

    minimum_organisations: Annotated[int, Least(1)]
    variables: tuple[str, ...]
    protocols: tuple[str, ...]
    requests: tuple[str, ...]
    rounds_per_study: Annotated[int, Least(0)]
    rounds_per_year: Annotated[int, Least(0)]
    queries_per_year: Annotated[int, Least(0)]
    stop_file: Annotated[Path, Text(str, Path)]
    peers: tuple[Member, ...] | None = None
    revoked: tuple[bytes, ...] = ()
    maximum_epsilon: float = 0.0
    maximum_delta: float = MAXIMUM_DELTA
    exact_studies: tuple[str, ...] = ()
    epsilon_per_study: float = math.inf
    newer_values: tuple[str, ...] = ()
    only_with: tuple[str, ...] = ()
    folder: Path = field(default=Path(), compare=False)

    def __post_init__(self) -> None:
        if not (self.columns_per_row > 0 and 0 < self.largest_share <= 1):
            raise StudyError(
                f"columns_per_row is {self.columns_per_row} and largest_share is "
                f"{self.largest_share}; the first must be positive, the second in (0, 1]."
            )
        if self.minimum_cohort < 1 or self.minimum_cell < 1:
            raise StudyError(
                f"minimum_cohort is {self.minimum_cohort} and minimum_cell is {self.minimum_cell}; "
                "both must be at least 1."
            )
        if not (0 <= self.maximum_epsilon < math.inf and 0 < self.maximum_delta < 1):
            raise StudyError(
                f"maximum_epsilon is {self.maximum_epsilon} and maximum_delta is "
                f"{self.maximum_delta}; the first must not be negative, the second in (0, 1)."
            )
        if not self.epsilon_per_study > 0:
            raise StudyError(
                f"epsilon_per_study is {self.epsilon_per_study}; it must be positive. Leave it out "
                "if one study may use up the whole budget."
            )
        least = min((protocol_named(n).minimum_parties for n in self.protocols), default=1)
        if self.minimum_organisations < least:
            raise StudyError(
                f"minimum_organisations is {self.minimum_organisations}; it must be at least "
                f"{least} for the protocols {list(self.protocols)}. With fewer, one organisation "
                "learns the numbers of another."
            )

    def rules_on_data(self) -> DataRules:
        """Return the rules that depend on data, that an extract was checked against."""
        return DataRules(**{f.name: getattr(self, f.name) for f in fields(DataRules)})

    @property
    def epsilon_limit(self) -> float:
        """`maximum_epsilon`, and as much as rounding errors can add."""
        return self.maximum_epsilon * (1 + ROUNDING)

    @property
    def needs_witnesses(self) -> bool:
        """Whether what left earlier limits what may leave, so that the ledger must be complete."""
        return (
            self.minimum_cohort > 1
            or self.minimum_cell > 1
            or self.largest_share < 1
            or self.columns_per_row < UNLIMITED
            or self.maximum_epsilon > 0
        )

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Policy:
        """Read a policy file, which nobody but its owner and their group can change."""
        mode = Path(path).stat().st_mode & 0o777
        if os.name == "posix" and mode & 0o002:
            raise StudyError(
                f"The policy {path} can be changed by everybody on this machine (mode {mode:o}). "
                "Check what it says, and run chmod 600 on it."
            )
        policy = cls.parse(Path(path).read_bytes(), Path(path).resolve().parent)
        if not policy.stop_path.parent.is_dir():
            raise StudyError(
                f"The policy {path} has the stop_file {str(policy.stop_file)!r}, in a folder that "
                "does not exist here, so that nobody could stop the site. Write stop_file = "
                '"STOP" for a file beside the policy, or the path of a folder that exists.'
            )
        return policy

    @property
    def stop_path(self) -> Path:
        """Path of the stop file."""
        return self.folder / self.stop_file

    @classmethod
    def parse(cls, data: bytes, folder: Path = Path()) -> Policy:
        """Read the bytes of a policy file in a folder.

        Raises
        ------
        StudyError
            The message names all mistakes and all missing keys.
        """
        top = Reader.parse(data, "policy", FORMAT)
        known = tuple(name for protocol in protocol_names() for name in request_names(protocol))
        make = top.record(
            cls,
            optional=(*BUDGET, *LISTS),
            protocols=top.strings("protocols", protocol_names()),
            requests=top.strings("requests", known),
            revoked=read_revoked(top),
            peers=None
            if top.is_text("peers", ANY)
            else tuple(top.records("peers", Member, empty=True)),
            folder=folder,
        )
        top.finish()
        return make()

    def to_toml(self) -> str:
        """Return the text of the policy file."""
        return document(
            {
                "format": FORMAT,
                **plain(self, without=(*BUDGET, *LISTS, "revoked", "peers", "folder")),
                **self._budget(),
                **{name: list(own) for name in LISTS if (own := getattr(self, name))},
                "revoked": [key_text(key) for key in self.revoked],
                **({} if self.peers else {"peers": ANY if self.peers is None else []}),
            },
            {"peers": [plain(m) for m in self.peers or ()]},
        )

    def _budget(self) -> dict[str, object]:
        """Return the keys on differential privacy, which only sites that take part in it have."""
        if self.maximum_epsilon == 0:
            return {}
        others = [f.name for f in fields(self) if f.name not in BUDGET]
        return {name: value for name, value in plain(self, others).items() if value < math.inf}

    def allowing(self, study: Study) -> Policy:
        """Return the policy with exact sums, or newer values of two parties, in this study."""
        own = study.identity.hex()
        if not study.protocol.results_add_up:
            return replace(self, newer_values=tuple(dict.fromkeys((*self.newer_values, own))))
        return replace(self, exact_studies=tuple(dict.fromkeys((*self.exact_studies, own))))

    def violations(self, study: Study, spent: Spending | None = None) -> list[str]:
        """Return a phrase for each rule that a study breaks, after what was `spent` on noise."""
        broken = []
        if ANY not in self.variables:
            others = [n for n in study.schema.names if n not in self.variables]
            if others:
                broken.append(f"it uses the variables {others[:10]}, which are not allowed")
        if study.protocol.name not in self.protocols:
            broken.append(f"its protocol {study.protocol.name!r} is not allowed")
        others = sorted(study.requests.difference(self.requests))
        if others:
            broken.append(f"its requests {others} are not allowed")
        if NOT_FOR_PERSONS & study.requests and not self.persons.not_persons:
            broken.append(
                f"its requests {sorted(NOT_FOR_PERSONS & study.requests)} are for rows that do not "
                f"describe persons (persons = {NOT_PERSONS!r}), because neural networks can single "
                "out rows"
            )
        exact = study.protocol.results_add_up and study.privacy is None
        if exact and not self.persons.not_persons and self.minimum_cell < SMALLEST_CELL:
            broken.append(
                f"minimum_cell is {self.minimum_cell}; exact sums of persons need at least "
                f"{SMALLEST_CELL}"
            )
        broken += self._strangers(study)
        broken += self._overspent(study, Spending() if spent is None else spent)
        names = {m.name for m in study.members}
        if self.only_with and names != set(self.only_with):
            broken.append(
                f"its sites are not those of only_with; more: {sorted(names - {*self.only_with})}, "
                f"missing: {sorted({*self.only_with} - names)}"
            )
        organisations = len({m.organisation for m in study.members})
        if organisations < self.minimum_organisations:
            broken.append(
                f"{counted(organisations, 'organisation')} would take part; at least "
                f"{self.minimum_organisations} are required"
            )
        return broken

    def _overspent(self, study: Study, spent: Spending) -> list[str]:
        """Return a phrase for each budget of differential privacy that a study exceeds."""
        privacy, delta = study.privacy, self.maximum_delta
        if privacy is None:
            allowed = {ANY, study.identity.hex()}.intersection(self.exact_studies)
            lacking = (
                "its sums are exact, which protects no person from an analyst, and exact_studies "
                "does not have its SHA-256. If whoever is responsible for the data allows it, run "
                "'isthmus site policy HOME STUDY --exact'"
            )
            return [lacking] if study.protocol.results_add_up and not allowed else []
        asked, broken = epsilon_of(privacy.rho, delta), []
        budget = f"its budget of ε = {privacy.epsilon:g} at δ = {privacy.delta:g}"
        single = self.epsilon_per_study
        if asked > single * (1 + ROUNDING):
            broken.append(f"{budget} is more than ε = {single:g} at δ = {delta:g} per study")
        if asked > self.epsilon_limit:
            broken.append(f"{budget} is more than ε = {self.maximum_epsilon:g} at δ = {delta:g}")
            return broken
        before = spent.without(study.identity.hex())
        total = epsilon_of(before + privacy.rho, delta)
        if total > self.epsilon_limit:
            broken.append(
                f"{budget} and the ε = {epsilon_of(before, delta):.3g} that earlier studies have "
                f"used are ε = {total:.3g} together; ε = {self.maximum_epsilon:g} at δ = "
                f"{delta:g} is allowed over all studies"
            )
        return broken

    def _strangers(self, study: Study) -> list[str]:
        """Return a phrase for each key that the policy does not know or does not accept."""
        keys = [study.author, study.coordinator, *(m.key for m in study.members)]
        broken = []
        if any(key in self.revoked for key in keys):
            broken.append("it uses a key that was revoked")
        if self.peers is not None:
            others = [m.name for m in study.members if m not in self.peers]
            if others:
                broken.append(
                    f"the sites {others[:10]} are not among the peers of the policy with this "
                    "organisation and key; confirm the keys with them, and add them"
                )
        return broken

    def require(self, study: Study, spent: Spending | None = None) -> None:
        """Raise `RefusedError` unless this policy allows the study, after what was `spent`."""
        broken = self.violations(study, spent)
        if broken:
            raise RefusedError(
                f"The policy of this site does not allow the study {study.title!r}: "
                + "; ".join(broken)
                + ". Whoever is responsible for the study or for the policy must change one of "
                "them."
            )


def read_revoked(top: Reader) -> tuple[bytes, ...]:
    """Read the revoked keys."""
    found = []
    for text in top.strings("revoked"):
        try:
            found.append(key_bytes(text))
        except IsthmusError as error:
            top.problems.append(f"revoked: {str(error).rstrip('.')}")
    return tuple(found)
