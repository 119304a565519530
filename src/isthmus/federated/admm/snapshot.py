"""The state of ADMM at a site as bytes, and back. Nothing is evaluated."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np

from isthmus.errors import LedgerError
from isthmus.federated.admm.consensus import Client

STATE = ("_multipliers", "_step", "_asked", "_own", "_rho")
"""What changes in a client from step to step. The rest follows from the data and the request."""


def snapshot(client: Client) -> bytes:
    """The state of a client."""
    held = {name: _plain(vars(client)[name]) for name in STATE}
    return json.dumps(held, separators=(",", ":")).encode()


def overlay(client: Client, data: bytes) -> None:
    """Put a state into a client that was just made."""
    try:
        found = {name: _value(plain) for name, plain in json.loads(data).items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LedgerError("The state that was kept cannot be read by this version.") from error
    vars(client).update(found)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value)
        if array.dtype.kind not in "biuf":
            raise TypeError(f"an array of {array.dtype} is not kept")
        data = base64.b64encode(array.tobytes()).decode()
        return {"array": array.dtype.str, "shape": list(array.shape), "data": data}
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"a {type(value).__name__} is not kept")


def _value(plain: Any) -> Any:
    if not isinstance(plain, dict):
        return plain
    if "array" in plain:
        data = base64.b64decode(plain["data"])
        return np.frombuffer(data, np.dtype(plain["array"])).reshape(plain["shape"]).copy()
    return base64.b64decode(plain["bytes"])
