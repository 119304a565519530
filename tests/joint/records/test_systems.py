"""Systems that cannot lock files, such as Windows."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from isthmus.errors import FederationError
from isthmus_joint.records.journal import FileJournal, FolderLock


def test_a_sentence_instead_of_a_missing_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with pytest.raises(FederationError, match="WSL"):
        FileJournal(tmp_path / "journal")
    with pytest.raises(FederationError, match="WSL"):
        FolderLock(tmp_path, "isthmus site join")
