"""The policy of a site: its own rules, which no study can relax."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import final

from isthmus.errors import RefusedError, StudyError
from isthmus.parties.agreement.earlier_formats import policy_from_format_1
from isthmus.parties.agreement.protocol import protocol_named, protocol_names, request_names
from isthmus.parties.agreement.study import Study
from isthmus.parties.agreement.toml import Reader, document, parse_toml

FORMAT = "isthmus-policy/2"
FORMAT_1 = "isthmus-policy/1"
ANY = "*"


@final
@dataclass(frozen=True)
class Policy:
    """The rules of a site. Where a study asks for more, the site refuses.

    Every key is required: what nobody has decided is not allowed.

    Parameters
    ----------
    minimum_cohort
        Number of rows that the site must have to take part.
    minimum_cell
        Smallest number of rows in a non-empty cell of a table of the site. If all sites use the
        same number, no non-empty cell of a sum over the sites is smaller. 1 allows all cells.
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
        While this file exists, the site answers nothing.
    """

    minimum_cohort: int
    minimum_cell: int
    minimum_organisations: int
    variables: tuple[str, ...]
    protocols: tuple[str, ...]
    requests: tuple[str, ...]
    rounds_per_study: int
    rounds_per_year: int
    queries_per_year: int
    stop_file: Path

    def __post_init__(self) -> None:
        if self.minimum_cohort < 1 or self.minimum_cell < 1:
            raise StudyError(
                f"minimum_cohort is {self.minimum_cohort} and minimum_cell is {self.minimum_cell}; "
                "both must be at least 1."
            )
        least = _least_organisations(self.protocols)
        if self.minimum_organisations < least:
            raise StudyError(
                f"minimum_organisations is {self.minimum_organisations}; it must be at least "
                f"{least} for the protocols {list(self.protocols)}. With fewer, one organisation "
                "learns the numbers of another."
            )

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Policy:
        """Read a policy file."""
        return cls.parse(Path(path).read_bytes())

    @classmethod
    def parse(cls, data: bytes) -> Policy:
        """Read the bytes of a policy file.

        Raises
        ------
        StudyError
            The message names all mistakes and all missing keys.
        """
        table = parse_toml(data, "policy")
        if table.get("format") == FORMAT_1:
            table = policy_from_format_1(table) | {"format": FORMAT}
        top = Reader(table, "policy")
        if top.take("format", str) != FORMAT:
            top.problems.append(f"format must be {FORMAT!r} (or {FORMAT_1!r})")
        protocols = top.strings("protocols", protocol_names())
        known = tuple(name for protocol in protocol_names() for name in request_names(protocol))
        requests = top.strings("requests", known)
        numbers = {
            key: top.integer(key, minimum)
            for key, minimum in (
                ("minimum_cohort", 1),
                ("minimum_cell", 1),
                ("minimum_organisations", 1),
                ("rounds_per_study", 0),
                ("rounds_per_year", 0),
                ("queries_per_year", 0),
            )
        }
        variables = top.strings("variables")
        stop_file = top.take("stop_file", str)
        if not stop_file:
            top.problems.append("stop_file must name a file")
        top.finish()
        return cls(
            **numbers,
            variables=variables,
            protocols=protocols,
            requests=requests,
            stop_file=Path(stop_file),
        )

    def to_toml(self) -> str:
        """Return the text of the policy file."""
        return document(
            {
                "format": FORMAT,
                "minimum_cohort": self.minimum_cohort,
                "minimum_cell": self.minimum_cell,
                "minimum_organisations": self.minimum_organisations,
                "variables": list(self.variables),
                "protocols": list(self.protocols),
                "requests": list(self.requests),
                "rounds_per_study": self.rounds_per_study,
                "rounds_per_year": self.rounds_per_year,
                "queries_per_year": self.queries_per_year,
                "stop_file": str(self.stop_file),
            },
            {},
        )

    def violations(self, study: Study) -> list[str]:
        """Return a phrase for each rule of this policy that a study breaks."""
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
        organisations = len({m.organisation for m in study.members})
        if organisations < self.minimum_organisations:
            broken.append(
                f"{organisations} organisations take part; at least {self.minimum_organisations} "
                "are required"
            )
        return broken

    def require(self, study: Study) -> None:
        """Raise `RefusedError` unless this policy allows the study."""
        broken = self.violations(study)
        if broken:
            raise RefusedError(
                f"The policy of this site does not allow the study {study.title!r}: "
                + "; ".join(broken)
                + ". Whoever is responsible for the study or for the policy must change one of "
                "them."
            )


def _least_organisations(protocols: tuple[str, ...]) -> int:
    """Return the smallest number that could make sense for any of these protocols."""
    return min((protocol_named(name).minimum_parties for name in protocols), default=1)
