"""The rules on data: one function each, which returns why the data may not be released."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from isthmus.joint.agreement.policy import Policy
from isthmus.joint.disclosure.cells import fewest_in_a_cell
from isthmus.joint.disclosure.dominance import largest_share
from isthmus.joint.disclosure.material import Material

Rule = Callable[[Material, Policy], Iterator[str]]


def cohort(material: Material, policy: Policy) -> Iterator[str]:
    """Require a minimum number of persons."""
    if material.count() < policy.minimum_cohort:
        yield f"fewer than {policy.minimum_cohort} persons"


def columns(material: Material, policy: Policy) -> Iterator[str]:
    """Require enough rows for the number of released columns."""
    number = material.columns.shape[1] + material.more_columns
    if number > policy.columns_per_row * material.rows:
        yield (
            f"{number} columns or cells would be released, which is more than "
            f"{policy.columns_per_row} per row"
        )


def cells(material: Material, policy: Policy) -> Iterator[str]:
    """Require that nothing released singles out few persons."""
    if policy.minimum_cell == 1:
        return
    fewest = fewest_in_a_cell(material)
    if fewest is not None and fewest < policy.minimum_cell:
        yield f"a cell or a value has fewer than {policy.minimum_cell} persons"


def dominance(material: Material, policy: Policy) -> Iterator[str]:
    """Require that no released sum owes more than a share to one person."""
    if policy.largest_share == 1.0 or not material.columns.shape[1]:
        return
    # A share that equals the limit is allowed; it is computed with rounding errors.
    if largest_share(material) > policy.largest_share * (1 + 1e-9):
        yield f"one person has more than {policy.largest_share:.0%} of a sum of squares"


def windows(material: Material, policy: Policy) -> Iterator[str]:
    """Require a minimum number of persons in the window of every basis."""
    for name, (low, high) in material.windows.items():
        values = material.values[name]
        if material.count((values > low) & (values < high)) < policy.minimum_cohort:
            yield f"fewer than {policy.minimum_cohort} persons are in the window of a basis"
            return


RULES: tuple[Rule, ...] = (cohort, columns, cells, dominance, windows)


def broken_rules(material: Material, policy: Policy) -> list[str]:
    """Return a phrase for each rule on data that the material breaks."""
    return [phrase for rule in RULES for phrase in rule(material, policy)]
