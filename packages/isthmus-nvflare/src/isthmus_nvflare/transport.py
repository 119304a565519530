"""Messages from the coordinator to sites as tasks of NVFlare, one per site and message."""

from __future__ import annotations

import math
import queue
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import final

from nvflare.apis.client import Client
from nvflare.apis.controller_spec import ClientTask, Task
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal

from isthmus.errors import AbortedError
from isthmus_joint import Roster, Timeouts
from isthmus_joint.transport.base import NodeTransport, Watcher
from isthmus_nvflare.settings import MESSAGE, TASK

CHECK = 0.5
"""Seconds between two checks of whether the job was aborted."""


@final
class NVFlareTransport(NodeTransport[str]):
    """Sites behind the clients of a job.

    Parameters
    ----------
    controller, context, abort
        What NVFlare gives to the job.
    roster, timeouts, watch
        As for `NodeTransport`.
    """

    look = 1.0

    def __init__(
        self,
        controller: Controller,
        context: FLContext,
        abort: Signal,
        roster: Roster,
        timeouts: Timeouts,
        watch: Watcher,
    ) -> None:
        super().__init__(roster, timeouts, watch)
        self._controller = controller
        self._context = context
        self._abort = abort

    def _nodes(self) -> Iterable[str]:
        self._require_running()
        clients: list[Client] = self._context.get_engine().get_clients()
        gone = self._controller.get_client_disconnect_time
        return [client.name for client in clients if gone(client.name) is None]

    def _send(self, messages: Mapping[str, bytes], seconds: float) -> Iterator[tuple[str, bytes]]:
        end = time.monotonic() + seconds
        answers: queue.SimpleQueue[tuple[str, Shareable | None]] = queue.SimpleQueue()
        tasks = {}
        for node, message in messages.items():
            tasks[node] = Task(
                TASK,
                Shareable({MESSAGE: message}),
                timeout=math.ceil(seconds),
                result_received_cb=partial(_answered, answers),
                task_done_cb=partial(_ended, answers, node),
            )
            self._controller.send(tasks[node], self._context, targets=[node])
        while tasks and (left := end - time.monotonic()) > 0:
            self._require_running()
            try:
                node, result = answers.get(timeout=min(left, CHECK))
            except queue.Empty:
                continue
            if tasks.pop(node, None) is not None and result is not None:
                answer = result.get(MESSAGE)
                if result.get_return_code() == ReturnCode.OK and isinstance(answer, bytes):
                    yield node, answer
        for task in tasks.values():
            self._controller.cancel_task(task, fl_ctx=self._context)

    def _require_running(self) -> None:
        if self._abort.triggered:
            raise AbortedError("The job was aborted. Submit it again to resume.")


def _answered(
    answers: queue.SimpleQueue[tuple[str, Shareable | None]], client_task: ClientTask, **_: object
) -> None:
    answers.put((client_task.client.name, client_task.result))


def _ended(
    answers: queue.SimpleQueue[tuple[str, Shareable | None]], node: str, **_: object
) -> None:
    """Note that a task has ended; without effect if its result has been received."""
    answers.put((node, None))
