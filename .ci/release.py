"""Rehearse a release: build everything twice, compare, check, install and use it.

    python .ci/release.py FOLDER

`bash .ci/run release` calls this. It needs uv, packaging and the interpreters for which wheels are
built and tried; those that are not on this machine are left out. Nothing is uploaded. The folder
then has what would be published in `index`, in the layout of a package index.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from packaging.metadata import Metadata
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
BUILT_FOR = ("3.11", "3.12")
"""A wheel of its own for 3.11, and one for all later versions."""

TRIED_WITH = ("3.11", "3.12", "3.13", "3.14")


def run(*command: str | Path, cwd: Path = ROOT, **variables: str) -> str:
    """Run a command, which must succeed, and return what it prints."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=cwd, env=os.environ | variables, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"`{' '.join(words)}` ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def interpreter(version: str) -> Path | None:
    """Return a Python of this version, from the path or from pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [Path(p) for p in (shutil.which(f"python{version}"),) if p]
    for candidate in (*found, *sorted(pyenv.glob(f"{version}.*/bin/python"))):
        ask = "import sys; print('%d.%d' % sys.version_info[:2])"
        done = subprocess.run([candidate, "-c", ask], capture_output=True, text=True, check=False)
        if done.stdout.strip() == version:
            return candidate
    return None


# --- build -----------------------------------------------------------------------------------


def copy_tree(target: Path) -> None:
    """Copy what is in the repository, and the libraries of the report, which are not."""
    names = run("git", "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    names += [str(f.relative_to(ROOT)) for f in (ROOT / "src/isthmus/report/assets").iterdir()]
    for name in names:
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def projects(tree: Path) -> list[Path]:
    """Return the folders of the distributions."""
    return [tree, *sorted(each.parent for each in tree.glob("packages/*/pyproject.toml"))]


def is_compiled(project: Path) -> bool:
    """Whether a distribution needs a wheel per version of Python."""
    with (project / "pyproject.toml").open("rb") as file:
        return "scikit-build" in tomllib.load(file)["tool"]


def build(project: Path, target: Path, pythons: Mapping[str, Path], epoch: str) -> None:
    """Build the source distribution, and from it the wheels, as an index's users would."""
    settings = {"SOURCE_DATE_EPOCH": epoch}
    run("uv", "build", "-q", "--sdist", "--out-dir", target, project, **settings)
    (source,) = target.glob(f"{name_of(project).replace('-', '_')}-*.tar.gz")
    wanted = list(pythons.values()) if is_compiled(project) else list(pythons.values())[:1]
    for python in wanted:
        command = ("uv", "build", "-q", "--wheel", "--python", python, "--out-dir", target, source)
        run(*command, **settings)


def name_of(project: Path) -> str:
    """Return the name of a distribution."""
    with (project / "pyproject.toml").open("rb") as file:
        return str(tomllib.load(file)["project"]["name"])


def differences(first: Path, second: Path) -> list[str]:
    """Return the files of two builds that differ or are in one of them only."""

    def hashes(folder: Path) -> dict[str, str]:
        found = (f for f in folder.iterdir() if not f.name.startswith("."))
        return {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in found}

    one, two = hashes(first), hashes(second)
    return sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))


# --- check -----------------------------------------------------------------------------------


def metadata_of(file: Path) -> Metadata:
    """Return the metadata of a distribution, which must be valid by the standard."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            (name,) = (n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
            text = wheel.read(name)
    else:
        with tarfile.open(file) as source:
            inside = source.extractfile(f"{file.name.removesuffix('.tar.gz')}/PKG-INFO")
            assert inside is not None
            text = inside.read()
    return Metadata.from_email(text, validate=True)


def check_metadata(files: Sequence[Path], version: str) -> None:
    """Fail if a distribution has another version, or no licence or description."""
    for file in files:
        metadata = metadata_of(file)
        if str(metadata.version) != version:
            sys.exit(f"{file.name} is of version {metadata.version}, not {version}.")
        if not metadata.license_expression or not metadata.description:
            sys.exit(f"{file.name} has no licence or no description.")


def make_index(files: Sequence[Path], target: Path) -> None:
    """Lay files out as a package index, with their hashes."""
    for file in files:
        folder = target / canonicalize_name(re.split(r"-\d", file.name)[0])
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, folder)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        with (folder / "index.html").open("a") as page:
            page.write(f'<a href="{file.name}#sha256={digest}">{file.name}</a><br>\n')


# --- use -------------------------------------------------------------------------------------


def blocks(language: str) -> list[str]:
    """Return the code blocks of README in a language."""
    text = (ROOT / "README.md").read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def follow_readme(python: Path, index: Path, version: str, room: Path) -> float:
    """Do what README says first, in an empty environment, and return the seconds it took."""
    begin = time.monotonic()
    environment, work = room / "environment", room / "work"
    run(python, "-m", "venv", "--clear", environment)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    path = f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}"

    def install(requirement: str) -> None:
        # The first index that has a package is the only one that may provide it.
        source = ("--index", index.as_uri(), "--only-binary", "isthmus")
        target = ("--python", environment / "bin/python")
        run("uv", "pip", "install", "-q", *target, *source, f"{requirement}=={version}")

    first, second = blocks("bash")[:2]
    for line in (first + second).splitlines():
        command = line.split("#")[0].strip()
        if command.startswith("pip install"):
            install(command.removeprefix("pip install").strip(" '\""))
            if command == "pip install isthmus":
                (work / "first.py").write_text(blocks("python")[0])
                printed = run("python", "first.py", cwd=work, PATH=path)
                if printed != blocks("text")[0]:
                    sys.exit(f"README's first program prints something else:\n{printed}")
        elif command:
            run("sh", "-c", command, cwd=work, PATH=path)
    report = work / "report.html"
    if not report.is_file() or "cytoscape" not in report.read_text("utf-8"):
        sys.exit("README's commands wrote no interactive report.")
    return time.monotonic() - begin


def main(folder: Path) -> None:
    """Rehearse a release in a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    pythons = {v: p for v in TRIED_WITH if (p := interpreter(v))}
    built_for = {v: pythons[v] for v in BUILT_FOR if v in pythons}
    with (ROOT / "pyproject.toml").open("rb") as file:
        version = tomllib.load(file)["project"]["version"]
    run(sys.executable, "packaging/set_version.py", "--check", version)
    epoch = run("git", "log", "-1", "--format=%ct").strip()
    sources = folder / "sources"
    copy_tree(sources)
    for name in ("first", "second"):  # in folders of different length, whose names must not matter
        tree = folder / name / ("tree" if name == "first" else "another-tree")
        shutil.copytree(sources, tree)
        (folder / name / "dist").mkdir()
        for project in projects(tree):
            build(project, folder / name / "dist", built_for, epoch)
    if differing := differences(folder / "first/dist", folder / "second/dist"):
        sys.exit(f"Two builds differ: {', '.join(differing)}")
    files = sorted(f for f in (folder / "first/dist").iterdir() if not f.name.startswith("."))
    print("the same bytes twice:", *(f.name for f in files), sep="\n  ")
    check_metadata(files, version)
    ours = [f for f in files if f.name.startswith("isthmus-")]
    run(sys.executable, ".ci/check_wheel.py", *ours)
    make_index(files, folder / "index")
    for number, python in pythons.items():
        seconds = follow_readme(python, folder / "index", version, folder)
        print(f"Python {number}: from an empty environment to README's report in {seconds:.0f} s")
    others = [f"{name_of(p)}=={version}" for p in projects(ROOT)[1:]]
    others.append(f"isthmus[horizontal,privacy,vertical]=={version}")  # these pin one of them
    where = ("--python", folder / "environment/bin/python", "--index", (folder / "index").as_uri())
    run("uv", "pip", "install", "-q", "--dry-run", *where, *others)
    print("can be installed together:", ", ".join(others))
    if absent := [v for v in TRIED_WITH if v not in pythons]:
        print("not tried, because these are not here: Python", ", ".join(absent))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
