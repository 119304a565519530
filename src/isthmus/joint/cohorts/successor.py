"""The successor of a cohort that some persons leave."""

from __future__ import annotations

import math
import secrets
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import RefusedError
from isthmus.joint.agreement.policy import Policy
from isthmus.joint.cohorts.cohort import Cohort
from isthmus.joint.cohorts.row_hashes import Words
from isthmus.plurals import counted

GROWTH = 1.25
"""Factor by which the leaving group grows until it passes the check."""


def successor(cohort: Cohort, leaving: Words, policy: Policy, *, was_sent: bool) -> Cohort:
    """Return a cohort without some persons, whose difference from the old one is a cohort as well.

    Others, drawn at random, leave with them: so many that those who leave are at least the minimum
    number of persons of a cohort, and pass the check like one. All values stay as they are.

    Parameters
    ----------
    leaving
        Hashes of the persons who must leave.
    was_sent
        Whether something was sent from the cohort. Otherwise nobody else needs to leave.

    Raises
    ------
    RefusedError
        The persons cannot be identified, or no group passes the check.
    """
    checked = cohort.certificate
    if cohort.persons is None or (checked is not None and not checked.persons.column):
        raise RefusedError(
            "The cohort was frozen under a policy that names no column of identifiers (persons = "
            "'column:NAME'), so that nobody can be left out. Retire the cohort without a successor."
        )
    persons = np.unique(cohort.persons)
    named = np.isin(persons, leaving)
    unknown = len(np.setdiff1d(leaving, persons))
    if unknown or not named.any():
        raise RefusedError(
            f"{unknown} of {counted(len(np.unique(leaving)), 'identifier')} cannot be found in the "
            "cohort. Nothing was changed. Check them, and leave out those of other cohorts."
        )
    others = persons[~named]
    shuffled = others[np.argsort([secrets.randbits(64) for _ in others])]
    size = int(named.sum())
    if was_sent and not cohort.with_noise:
        size = max(size, policy.minimum_cohort)
    while size < len(persons):
        group = np.concatenate([persons[named], shuffled])[:size]
        rest = _part(cohort, ~np.isin(cohort.persons, group))
        if cohort.with_noise:
            return rest
        broken = rest.violations(policy)
        if was_sent:
            broken += _part(cohort, np.isin(cohort.persons, group)).violations(policy)
        if not broken:
            return rest
        if not was_sent:
            break
        size = math.ceil(size * GROWTH)
    raise RefusedError(
        "There is no successor: those who leave and those who stay cannot both be so many that "
        "each group keeps the rules of the policy. Retire the cohort without a successor."
    )


def _part(cohort: Cohort, rows: NDArray[np.bool_]) -> Cohort:
    """Return some rows as a cohort of their own."""
    assert cohort.values is not None
    assert cohort.persons is not None
    values = np.array(cohort.values[rows])
    values.flags.writeable = False
    return replace(
        cohort,
        identity=secrets.token_hex(16),
        values=values,
        persons=cohort.persons[rows],
        origin=cohort.origin or cohort.identity,
    )
