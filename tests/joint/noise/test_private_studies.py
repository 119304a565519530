"""Studies with differential privacy: budgets, repeated questions, failures, and what users see."""

from __future__ import annotations

import math
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.joint.consortium import NAMES, SCHEMA, table
from tests.joint.noise.private_group import (
    PRIVACY,
    again,
    consortium,
    opened,
    renewed,
)

import isthmus as ist
from isthmus.errors import (
    AbortedError,
    DataWarning,
    MismatchError,
    MissingValuesError,
    RefusedError,
    StudyError,
)
from isthmus.statistics import CountPlan
from isthmus.tables.conversion import persons_in
from isthmus_joint import (
    AskCounts,
    AskMoments,
    DifferentialPrivacy,
    Federation,
    InProcess,
    Persons,
    Policy,
    Study,
)
from isthmus_joint.commands.described import described
from isthmus_joint.federation.site_controller import SiteController
from isthmus_joint.noise import answers
from isthmus_joint.noise.accounting import epsilon_of
from isthmus_joint.noise.statistics import NoisyMoments
from isthmus_joint.noise.structure import PAIRS
from isthmus_joint.noise.whitening import LAST, SURVEY

pytest.importorskip("opendp")
pytestmark = [
    pytest.mark.filterwarnings("ignore:The noise", "ignore::isthmus.errors.NotesWarning"),
    # The number of rows is noisy too, so that any of these studies may seem to be small.
    pytest.mark.filterwarnings("ignore:.*rows for .*variables:isthmus.errors.DataWarning"),
]


def test_a_site_that_states_no_budget_takes_no_part(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"ε = 2 at δ = 1e-06 .*ε = 0"):
        consortium(tmp_path, 0.0).controller("north")
    with pytest.raises(RefusedError, match=r"more than ε = 1\.9"):
        consortium(tmp_path, 1.9).controller("north")
    consortium(tmp_path, 2.0).controller("north")


@pytest.mark.long
def test_the_budget_is_used_up_once_over_all_studies(tmp_path: Path) -> None:
    group = consortium(tmp_path, 2.5)
    federation = group.federation()
    federation.moments()
    federation.counts(CountPlan.everything())
    spent = group.controller("north")._writer.everything.rho()
    assert (
        1.5 < epsilon_of(spent, 1e-6) <= 2.0 * (1 + 1e-9)
    )  # rounds that are not needed cost nothing
    later = renewed(group, purpose="once more", requests=["moments"])
    with pytest.raises(AbortedError):
        later.federation().moments()
    assert later.why("north") == ["policy"]
    small = renewed(group, requests=["moments"], privacy=DifferentialPrivacy(1.0, 1e-6))
    small.federation().moments()
    total = small.controller("north")._writer.everything.rho()
    assert epsilon_of(spent, 1e-6) < epsilon_of(total, 1e-6) < 2.5
    entry = [e for e in small.ledgers["north"].entries() if "rho" in e][-1]
    assert entry["form"] == "secure sum with noise for differential privacy"


@pytest.mark.long
@pytest.mark.parametrize("step", [-1, 0, 1])
def test_the_budget_at_its_threshold(tmp_path: Path, step: int) -> None:
    privacy = DifferentialPrivacy(1.0)
    group = consortium(tmp_path, 1.0, requests=["moments"], privacy=privacy)
    group.federation().moments()
    later = renewed(group, purpose="once more", requests=["moments"], privacy=privacy)
    limit = epsilon_of(2 * privacy.rho, 1e-6) * (1 + 1e-6 * step)
    later.policies = {n: replace(p, maximum_epsilon=limit) for n, p in later.policies.items()}
    federation = later.federation()
    if step < 0:
        with pytest.raises(AbortedError):
            federation.moments()
        assert later.why("north") == ["policy"]
    else:
        federation.moments()


@pytest.mark.long
def test_a_repeated_question_gets_the_same_answer(tmp_path: Path) -> None:
    group = consortium(tmp_path)
    first = group.federation().moments()
    second = group.federation(first_round=opened(group)).moments()
    third = again(group).moments()
    assert first == second == third
    counts = again(group).counts(CountPlan.everything())
    assert counts == again(group).counts(CountPlan.everything())
    spent = group.controller("north")._writer.everything.rho()
    assert epsilon_of(spent, 1e-6) <= 2.0 * (1 + 1e-9)


def test_without_the_kept_answer_nothing_is_sent_again(tmp_path: Path) -> None:
    group = consortium(tmp_path)
    group.federation().moments()
    entry = next(e for e in group.ledgers["north"].entries() if "answer" in e)
    (tmp_path / "north.jsonl.kept" / entry["answer"]).unlink()
    with pytest.raises(AbortedError):
        again(group).moments()
    assert group.why("north") == ["ledger"]


def test_an_answer_that_was_masked_but_not_summed_is_not_drawn_again(tmp_path: Path) -> None:
    """A round that fails after the sites have sent: the next round has the same noise."""
    group = consortium(tmp_path)
    sites = {name: group.controller(name).site() for name in NAMES}
    lost = [(name, 3) for name in NAMES]
    transport = InProcess({n: s.handle for n, s in sites.items()}, lost=lost)
    failing = Federation(group.study, group.signatures, group.boss, transport)
    with pytest.raises(AbortedError):
        failing.moments()
    sent = [e["answer"] for e in group.ledgers["north"].entries() if "answer" in e]
    assert len(sent) == 1
    federation = again(group)
    federation.moments()
    both = [e["answer"] for e in group.ledgers["north"].entries() if "answer" in e]
    assert both[:2] == sent * 2
    assert len(set(both)) == len(both) - 1  # those of the later rounds


@pytest.mark.parametrize(
    "request_",
    [
        AskMoments(("age", "dose"), SURVEY),
        AskMoments(SCHEMA.names),
        AskCounts(CountPlan.sets([["ward"]])),
    ],
    ids=["moments", "exact", "counts"],
)
def test_only_one_question_of_each_kind_is_answered(tmp_path: Path, request_: Any) -> None:
    federation = consortium(tmp_path).federation()
    with pytest.raises(AbortedError):
        federation.ask(request_)


def test_a_study_spends_no_more_than_its_own_budget(tmp_path: Path) -> None:
    """True equals 1: a second way to write a question would get a second answer."""
    group = consortium(
        tmp_path,
        10.0,
        schema=SCHEMA.subset(["ward", "ill"]),
        bounds={},
        plan=CountPlan.up_to(1),
        requests=["counts"],
        privacy=DifferentialPrivacy(2.0),
    )
    federation = group.federation()
    federation.counts(CountPlan.up_to(1))
    plan = CountPlan.sets([["ward"]])
    for number, refusal in ((True, "bad_request"), (PAIRS, "policy"), (2, "policy")):
        with pytest.raises(AbortedError):
            federation.ask(AskCounts(plan, round=number))
        assert group.why("north")[-1] == refusal
    assert len([e for e in group.ledgers["north"].entries() if "rho" in e]) == 1


def test_parts_of_the_answer_are_free(tmp_path: Path) -> None:
    group = consortium(tmp_path)
    federation = group.federation()
    part = federation.moments(["dose", "age"])
    assert part == federation.moments().select(["dose", "age"])
    table = federation.counts(CountPlan.sets([["ill"]])).table(["ill"])
    assert table.sum() == federation.counts(CountPlan.everything()).n
    sent = group.events("north").count("sent")  # a survey and rounds, and counts
    assert sent in (LAST + 2, LAST + 3)
    assert federation.moments(["age"]).schema.names == ("age",)
    assert group.events("north").count("sent") == sent


def test_rules_on_data_make_way_for_noise(tmp_path: Path) -> None:
    """A refusal because of one person's value would tell what the noise hides."""
    group = consortium(tmp_path)
    for name in NAMES:
        group.data[name] = table(1, 25)
        group.data[name]["age"][0] = 1e6  # outside of all bounds: clipped
        group.data[name]["ward"][:] = "a"
        group.data[name]["ward"][0] = "b"  # a cell with one person
    moments = group.federation().moments()
    assert moments.mean()[0] <= 100.0


def noted(federation: Federation) -> list[float]:
    """What a result says of its noise: ε, the same if nobody colludes, rows, and their error."""
    (note,) = federation.notes()
    found = re.search(r"ε = (.+?) at .*\(ε = (.+?) if .*about (.+?) rows \(± (.+?)\)", note)
    assert found is not None
    return [float(text.replace(",", "")) for text in found.groups()]


def test_rows_of_a_person_beyond_the_bound_are_left_out(tmp_path: Path) -> None:
    group = consortium(tmp_path, privacy=DifferentialPrivacy(40.0, 1e-6), requests=["moments"])
    persons = Persons("column:who")
    for name in NAMES:
        group.data[name] = table(1, 600) | {"who": np.repeat(np.arange(200), 3)}
        group.policies[name] = replace(group.policies[name], maximum_epsilon=40, persons=persons)
    federation = group.federation()
    federation.moments()
    assert abs(noted(federation)[2] - 800) < 60


@pytest.mark.parametrize("nobody", [None, float("nan")])
def test_rows_that_name_nobody_are_not_one_person(tmp_path: Path, nobody: object) -> None:
    """Without one of these persons, the row of another would take the place of theirs."""
    group = consortium(tmp_path)
    who = np.arange(60).astype(object if nobody is None else np.float64)
    who[[3, 5]] = nobody
    group.data["north"] |= {"who": who}
    persons = Persons("column:who")
    group.policies["north"] = replace(group.policies["north"], persons=persons)
    frozen = group.extract("north").frozen
    assert frozen is not None
    assert frozen.dropped == 2
    with pytest.raises(MissingValuesError, match="missing in 2 of 60 rows"):
        persons_in(group.data["north"], "who")


def test_a_missing_site_is_covered_by_the_threshold(tmp_path: Path) -> None:
    group = consortium(tmp_path)
    release = NoisyMoments(group.study, SURVEY)
    threshold = group.study.protocol.threshold  # type: ignore[attr-defined]
    assert (threshold, release.privacy.honest) == (3, 2)
    sites = {name: group.controller(name).site() for name in NAMES}
    transport = InProcess({n: s.handle for n, s in sites.items()}, lost=[("west", 2)])
    federation = Federation(group.study, group.signatures, group.boss, transport, without=None)
    federation.moments()
    assert federation.active == NAMES[:3]
    epsilon, alone, _, error = noted(federation)
    assert error == pytest.approx(release.scale / release.unit * math.sqrt(3), rel=0.01)
    assert alone < epsilon
    assert release.cost(threshold - 1) <= release.rho


def test_a_site_without_opendp_refuses_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(RefusedError, match=r"pip install 'isthmus\[privacy\]'"):
        consortium(tmp_path).controller("north").site()


def test_a_site_refuses_if_opendp_counts_a_higher_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert answers.confirmed_epsilon(PRIVACY.rho, 1e-6) == pytest.approx(2.0)
    monkeypatch.setattr(answers, "confirmed_epsilon", lambda rho, delta: 2.1)
    with pytest.raises(RefusedError):
        consortium(tmp_path).controller("north").site()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"privacy": DifferentialPrivacy(1.0, honest=4)}, "between 1 and the threshold 3"),
        ({"requests": ["moments", "features"]}, r"\['features'\] are not possible"),
        ({"privacy": DifferentialPrivacy(1.0, bounds={"ward": (0, 1)})}, "not continuous"),
    ],
)
def test_studies_that_cannot_be_private_are_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(StudyError, match=message):
        consortium(tmp_path, **changes)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("epsilon = 2.0", "epsilon = -1.0", "epsilon is -1"),
        ("epsilon = 2.0\n", "", "privacy.epsilon is missing"),
        ("delta = 1e-06", "delta = 0.5", "delta is 0.5"),
        ("honest = 2", "honest = 2\nsigma = 1", "privacy.sigma is not a known key"),
        ("[0.0, 100.0]", "[0.0]", "privacy.bounds must be"),
    ],
)
def test_mistakes_in_the_section_are_named(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    text = consortium(tmp_path).study.text.decode()
    assert old in text
    with pytest.raises(StudyError, match=message):
        Study.parse(text.replace(old, new).encode())


def test_the_policy_file_keeps_the_budget(tmp_path: Path) -> None:
    policy = replace(consortium(tmp_path).policies["north"], maximum_delta=1e-5)
    assert Policy.parse(policy.to_toml().encode()) == policy
    with pytest.raises(StudyError, match="maximum_epsilon is -1"):
        replace(policy, maximum_epsilon=-1.0)


def test_a_site_can_refuse_studies_without_noise(tmp_path: Path) -> None:
    """An author leaves the section on privacy out: the budget would limit nothing."""
    policy = replace(consortium(tmp_path).policies["north"], exact_studies=())
    assert Policy.parse(policy.to_toml().encode()) == policy
    policy.require(consortium(tmp_path).study)
    group = consortium(tmp_path, privacy=None)
    group.controller("north")
    group.policies["north"] = policy
    with pytest.raises(RefusedError, match="its sums are exact"):
        group.controller("north")


def test_a_dry_run_tells_of_the_noise_and_spends_nothing(tmp_path: Path) -> None:
    group = consortium(tmp_path)
    controller: SiteController = group.controller("north")
    preview = str(controller.dry_run(AskMoments(SCHEMA.names, SURVEY)))
    assert "each with noise of standard deviation" in preview
    assert group.ledgers["north"].entries() == ()
    assert "would refuse" in str(controller.dry_run(AskMoments(("age",))))


def test_users_see_what_privacy_cost(tmp_path: Path) -> None:
    group = consortium(tmp_path)
    solution = ist.learn(group.federation())
    released = str(solution.disclosure)
    assert "with noise for ε = " in released
    assert "secure sum with noise" in released
    assert any(note.startswith("Differential privacy: the moments") for note in solution.notes)


def test_whoever_signs_sees_the_budget(tmp_path: Path) -> None:
    shown = described(consortium(tmp_path).study)
    assert "privacy    differential privacy with ε = 2, δ = 1e-06 per person" in shown
    assert "as long as 2 of the sites in every sum keep their noise to themselves" in shown


def test_drowned_signals_are_reported() -> None:
    rng = np.random.default_rng(0)
    tables = {s: {"a": rng.normal(size=50), "b": rng.normal(size=50)} for s in "xyz"}
    bounds = {"a": (-4.0, 4.0), "b": (-4.0, 4.0)}
    federation = Federation.simulate(tables, privacy=DifferentialPrivacy(0.5, bounds=bounds))
    with pytest.warns(DataWarning, match="The noise dominates the moments"):
        federation.moments()


@pytest.mark.parametrize("width", [4e3, 4e-6])
def test_bounds_that_are_too_wide_do_no_harm_and_narrow_ones_are_reported(width: float) -> None:
    rng = np.random.default_rng(0)
    tables = {s: {"a": rng.normal(size=3000)} for s in "xyz"}
    tables = {s: t | {"b": t["a"] + rng.normal(size=3000)} for s, t in tables.items()}
    bounds = {"a": (-4.0, 4.0), "b": (-width, width)}
    federation = Federation.simulate(tables, privacy=DifferentialPrivacy(5.0, bounds=bounds))
    if width > 1:
        assert ist.learn(federation).dag.edges
    else:
        with pytest.warns(DataWarning, match=r"\['b'\].*are too narrow"):
            federation.moments()


def test_simulations_need_public_bounds() -> None:
    tables = {s: {"a": [0.0, 0.5], "b": [0.5, 0.0]} for s in "xyz"}
    with pytest.raises(StudyError, match="without looking at the data"):
        Federation.simulate(tables, privacy=DifferentialPrivacy(1.0, bounds={"a": (0.0, 1.0)}))
    federation = Federation.simulate(
        tables, bounds={"a": (0, 1), "b": (0, 1)}, privacy=DifferentialPrivacy(1.0)
    )
    with pytest.raises(MismatchError, match="moments and counts only"):
        federation.with_features(federation.expansion_of(ist.Chebyshev(2)))


def test_with_much_budget_the_network_is_that_of_the_pooled_table() -> None:
    columns = dict(ist.datasets.asia(30_000))
    parts = {s: {n: c[i::3] for n, c in columns.items()} for i, s in enumerate("xyz")}
    federation = Federation.simulate(parts, privacy=DifferentialPrivacy(1000.0))
    search = ist.XGES(max_parents=2)
    private = ist.learn(federation, search=search)
    pooled = ist.learn(columns, search=search)
    assert ist.shd(private.dag.cpdag(), pooled.dag.cpdag()) <= 1
