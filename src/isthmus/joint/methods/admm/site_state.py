"""The state of ADMM at a site."""

from __future__ import annotations

import base64
import copy
import json
from typing import Any, Protocol, Self, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import LedgerError, RefusedError
from isthmus.joint.federation.requests.base import Contribution, MethodState
from isthmus.joint.methods.admm.clients import Client
from isthmus.sources.base import Source
from isthmus.statistics import Moments

SAVED = ("_multipliers", "_step", "_asked", "_own", "_rho")
"""The attributes of a client that change between steps. The others follow from the data."""


class StepRequest(Protocol):
    """Interface of a request for one step of ADMM."""

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables."""

    @property
    def step(self) -> int:
        """Number of the step."""

    @property
    def rho(self) -> float:
        """Penalty on disagreement."""

    def common(self) -> NDArray[np.float64]:
        """Return the common parameters."""

    def client(self, source: Source, moments: Moments) -> Client:
        """Return the site at the beginning of the first step."""


@final
class ADMMState(MethodState):
    """The client of ADMM at a site, and the moments that every step uses."""

    def __init__(self) -> None:
        self._client: Client | None = None
        self._saved = b""
        self._moments: dict[tuple[str, ...], Moments] = {}

    def answer(self, request: StepRequest, source: Source) -> Contribution[NDArray[np.float64]]:
        """Compute one step."""
        names = request.variables
        if names not in self._moments:
            self._moments[names] = source.moments(names)
        moments = self._moments[names]
        client = self._client
        if client is None and self._saved:
            client = request.client(source, moments)
            restore_client(client, self._saved)
        if request.step == 1 and (client is None or client.step > 1):
            client = request.client(source, moments)
        if client is None:
            raise RefusedError("The first request of ADMM must be for step 1.")
        parameters = client.answer(request.step, request.common(), request.rho)
        self._client = client
        return Contribution(moments, parameters)

    def copy(self) -> Self:
        twin = type(self)()
        vars(twin).update(vars(self) | {"_client": copy.copy(self._client)})
        return twin

    def to_bytes(self) -> bytes:
        return self._saved if self._client is None else save_client(self._client)

    def restore(self, data: bytes) -> None:
        self._saved = data


def save_client(client: Client) -> bytes:
    """Return the state of a client."""
    state = {name: _plain(vars(client)[name]) for name in SAVED}
    return json.dumps(state, separators=(",", ":")).encode()


def restore_client(client: Client, data: bytes) -> None:
    """Set the state of a new client; nothing in the data is evaluated."""
    try:
        state = {name: _value(plain) for name, plain in json.loads(data).items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LedgerError("The saved state of ADMM cannot be read by this version.") from error
    vars(client).update(state)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value)
        if array.dtype.kind not in "biuf":
            raise TypeError(f"arrays of {array.dtype} cannot be saved")
        data = base64.b64encode(array.tobytes()).decode()
        return {"array": array.dtype.str, "shape": list(array.shape), "data": data}
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"values of type {type(value).__name__} cannot be saved")


def _value(plain: Any) -> Any:
    if not isinstance(plain, dict):
        return plain
    if "array" in plain:
        data = base64.b64decode(plain["data"])
        return np.frombuffer(data, np.dtype(plain["array"])).reshape(plain["shape"]).copy()
    return base64.b64decode(plain["bytes"])
