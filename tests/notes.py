"""Expect the one warning that says that a result has notes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from isthmus.errors import NotesWarning


@contextmanager
def noted(match: str = "") -> Iterator[list[str]]:
    """Expect a warning that a result has notes, one of which matches; they are in the list then."""
    notes: list[str] = []
    with pytest.warns(NotesWarning) as said:
        yield notes
    for warning in said:
        assert isinstance(warning.message, NotesWarning)
        notes += warning.message.notes
    assert any(re.search(match, note) for note in notes), notes
