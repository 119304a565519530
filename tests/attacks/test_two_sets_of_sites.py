"""Results over two sets of sites: their difference is a site, unless its policy prevents it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from tests.attacks.exact_sums import Seen, Table, seen
from tests.attacks.malicious import Attacked

from isthmus.errors import AbortedError, RefusedError
from isthmus.statistics import Kind, Schema, Variable
from isthmus_joint import DifferentialPrivacy, Federation

NAMES = ("speed", "wear")
SCHEMA = Schema.continuous(NAMES)
BOUNDS = {"speed": (0.0, 100.0), "wear": (-5.0, 15.0)}
SITES = ("a", "b", "c", "z")
BOUND = {"only_with": SITES}


def machines(n: int, seed: int) -> Table:
    rng = np.random.default_rng(seed)
    return {"speed": rng.normal(50 + seed, 5, n), "wear": rng.normal(3, 1, n)}


TABLES = {name: machines(300 + 39 * i, i) for i, name in enumerate(SITES)}


def some(names: str) -> dict[str, Table]:
    return {n: TABLES[n] for n in names}


def require_victim(one: Seen, two: Seen) -> None:
    victim = TABLES["z"]
    n = one.n - two.n
    assert n == len(victim["speed"])
    for name in NAMES:
        mean = float(one.sums[name] - two.sums[name]) / n
        assert mean == pytest.approx(victim[name].mean(), abs=1e-6)


def test_two_exact_studies_with_and_without_a_site_show_its_numbers() -> None:
    one = Attacked(some("abcz"), SCHEMA, BOUNDS)
    two = Attacked(some("abc"), SCHEMA, BOUNDS, earlier=one, purpose="without z")
    require_victim(seen(one), seen(two))


@pytest.mark.long
def test_a_policy_that_names_the_sites_refuses_every_other_set() -> None:
    """It must be that of the others: the result without a site is not that site's to refuse."""
    one = Attacked(some("abcz"), SCHEMA, BOUNDS, rules=BOUND)
    rows = seen(one).n
    with pytest.raises(RefusedError, match=r"not those of only_with; more: \[\], missing: \['z'\]"):
        Attacked(some("abc"), SCHEMA, BOUNDS, earlier=one, rules=BOUND)
    again = Attacked(some("abcz"), SCHEMA, BOUNDS, earlier=one, rules=BOUND, purpose="again")
    with pytest.raises(AbortedError):
        again.federation(lost=[("z", 0)]).moments()
    assert {tuple(again.why(s)) for s in "abc"} == {("membership",)}
    assert again.federation(first_round=5).moments().n == rows


def test_within_a_study_all_sums_are_over_the_same_sites() -> None:
    """The coordinator says that a site is silent, and asks the same question without it."""
    world = Attacked(some("abcz"), SCHEMA, BOUNDS)
    world.federation().moments()
    with pytest.raises(AbortedError, match="other sites took part"):
        world.federation(first_round=5, lost=[("z", 0)]).moments()


@pytest.mark.long
def test_a_site_that_was_silent_takes_part_in_the_next_study() -> None:
    """It costs its numbers: the two results differ by them."""
    first = Attacked(some("abcz"), SCHEMA, BOUNDS)
    silent = first.federation(lost=[("z", 0)])
    assert silent.moments().n == sum(len(TABLES[s]["speed"]) for s in "abc")
    assert silent.active == ("a", "b", "c")
    second = Attacked(some("abcz"), SCHEMA, BOUNDS, earlier=first, purpose="again")
    assert second.federation().moments().n == sum(len(t["speed"]) for t in TABLES.values())


def about_rows(federation: Federation) -> int:
    text = " ".join(map(str, federation.notes()))
    return int(re.findall(r"about ([\d,]+) rows \(", text)[0].replace(",", ""))


@pytest.mark.long
def test_two_noisy_studies_with_and_without_a_site_show_about_its_numbers() -> None:
    """Noise protects the persons of a hospital, and not the hospital."""
    rng = np.random.default_rng(3)

    def stays(n: int, mean: float) -> Table:
        return {"infected": rng.random(n) < mean, "stay": rng.normal(5 + 10 * mean, 2, n)}

    tables = {f"h{i}": stays(2000, 0.05) for i in range(4)} | {"z": stays(2700, 0.21)}
    kinds = Variable("infected", Kind.DISCRETE, (False, True)), Variable("stay", Kind.CONTINUOUS)
    given: dict[str, Any] = {
        "rules": {"maximum_epsilon": 3.0, "maximum_delta": 1e-6},
        "privacy": DifferentialPrivacy(1.0),
    }
    bounds = {"stay": (0.0, 30.0)}
    one = Attacked(tables, Schema(kinds), bounds, **given)
    others = {n: t for n, t in tables.items() if n != "z"}
    two = Attacked(others, Schema(kinds), bounds, earlier=one, **given)
    federations = one.federation(), two.federation()
    means = [f.moments().mean()[1] for f in federations]
    rows = [about_rows(f) for f in federations]
    assert rows[0] - rows[1] == pytest.approx(2700, abs=300)
    mean = (rows[0] * means[0] - rows[1] * means[1]) / (rows[0] - rows[1])
    assert mean == pytest.approx(tables["z"]["stay"].mean(), abs=0.7)
