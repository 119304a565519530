"""The rules of a party, just below each threshold, at it, and just above it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.joint.shares.companies import LEVELS, Companies, holdings, protocol

from isthmus.errors import AbortedError, LedgerError, RefusedError
from isthmus.statistics import Schema
from isthmus_joint import Identity, Ledger, MemoryJournal, MemoryLedger
from isthmus_joint.agreement.roster import Persons
from isthmus_joint.commands.keys import PASSPHRASE
from isthmus_joint.records.ledger import summary
from isthmus_joint.records.ledger_entries import signed_bytes
from isthmus_joint.shares.openings import DONE, HeldShare, NextRun, RunJournal, refusals
from isthmus_joint.shares.party_controller import ATTEMPTS, GREETING, PartyController
from isthmus_joint.shares.party_table import PartyTable
from isthmus_joint.shares.requests import (
    CrossMoments,
    OwnTables,
    PrivateK2Request,
    StructureOnlyRequest,
    TwoPartyRequest,
)
from isthmus_joint.shares.two_party import engine_environment

STEPS = (-1, 0, 1)
RUN = NextRun(1)
NONCES = ("1", "2")


def numbers() -> Companies:
    return Companies(
        schema=Schema.continuous(LEVELS),
        bounds=dict.fromkeys(LEVELS, (-100.0, 100.0)),
        requests=[CrossMoments.name],
    )


def controller(
    companies: Companies,
    folder: Path,
    data: dict[str, Any],
    ledger: Ledger | None = None,
    name: str = "bank",
    **rules: Any,
) -> PartyController:
    """The controller of a party that has brought its table."""
    kind: type[TwoPartyRequest] = PrivateK2Request
    if CrossMoments.name in companies.study.requests:
        kind = CrossMoments
    lenient = {"largest_share": 1.0, "columns_per_row": 1e300, "minimum_cohort": 1}
    policy = companies.policy(folder, **(lenient | {"requests": (kind.name,)} | rules))
    study, keys = companies.study, companies.keys
    signatures = [study.sign(keys["bank"]), *(study.sign(k, n) for n, k in keys.items())]
    made = PartyController(
        study,
        signatures,
        keys[name],
        policy,
        MemoryLedger() if ledger is None else ledger,
        RunJournal(MemoryJournal()),
        kind.of(study),
    )
    made.bring(PartyTable.read(data, study, name, keys[name], policy.persons))
    return made


def columns(rows: int, **given: NDArray[Any]) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    values = {"income": rng.normal(size=rows), "debt": rng.normal(size=rows)}
    return {"person": [f"p{i}" for i in range(rows)], **values, **given}


def is_allowed(made: PartyController, positions: Any) -> bool:
    try:
        made.record_sharing(RUN, np.asarray(positions, dtype=np.intp))
    except RefusedError:
        return False
    return True


@pytest.mark.parametrize("step", STEPS)
def test_rows_per_column_counts_the_columns_of_both(step: int, tmp_path: Path) -> None:
    made = controller(numbers(), tmp_path, columns(40), columns_per_row=0.25)
    assert is_allowed(made, range(12 + step)) == (step >= 0)  # three columns


@pytest.mark.parametrize("step", STEPS)
def test_the_cohort_is_that_of_common_people(step: int, tmp_path: Path) -> None:
    made = controller(numbers(), tmp_path, columns(90), minimum_cohort=30)
    assert is_allowed(made, range(30 + step)) == (step >= 0)


@pytest.mark.parametrize("step", STEPS)
def test_the_cohort_counts_persons(step: int, tmp_path: Path) -> None:
    """Identifiers are accounts; the policy says which column identifies a person."""
    table = columns(90, owner=np.arange(90) % (30 + step))
    rules: dict[str, Any] = {"persons": Persons("column:owner"), "minimum_cohort": 30}
    made = controller(numbers(), tmp_path, table, **rules)
    assert is_allowed(made, range(90)) == (step >= 0)


@pytest.mark.parametrize("step", STEPS)
def test_rare_values_among_common_people(step: int, tmp_path: Path) -> None:
    rare = (np.arange(90) < 5 + step).astype(float)
    made = controller(numbers(), tmp_path, columns(90, debt=rare), minimum_cell=5)
    assert is_allowed(made, range(90)) == (step >= 0)


def test_dominance_among_common_people(tmp_path: Path) -> None:
    large = np.random.default_rng(1).normal(size=90)
    large[7] = 60.0
    made = controller(numbers(), tmp_path, columns(90, debt=large), largest_share=0.5)
    assert is_allowed(made, np.delete(np.arange(90), 7))
    made = controller(numbers(), tmp_path, columns(90, debt=large), largest_share=0.5)
    assert not is_allowed(made, range(90))


def test_constant_columns_are_refused_like_everything_else(tmp_path: Path) -> None:
    ledger = MemoryLedger()
    constant = np.r_[np.zeros(50), np.ones(40)]
    made = controller(numbers(), tmp_path, columns(90, debt=constant), ledger)
    with pytest.raises(RefusedError, match=r"\['debt'\] are constant"):
        made.record_sharing(RUN, np.arange(50))
    assert [(e["event"], e["why"]) for e in ledger.entries()] == [("refused", "data")]


def test_a_network_needs_a_cohort_and_no_more(tmp_path: Path) -> None:
    codes = {"income": ["low"] * 29 + ["high"], "debt": ["no"] * 30}
    rules: dict[str, Any] = {"minimum_cell": 5, "largest_share": 0.1, "columns_per_row": 0.01}
    table = {"person": [f"p{i}" for i in range(30)], **codes}
    assert is_allowed(controller(Companies(), tmp_path, table, **rules), range(30))


@pytest.mark.parametrize("step", STEPS)
def test_rows_per_cell_of_all_tables_that_could_be_opened(step: int, tmp_path: Path) -> None:
    """The shop could learn the table of visits (2) given debt and income: 8 cells."""
    companies = Companies(requests=[PrivateK2Request.name, OwnTables.name])
    table = {"person": [f"p{i}" for i in range(60)], "income": ["low"] * 60, "debt": ["no"] * 60}
    rules: dict[str, Any] = {"columns_per_row": 0.25, "requests": tuple(companies.study.requests)}
    made = controller(companies, tmp_path, table, **rules)
    assert is_allowed(made, range(32 + step)) == (step >= 0)
    # The variables of the bank come first in the order: it learns nothing about the shop.
    visits = {"person": table["person"], "visits": ["few"] * 60}
    made = controller(companies, tmp_path, visits, name="shop", **rules)
    assert is_allowed(made, range(2))


@pytest.mark.parametrize("step", STEPS)
def test_the_study_may_not_release_smaller_cells(step: int, tmp_path: Path) -> None:
    companies = Companies(
        requests=[PrivateK2Request.name, OwnTables.name], protocol=protocol(minimum_cell=5 + step)
    )
    table = {"person": ["x"], "income": ["low"], "debt": ["no"]}
    rules: dict[str, Any] = {"minimum_cell": 5, "requests": tuple(companies.study.requests)}
    if step >= 0:
        controller(companies, tmp_path, table, **rules)
        return
    with pytest.raises(RefusedError, match="tables with cells of 4 people"):
        controller(companies, tmp_path, table, **rules)


def test_another_study_of_the_same_columns_has_the_same_people(tmp_path: Path) -> None:
    ledger, table = MemoryLedger(), columns(200)
    assert is_allowed(controller(numbers(), tmp_path, table, ledger), range(100))
    for others in (range(99), range(101), range(100, 200)):
        made = controller(numbers(), tmp_path, table, ledger, minimum_cohort=20)
        assert not is_allowed(made, others)
    table["debt"][7] += 0.5  # one value was corrected
    assert not is_allowed(controller(numbers(), tmp_path, table, ledger), range(100))


def test_a_new_study_may_have_newer_values_if_the_policy_names_it(tmp_path: Path) -> None:
    """b11: it costs that the difference of the two results is about those whose values differ."""
    ledger, table = MemoryLedger(), columns(200)
    assert is_allowed(controller(numbers(), tmp_path, table, ledger), range(100))
    table["debt"][7] += 0.5
    later = numbers()
    named: dict[str, Any] = {"newer_values": (later.study.identity.hex(),)}
    assert is_allowed(controller(later, tmp_path, table, ledger, **named), range(100))
    other = controller(numbers(), tmp_path, table, ledger, **named)
    assert not is_allowed(other, range(100))  # for that study only
    table["debt"][8] += 0.5
    assert not is_allowed(controller(later, tmp_path, table, ledger, **named), range(100))


def test_the_same_people_may_be_studied_again(tmp_path: Path) -> None:
    ledger, table = MemoryLedger(), columns(200)
    for _ in range(2):
        made = controller(numbers(), tmp_path, table, ledger, minimum_cohort=20)
        assert is_allowed(made, range(100))


def test_a_person_exchanged_for_one_with_equal_values_is_a_difference(tmp_path: Path) -> None:
    """The difference of two cross moments would be a product with this person's value."""
    ledger, table = MemoryLedger(), columns(200)
    for name in ("income", "debt"):
        table[name][100] = table[name][99]
    assert is_allowed(controller(numbers(), tmp_path, table, ledger), range(100))
    made = controller(numbers(), tmp_path, table, ledger, minimum_cohort=20)
    assert not is_allowed(made, [*range(99), 100])


def test_a_study_has_one_set_of_common_people(tmp_path: Path) -> None:
    """The other party cannot try several sets of identifiers, however different they are."""
    made = controller(numbers(), tmp_path, columns(200))
    assert is_allowed(made, range(100))
    assert is_allowed(made, range(100))
    with pytest.raises(RefusedError, match="of other people"):
        made.record_sharing(RUN, np.arange(50, 200))


def test_a_party_that_does_not_know_who_is_common(tmp_path: Path) -> None:
    """All its rows are compared with other releases, and it cannot count persons by a column."""
    companies = Companies(protocol=protocol(intersection="shop"))
    codes = {"income": ["low", "high"] * 30, "debt": ["no", "no", "yes"] * 20}
    table = {"person": [f"p{i}" for i in range(60)], **codes}
    order = np.random.default_rng(0).permutation(60)
    ledger = MemoryLedger()
    assert is_allowed(controller(companies, tmp_path, table, ledger), order)
    assert ledger.entries()[-1]["numbers"] == 120
    persons = {"owner": ["x"] * 60, "person": table["person"], **codes}
    with pytest.raises(RefusedError, match="cannot count the persons"):  # before any comparison
        controller(companies, tmp_path, persons, persons=Persons("column:owner"))


def test_the_party_that_knows_who_is_common(tmp_path: Path) -> None:
    companies = Companies(protocol=protocol(intersection="shop"))
    table = {"person": [f"p{i}" for i in range(60)], "visits": ["few", "many"] * 30}
    ledger = MemoryLedger()
    made = controller(companies, tmp_path, table, ledger, "shop", minimum_cohort=20)
    places = np.full(100, -1)
    places[5:25] = np.arange(20)
    assert is_allowed(made, places)
    assert ledger.entries()[-1]["numbers"] == 20
    places[5] = -1
    assert not is_allowed(made, places)


def test_refusals_are_written_and_tell_the_other_party_nothing(tmp_path: Path) -> None:
    ledger = MemoryLedger()
    made = controller(numbers(), tmp_path, columns(40), ledger, columns_per_row=0.01)
    assert not is_allowed(made, range(40))
    (entry,) = ledger.entries()
    assert (entry["event"], entry["why"], entry["round"]) == ("refused", "policy", 1)


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **_more: object) -> None:
        raise LedgerError("ledger.jsonl cannot be written (No space left on device).")

    made = controller(numbers(), tmp_path, columns(30))
    monkeypatch.setattr(made._ledger, "append", full)
    with pytest.raises(RefusedError, match=r"ends the run: .*\(No space left on device\)\.$"):
        made.spend(RUN, "covariances")


def hello_of(made: PartyController, claims: dict[str, Any]) -> dict[str, str]:
    """The greeting of a party that claims something else, with its signature."""
    made.claims = lambda: claims  # type: ignore[method-assign]
    return made.hello(NONCES[::-1])


def test_heads_are_exchanged_and_kept(tmp_path: Path) -> None:
    companies = Companies()
    people = {"person": ["x", "y"]}
    tables = {
        "bank": people | {"income": ["low", "high"], "debt": ["no", "yes"]},
        "shop": people | {"visits": ["few", "many"]},
    }
    ledgers = {name: MemoryLedger() for name in tables}

    def both() -> tuple[PartyController, PartyController]:
        bank, shop = (
            controller(companies, tmp_path, tables[n], ledgers[n], n) for n in ("bank", "shop")
        )
        return bank, shop

    bank, shop = both()
    greetings = bank.hello(NONCES), shop.hello(NONCES[::-1])
    bank.record_aligning(bank.agree(greetings[1], NONCES))
    shop.record_aligning(shop.agree(greetings[0], NONCES[::-1]))
    bank.witness(shop.head())
    bank.end(RUN, "done")
    key = companies.keys["shop"].public.hex()
    first, second = ledgers["bank"].entries()
    assert first["seen"] == {key: "0" * 64}  # the shop may still refuse
    assert "heads" not in first
    assert second["heads"] == {key: ledgers["shop"].head()}
    # The shop loses its ledger, and cannot hide that from the bank, however often it tries.
    lost, ledgers["shop"] = ledgers["shop"].head(), MemoryLedger()
    bank, shop = both()
    for attempt in (1, 2):
        with pytest.raises(RefusedError, match="does not contain any more"):
            shop.agree(bank.hello(NONCES), NONCES[::-1])
        assert ledgers["shop"].entries()[-1]["missing"] == lost
        if attempt == 1:
            bank.record_aligning(bank.agree(shop.hello(NONCES[::-1]), NONCES))
    claims = shop.claims()
    wrong = (None, 7, "0" * 63, "G" * 64, "ab" * 32, "ab" * 96, claims["head"][:-2])
    for head in (*wrong, claims["head"] + " " * 1000):
        for key in ("head", "witnessed"):
            with pytest.raises(AbortedError, match="has not signed") as caught:
                bank.agree(hello_of(shop, claims | {key: head}), NONCES)
            assert caught.value.reason == "broken message"
    assert not any("missing" in entry for entry in ledgers["bank"].entries())


def test_a_ledger_cannot_be_accused_of_what_was_never_in_it(tmp_path: Path) -> None:
    """A witness that anybody can invent would make a ledger fail for ever."""
    bank, shop = pair(tmp_path)
    thief = Identity.generate()
    for signer in (shop._identity, thief):
        invented = "ab" * 32 + signer.sign(signed_bytes("ab" * 32)).hex()
        with pytest.raises(AbortedError, match="has not signed"):
            bank.agree(hello_of(shop, shop.claims() | {"witnessed": invented}), NONCES)
    assert bank._ledger.entries() == ()


@pytest.mark.parametrize("run", [5, 10**4000, -1])
def test_a_run_that_the_study_cannot_have(run: int, tmp_path: Path) -> None:
    bank, shop = pair(tmp_path)
    with pytest.raises(AbortedError, match="not complete"):
        bank.agree(hello_of(shop, shop.claims() | {"run": run}), NONCES)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("who", ["bank", "shop"])
def test_how_many_people_a_party_may_bring(who: str, step: int, tmp_path: Path) -> None:
    """z06, z12: neither one person, which tests a membership, nor everybody who could exist."""
    for people, allowed in ((50 + step, step >= 0), (60 + step, step <= 0)):
        parties = tuple(replace(h, people=60) for h in holdings())
        companies = Companies(protocol=protocol(minimum_cohort=50, parties=parties))
        ledger, sizes = MemoryLedger(), {"bank": 55, "shop": 55} | {who: people}
        persons = [f"p{i}" for i in range(sizes["bank"])]
        data = {"person": persons, "income": ["low"] * len(persons), "debt": ["no"] * len(persons)}
        made = controller(companies, tmp_path, data, ledger)
        made.other_people = sizes["shop"]
        if allowed:
            made.record_aligning(RUN)
            assert f"{sizes['shop']} at shop" in ledger.entries()[-1]["what"]
        else:
            with pytest.raises(
                RefusedError, match=f"{who} comes with {people} people; .* 50 to 60"
            ):
                made.record_aligning(RUN)
            assert [entry["event"] for entry in ledger.entries()] == ["refused"]


@pytest.mark.parametrize(
    "rule", [{"minimum_cell": 5}, {"largest_share": 0.5}, {"columns_per_row": 0.01}]
)
def test_a_lenient_policy_does_not_relax_the_study(rule: dict[str, Any], tmp_path: Path) -> None:
    """z05: a party that reads single people of the other changes its own policy first."""
    targets = {"income": np.arange(90) == 7, "debt": np.arange(90) == 9}
    table = columns(90, **{name: column.astype(float) for name, column in targets.items()})
    terms: dict[str, Any] = {
        "schema": Schema.continuous(LEVELS),
        "bounds": dict.fromkeys(LEVELS, (-100.0, 100.0)),
        "requests": [CrossMoments.name],
    }
    strict = Companies(protocol=protocol(**rule), **terms)
    assert not is_allowed(controller(strict, tmp_path, table), range(90))
    assert is_allowed(controller(Companies(**terms), tmp_path, table), range(90))


def pair(folder: Path) -> tuple[PartyController, PartyController]:
    companies, rows = Companies(), {"person": [f"p{i}" for i in range(30)]}
    bank = rows | {"income": ["low", "high"] * 15, "debt": ["no", "yes"] * 15}
    shop = rows | {"visits": ["few", "many"] * 15}
    return (
        controller(companies, folder, bank, name="bank"),
        controller(companies, folder, shop, name="shop"),
    )


@pytest.mark.parametrize("stolen", ["signature", "nonces", "certificates", "text"])
def test_a_greeting_is_signed_by_the_identity_for_this_connection(
    stolen: str, tmp_path: Path
) -> None:
    """z16: a copy of the certificate's key is not enough, nor an older greeting, nor another's."""
    bank, shop = pair(tmp_path)
    hello = shop.hello(NONCES[::-1])
    assert bank.agree(hello, NONCES) == NextRun(1)
    match stolen:
        case "signature":
            thief, text = Identity.generate(), hello["text"]
            hello = {"text": text, "signature": thief.sign(GREETING + text.encode()).hex()}
        case "nonces":
            hello = shop.hello(("2", "another"))
        case "certificates":
            hello = {**hello, "text": hello["text"].replace("sha256:1", "sha256:2")}
        case "text":
            hello = {**hello, "text": hello["text"].replace('"run": 0', '"run": 1')}
    with pytest.raises(AbortedError, match="did not sign") as caught:
        bank.agree(hello, NONCES)
    assert caught.value.reason == "wrong identity"


def test_an_invented_memory_is_not_believed(tmp_path: Path) -> None:
    """z02: the other party claims a run with openings that this party knows nothing about."""
    bank, shop = pair(tmp_path)
    claims = shop.claims() | {"run": 1, "finished": False, "rows": 30, "sessions": {"step 1": "s"}}
    run = bank.agree(hello_of(shop, claims), NONCES)
    assert run == NextRun(1)
    assert bank.positions(run) is None


def test_a_spent_opening_is_not_opened_again(tmp_path: Path) -> None:
    """The other party says that it has lost its share, or that it has another one."""
    for sessions in ({}, {"step 1": "t"}):
        bank, shop = pair(tmp_path)
        bank.journal.open(1, PrivateK2Request.name)
        bank.journal.hold(1, "step 1", HeldShare("s", b"share"))
        claims = shop.claims() | {"run": 1, "finished": False, "sessions": sessions}
        assert bank.agree(hello_of(shop, claims), NONCES) == NextRun(1)  # nothing had left
        bank.journal.spend(1, "step 1", "c")
        with pytest.raises(RefusedError, match="not opened again: this run is over"):
            bank.agree(hello_of(shop, claims), NONCES)
        assert bank.journal.past(PrivateK2Request.name).closed
        # Whatever it claims then: the run is over.
        claims |= {"sessions": {"step 1": "s"}}
        assert bank.agree(hello_of(shop, claims), NONCES) == NextRun(2)


def test_a_lost_journal_does_not_open_a_value_again(tmp_path: Path) -> None:
    """The ledger knows that a share has left; the other party claims that the run is open."""
    ledger, companies = MemoryLedger(), Companies(rounds=2)
    table = {"person": ["x", "y"], "income": ["low", "high"], "debt": ["no", "yes"]}
    bank = controller(companies, tmp_path, table, ledger)
    bank.other_people = 2
    bank.record_aligning(RUN)
    bank.spend(RUN, "step 1")
    bank = controller(companies, tmp_path, table, ledger)  # with an empty journal
    shop = controller(
        companies, tmp_path, {"person": ["x", "y"], "visits": ["few", "many"]}, name="shop"
    )
    claims = shop.claims() | {"run": 1, "finished": False, "sessions": {"step 1": "s"}}
    with pytest.raises(RefusedError, match=r"journal does not.* not opened again"):
        bank.agree(hello_of(shop, claims), NONCES)
    assert bank.agree(hello_of(shop, claims), NONCES) == NextRun(2)


def test_a_ledger_that_knows_less_than_the_journal_was_truncated(tmp_path: Path) -> None:
    bank, _ = pair(tmp_path)
    bank.journal.open(1, PrivateK2Request.name)
    with pytest.raises(RefusedError, match="has a run that the ledger does not"):
        bank.bring(bank._brought)


def test_columns_leave_a_limited_number_of_times_per_run(tmp_path: Path) -> None:
    """Whoever makes attempts fail could try something else in each of them."""
    bank = controller(numbers(), tmp_path, columns(40))
    for _ in range(ATTEMPTS):
        bank.record_sharing(RUN, np.arange(40))
    with pytest.raises(RefusedError, match="20 times in this run"):
        bank.record_sharing(RUN, np.arange(40))
    assert bank.journal.past(CrossMoments.name).closed
    bank.record_sharing(NextRun(2), np.arange(40))


def test_another_request_is_another_run(tmp_path: Path) -> None:
    """The run is over here. The other party claims that it is not, and asks for something else."""
    bank, shop = pair(tmp_path)
    claims = shop.claims() | {"run": 1, "finished": False, "rows": 30}
    bank.journal.open(1, StructureOnlyRequest.name)
    bank.journal.align(1, np.arange(30), 30)
    for how in (None, DONE):
        if how is not None:
            bank.journal.end(1, how)
        assert bank.claims()["closed"]
        run = bank.agree(hello_of(shop, claims), NONCES)
        assert run == NextRun(2)
        assert bank.positions(run) is None  # identifiers are compared again, which counts


def test_an_opening_is_written_once(tmp_path: Path) -> None:
    ledger = MemoryLedger()
    made = controller(numbers(), tmp_path, columns(40), ledger)
    for label in ("x", "x", "y" * 2000, "y" * 2000):
        made.spend(RUN, label)
    assert [entry["what"] for entry in ledger.entries()] == ["x", "y" * 1000]
    (tmp_path / "STOP").touch()
    with pytest.raises(RefusedError, match="stopped"):
        made.spend(RUN, "x")


def test_a_party_whose_runs_are_used_up_helps_the_other_to_end_the_last(tmp_path: Path) -> None:
    companies, ledger = Companies(rounds=1), MemoryLedger()
    table = {"person": ["x", "y"], "income": ["low", "high"], "debt": ["no", "yes"]}
    made = controller(companies, tmp_path, table, ledger)
    made.other_people = 2
    made.record_aligning(RUN)
    again = controller(companies, tmp_path, table, ledger)
    again.other_people = 2
    with pytest.raises(RefusedError, match="1 rounds were opened in this study; 1 are allowed"):
        again.record_aligning(RUN)
    again.spend(RUN, "a value of the last run")
    before = len(list(ledger.read()))
    study, policy, key = companies.study, companies.policy(tmp_path), companies.keys["bank"]
    for debt, expected in (("no", "1 rounds were opened"), ("yes", "over another table")):
        given = PartyTable.read({**table, "debt": [debt, "yes"]}, study, "bank", key)
        assert expected in refusals(study, policy, ledger, "bank", given)[0]
    assert len(list(ledger.read())) == before


def test_each_comparison_of_identifiers_counts(tmp_path: Path) -> None:
    """Also one that was interrupted: the other party may know its result."""
    bank, shop = pair(tmp_path)
    bank.agree(shop.hello(NONCES[::-1]), NONCES)
    bank.record_aligning(RUN)
    bank.record_aligning(RUN)
    with pytest.raises(RefusedError, match="2 rounds were opened in this study; 2 are allowed"):
        bank.record_aligning(RUN)


def test_the_engine_does_not_get_the_passphrase_of_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads messages of the other party, and was not written for malicious ones."""
    monkeypatch.setenv(PASSPHRASE, "secret")
    monkeypatch.setenv("HOME", "/home")
    environment = engine_environment()
    assert "secret" not in environment.values()
    assert environment["HOME"] == "/home"


def test_the_summary_of_a_ledger_names_the_columns_that_left(tmp_path: Path) -> None:
    ledger = MemoryLedger()
    table = {"person": ["x", "y"], "income": ["low", "high"], "debt": ["no", "yes"]}
    made = controller(Companies(), tmp_path, table, ledger)
    made.other_people = 2
    made.record_aligning(RUN)
    made.record_sharing(RUN, np.arange(2))
    compared, shared = summary(ledger.read()).splitlines()
    assert "comparison 1 of identifiers" in compared
    assert shared.startswith("1 × 2 columns of 2 people as secret shares; 4 numbers")
