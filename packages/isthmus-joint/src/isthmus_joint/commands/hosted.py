"""Studies inside another system for federated computing, which carries the messages.

Packages such as isthmus-nvflare and isthmus-flower need this and a `NodeTransport`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self, final

from isthmus.errors import FormatError, IsthmusError
from isthmus_joint.commands.coordinator import Connect
from isthmus_joint.commands.site import site_service

if TYPE_CHECKING:
    from isthmus_joint.federation.site_controller import SiteService

FILE = "isthmus.json"
"""File with the folders of a machine, among the settings of the other system."""

OPTIONS = ("answer", "gather", "missing", "pause", "score", "search", "seed", "time-limit")
"""Options of `isthmus coordinator run` that a job may set. None of them names a file."""


@final
@dataclass(frozen=True)
class Machine:
    """The folders of a site or of the coordinator, which the operator of its machine decides.

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
    def read(cls, path: Path) -> Self:
        """Read the file of a machine, which no job can change."""
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

    def coordinate(
        self,
        connect: Connect,
        results: Path,
        outputs: Sequence[str],
        options: Mapping[str, str | float],
    ) -> None:
        """Do what `isthmus coordinator run` does, over the transport of the other system.

        Parameters
        ----------
        options
            Values of some options of the command, by name without hyphens in front.
        """
        from isthmus.cli.app import parser

        if folders := [name for name in outputs if not name or Path(name).name != name]:
            raise FormatError(f"Outputs are names of files, without a folder: {folders} are not.")
        if unknown := sorted(set(options) - set(OPTIONS)):
            raise FormatError(f"A job cannot set {unknown}; it can set {list(OPTIONS)}.")
        given = ["coordinator", "run", str(self.home), str(self.study)]
        given += [word for name in outputs for word in ("-o", str(results / name))]
        given += [f"--{name}={value}" for name, value in options.items()]
        parsed = parser(given).parse_args(given)
        parsed.connect = connect
        parsed.run(parsed)

    def site(self, log: str) -> SiteService | None:
        """Return the service of the site; ``None`` if it cannot take part.

        The reason is added to the file `log` in the private folder, and does not leave the site.
        """
        try:
            service: SiteService = site_service(self.home, self.study)
        except (IsthmusError, OSError) as error:
            with (self.home / log).open("a", encoding="utf-8") as file:
                file.write(f"{datetime.now():%Y-%m-%d %H:%M:%S} {error}\n")
            return None
        return service
