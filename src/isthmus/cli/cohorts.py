"""`isthmus site freeze`, `cohorts` and `retire`: the rows from which a site answers."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from isthmus.cli.exit_codes import ExitCode
from isthmus.cli.keys import say
from isthmus.cli.ledger import spent_before
from isthmus.cli.output import give
from isthmus.errors import FormatError
from isthmus.plurals import counted
from isthmus.sources.tables.read_table import read_table

LARGE_BLUR = 0.01
"""Share of the variance of a variable that its blur adds, from which on it is mentioned."""

HARDLY_VARIES = 0.9
"""Share of the variance that a blur adds, from which on a column is nearly constant."""

MANY_CLIPPED, FEW_CLIPPED = 0.001, 10
"""Wider bounds are suggested if more than this share of the rows, and more than this number, have a
clipped value. Normal variables with bounds of four standard deviations have fewer, and exponential
ones have more."""


def add_cohort_actions(action: Callable[..., argparse.ArgumentParser]) -> None:
    """Describe the actions on cohorts."""
    freeze = action("freeze", "freeze a table, or open a frozen one for a study", _freeze)
    freeze.add_argument(
        "--data",
        type=Path,
        metavar="FILE",
        help="table of the site; without it, a cohort that exists is opened for the study",
    )
    freeze.add_argument("--name", default="", help="name of the cohort; by default a number")
    freeze.add_argument(
        "--other-persons",
        action="store_true",
        help="state that nobody in the table is in an earlier cohort, if no column can tell",
    )
    freeze.add_argument(
        "--time", metavar="COLUMN", help="time series: column to sort by and to detect gaps"
    )
    freeze.add_argument(
        "--by", metavar="COLUMN", help="time series: column that identifies a realisation"
    )
    action("cohorts", "list the cohorts of the site", _list, study=False)
    retire = action("retire", "delete the rows of a cohort", _retire, study=False)
    retire.add_argument("name", metavar="NAME", help="name of the cohort")
    retire.add_argument(
        "--without",
        type=Path,
        metavar="FILE",
        help="make a successor without these persons: identifiers, one per line",
    )


def _freeze(options: argparse.Namespace) -> ExitCode:
    from isthmus.joint.agreement.cards import Folder
    from isthmus.joint.agreement.policy import Policy
    from isthmus.joint.cohorts.store import CohortStore
    from isthmus.joint.federation.series import as_studied

    study = Folder(options.study).study()
    policy, store = Policy.read(options.home / "policy.toml"), CohortStore(options.home)
    policy.require(study, spent_before(options.home, study))
    if options.data is None:
        if options.other_persons or options.time or options.by:
            raise FormatError("--other-persons, --time and --by describe a table: give --data.")
        name, cohort = store.open(study, policy, name=options.name)
        say(f"Opened the cohort {name!r} for {study.title!r}. Its rows are as they were frozen.")
    else:
        # A level of the study may be called NA.
        table = read_table(options.data, missing=("",))
        table = as_studied(table, study.schema, by=options.by, time=options.time)
        name, cohort = store.freeze(
            study, table, policy, name=options.name, other_persons=options.other_persons
        )
        for line in _frozen(name, cohort):
            say(line)
    give(cohort=name, identity=cohort.identity, persons=cohort.number_of_persons)
    return ExitCode.DONE


def _frozen(name: str, cohort: Any) -> Iterator[str]:
    """Yield lines about a new cohort. Nobody but the site sees them."""
    frozen = cohort.frozen
    yield (
        f"Froze the cohort {name!r}: {counted(len(frozen.values), 'row')} of "
        f"{counted(cohort.number_of_persons, 'person')}."
    )
    dropped = f": {frozen.why_dropped()}" if frozen.absent else ""
    clipped = f": {frozen.why_clipped()}" if frozen.outside else ""
    yield (
        f"  dropped    {counted(frozen.dropped, 'row')} that lack a value or have another level"
        f"{dropped}"
    )
    yield (
        f"  clipped    {counted(frozen.clipped, 'row')} with a value outside of the bounds{clipped}"
    )
    most = [name for name, rows in frozen.outside.items() if 2 * rows > len(frozen.values)]
    if most:
        from isthmus.graphs.names import listed

        yield (
            f"             Most values of {listed(most)} are outside: check the unit and the "
            "column, retire this cohort and freeze a corrected table."
        )
    elif frozen.clipped > max(MANY_CLIPPED * len(frozen.values), FEW_CLIPPED):
        yield (
            "             These are so many that edges may be learned that are not there: ask the "
            "author of the study for wider bounds, or to take logarithms of skewed variables."
        )
    if frozen.known:
        yield f"  left out   {counted(frozen.known, 'person')} of other cohorts"
    if cohort.certificate is not None:
        yield "  checked    everything that the study allows keeps the rules of the policy"
    for variable, share in _blur(cohort):
        if share > HARDLY_VARIES:
            yield f"  blur       hides how {variable!r} varies: check the unit and the column"
            continue
        yield (
            f"  blur       adds {share:.0%} to the variance of {variable!r}: a study with a finer "
            "resolution or narrower bounds would lose less"
        )


def _blur(cohort: Any) -> Iterator[tuple[str, float]]:
    """Yield the variables whose blur is not small, and the share of the variance that it adds."""
    import numpy as np

    for variable, resolution in cohort.variables.resolutions.items():
        column = cohort.values[:, cohort.variables.schema.index(variable)]
        variance, added = float(np.nanvar(column)), resolution**2 / 12
        if added > LARGE_BLUR * max(variance - added, 0.0):
            yield variable, added / max(variance - added, added)


def _list(options: argparse.Namespace) -> ExitCode:
    from isthmus.joint.cohorts.store import CohortStore, described

    store = CohortStore(options.home)
    records = store.records()
    if not records:
        say("This site has no cohort. Freeze one: isthmus site freeze HOME STUDY --data FILE.")
    for record in records:
        for line in described(record, was_sent=store.was_sent(record)):
            say(line)
    give(cohorts=[r.name for r in records])
    return ExitCode.DONE


def _succeeded(new: str, successor: Any, record: Any, named: int) -> Iterator[str]:
    """Yield lines about a cohort from which persons were taken out."""
    gone = record.persons - successor.number_of_persons
    yield f"Its successor {new!r} has {counted(successor.number_of_persons, 'person')}."
    yield f"  taken out  {counted(named, 'person')} whom you named"
    if gone > named:
        yield (
            f"  taken out  {counted(gone - named, 'person')} drawn at random, so that no "
            "difference of sums is about fewer persons than a cohort has"
        )


def _retire(options: argparse.Namespace) -> ExitCode:
    from isthmus.joint.agreement.policy import Policy
    from isthmus.joint.cohorts.store import CohortStore

    store, policy = CohortStore(options.home), Policy.read(options.home / "policy.toml")
    without = None
    if options.without is not None:
        lines = options.without.read_text(encoding="utf-8").splitlines()
        without = [line.strip() for line in lines if line.strip()]
    record, new, successor = store.retire(options.name, policy, without)
    say(f"Deleted the rows of the cohort {record.name!r}.")
    if record.retired:
        say("Keyed hashes of its persons stay, so that nobody is frozen twice.")
    if successor is not None:
        for line in _succeeded(new, successor, record, len(set(without or ()))):
            say(line)
        if store.was_sent(record):
            say("Studies that have sums of the old cohort end for this site: draft new ones.")
    give(retired=record.name, successor=new or None)
    return ExitCode.DONE
