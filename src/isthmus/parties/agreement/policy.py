"""The policy of a site: its own rules, which no study can loosen."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import final

from isthmus.errors import RefusedError, StudyError
from isthmus.parties.agreement.roster import FEWEST
from isthmus.parties.agreement.study import Method, Study
from isthmus.parties.agreement.toml import Reader, document
from isthmus.sources.horizontal.requests.sums import Message

FORMAT = "isthmus-policy/1"
ANY = "*"


@final
@dataclass(frozen=True)
class Policy:
    """What a site allows. Where a study asks for more, the site refuses.

    Every key must be there: what nobody decided is not allowed.

    Parameters
    ----------
    minimum_cohort
        Rows that the site must have for it to take part.
    minimum_cell
        Smallest number of rows that a filled cell of a table of the site may have. When all sites
        keep to it, no cell of the sum is smaller. 1 allows all cells.
    minimum_organisations
        Organisations that must be behind every sum; at least three.
    variables
        Names that may be used; ``"*"`` for all.
    methods, messages
        What studies may do and ask for.
    rounds_per_study
        Rounds that are answered in one study.
    rounds_per_year, queries_per_year
        Rounds that are opened, and statistics that are sent, over all studies in 365 days.
    stop_file
        Where this file exists, the site answers nothing: the kill switch.
    """

    minimum_cohort: int
    minimum_cell: int
    minimum_organisations: int
    variables: tuple[str, ...]
    methods: tuple[Method, ...]
    messages: tuple[Message, ...]
    rounds_per_study: int
    rounds_per_year: int
    queries_per_year: int
    stop_file: Path

    def __post_init__(self) -> None:
        if self.minimum_organisations < FEWEST:
            raise StudyError(
                f"A policy allows sums over {self.minimum_organisations} organisations; with fewer "
                f"than {FEWEST} one learns the numbers of another."
            )
        if self.minimum_cohort < 1 or self.minimum_cell < 1:
            raise StudyError("The smallest cohort and the smallest cell are at least 1.")

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Policy:
        """Read a policy file."""
        return cls.parse(Path(path).read_bytes())

    @classmethod
    def parse(cls, data: bytes) -> Policy:
        """Read the bytes of a policy file; `StudyError` names all mistakes and missing keys."""
        top = Reader.of(data, "policy")
        if top.take("format", str) != FORMAT:
            top.wrong.append(f"format must be {FORMAT!r}")
        numbers = {
            key: top.whole(key, least)
            for key, least in (
                ("minimum_cohort", 1),
                ("minimum_cell", 1),
                ("minimum_organisations", FEWEST),
                ("rounds_per_study", 0),
                ("rounds_per_year", 0),
                ("queries_per_year", 0),
            )
        }
        variables = top.words("variables")
        words = {key: top.words(key) for key in ("methods", "messages")}
        stop = top.take("stop_file", str)
        for key, kind in (("methods", Method), ("messages", Message)):
            known = {str(m) for m in kind}
            top.wrong += [f"{key}: {w!r} is not known" for w in words[key] if w not in known]
        if not stop:
            top.wrong.append("stop_file must name a file")
        top.finish()
        return cls(
            **numbers,
            variables=variables,
            methods=tuple(map(Method, words["methods"])),
            messages=tuple(map(Message, words["messages"])),
            stop_file=Path(stop),
        )

    def to_toml(self) -> str:
        """As a file."""
        return document(
            {
                "format": FORMAT,
                "minimum_cohort": self.minimum_cohort,
                "minimum_cell": self.minimum_cell,
                "minimum_organisations": self.minimum_organisations,
                "variables": list(self.variables),
                "methods": [m.value for m in self.methods],
                "messages": [m.value for m in self.messages],
                "rounds_per_study": self.rounds_per_study,
                "rounds_per_year": self.rounds_per_year,
                "queries_per_year": self.queries_per_year,
                "stop_file": str(self.stop_file),
            },
            {},
        )

    def against(self, study: Study) -> list[str]:
        """Sentences that say what of a study this policy does not allow."""
        found = []
        if ANY not in self.variables:
            others = [n for n in study.schema.names if n not in self.variables]
            if others:
                found.append(f"it uses the variables {others[:10]}, which are not allowed")
        if study.method not in self.methods:
            found.append(f"its method {study.method.value!r} is not allowed")
        wrong = sorted(m.value for m in study.messages if m not in self.messages)
        if wrong:
            found.append(f"its messages {wrong} are not allowed")
        behind = len({m.organisation for m in study.members})
        if behind < self.minimum_organisations:
            found.append(f"{behind} organisations take part, not {self.minimum_organisations}")
        return found

    def require(self, study: Study) -> None:
        """Raise `RefusedError` unless the study is within this policy."""
        against = self.against(study)
        if against:
            raise RefusedError(
                f"The policy of this site stands against the study {study.title!r}: "
                + "; ".join(against)
                + ". The study or the policy must be changed by those who answer for it."
            )
