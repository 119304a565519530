"""Where NVFlare keeps what only the operator of a machine decides, and the names of a message."""

from __future__ import annotations

from pathlib import Path

from nvflare.apis.fl_context import FLContext

from isthmus_joint.commands.hosted import FILE, Machine

TASK = "isthmus"
"""The only task: a message to a site, and its answer."""

MESSAGE = "message"
"""Where a task and its result hold the bytes."""


def machine(context: FLContext) -> Machine:
    """Return the folders of this machine, from ``local/isthmus.json`` of its start-up kit."""
    return Machine.read(Path(context.get_workspace().get_file_path_in_site_config(FILE)))
