"""The stages of `.ci/run`: what each one runs, and which run beside each other.

The tests are in four stages: tests, algorithms, processes, and timing for those that measure short
times, which runs last and alone. `guard`, `r` and `release` run only by name. Only the
standard library is needed here.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NoReturn

ROOT = Path(__file__).parent.parent

# One thread of BLAS: stages share the cores, and threads that wait for each other would burn them.
ENVIRONMENT = {
    "MPLBACKEND": "Agg",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}


class FailedError(Exception):
    """A stage did not pass."""


@dataclass
class Job:
    """A running part of a stage: where it writes, and what it has cost.

    Attributes
    ----------
    name
        Name of the stage.
    out
        Where its commands write; nowhere else than the terminal if there is none.
    computed
        Seconds of computation of its commands.
    failure
        Why it did not pass.
    """

    name: str
    out: IO[str] | None = None
    computed: float = 0.0
    seconds: float = 0.0
    failure: str = ""

    def say(self, text: str) -> None:
        """Write a line among those of the commands."""
        print(text, file=self.out, flush=True)

    def run(
        self, *command: str | Path, cwd: Path = ROOT, variables: Mapping[str, str] = {}
    ) -> None:
        """Run a command, which must succeed, with some more variables of the environment."""
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=cwd,
            env=os.environ | ENVIRONMENT | dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=self.out,
            stderr=None if self.out is None else subprocess.STDOUT,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.computed += usage.ru_utime + usage.ru_stime
        if process.returncode:
            shown = " ".join(str(word) for word in command[:6])
            raise FailedError(f"`{shown} …` ended with {process.returncode}")

    def read(self, *command: str | Path) -> str:
        """Return what a short command prints."""
        words = [str(word) for word in command]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise FailedError(done.stderr.strip() or f"{command[0]} ended with {done.returncode}")
        return done.stdout


@dataclass(frozen=True)
class Room:
    """The folder of environments and files of a run."""

    path: Path
    python: Path = field(default=Path(sys.executable))

    def environment(self, name: str) -> Path:
        """The interpreter of an environment: full, bare or old."""
        return self.path / name / "bin" / "python"

    def tool(self, name: str) -> Path:
        """A command of the full environment."""
        return self.path / "full" / "bin" / name

    def wheel(self) -> Path:
        """The wheel that was built."""
        return next((self.path / "dist").glob("*.whl"))

    def fresh(self, job: Job, name: str, python: Path, *wanted: str | Path) -> Path:
        """Make an environment that has only these requirements, without a pip of its own."""
        job.run(python, "-m", "venv", "--clear", "--without-pip", self.path / name)
        self.fetch(job, name, *wanted)
        return self.environment(name)

    def fetch(self, job: Job, name: str, *wanted: str | Path) -> None:
        """Install requirements by uv, in a third of the time of pip, or else by pip."""
        made = self.environment(name)
        try:
            job.run(self.tool("uv"), "pip", "install", "-q", "--python", made, *wanted)
        except FailedError as error:
            job.say(f"{error}; pip is used instead")
            pip = (self.environment("full"), "-m", "pip", "--python", made)
            job.run(*pip, "install", "-q", "--no-compile", *wanted)

    def versions(self, job: Job, name: str, *packages: str) -> None:
        """Say which versions of packages an environment has."""
        pip = (self.environment("full"), "-m", "pip", "--python", self.environment(name))
        pattern = re.compile(rf"^({'|'.join(packages)}) .*$", re.MULTILINE | re.IGNORECASE)
        job.say("\n".join(m[0] for m in pattern.finditer(job.read(*pip, "list"))))


# --- installation ----------------------------------------------------------------------------


def project() -> dict[str, list[str]]:
    """Return the dependencies of the package by extra; those of the core have no name."""
    found = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return {"": found["dependencies"], **found["optional-dependencies"]}


def joint_requirements() -> set[str]:
    """Return all dependencies of the package for joint studies, without the learner."""
    path = ROOT / "packages/isthmus-joint/pyproject.toml"
    found = tomllib.loads(path.read_text("utf-8"))["project"]
    lists = [found["dependencies"], *found["optional-dependencies"].values()]
    return {line for each in lists for line in each if not line.startswith("isthmus")}


def requirements() -> list[str]:
    """Return what the package needs with all of its extras."""
    known, waiting, found = project(), ["isthmus[all]"], set[str]()
    waiting += known[""]
    for line in waiting:
        own = re.fullmatch(r"isthmus\[(.*)\]", line)
        if own:
            waiting += [x for name in own[1].split(",") for x in known[name]]
        elif not line.startswith("isthmus-joint"):
            found.add(line)
    return sorted(found | joint_requirements())


def newest(*folders: str) -> float:
    """Return when a file in these folders was last changed."""
    files = [f for name in folders for f in (ROOT / name, *(ROOT / name).rglob("*")) if f.is_file()]
    return max(f.stat().st_mtime for f in files)


def install(job: Job, room: Room) -> None:
    """Make the full environment and the wheel.

    The core is compiled while the dependencies are fetched. Without isolation, so that it is
    compiled once for the wheel and for the editable installation.
    """
    job.run("sh", "build_assets.sh")  # before a wheel takes the libraries of the report
    python, ready = room.environment("full"), room.path / "full" / "ready"
    made = ready.stat().st_mtime if ready.exists() else 0.0
    pip = (python, "-m", "pip", "install", "-q")
    if made < newest("pyproject.toml"):
        job.run(room.python, "-m", "venv", "--clear", room.path / "full")
        job.run(*pip, "--upgrade", "pip>=25.1")  # for dependency groups
        job.run(*pip, "--group", "build", "uv")
        made = 0.0
    compiling = Job("wheel")
    with ThreadPoolExecutor(1) as beside:
        built = beside.submit(wheel, compiling, room)
        if not made:
            room.fetch(job, "full", *requirements(), "--group", "dev")
        built.result()
    job.computed += compiling.computed
    commands = "packages/isthmus-joint/pyproject.toml"  # what it installs beside its modules
    if made < newest("CMakeLists.txt", "src/native", commands):
        job.run(*pip, "--no-build-isolation", "--no-deps", "-e", ".")
        joint = "packages/isthmus-joint"
        job.run(*pip, "--no-deps", "--no-compile", "-e", joint)
        apps = [x for name in ("flower", "nvflare") for x in ("-e", f"packages/isthmus-{name}")]
        job.run(*pip, "--no-compile", *apps)  # with Flower and NVFlare
    ready.touch()


def wheel(job: Job, room: Room) -> None:
    """Build the wheel and the source distribution, unless this run has done so."""
    dist, log = room.path / "dist", room.path / "build.log"
    if not any(dist.glob("*.whl")):
        with log.open("w") as out:
            building = Job("wheel", out)
            try:
                building.run(
                    *(room.environment("full"), "-m", "build", "--no-isolation"),
                    *("--sdist", "--wheel", "--outdir", dist, "."),
                )
            except FailedError:
                job.say("\n".join(log.read_text().splitlines()[-40:]))
                raise
            finally:
                job.computed += building.computed
    job.run(room.environment("full"), ".ci/check_wheel.py", *sorted(dist.iterdir()))


# --- checks of sources -----------------------------------------------------------------------


def lint(job: Job, room: Room) -> None:
    """Style and format, and the security of the workflows."""
    job.run(room.tool("ruff"), "check", ".")
    job.run(room.tool("ruff"), "format", "--check", ".")
    job.run(room.tool("zizmor"), "--offline", "--quiet", ".github")


def types(job: Job, room: Room) -> None:
    """Strict types. A cache is of use only where the next run finds it."""
    kept = "ISTHMUS_CI_DIR" in os.environ
    job.run(room.tool("mypy"), "--cache-dir", room.path / "mypy" if kept else os.devnull)


def imports(job: Job, room: Room) -> None:
    """Direction of imports."""
    job.run(room.tool("lint-imports"))


def docs(job: Job, room: Room) -> None:
    """Pages build without a warning, load nothing from elsewhere and have no dead links."""
    pages = room.path / "html"
    options = ("-q", "-W", "--keep-going", "-E", "-b", "html")
    job.run(room.tool("sphinx-build"), *options, "docs", pages)
    job.run(room.environment("full"), ".ci/check_pages.py", pages)


def sanitized_sources() -> str:
    """Return the hash of what the sanitizers check: the compiled core and its tests."""
    files = [ROOT / "CMakeLists.txt"]
    for folder in ("src/native", "tests/kernels"):
        files += [f for f in (ROOT / folder).rglob("*") if f.is_file()]
    names = [f.relative_to(ROOT).as_posix() for f in files if "__pycache__" not in f.parts]
    hashes = [(hashlib.sha256((ROOT / n).read_bytes()).hexdigest(), n) for n in names]
    hashes.sort(key=lambda pair: pair[1].encode())
    return hashlib.sha256("".join(f"{h}  {n}\n" for h, n in hashes).encode()).hexdigest()


def native(job: Job, room: Room, *, anew: bool) -> None:
    """The compiled core: its type stub that is checked in, and the sanitizers.

    These take long, so sources that passed once, as .ci/sanitized says, pass again when all stages
    run; `bash .ci/run native` runs them in any case.
    """
    stub = room.path / "_native.pyi"
    python = room.environment("full")
    job.run(python, "-m", "nanobind.stubgen", "-q", "-m", "isthmus.kernels._native", "-o", stub)
    if stub.read_bytes() != (ROOT / "src/isthmus/kernels/_native.pyi").read_bytes():
        raise FailedError("The stub of the compiled module is out of date: sh build_native.sh")
    sources = sanitized_sources()
    if not anew and sources in (ROOT / ".ci/sanitized").read_text():
        job.say("passed already: sanitizers of these sources")
        return
    sanitizers(job, room)
    job.say(f"Write {sources} into .ci/sanitized, so that these sources need not pass again.")


# Tests of the package in this folder. An editable installation finds its own sources before any
# path, so its finder is taken out first.
RUN_COPIED_TESTS = """
import os, sys
sys.meta_path = [f for f in sys.meta_path if "ScikitBuild" not in type(f).__name__]
sys.path.insert(0, os.path.abspath("src"))
from isthmus.kernels import _native
assert _native.__file__.startswith(os.getcwd()), _native.__file__
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""


def sanitizers(job: Job, room: Room) -> None:
    """The kernels under the address and undefined behaviour sanitizers, warnings as errors.

    Leaks are not looked for: Python never frees everything.
    """
    copy, python = room.path / "sanitized", room.environment("full")
    shutil.rmtree(copy, ignore_errors=True)
    unwanted = shutil.ignore_patterns("*.so", "__pycache__")
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, copy / name, ignore=unwanted)
    for name in ("conftest.py", "CMakeLists.txt", "build_native.sh", "pyproject.toml"):
        shutil.copy(ROOT / name, copy / name)
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    tools = {"PYTHON": str(python), "PATH": path}
    job.run("sh", "build_native.sh", "sanitize", cwd=copy, variables=tools)
    found = [
        job.read("g++", f"-print-file-name=lib{name}.so").strip() for name in ("asan", "ubsan")
    ]
    job.run(
        *(python, "-c", RUN_COPIED_TESTS, "-q", "-p", "no:cacheprovider", "tests/kernels"),
        *("-m", "not slow and not timing"),
        *("-k", "not is_short and not ctrl_c and not interrupted"),
        cwd=copy,
        variables={"ASAN_OPTIONS": "detect_leaks=0", "LD_PRELOAD": " ".join(found)},
    )


# --- tests -----------------------------------------------------------------------------------

# Kernels, scores, searches and samplers, which need much time and no engine.
ALGORITHMS = ("tests/kernels", "tests/scores", "tests/searches", "tests/samplers")
PROCESSES = "tests/processes"
# About half of the other tests, without those that start Spark or PostgreSQL.
FIRST_HALF = ("tests/joint", "tests/attacks", "tests/cli", "docs", "README.md", "CONTRIBUTING.md")
# Sites and servers as processes are started, killed and stopped: on a busy machine one may be late.
AGAIN = ("--reruns", "2", "-r", "fEsR")


def pytest(job: Job, python: Path, *more: str | Path, engines: str = "") -> None:
    """Run tests; those of the engines that an environment has must not be skipped."""
    variables = {"ISTHMUS_NO_ENGINE_SKIPS": engines}
    job.run(python, "-m", "pytest", "-q", *more, variables=variables)


def tests(job: Job, room: Room) -> None:
    """The first half of all tests that have no stage of their own."""
    pytest(job, room.environment("full"), *FIRST_HALF, engines="1")


def other_tests(job: Job, room: Room) -> None:
    """The second half: whatever is in no other stage, so that no new folder is forgotten."""
    elsewhere = [f"--ignore={name}" for name in (PROCESSES, *ALGORITHMS, *FIRST_HALF)]
    folders = ("tests", "src", "packages/isthmus-joint/src")
    pytest(job, room.environment("full"), *elsewhere, *folders, engines="1")


def algorithms(job: Job, room: Room) -> None:
    """Kernels, scores, searches and samplers."""
    kernels, *others = ALGORITHMS
    pytest(job, room.environment("full"), "-m", "not timing", kernels)
    pytest(job, room.environment("full"), *others)


def timing(job: Job, room: Room) -> None:
    """Steps of a search, which take thousandths of a second."""
    pytest(job, room.environment("full"), "-m", "timing", ALGORITHMS[0])


def processes(job: Job, room: Room) -> None:
    """Sites, coordinators and servers as processes."""
    others = f"--ignore-glob={ROOT / PROCESSES}/test_vertical_*.py"
    folders = (PROCESSES, "packages/isthmus-flower", "packages/isthmus-nvflare")
    pytest(job, room.environment("full"), *folders, others, *AGAIN, engines="1")


def party_processes(job: Job, room: Room) -> None:
    """Two parties and their engines as processes."""
    files = sorted((ROOT / PROCESSES).glob("test_vertical_*.py"))
    pytest(job, room.environment("full"), *files, *AGAIN, engines="1")


def bare(job: Job, room: Room) -> None:
    """The wheel and its core dependencies, then a test runner, and nothing else."""
    python = room.fresh(job, "bare", room.python, room.wheel())
    job.run(python, "-c", "import isthmus", cwd=room.path)
    room.fetch(job, "bare", "--group", "bare")
    # Sources of the other distributions are not to be found here.
    pytest(job, python, "-o", "pythonpath=.", "tests/test_house.py", "tests/bare")


# What is made of NumPy, SciPy and narwhals. The compiled core and what is built on it alone do not
# depend on these versions.
OLDEST = (
    *("bare", "statistics", "objectives", "networks", "results", "simulate"),
    *("scores/test_gaussian.py", "scores/test_extended.py", "searches/continuous/test_notears.py"),
)


def oldest(job: Job, room: Room) -> None:
    """The core on the oldest versions that pyproject promises: NumPy 1.26 among them."""
    if sys.version_info >= (3, 13):
        job.say("left out: NumPy 1.26 has no build for this Python; run with 3.11 or 3.12")
        return
    versions = [line.replace(">=", "==") + ".*" for line in project()[""]]
    others = ("packages/isthmus-joint", "pandas", "networkx", "--group", "bare")
    python = room.fresh(job, "old", room.python, room.wheel(), *versions, *others)
    room.versions(job, "old", "numpy", "scipy", "narwhals", "pandas")
    pytest(job, python, "-m", "fast", *(f"tests/{name}" for name in OLDEST))


def guard(job: Job, room: Room) -> None:
    """Ten tasks may not take more instructions than on file, nor find anything else."""
    if shutil.which("valgrind") is None:
        raise FailedError("Valgrind is missing: apt-get install valgrind")
    job.run(room.environment("full"), "benchmarks/guard.py")


# --- release ---------------------------------------------------------------------------------


def release(job: Job, room: Room) -> None:
    """Rehearse a release, in environments of its own."""
    job.run("sh", "build_assets.sh")
    python = room.environment("publisher")
    job.run(room.python, "-m", "venv", "--clear", python.parent.parent)
    job.run(python, "-m", "pip", "install", "-q", "uv", "packaging>=26")
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    job.run(python, ".ci/release.py", room.path / "release", variables={"PATH": path})


def r(job: Job, room: Room) -> None:
    """The R package: `R CMD check` with the Python of the full environment."""
    if shutil.which("R") is None:
        wanted = "r-base-core r-cran-reticulate r-cran-testthat"
        raise FailedError(f"R is missing: apt-get install {wanted}")
    folder = room.path / "r"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    job.run("R", "CMD", "build", ROOT / "packages/isthmus-r", cwd=folder)
    variables = {
        "RETICULATE_PYTHON": str(room.environment("full")),
        "_R_CHECK_FORCE_SUGGESTS_": "false",  # without bnlearn, its tests are skipped
    }
    (source,) = folder.glob("isthmus_*.tar.gz")
    job.run("R", "CMD", "check", "--no-manual", source, cwd=folder, variables=variables)


# --- order -----------------------------------------------------------------------------------

STAGES: Mapping[str, Sequence[Callable[..., None]]] = {
    "lint": [lint],
    "types": [types],
    "imports": [imports],
    "native": [native],
    "tests": [tests, other_tests],
    "algorithms": [algorithms],
    "processes": [party_processes, processes],
    "docs": [docs],
    "wheel": [wheel],
    "bare": [bare],
    "oldest": [oldest],
    "timing": [timing],
    "guard": [guard],
    "r": [r],
    "release": [release],
}
ASKED_FOR = ("guard", "r", "release")
"""These run only by name: Valgrind or R may be missing, and a rehearsal takes minutes."""

FIRST = ("lint", "imports", "wheel")
"""Quick ones: if they fail, nothing else runs."""

BESIDE = ("processes", "tests", "algorithms", "native", "types", "docs", "oldest", "bare")
"""These run beside each other, longest first, one more than there are cores: some of them wait."""

LAST = ("timing", *ASKED_FOR)


class Run:
    """One call of `.ci/run`."""

    def __init__(self, room: Room, asked: Sequence[str]) -> None:
        self.room = room
        self.asked = asked
        self.jobs: list[Job] = []
        self.begun = time.monotonic()
        self.printing = threading.Lock()
        self.failed: list[tuple[str, Path]] = []

    def one(self, name: str, part: Callable[..., None], log: Path | None = None) -> Job:
        """Run a part of a stage; with a log, show what it wrote when it ends."""
        job, begin = Job(name), time.monotonic()
        self.jobs.append(job)
        print(f"\n=== {name}{' begins' if log else ''}", flush=True)
        extra = {"anew": "tests" not in self.asked} if part is native else {}
        try:
            if log is None:
                part(job, self.room, **extra)
            else:
                with log.open("w") as job.out:
                    part(job, self.room, **extra)
        except FailedError as error:
            job.failure = str(error)
        except Exception as error:  # noqa: BLE001 - a mistake in this file, or of the machine
            job.failure = repr(error)
        job.seconds = time.monotonic() - begin
        with self.printing:
            if log is not None and job.failure:
                self.failed.append((name, log))  # shown last, where readers look first
            elif log is not None:
                print(f"\n=== {name}, after {job.seconds:.0f} s\n{log.read_text(errors='replace')}")
            if job.failure:
                print(f"FAILED: {name}: {job.failure}", flush=True)
        return job

    def all(self) -> bool:
        """Run the stages that are asked for, and return whether they passed."""
        made = ("install",) if self.asked != ["release"] else ()
        for name in (*made, *(n for n in FIRST if n in self.asked)):
            part = install if name == "install" else STAGES[name][0]
            if self.one(name, part).failure:
                return False
        parts = [(name, part) for name in BESIDE if name in self.asked for part in STAGES[name]]
        if len(parts) == 1:
            self.one(*parts[0])
        else:
            with ThreadPoolExecutor((os.cpu_count() or 2) + 1) as pool:
                for i, (name, part) in enumerate(parts):
                    pool.submit(self.one, name, part, self.room.path / f"{name}{i}.log")
        for name in LAST:
            if name in self.asked:
                self.one(name, STAGES[name][0])
        return not any(job.failure for job in self.jobs)

    def summary(self) -> None:
        """Show what failed, and say what each stage cost."""
        for name, log in self.failed:
            print(f"\n=== {name}\n{log.read_text(errors='replace')}")
        print()
        for job in self.jobs:
            cost = f"{job.seconds:5.0f} s, {job.computed:5.0f} s of computation"
            print(f"{job.name:<15} {cost}{', FAILED: ' if job.failure else ''}{job.failure}")
        failed = sorted({job.name for job in self.jobs if job.failure})
        seconds = time.monotonic() - self.begun
        if failed:
            print(f"FAILED in stage {', '.join(map(repr, failed))} after {seconds:.0f} s")
        else:
            total = sum(job.computed for job in self.jobs)
            print(f"all green after {seconds:.0f} s, {total:.0f} s of computation")


def descendants(pid: int) -> list[int]:
    """Return the processes that a process has started, and those that these have started."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += [int(child), *descendants(int(child))]
    return found


def stop(number: int, scratch: str) -> NoReturn:
    """End this process and all that it has started, also those in sessions of their own."""
    for pid in descendants(os.getpid()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    print(f"\nstopped by signal {number}", flush=True)
    shutil.rmtree(scratch, ignore_errors=True)
    os._exit(128 + number)


def main(arguments: Sequence[str]) -> int:
    """Run the stages that are asked for."""
    parser = argparse.ArgumentParser(prog="bash .ci/run", description=__doc__)
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=", ".join(STAGES))
    default = [name for name in STAGES if name not in ASKED_FOR]
    asked = parser.parse_args(arguments).stages or default
    for name in asked:
        if name not in STAGES:
            parser.error(f"No stage '{name}'. Stages: {' '.join(STAGES)}")
    kept = os.environ.get("ISTHMUS_CI_DIR")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda n, _: stop(n, scratch))
        path = Path(kept or scratch).resolve()
        path.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(path / "dist", ignore_errors=True)
        print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores", flush=True)
        run = Run(Room(path), asked)
        green = run.all()
        run.summary()
    return 0 if green else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
