"""At the coordinator: takes the task of its own run from the SuperLink, and relays messages.

Anyone who can connect to a SuperLink can submit an app, and by default Flower would run its code on
this machine. This program replaces that (``flower-superlink --isolation process``): it takes the
task of one run only, and does not run the code that came with it.

    python -m isthmus_relay.coordinator_runner HOST:PORT CA-FILE SECRET-FILE SOCKET RUN
"""

from __future__ import annotations

import socket
import sys
import time
from pathlib import Path

from flwr.common.constant import SubStatus
from flwr.common.serde import run_from_proto
from flwr.proto.runtime_pb2 import (
    AcquireTaskRequest,
    PullTaskInputRequest,
    PushTaskOutputRequest,
)
from flwr.supercore.constant import TaskType
from flwr.supercore.heartbeat import HeartbeatSender, make_task_heartbeat_fn_http
from flwr.supercore.interceptors import (
    RuntimeVersionHttpInterceptor,
    SuperExecAuthHttpInterceptor,
)
from flwr.supercore.retry import make_simple_http_retry_invoker
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supercore.task_identity import TaskIdentity
from flwr.superlink.grid import HttpGrid

from isthmus_relay.server import Relay

PAUSE = 0.2
"""Seconds between two requests for the task."""

ACQUIRE = "/flwr.proto.Runtime/AcquireTask"


def token_of(address: str, authority: bytes, secret: bytes, run: int) -> str:
    """Wait for the task of this run; tasks of other runs are left to expire."""
    client = RuntimeHttpClient.from_server_address(
        server_address=address,
        insecure=False,
        root_certificates=authority,
        interceptors=[
            RuntimeVersionHttpInterceptor(component_name="SuperExec"),
            SuperExecAuthHttpInterceptor(
                master_secret=secret, protected_methods=frozenset({ACQUIRE})
            ),
        ],
        retry_invoker=make_simple_http_retry_invoker(),
    )
    request = AcquireTaskRequest(supported_task_types=[TaskType.SERVER_APP])
    try:
        while True:
            response = client.AcquireTask(request)
            if response.HasField("task") and response.token and response.task.run_id == run:
                token: str = response.token
                return token
            time.sleep(PAUSE)
    finally:
        client.close()


def relay_messages(address: str, authority: bytes, token: str, path: str) -> None:
    """Relay messages until the coordinator's process ends or sends a stop message."""
    grid = HttpGrid(
        runtime_api_address=address, insecure=False, root_certificates=authority, token=token
    )
    client = grid._runtime_client  # noqa: SLF001 - Flower offers no other access to the task
    beats = HeartbeatSender(make_task_heartbeat_fn_http(client))
    beats.start()
    status = SubStatus.FAILED
    try:
        task = client.PullTaskInput(PullTaskInputRequest())
        TaskIdentity.task_id, TaskIdentity.run_id = task.task_id, task.run.run_id
        TaskIdentity.node_id = task.context.node_id
        grid.set_run(run_from_proto(task.run))
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(path)
            Relay(grid, connection).run()
        status = SubStatus.COMPLETED
    finally:
        client.PushTaskOutput(PushTaskOutputRequest(sub_status=status, details=""))
        beats.stop()
        grid.close()


if __name__ == "__main__":
    where, root, hidden, to, number = sys.argv[1:]
    trusted = Path(root).read_bytes()
    relay_messages(
        where, trusted, token_of(where, trusted, Path(hidden).read_bytes(), int(number)), to
    )
