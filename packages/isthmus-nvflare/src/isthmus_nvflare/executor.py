"""At a site: gives messages to the site's own controller, which decides what leaves."""

from __future__ import annotations

from typing import final

from nvflare.apis.event_type import EventType
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.signal import Signal

from isthmus.errors import IsthmusError
from isthmus_joint import SiteService
from isthmus_nvflare.settings import MESSAGE, TASK, machine

LOG = "nvflare.log"
"""File in the site's private folder that says why the site does not answer."""


@final
class SiteExecutor(Executor):
    """Answers the coordinator of a study with what the site's policy allows.

    Keys, policy, ledger and the frozen rows are in the site's private folder, which
    ``local/isthmus.json`` names. A site that does not take part says why only in its own folder:
    NVFlare sends its logs to the server.
    """

    def __init__(self) -> None:
        super().__init__()
        self._site: SiteService | None = None

    def execute(
        self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal
    ) -> Shareable:
        message = shareable.get(MESSAGE)
        if task_name != TASK or not isinstance(message, bytes):
            return make_reply(ReturnCode.TASK_UNKNOWN)
        site = self._answering(fl_ctx)
        if site is None:
            return make_reply(ReturnCode.SERVICE_UNAVAILABLE)
        reply = make_reply(ReturnCode.OK)
        reply[MESSAGE] = site.handle(message)
        return reply

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        if event_type == EventType.END_RUN and self._site is not None:
            self._site.close()
            self._site = None

    def _answering(self, context: FLContext) -> SiteService | None:
        """Return the service of the site; ``None`` while it cannot take part."""
        if self._site is None:
            try:
                self._site = machine(context).site(LOG)
            except (IsthmusError, OSError) as error:
                self.log_warning(context, str(error))
                return None
            if self._site is None:
                self.log_warning(context, f"Isthmus does not take part: see {LOG} in its folder.")
        return self._site
