"""A study of two parties: its section, what is refused, and that no coordinator is needed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.joint.shares.companies import LEVELS, Companies, holdings, protocol

from isthmus.errors import RefusedError, StudyError
from isthmus.statistics import Schema
from isthmus_joint import Federation, Identity, InProcess, Member, Study, request_names
from isthmus_joint.request_catalogue import read_request
from isthmus_joint.secure_sum.protocol import secure_sums
from isthmus_joint.shares.protocol import Holding, IdentifierKind, TwoParties, two_parties
from isthmus_joint.shares.requests import (
    CrossMoments,
    IntersectionSize,
    OwnTables,
    PrivateK2Request,
    StructureOnlyRequest,
)


def test_a_study_keeps_its_section() -> None:
    given = protocol(
        score="BDeu",
        ess=10.0,
        identifier_kind=IdentifierKind.INTEGER,
        max_parents=3,
        minimum_cell=7,
        largest_share=0.2,
        columns_per_row=0.1,
    )
    study = Companies(protocol=given).study
    assert Study.parse(study.text).protocol == given
    assert study.coordinator is None
    assert study.roster.coordinator is None
    assert b"coordinator" not in study.text
    assert "2 columns" in study.protocol.describe(study.roster)


def test_a_study_of_two_has_no_coordinator() -> None:
    with pytest.raises(StudyError, match="coordinator"):
        Companies(coordinator=Identity.generate().public)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"order": ("debt", "income")}, r"order must contain every variable.*'visits'"),
        ({"order": ("debt", "debt", "income", "visits")}, r"order must contain .*'debt'"),
        ({"parties": holdings(("income",), ("visits",))}, r"columns of the parties .*'debt'"),
        ({"parties": holdings(("income", "debt", "visits"), ())}, r"'shop' has no columns"),
        ({"parties": holdings()[::-1]}, r"must name the sites \['bank', 'shop'\], in this order"),
        ({"identifier": "debt"}, "cannot be a variable as well"),
        ({"identifier": ""}, "identifier must name a column"),
        ({"minimum_cohort": 1}, "minimum_cohort is 1; it must be at least 2"),
        ({"score": "AIC"}, "score is 'AIC'"),
        ({"score": "BDeu", "ess": 0.0}, "ess is 0.0"),
        ({"score": "BDeu", "ess": 1.1e6}, r"ess is 1.1e\+06; it must be at most 1e\+06"),
        ({"largest_share": 0.0}, "largest_share is 0.0"),
        ({"parties": tuple(replace(h, people=1) for h in holdings())}, "people is 1; it must be"),
        (
            {"parties": (Holding("bank", "md5:12", ("income", "debt"), 9), holdings()[1])},
            "certificate of 'bank'",
        ),
    ],
)
def test_wrong_sections_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(StudyError, match=message):
        Companies(protocol=protocol(**changes))


def test_equal_certificates_are_refused() -> None:
    same = tuple(replace(h, certificate="sha256:" + "a" * 64) for h in holdings())
    with pytest.raises(StudyError, match="same certificate"):
        Companies(protocol=protocol(parties=same))


def test_three_parties_and_one_organisation_are_refused() -> None:
    keys = [Identity.generate().public for _ in range(3)]
    three = [Member(n, n, k) for n, k in zip(("bank", "shop", "spy"), keys, strict=True)]
    with pytest.raises(StudyError, match="exactly 2"):
        Companies(members=three)
    one = [Member(n, "the same", k) for n, k in zip(("bank", "shop"), keys, strict=False)]
    with pytest.raises(StudyError, match="the study has 1 organisation;"):
        Companies(members=one)


def test_unknown_values_and_keys_in_the_file() -> None:
    text = Companies().study.text
    for old, new, message in (
        (b'"both"', b'"nobody"', "intersection is 'nobody'"),
        (b'"text"', b'"number"', "identifier_kind is 'number'"),
        (b"max_parents = 2", b"max_parents = 2\nmost = 1", "protocol.most is not a known key"),
        (b"max_parents = 2\n", b"", "max_parents is missing"),
        (b'columns = ["visits"]', b'columns = ["visits"], more = 1', r"parties\[1\].more"),
    ):
        assert old in text
        with pytest.raises(StudyError, match=message):
            Study.parse(text.replace(old, new))


def test_one_party_may_learn_who_the_people_are() -> None:
    study = Companies(protocol=protocol(intersection="shop")).study
    terms = two_parties(Study.parse(study.text).protocol)
    assert (terms.intersection, terms.knower) == ("shop", 1)
    assert (terms.knows("shop"), terms.knows("bank")) == (True, False)
    assert "bank learns only how many" in terms.describe(study.roster)
    assert PrivateK2Request.of(study).violations(study) == []
    assert IntersectionSize.of(study).violations(study) == []
    for request in (OwnTables, CrossMoments):
        assert "needs intersection = 'both'" in request.of(study).violations(study)[-1]
    numbers = Companies(
        schema=Schema.continuous(LEVELS),
        bounds=dict.fromkeys(LEVELS, (0.0, 1.0)),
        requests=[StructureOnlyRequest.name],
        protocol=protocol(intersection="bank"),
    ).study
    assert "needs intersection = 'both'" in StructureOnlyRequest.of(numbers).violations(numbers)[-1]


def test_policies_allow_requests_by_name(tmp_path: Path) -> None:
    companies = Companies()
    companies.policy(tmp_path).require(companies.study)
    with pytest.raises(RefusedError, match="private k2"):
        companies.policy(tmp_path, requests=(StructureOnlyRequest.name,)).require(companies.study)
    with pytest.raises(RefusedError, match="two parties"):
        companies.policy(tmp_path, protocols=(), minimum_organisations=1).require(companies.study)


def test_requests() -> None:
    study = Companies().study
    networks = {"private k2", "structure only", "own tables"}
    others = {"cross moments", "intersection size"}
    assert set(request_names(TwoParties.name)) == networks | others
    request = PrivateK2Request.of(study)
    assert read_request(request.to_bytes(), study) == request
    assert request.violations(study) == []
    assert PrivateK2Request(request.names[::-1]).violations(study) == [
        "the variables are not in the order of the study"
    ]
    assert "all continuous" in CrossMoments.of(study).violations(study)[0]
    numbers = Companies(
        schema=Schema.continuous(LEVELS),
        bounds=dict.fromkeys(LEVELS, (0.0, 1.0)),
        requests=[CrossMoments.name],
    ).study
    assert CrossMoments.of(numbers).violations(numbers) == []
    assert StructureOnlyRequest.of(numbers).violations(numbers) == []
    assert "all discrete" in PrivateK2Request.of(numbers).violations(numbers)[0]
    many = Companies(
        schema=Schema.continuous(LEVELS),
        bounds=dict.fromkeys(LEVELS, (0.0, 1.0)),
        protocol=protocol(max_parents=4),
        requests=[StructureOnlyRequest.name],
    ).study
    assert "at most 3 parents" in StructureOnlyRequest.of(many).violations(many)[0]


def test_too_many_sets_of_parents_are_refused_before_identifiers_are_compared() -> None:
    names = tuple(f"v{i}" for i in range(40))

    def violations(parents: int) -> list[str]:
        terms = protocol(parties=holdings(names[:20], names[20:]), order=names, max_parents=parents)
        study = Companies(
            schema=Schema.discrete(dict.fromkeys(names, ("no", "yes"))),
            protocol=terms,
            requests=[StructureOnlyRequest.name],
        ).study
        return StructureOnlyRequest.of(study).violations(study)

    assert violations(3) == []
    assert "more than 200,000 sets of parents" in violations(4)[0]


def test_a_federation_and_two_parties_do_not_mix() -> None:
    study = Companies().study
    with pytest.raises(StudyError, match="secure sums"):
        secure_sums(study.protocol).terms(study.roster)
    assert two_parties(study.protocol).other("bank").name == "shop"
    with pytest.raises(Exception, match="another coordinator"):
        Federation(study, [], Identity.generate(), InProcess({}))
