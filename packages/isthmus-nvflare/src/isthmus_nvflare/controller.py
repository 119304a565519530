"""At the server: runs a study over the clients of a job, and writes the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import final

from nvflare.apis.client import Client
from nvflare.apis.fl_context import FLContext
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal

from isthmus.errors import IsthmusError
from isthmus_joint import Study, Timeouts
from isthmus_joint.transport.base import Watcher
from isthmus_nvflare.settings import machine
from isthmus_nvflare.transport import NVFlareTransport


@final
class StudyController(Controller):
    """Does what `isthmus coordinator run` does, with NVFlare between the coordinator and the sites.

    The folders of the coordinator are those of ``local/isthmus.json`` at the server. The results
    are written into the folder of the job, from which ``nvflare job download`` fetches them.

    Parameters
    ----------
    outputs
        Names of the files for the result.
    options
        Values of some options of `isthmus coordinator run`, by name without hyphens in front.
    """

    def __init__(
        self,
        outputs: Sequence[str] = ("network.html",),
        options: Mapping[str, str | float] = {},
    ) -> None:
        super().__init__(task_check_period=0.05)
        self._outputs = tuple(outputs)
        self._options = dict(options)

    def start_controller(self, fl_ctx: FLContext) -> None:
        pass

    def control_flow(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        folder = Path(fl_ctx.get_workspace().get_run_dir(fl_ctx.get_job_id()))

        def connect(
            study: Study, timeouts: Timeouts, watch: Watcher
        ) -> AbstractContextManager[NVFlareTransport]:
            place = self, fl_ctx, abort_signal
            return nullcontext(NVFlareTransport(*place, study.roster, timeouts, watch))

        try:
            machine(fl_ctx).coordinate(connect, folder, self._outputs, self._options)
        except (IsthmusError, OSError) as error:
            self.system_panic(str(error), fl_ctx)

    def stop_controller(self, fl_ctx: FLContext) -> None:
        pass

    def process_result_of_unknown_task(
        self,
        client: Client,
        task_name: str,
        client_task_id: str,
        result: Shareable,
        fl_ctx: FLContext,
    ) -> None:
        """Ignore an answer that came too late: the site was silent."""
