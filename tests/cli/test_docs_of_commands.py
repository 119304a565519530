"""The pages on the command line: every snippet runs, and the reference is up to date."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest

from isthmus.cli import main
from isthmus.cli.app import COMMANDS, leaves, parser, reference_pages

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    """The lines of all snippets of the page, without the one that installs."""
    page = (DOCS / "how-to" / "command-line.md").read_text(encoding="utf-8")
    lines = [line for block in BLOCK.findall(page) for line in block.splitlines() if line]
    assert lines.pop(0) == "pip install 'isthmus[cli]'"
    return lines


@pytest.mark.long
def test_the_snippets_of_the_page_run(tmp_path: Path) -> None:
    assert main(["datasets", "write", "asia", "-o", str(tmp_path / "patients.csv")]) == 0
    rng = np.random.default_rng(1)
    age, ward = rng.normal(60, 9, 200), rng.integers(1, 4, 200)
    rows = [f"{i + 1000},{a:.1f},{w}" for i, (a, w) in enumerate(zip(age, ward, strict=True))]
    (tmp_path / "visits.csv").write_text("\n".join(["patient_id,age,ward", *rows]) + "\n")
    holes = [f"{a:.2f},{a + w:.2f}" for a, w in zip(age, ward, strict=True)] + ["1.5,NA"]
    (tmp_path / "incomplete.csv").write_text("\n".join(["dose,response", *holes]) + "\n")
    german = "größe;gewicht\n" + "".join(f"{a:.1f};{a / 3:.1f}\n" for a in age).replace(".", ",")
    (tmp_path / "patients_de.csv").write_text(german, encoding="cp1252")
    set_dose = ["none", "knock-out"] * 100
    doses = [f"{a},{a + w:.2f},{r}" for a, w, r in zip(age, ward, set_dose, strict=True)]
    (tmp_path / "experiments.csv").write_text("\n".join(["dose,response,regime", *doses]))
    days = [f"{i},{a:.2f},{b:.2f}" for i, (a, b) in enumerate(zip(age, age[::-1], strict=True))]
    (tmp_path / "days.csv").write_text("\n".join(["day,sales,visitors", *days]))
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    command = bin_folder / "isthmus"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m isthmus.cli "$@"\n')
    command.chmod(0o755)
    # One process for most lines: what costs time is the start of Python.
    shell = [line for line in commands() if "<(" in line or ">" in line]
    environment = os.environ | {"PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}"}
    for line in commands():
        if line in shell:
            ran = subprocess.run(
                ["bash", "-ec", line],
                cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert ran.returncode == 0, (line, ran.stderr)
        else:
            run_here(line, tmp_path)


def documented() -> list[list[str]]:
    """The words of every command `isthmus …` that is complete, of all pages and of containers."""
    found = []
    for page in sorted(DOCS.rglob("*.md")):
        for block in BLOCK.findall(page.read_text(encoding="utf-8")):
            lines = block.replace("\\\n", " ").splitlines()
            found += [shlex.split(line, comments=True) for line in lines if "<(" not in line]
    words = [w[1:] for w in found if w[:1] == ["isthmus"] and not {"...", "…"} & set(w)]
    compose = (DOCS.parent / "containers" / "compose.yaml").read_text(encoding="utf-8")
    words += [
        re.findall(r'"([^"]*)"', line) for line in re.findall(r"command: \[(.*?)\]", compose, re.S)
    ]
    return words


@pytest.mark.long
def test_every_command_of_the_docs_has_options_that_exist() -> None:
    """Not run: most need keys, a study and other sites."""
    words = documented()
    assert ["site", "join", "home", "study"] in words
    assert len(words) > 60
    for command in words:
        end = next((i for i, word in enumerate(command) if word in {">", "&", "|"}), None)
        parser(command[:end]).parse_args(command[:end])


def run_here(line: str, folder: Path) -> None:
    words = shlex.split(line)
    assert words[0] == "isthmus", line
    with chdir(folder):
        assert main(words[1:]) == 0, line


@pytest.mark.long
def test_the_reference_has_every_command_and_option() -> None:
    page = "".join(reference_pages().values())
    for leaf in leaves(parser()):
        assert f"# {leaf.prog}\n" in page
    assert "| `--forbidden` `FROM TO` |" in page
    assert "in parentheses: `--score` 'BDeu(ess=10)'" in page  # as code, where it keeps its hyphens


@pytest.mark.long
def test_the_help_imports_no_command() -> None:
    """What is not imported takes no time; `import isthmus` has a test of its own."""
    code = (
        "import sys\nfrom isthmus.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(ran.stderr.split())
    assert "isthmus.cli.app" in modules
    assert not {f"isthmus.cli.{name}" for name in COMMANDS} & modules
    assert not {"rich", "shtab", "polars", "narwhals", "scipy"} & modules


@pytest.mark.long
def test_an_interrupt_before_anything_ran_leaves_no_traceback() -> None:
    code = """
import sys
class Interrupting:
    def find_spec(self, name, *_):
        if name == "isthmus.cli.app":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from isthmus.cli import main
sys.exit(main(["--help"]))"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 130
    assert ran.stderr == "isthmus: error 130 (interrupted): Interrupted.\n"
