"""One person of a ward has a dose: the sum of a product of two columns is that person's value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.attacks.exact_sums import Table, seen
from tests.attacks.malicious import Attacked

from isthmus.errors import RefusedError
from isthmus.statistics import Kind, Schema, Variable

SITES = ("north", "east", "south")
WARDS = ("medical", "surgical", "children")
DOSES = Schema((Variable("ward", Kind.DISCRETE, WARDS), Variable("dose", Kind.CONTINUOUS)))
FEW = "fewer than 5 persons"


def doses(seed: int, few: int) -> Table:
    """Doses of a fifth of the patients, and of few on the children's ward."""
    rng = np.random.default_rng(seed)
    ward = np.array(WARDS, dtype=object)[np.arange(400) % 3]
    dose = np.where(rng.random(400) < 0.2, rng.gamma(3.0, 20.0, 400), 0.0)
    dose[ward == "children"] = 0.0
    dose[2 : 3 * few : 3] = 123.5 + np.arange(few)
    return {"ward": ward, "dose": dose}


@pytest.mark.parametrize("protected", [False, True])
def test_the_only_patient_of_a_ward_with_a_dose_is_not_shown(protected: bool) -> None:
    tables = {s: doses(k, few=int(s == "north")) for k, s in enumerate(SITES)}
    given: dict[str, Any] = {"bounds": {"dose": (0.0, 512.0)}, "protected": protected}
    if protected:
        with pytest.raises(RefusedError, match=FEW):
            Attacked(tables, DOSES, **given)
        return
    assert float(seen(Attacked(tables, DOSES, **given)).products["ward=children", "dose"]) == 123.5


@pytest.mark.parametrize(("few", "allowed"), [(0, True), (4, False), (5, True)])
def test_a_ward_with_enough_patients_with_a_dose_is_allowed(few: int, allowed: bool) -> None:
    tables = {s: doses(k, few) for k, s in enumerate(SITES)}
    try:
        Attacked(tables, DOSES, {"dose": (0.0, 512.0)})
    except RefusedError:
        assert not allowed
    else:
        assert allowed
