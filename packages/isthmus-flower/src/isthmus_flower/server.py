"""At the SuperLink: runs a study over the nodes of a run, and writes the results."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from isthmus_flower.transport import FlowerTransport
from isthmus_joint import Study, Timeouts
from isthmus_joint.commands.hosted import FILE, Machine
from isthmus_joint.transport.base import Watcher

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Do what `isthmus coordinator run` does, with Flower between the coordinator and the sites.

    The folders of the coordinator are those of ``isthmus.json`` in ``FLWR_HOME`` of the SuperLink,
    by default ``~/.flwr``; a run cannot change them. The results are written into a folder for the
    run in the private folder of the coordinator.
    """

    def connect(
        study: Study, timeouts: Timeouts, watch: Watcher
    ) -> AbstractContextManager[FlowerTransport]:
        return nullcontext(FlowerTransport(grid, study.roster, timeouts, watch))

    options = {name: value for name, value in context.run_config.items() if value != ""}
    outputs = str(options.pop("outputs", "")).split()
    settings = Path(os.environ.get("FLWR_HOME") or Path.home() / ".flwr")
    coordinator = Machine.read(settings / FILE)
    results = coordinator.home / f"flower-{context.run_id}"
    results.mkdir(mode=0o700, exist_ok=True)
    coordinator.coordinate(connect, results, outputs, options)
