"""A protocol from outside the package: its section, its minimum, its requests, its rounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar, final

import pytest
from tests.joint.consortium import Consortium

from isthmus.errors import AbortedError, FormatError, RefusedError, StudyError
from isthmus.statistics import Schema
from isthmus_joint import (
    Federation,
    Identity,
    InProcess,
    Member,
    MemoryLedger,
    Policy,
    Protocol,
    Request,
    Roster,
    SecureSums,
    Study,
    code_hash,
    protocol_names,
    register_protocol,
    register_request,
    request_names,
)
from isthmus_joint.agreement.toml import Least
from isthmus_joint.records.journal import Event
from isthmus_joint.records.ledger_writer import LedgerWriter, Sent, SiteRules
from isthmus_joint.request_catalogue import read_request
from isthmus_joint.transport.base import RejectedMessageError, drive

ASKED = Event("asked for a product", opens_round=True, sends_statistic=True, reveals_result=True)


@final
@register_protocol
@dataclass(frozen=True)
class SecretProduct(Protocol):
    """Two parties multiply columns of the same rows."""

    digits: Annotated[int, Least(1)] = 20

    name: ClassVar[str] = "secret product"
    minimum_parties: ClassVar[int] = 2
    events: ClassVar[tuple[Event, ...]] = (ASKED,)

    def problems(self, roster: Roster) -> list[str]:
        return [] if len(roster) == 2 else [f"{len(roster)} parties; exactly 2 are possible"]

    def describe(self, roster: Roster) -> str:
        return f"{self.name} of {len(roster)} parties"


@final
@register_request
@dataclass(frozen=True)
class AskProduct(Request):
    """The product of a column of one party with a column of the other."""

    left: str
    right: str

    name: ClassVar[str] = "product"
    protocol: ClassVar[str] = SecretProduct.name

    @property
    def variables(self) -> tuple[str, ...]:
        return self.left, self.right

    def violations(self, study: Study) -> list[str]:
        return ["the two columns are the same"] if self.left == self.right else []

    def __str__(self) -> str:
        return f"product of {self.left} and {self.right}"


@dataclass
class Pair:
    """Two organisations, an author, a coordinator."""

    folder: Path

    def __post_init__(self) -> None:
        self.keys = {name: Identity.generate() for name in ("bank", "insurer")}
        self.author, self.coordinator = Identity.generate(), Identity.generate()
        self.study = self.drafted(self.keys)

    def drafted(self, keys: Mapping[str, Identity], protocol: Protocol = SecretProduct()) -> Study:
        return Study.draft(
            "Two columns",
            purpose="test",
            author=self.author.public,
            coordinator=self.coordinator.public,
            members=[Member(n, n.title(), k.public) for n, k in keys.items()],
            schema=Schema.continuous(["income", "claims"]),
            bounds={"income": (0.0, 1.0), "claims": (0.0, 1.0)},
            protocol=protocol,
            requests=request_names(protocol.name),
            rounds=2,
        )

    def policy(self, **changes: Any) -> Policy:
        return replace(
            Policy(
                minimum_cohort=10,
                minimum_cell=1,
                minimum_organisations=2,
                variables=("*",),
                protocols=(SecretProduct.name,),
                requests=(AskProduct.name,),
                rounds_per_study=5,
                rounds_per_year=5,
                queries_per_year=5,
                stop_file=self.folder / "STOP",
                exact_studies=("*",),
            ),
            **changes,
        )


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


# --- the study ---------------------------------------------------------------------------------


def test_a_study_has_the_section_of_its_protocol(pair: Pair) -> None:
    assert b'[protocol]\nname = "secret product"\ndigits = 20\n' in pair.study.text
    again = Study.parse(pair.study.text.replace(b"digits = 20", b"digits = 7"))
    assert again.protocol == SecretProduct(digits=7)
    assert again.requests == {"product"}
    with pytest.raises(StudyError, match=r"protocol\.digits is 0"):
        Study.parse(pair.study.text.replace(b"digits = 20", b"digits = 0"))
    with pytest.raises(StudyError, match=r"protocol\.digits is missing.*protocol\.rows is not"):
        Study.parse(pair.study.text.replace(b"digits = 20", b"rows = 3"))


def test_the_protocol_sets_the_number_of_parties(pair: Pair) -> None:
    assert {SecretProduct.name, SecureSums.name} <= set(protocol_names())
    alone = {"bank": pair.keys["bank"]}
    with pytest.raises(StudyError, match=r"1 site.*'secret product'.*at least 2"):
        pair.drafted(alone)
    with pytest.raises(StudyError, match="exactly 2"):
        pair.drafted(pair.keys | {"broker": Identity.generate()})
    with pytest.raises(StudyError, match=r"2 sites.*'secure sums'.*at least 3"):
        pair.drafted(pair.keys, SecureSums())


def test_an_unknown_protocol_is_named(pair: Pair) -> None:
    text = pair.study.text.replace(b'name = "secret product"', b'name = "telepathy"')
    with pytest.raises(StudyError, match=r"no protocol 'telepathy'.*'secure sums'"):
        Study.parse(text)


def test_a_study_allows_only_requests_of_its_protocol(pair: Pair) -> None:
    text = pair.study.text.replace(b'requests = ["product"]', b'requests = ["moments"]')
    with pytest.raises(StudyError, match=r"'moments' .*\['product'\]"):
        Study.parse(text)


def test_a_federation_needs_secure_sums(pair: Pair) -> None:
    signatures = [pair.study.sign(pair.author)]
    signatures += [pair.study.sign(key, name) for name, key in pair.keys.items()]
    with pytest.raises(StudyError, match="a federation needs 'secure sums'"):
        Federation(pair.study, signatures, pair.coordinator, InProcess({}))


# --- the policy, the rules, the ledger ---------------------------------------------------------


def test_a_policy_allows_protocols_by_name(pair: Pair, four: Consortium) -> None:
    pair.policy().require(pair.study)
    both = pair.policy(protocols=(SecretProduct.name, SecureSums.name))
    assert Policy.parse(both.to_toml().encode()) == both
    with pytest.raises(StudyError, match=r"minimum_organisations is 2"):
        pair.policy(protocols=(SecureSums.name,))
    with pytest.raises(RefusedError, match=r"protocol 'secure sums'"):
        pair.policy().require(four.study)


def test_rules_and_ledger_serve_any_protocol(pair: Pair) -> None:
    ledger = MemoryLedger()
    writer = LedgerWriter(pair.study, pair.policy(), ledger)
    rules = SiteRules(pair.study, pair.policy(), writer, lambda: datetime.now(UTC), code_hash())
    rules.require_open()
    request = AskProduct("income", "claims")
    assert rules.violations(request) == []
    assert rules.violations(AskProduct("income", "income")) == ["the two columns are the same"]
    assert rules.row_violations(3) == ["fewer than 10 rows"]
    for number in (1, 2):
        sent = Sent(1, 100, "shared secret", "fingerprint")
        everyone = pair.study.roster.everyone
        writer.record(ASKED, number, request=request, sent=sent, parties=everyone)
    assert writer.here.tally.last_round == 2
    assert [e["what"] for e in ledger.entries()] == ["product of income and claims"] * 2
    assert ledger.entries()[0]["sites"] == ["bank", "insurer"]
    assert rules.violations(request) == ["2 rounds were opened in this study; 2 are allowed"]


def test_entries_of_an_unknown_protocol_count_towards_the_limits(pair: Pair) -> None:
    ledger = MemoryLedger()
    for _ in range(5):
        ledger.append("of a protocol that is not installed", study="another", round=1)
    writer = LedgerWriter(pair.study, pair.policy(), ledger)
    rules = SiteRules(pair.study, pair.policy(), writer, lambda: datetime.now(UTC), code_hash())
    assert rules.limits() == [
        "the policy allows 5 rounds per year",
        "the policy allows 5 queries per year",
    ]


def test_requests_are_read_by_their_registered_class(pair: Pair, four: Consortium) -> None:
    request = AskProduct("income", "claims")
    assert read_request(request.to_bytes(), pair.study) == request
    for data in (b'{"moments":["income"]}', b'{"product":"income","right":"height"}', b"{}", b"[]"):
        with pytest.raises(FormatError):
            read_request(data, pair.study)
    with pytest.raises(FormatError):
        read_request(AskProduct("age", "dose").to_bytes(), four.study)


# --- the transport -----------------------------------------------------------------------------


class Handshake:
    """A round of one exchange: each party says its name."""

    def __init__(self, names: list[str]) -> None:
        self.left = set(names)

    @property
    def waiting(self) -> tuple[str, ...]:
        return tuple(sorted(self.left))

    def begin(self) -> dict[str, bytes]:
        return dict.fromkeys(self.left, b"who?")

    def receive(self, data: bytes) -> None:
        if data.decode() not in self.left:
            raise RejectedMessageError("bad_name")
        self.left.discard(data.decode())

    def advance(self) -> dict[str, bytes]:
        if self.left:
            raise AbortedError("somebody is missing", silent=self.waiting)
        return {}

    def again(self) -> dict[str, bytes]:
        return {}


def handlers(names: Iterator[str] | list[str]) -> dict[str, Any]:
    return {name: lambda _data, name=name: name.encode() for name in names}


def test_a_transport_drives_rounds_of_any_protocol(pair: Pair) -> None:
    names = list(pair.keys)
    drive(Handshake(names), InProcess(handlers(names)))
    wrong = handlers(names) | {"bank": lambda _data: b"stranger"}
    with pytest.raises(AbortedError) as caught:
        drive(Handshake(names), InProcess(wrong))
    assert caught.value.silent == ("bank",)
    assert caught.value.__notes__ == ["1 messages were rejected: ['bad_name']."]
