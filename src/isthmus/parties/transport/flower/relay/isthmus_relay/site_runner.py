"""At a site: processes Flower's tasks one after another in one permanent process.

By default Flower starts one process per message and runs the code that the coordinator sent in it.
This program replaces that (``flower-supernode --isolation process``): it passes messages to the
site's own process, and runs no foreign code.

    python -m isthmus_relay.site_runner HOST:PORT SECRET-FILE SOCKET
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from flwr.app import Context, Message
from flwr.common.constant import SubStatus
from flwr.proto.message_pb2 import PullObjectRequest, PullObjectResponse
from flwr.proto.runtime_pb2 import AcquireTaskRequest
from flwr.supercore.constant import TaskType
from flwr.supercore.heartbeat import HeartbeatSender, make_task_heartbeat_fn_http
from flwr.supercore.interceptors import (
    RuntimeTokenHttpInterceptor,
    RuntimeVersionHttpInterceptor,
    SuperExecAuthHttpInterceptor,
)
from flwr.supercore.retry import make_simple_http_retry_invoker
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supernode.runtime.run_clientapp import pull_task_input, push_message, push_task_output

from isthmus_relay.client import relay

PAUSE = 0.3
"""Seconds between two requests for a task."""

PATIENCE = 30.0
"""Seconds to wait for the next part of a message."""

ACQUIRE = "/flwr.proto.Runtime/AcquireTask"


class Impatient:
    """A client that gives up on a message whose parts do not arrive.

    If a coordinator is killed while it sends a message, the rest of the message never arrives.
    Flower would wait for it for more than an hour, and take no other task in the meantime.
    """

    def __init__(self, client: RuntimeHttpClient, seconds: float = PATIENCE) -> None:
        self._client = client
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def PullObject(self, request: PullObjectRequest) -> PullObjectResponse:  # noqa: N802 - Flower's
        """Pull a part, or raise `TimeoutError` if none arrived for too long."""
        response: PullObjectResponse = self._client.PullObject(request)
        if response.object_available:
            self._end = time.monotonic() + self._seconds
        elif time.monotonic() > self._end:
            raise TimeoutError("a message did not arrive completely")
        return response


class Runner:
    """Processes the tasks of a SuperNode on this machine."""

    def __init__(self, address: str, secret: bytes, socket: str) -> None:
        self._address = address
        self._socket = socket
        self._client = RuntimeHttpClient.from_server_address(
            server_address=address,
            insecure=True,  # within this machine
            root_certificates=None,
            interceptors=[
                RuntimeVersionHttpInterceptor(component_name="SuperExec"),
                SuperExecAuthHttpInterceptor(
                    master_secret=secret, protected_methods=frozenset({ACQUIRE})
                ),
            ],
            retry_invoker=make_simple_http_retry_invoker(),
        )

    def run(self) -> None:
        """Process tasks until this process is stopped."""
        request = AcquireTaskRequest(supported_task_types=[TaskType.CLIENT_APP])
        while True:
            response = self._client.AcquireTask(request)
            if response.HasField("task") and response.token:
                self._task(response.token)
            else:
                time.sleep(PAUSE)

    def _task(self, token: str) -> None:
        client = RuntimeHttpClient.from_server_address(
            server_address=self._address,
            insecure=True,
            root_certificates=None,
            interceptors=[
                RuntimeVersionHttpInterceptor(component_name="flwr-clientapp"),
                RuntimeTokenHttpInterceptor(token),
            ],
            retry_invoker=make_simple_http_retry_invoker(),
        )
        beats = HeartbeatSender(make_task_heartbeat_fn_http(client))
        context, status = None, SubStatus.FAILED
        beats.start()
        try:
            # The code that came with the task is not even saved.
            impatient: Any = Impatient(client)
            message, context, _, _ = pull_task_input(impatient)
            push_message(client, self._answer(message, context), context)
            status = SubStatus.COMPLETED
        except Exception as error:  # noqa: BLE001 - one bad task must not end the process
            sys.stderr.write(f"a task failed: {type(error).__name__}\n")
        finally:
            push_task_output(client, context, status, "")
            beats.stop()
            client.close()

    def _answer(self, message: Message, context: Context) -> Message:
        context.node_config["socket"] = self._socket
        answer: Message = relay(message, context)
        return answer


if __name__ == "__main__":
    where, hidden, path = sys.argv[1:]
    Runner(where, Path(hidden).read_bytes(), path).run()
