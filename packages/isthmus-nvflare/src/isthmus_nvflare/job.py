"""``isthmus-nvflare-job``: write the folder of a job for ``nvflare job submit``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from isthmus_joint.commands.hosted import OPTIONS

INTERVAL = 0.05
"""Seconds after which a site asks for its next task; most of the time of an exchange."""


def write_job(
    folder: Path, name: str, sites: int, outputs: Sequence[str], options: dict[str, str]
) -> None:
    """Write the configuration of a job. It contains no code, so no site needs to allow any.

    Parameters
    ----------
    folder
        The new folder of the job.
    name
        The name that NVFlare lists.
    sites
        Number of sites; the job starts when as many are connected.
    outputs, options
        As for `StudyController`.
    """
    controller = {
        "path": "isthmus_nvflare.StudyController",
        "args": {"outputs": list(outputs), "options": options},
    }
    files: dict[str, Any] = {
        "meta.json": {"name": name, "min_clients": sites, "deploy_map": {"app": ["@ALL"]}},
        "app/config/config_fed_server.json": {
            "format_version": 2,
            "server": {"task_request_interval": INTERVAL},
            "workflows": [{"id": "isthmus", **controller}],
        },
        "app/config/config_fed_client.json": {
            "format_version": 2,
            "executors": [
                {"tasks": ["isthmus"], "executor": {"path": "isthmus_nvflare.SiteExecutor"}}
            ],
        },
    }
    for file, content in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="isthmus-nvflare-job", description="Write the folder of a job that runs a study."
    )
    parser.add_argument("folder", type=Path, help="new folder of the job")
    parser.add_argument("--name", default="isthmus", help="name of the job")
    parser.add_argument("--sites", type=int, required=True, help="number of sites of the study")
    parser.add_argument(
        "-o", "--output", action="append", metavar="NAME", help="file for the result; repeatable"
    )
    for name in OPTIONS:
        parser.add_argument(f"--{name}", help="as for isthmus coordinator run")
    given = vars(parser.parse_args(arguments))
    options = {n: v for n in OPTIONS if (v := given[n.replace("-", "_")]) is not None}
    outputs = given["output"] or ["network.html"]
    write_job(given["folder"], given["name"], given["sites"], outputs, options)
    return 0
