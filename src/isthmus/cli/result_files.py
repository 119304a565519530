"""Files that results are written to. The extension determines the format."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import isthmus as ist
from isthmus.cli.output import about_run, give, say, was_noted
from isthmus.cli.parsing import ExitCode, code_of, in_options, sentence_of
from isthmus.errors import FormatError, IsthmusError, MismatchError
from isthmus.tables.write_table import check_place


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a place to write to, which becomes the file at the end.

    If writing fails or is interrupted, an earlier file of this name stays as it was, and half of a
    new one is not left behind.
    """
    if path.exists() and not path.is_file():
        yield path  # a device or a pipe
        return
    target = path.resolve()  # not the link that leads to it
    place = target.with_name(f".part-{target.name}")
    try:
        yield place
        if target.exists():
            shutil.copymode(target, place)
        place.replace(target)
    except OSError as error:
        if error.filename is not None and Path(error.filename).name == place.name:
            error.filename = str(path)
        raise
    finally:
        place.unlink(missing_ok=True)


Writer: TypeAlias = "Callable[[Any, Path], None]"


def check_outputs(paths: Sequence[Path], search: object = None) -> None:
    """Raise an error if a file has an unknown format or no folder, before anything is computed."""
    for path in paths:
        writer(path, pag=isinstance(search, ist.searches.PAGSearch))
        check_place(path)


def writer(path: Path, *, pag: bool = False) -> Writer:
    """Return the function that writes a result, perhaps a PAG, in the format of this file."""
    kind = path.suffix.lower()
    if kind not in WRITERS and kind not in PAG_WRITERS:
        raise FormatError(
            f"The format of {path.name!r} is unknown. Give a name that ends in one of "
            f"{', '.join(WRITERS)}."
        )
    writers = PAG_WRITERS if pag else WRITERS
    if kind not in writers:
        raise FormatError(
            f"{path.name!r} cannot be written: {kind} is a format for "
            + ("networks and DAGs, and hidden common causes give a PAG" if pag else "PAGs only")
            + f". Give a name that ends in one of {', '.join(writers)}."
        )
    return writers[kind]


def write_result(solution: ist.Solution | ist.PAGSolution, path: Path) -> None:
    """Write a result in the format of the file."""
    writer(path, pag=isinstance(solution, ist.PAGSolution))(solution, path)


def write_outputs(
    result: Any,
    paths: Sequence[Path],
    *,
    write: Callable[[Any, Path], None] = write_result,
    quiet: bool = False,
) -> ExitCode:
    """Write a result to all files. One that fails does not stop the others.

    Parameters
    ----------
    result
        The result to write.
    paths
        The files.
    write
        Writes the result to one file.
    quiet
        Do not name the files that were written.

    Returns
    -------
    ExitCode
        That of the first failure, or `ExitCode.DONE`.
    """
    code, written, failed = ExitCode.DONE, [], {}
    for path in paths:
        try:
            with whole_file(path) as place:
                write(result, place)
        except (IsthmusError, OSError) as error:
            code = code or code_of(error)
            failed[str(path)] = sentence_of(error)
        else:
            written.append(str(path))
            if not quiet:
                say(f"Wrote {path}")
    for name, message in failed.items():
        sys.stderr.write(
            f"isthmus: error {int(code)} ({code.name.lower().replace('_', ' ')}): "
            f"{name} was not written: {message}\n"
        )
    if paths:
        give(written=written, not_written=failed)
    return code


def write_report(result: Any, path: Path) -> None:
    """Write the report of a solution, a posterior or an ensemble, in the words of this command."""
    notes = tuple(in_options(note) for note in result.notes)
    replace(result, notes=notes).report(path, **about_run())


def _picture(solution: ist.Solution | ist.PAGSolution, path: Path) -> None:
    # The new axes belong to a figure, not to a subfigure.
    figure: Any = solution.plot().figure
    figure.savefig(path)


def _write_dict(solution: ist.Solution | ist.PAGSolution, path: Path) -> None:
    text = json.dumps(solution.to_dict(), ensure_ascii=False, indent=1)
    path.write_text(text + "\n", encoding="utf-8")


def _json(solution: ist.Solution, path: Path) -> None:
    if solution.statistics_kept is None:  # what organisations learn together has no statistics
        _write_dict(solution, path)
    else:
        ist.io.write_json(solution.fit(), path)


def _discrete(solution: ist.Solution) -> ist.networks.DiscreteNetwork:
    network = solution.fit()
    if not isinstance(network, ist.networks.DiscreteNetwork):
        raise MismatchError(
            "This format holds discrete networks only, and this one has continuous variables. "
            "Write .json, or the graph as .gml, .graphml or .dot."
        )
    return network


WRITERS: dict[str, Writer] = {
    ".html": write_report,
    ".isthmus": lambda s, path: s.save(path),
    ".bif": lambda s, path: s.save_bif(path),
    ".bifxml": lambda s, path: ist.io.write_xmlbif(_discrete(s), path),
    ".xmlbif": lambda s, path: ist.io.write_xmlbif(_discrete(s), path),
    ".net": lambda s, path: ist.io.write_hugin(_discrete(s), path),
    ".xdsl": lambda s, path: ist.io.write_xdsl(_discrete(s), path),
    ".json": _json,
    ".dot": lambda s, path: ist.io.write_dot(s.dag, path),
    ".gml": lambda s, path: ist.io.write_gml(s.dag, path),
    ".graphml": lambda s, path: ist.io.write_graphml(s.dag, path),
    ".csv": lambda s, path: ist.io.write_edge_list(s.dag, path),
    ".png": _picture,
    ".svg": _picture,
    ".pdf": _picture,
}
"""How a result is written to a file with this extension."""

PAG_WRITERS: dict[str, Writer] = {
    ".html": write_report,
    ".isthmus": lambda s, path: s.save(path),
    ".json": _write_dict,
    ".txt": lambda s, path: ist.io.write_tetrad(s.pag, path),
    ".png": _picture,
    ".svg": _picture,
    ".pdf": _picture,
}
"""How a PAG is written to a file with this extension; .txt is the format of Tetrad."""


def described_solution(solution: Any) -> str:
    """Return the summary of a solution and its edges; "—" if they can point either way."""
    if hasattr(solution, "pag"):
        lines = [" ".join(line.splitlines()) for line in str(solution.pag).split("\n")]
        return "\n".join([summary(solution), *lines])
    free = set(solution.directions.open)
    lines = [f"{a} {'—' if (a, b) in free else '→'} {b}" for a, b in solution.dag.edges]
    lines = [" ".join(line.splitlines()) for line in lines]
    text = re.sub(r"\b(is|are) open:", r"\1 open (shown as —):", summary(solution))
    return "\n".join([text, *lines])


def summary(result: Any) -> str:
    """Return the summary of a result, without the notes that were printed as warnings."""
    lines, notes = str(result).splitlines(), tuple(getattr(result, "notes", ()))
    if notes and lines[-len(notes) :] == list(notes):
        lines = lines[: -len(notes)] + [n for n in notes if not was_noted(in_options(n))]
    return in_options("\n".join(lines))
