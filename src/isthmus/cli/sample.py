"""The subcommand `isthmus sample FILE`: draw networks from their posterior distribution."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import isthmus as ist
from isthmus.cli.inputs import StrategyOption, missing_names, opened, sampler_from, sampler_names
from isthmus.cli.output import give, say
from isthmus.cli.parsing import ExitCode, at_least
from isthmus.cli.result_files import summary, write_outputs, write_report
from isthmus.cli.runs import (
    GRAPHS,
    add_run_options,
    arguments_of,
    check_formats,
    explain,
    say_edges,
    write_edges,
    write_graph,
)

if TYPE_CHECKING:
    from isthmus.verbs.prepare import Problem

FORMATS = (".html", ".npz", ".csv", *GRAPHS)


def add(command: argparse.ArgumentParser) -> None:
    """Describe the command."""
    command.description = (
        "Draw networks from their posterior distribution, and print the probability of each edge. "
        "Graph files hold the edges with a probability above one half."
    )
    add_run_options(command, FORMATS, partial(missing_names, "StructuralEM"))
    command.add_argument(
        "--sampler",
        action=StrategyOption,
        names=sampler_names,
        type=sampler_from,
        help="by default chosen by the number of columns: %(names)s",
    )
    command.add_argument(
        "--draws", type=at_least(1), default=1000, help="networks per chain; by default 1000"
    )
    command.add_argument(
        "--chains",
        type=at_least(1),
        help="independent chains; by default 4, and 1 for an exact posterior",
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> ExitCode:
    """Draw, write the requested files and print the probabilities of edges."""
    from isthmus.options import described
    from isthmus.verbs.defaults import choose_marginal_likelihood, choose_sampler

    check_formats(options.output, FORMATS)
    arguments = arguments_of(options)
    file = opened(options)

    def planned(problem: Problem) -> list[str]:
        sampler, reason = options.sampler, "as requested"
        if sampler is None:
            sampler, reason = choose_sampler(problem.objective)
        chains = options.chains or sampler.chains
        return [f"Sampler {described(sampler)} ({reason}), {chains} × {options.draws} draws."]

    if options.explain:
        return explain(
            options,
            file,
            planned,
            accepts=(ist.objectives.LOCAL_SCORES,)
            if options.sampler is None
            else options.sampler.accepts,
            choose=choose_marginal_likelihood,
        )
    posterior = ist.sample(
        file.table,
        sampler=options.sampler,
        draws=options.draws,
        chains=options.chains,
        **arguments,
    )
    if not options.quiet:
        say(summary(posterior))
        say("Probability of each edge, in this direction:")
    give(choice=posterior.choice, status=asdict(posterior.status), warnings=posterior.notes)
    say_edges(posterior.nodes, posterior.edge_probabilities(), quiet=options.quiet)
    return write_outputs(posterior, options.output, write=_write, quiet=options.quiet)


def _write(posterior: ist.Posterior, path: Path) -> None:
    ending = path.suffix.lower()
    if ending == ".html":
        write_report(posterior, path)
    elif ending == ".npz":
        posterior.save(path)
    elif ending == ".csv":
        write_edges(posterior.nodes, posterior.edge_probabilities(), path)
    else:
        write_graph(posterior.median_graph(), path)
