"""What `coordinator run` and `party run` have in common: options, state of the run, result."""

from __future__ import annotations

import argparse
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import isthmus_joint as joint
from isthmus.cli.inputs import add_knowledge_options, knowledge_of, score_from, search_from
from isthmus.cli.output import say
from isthmus.cli.parsing import ExitCode, add_output_option, at_least, seconds
from isthmus.cli.result_files import described_solution, write_outputs
from isthmus.errors import AbortedError, IsthmusError
from isthmus_joint.commands.described import described
from isthmus_joint.commands.operation import watched

if TYPE_CHECKING:
    from isthmus.results import Solution
    from isthmus.tables import Source
    from isthmus_joint.commands.run_display import RunDisplay


def add_joint_options(run: argparse.ArgumentParser, own: str) -> None:
    """Add the options of all commands that learn together with other organisations.

    Parameters
    ----------
    own
        Searches of its own, which depend on the study, for the help.
    """
    add_output_option(
        run,
        "output file, as for isthmus learn; may be repeated",
    )
    run.add_argument(
        "--score",
        type=score_from,
        help="score to optimise; by default chosen from the column types",
    )
    run.add_argument(
        "--search",
        type=partial(search_from, modules=(joint,)),
        help=f"search algorithm, as for isthmus learn, or {own} if the study allows it; by default "
        "chosen from the study and the data",
    )
    run.add_argument("--seed", type=at_least(0), default=0, help="random seed")
    run.add_argument(
        "--time-limit",
        type=seconds,
        metavar="SECONDS",
        help="stop the search after this many seconds and return the best result so far",
    )
    add_knowledge_options(run)


@contextmanager
def shown(options: argparse.Namespace, sites: list[str]) -> Iterator[RunDisplay]:
    """Show the study and the state of a run, and record how it ends."""
    from isthmus_joint.commands.run_display import RunDisplay, RunState

    study = joint.Folder(options.study).study()
    state = study.state_folder(options.home)
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    say(described(study))
    metrics, as_json = getattr(options, "metrics", None), getattr(options, "log", "") == "json"
    with (
        RunDisplay(state / "status.json", sites, as_json=as_json) as board,
        watched(metrics, board.figures, board.problem),
    ):
        if threading.current_thread() is threading.main_thread():  # the only one that may
            signal.signal(signal.SIGTERM, _interrupted)
        try:
            yield board
        except AbortedError as error:
            ending = RunState.PAUSED if error.silent else RunState.ABORTED
            board.end(ending, str(error), error.reason)
            raise
        except KeyboardInterrupt:
            board.end(RunState.INTERRUPTED, "run the same command again to resume")
            raise
        except (IsthmusError, OSError) as error:
            board.end(RunState.FAILED, str(error))
            raise
        board.end(RunState.DONE, "")


def learn_jointly(
    source: Source, options: argparse.Namespace, board: RunDisplay, **more: Any
) -> Any:
    """Learn from a joint source as the options say, and show the progress."""
    from isthmus.verbs.learn import learn
    from isthmus.watch import Ending

    solution = learn(
        source,
        score=options.score,
        search=options.search,
        knowledge=knowledge_of(options),
        seed=options.seed,
        time_limit=options.time_limit,
        progress=board.progress,
        **more,
    )
    if solution.status.ending is Ending.INTERRUPTED:
        raise KeyboardInterrupt  # what the organisations computed is kept, and the run resumed
    return solution


def finish(solution: Solution, options: argparse.Namespace) -> ExitCode:
    """Print a solution and what was released for it, and write the files."""
    say(f"DONE: {described_solution(solution)}")
    say(f"What the organisations released and learned:\n{solution.disclosure}")
    published = getattr(solution, "published", lambda: solution)()  # a PAG has no parameters
    return write_outputs(published, options.output)


def print_status(options: argparse.Namespace) -> ExitCode:
    """Print the state of a run."""
    path = joint.Folder(options.study).study().state_folder(options.home) / "status.json"
    never = "This study has never been run here."
    say(path.read_text(encoding="utf-8") if path.exists() else never)
    return ExitCode.DONE


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt
