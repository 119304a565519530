"""Folders and processes for tests of federations, gone when a test ends."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.processes.companies import Companies
from tests.processes.hospitals import Hospitals


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path: sockets have no long ones."""
    with tempfile.TemporaryDirectory(prefix="ist", ignore_cleanup_errors=True) as name:
        yield Path(name)


@pytest.fixture
def hospitals(folder: Path) -> Iterator[Callable[..., Hospitals]]:
    """Makes a study over sites with tables of these sizes."""
    made: list[Hospitals] = []

    def make(*sizes: int, **options: Any) -> Hospitals:
        own = folder / f"{len(made)}" if made else folder
        own.mkdir(exist_ok=True)
        made.append(Hospitals(own, sizes, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def companies(folder: Path) -> Iterator[Callable[..., Companies]]:
    """Makes a study of two companies."""
    made: list[Companies] = []

    def make(**options: Any) -> Companies:
        made.append(Companies(folder, **options))
        return made[-1]

    yield make
    for each in made:
        each.show()
        each.close()
