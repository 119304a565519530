"""`isthmus site freeze`: the rows from which a site answers a study."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from isthmus.cli.exit_codes import ExitCode
from isthmus.cli.keys import say
from isthmus.cli.ledger import spent_before
from isthmus.cli.output import give
from isthmus.plurals import counted
from isthmus.sources.tables.read_table import read_table

MANY_CLIPPED, FEW_CLIPPED = 0.001, 10
"""Wider bounds are suggested if more than this share of the rows, and more than this number, have a
clipped value. Normal variables with bounds of four standard deviations have fewer, and exponential
ones have more."""


def add_freeze_action(action: Callable[..., argparse.ArgumentParser]) -> None:
    """Describe the action."""
    parser = action("freeze", "freeze the table of the site for a study", freeze)
    add_table_options(parser, required=True)


def add_table_options(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Add the options that name the table of a site."""
    parser.add_argument(
        "--data", type=Path, required=required, metavar="FILE", help="table of the site"
    )
    parser.add_argument(
        "--few-more-rows",
        action="store_true",
        help="the officer accepts that this table has a few rows more or less than an earlier one",
    )
    parser.add_argument(
        "--time", metavar="COLUMN", help="time series: column to sort by and to detect gaps"
    )
    parser.add_argument(
        "--by", metavar="COLUMN", help="time series: column that identifies a realisation"
    )


def freeze(options: argparse.Namespace) -> ExitCode:
    """Freeze the table of a site for a study."""
    from isthmus.joint.agreement.cards import Folder
    from isthmus.joint.agreement.policy import Policy
    from isthmus.joint.extracts.extract_store import ExtractStore
    from isthmus.joint.federation.series import as_studied

    study = Folder(options.study).study()
    policy, store = Policy.read(options.home / "policy.toml"), ExtractStore(options.home)
    policy.require(study, spent_before(options.home, study))
    # A level of the study may be called NA.
    table = read_table(options.data, missing=("",))
    table = as_studied(table, study.schema, by=options.by, time=options.time)
    extract = store.freeze(study, table, policy, few_more_rows=options.few_more_rows)
    for line in _frozen(study, extract):
        say(line)
    rows = 0 if extract.values is None else len(extract.values)
    give(identity=extract.identity, rows=rows, persons=extract.number_of_persons)
    return ExitCode.DONE


def _frozen(study: Any, extract: Any) -> Iterator[str]:
    """Yield lines about a new extract. Nobody but the site sees them."""
    frozen = extract.frozen
    yield (
        f"Froze the table for {study.title!r}: {counted(len(frozen.values), 'row')} of "
        f"{counted(extract.number_of_persons, 'person')}."
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
            "column, and freeze a corrected table."
        )
    elif frozen.clipped > max(MANY_CLIPPED * len(frozen.values), FEW_CLIPPED):
        yield (
            "             These are so many that edges may be learned that are not there: ask the "
            "author of the study for wider bounds, or to take logarithms of skewed variables."
        )
    if extract.checked is not None:
        yield "  checked    everything that the study allows keeps the rules of the policy"
