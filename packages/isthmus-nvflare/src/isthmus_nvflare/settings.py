"""What only the operator of a machine decides: where its folders are."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Self, final

from nvflare.apis.fl_context import FLContext

from isthmus.errors import FormatError

FILE = "isthmus.json"
TASK = "isthmus"
"""The only task: a message to a site, and its answer."""

MESSAGE = "message"
"""Where a task and its result hold the bytes."""


@final
@dataclass(frozen=True)
class Settings:
    """The folders of a site or of the coordinator, from ``local/isthmus.json`` of its start-up kit.

    A job cannot change them: they are read from the machine, and never from the job.

    Attributes
    ----------
    home
        The private folder, with keys; that of a site also has the policy, ledger and extracts.
    study
        The folder of the study, with the signatures of all sites.
    """

    home: Path
    study: Path

    @classmethod
    def read(cls, context: FLContext) -> Self:
        """Read the settings of the machine on which this job runs."""
        path = Path(context.get_workspace().get_file_path_in_site_config(FILE))
        form = f'{{"home": "/absolute/path", "study": "/absolute/path"}} in {path}'
        try:
            given = json.loads(path.read_text(encoding="utf-8"))
            folders = {name: Path(given[name]) for name in ("home", "study")}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FormatError(
                f"The folders of Isthmus are not configured. Write {form}."
            ) from error
        if not all(folder.is_absolute() for folder in folders.values()):
            raise FormatError(f"The folders of Isthmus need absolute paths. Write {form}.")
        return cls(**folders)
